"""Kernels that numba-cuda compiles to the PTX beside this file: `python numba_kernels.py`."""

from __future__ import annotations

import math
import re
from pathlib import Path

from numba import cuda, float32, float64, int32, types, uint8, uint32, void

HERE = Path(__file__).parent


def pointer(element):
    return types.CPointer(element)


def numba_saxpy(a, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


def numba_reduce(x, out, n):
    scratch = cuda.shared.array(128, float32)
    thread = cuda.threadIdx.x
    total = float32(0)
    i = cuda.grid(1)
    while i < n:
        total += x[i]
        i += cuda.gridsize(1)
    scratch[thread] = total
    cuda.syncthreads()
    step = 64
    while step > 0:
        if thread < step:
            scratch[thread] += scratch[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        out[cuda.blockIdx.x] = scratch[0]


def numba_mandelbrot(out, width, height, rounds):
    i = cuda.grid(1)
    if i < width * height:
        cx = -2.0 + 3.0 * (i % width) / width
        cy = -1.0 + 2.0 * (i // width) / height
        x = 0.0
        y = 0.0
        count = 0
        while count < rounds and x * x + y * y < 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            count += 1
        out[i] = count


def numba_warp_scan(x, out):
    lane = cuda.laneid
    value = x[cuda.grid(1)]
    step = 1
    while step < 32:
        below = cuda.shfl_up_sync(0xFFFFFFFF, value, step)
        if lane >= step:
            value += below
        step *= 2
    out[cuda.grid(1)] = value


def numba_histogram(x, out, n):
    bins = cuda.shared.array(256, uint32)
    i = cuda.threadIdx.x
    while i < 256:
        bins[i] = 0
        i += cuda.blockDim.x
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < n:
        cuda.atomic.add(bins, x[i], 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    i = cuda.threadIdx.x
    while i < 256:
        cuda.atomic.add(out, i, bins[i])
        i += cuda.blockDim.x


def numba_math(x, out, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        out[i] = (
            math.sin(v) + math.exp(-v * v) + math.log1p(abs(v)) + math.erf(v) + math.sqrt(abs(v))
        )


KERNELS = {
    numba_saxpy: (float32, pointer(float32), pointer(float32), int32),
    numba_reduce: (pointer(float32), pointer(float32), int32),
    numba_mandelbrot: (pointer(int32), int32, int32, int32),
    numba_warp_scan: (pointer(int32), pointer(int32)),
    numba_histogram: (pointer(uint8), types.CPointer(uint32), int32),
    numba_math: (pointer(float64), pointer(float64), int32),
}


def main() -> None:
    for kernel, arguments in KERNELS.items():
        if kernel is numba_histogram:
            arguments = (uint8[::1], uint32[::1], int32)
        text = cuda.compile(
            kernel, void(*arguments), device=False, cc=(7, 5), abi="numba", output="ptx"
        )[0]
        name = kernel.__name__
        mangled = re.search(r"\.visible \.entry (\S+?)\(", text)[1]
        text = text.replace(mangled, name)
        # NVVM names the package in a comment; nothing of it is needed.
        lines = [line.rstrip() for line in text.rstrip("\0").splitlines()]
        lines = [line for line in lines if line and not line.startswith("//")]
        (HERE / f"{name}.ptx").write_text("\n".join(lines) + "\n")
        print(name, len(text))


if __name__ == "__main__":
    main()
