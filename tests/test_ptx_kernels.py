"""Whole kernels, compiled by Triton, numba, NVRTC and clang or written by hand, against NumPy.

The PTX lies in ``data/ptx`` beside the scripts and sources that it was made from.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudamod import Buffer, Kernel, LaunchConfig, ObjectCode, Stream, launch

DATA = Path(__file__).parent / "data" / "ptx"
Array = NDArray[Any]


class Bench:
    """Runs kernels of ``data/ptx`` on a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.random = np.random.default_rng(5)

    def kernel(self, file: str, name: str | None = None) -> Kernel:
        text = (DATA / f"{file}.ptx").read_bytes()
        target = re.search(rb"\.target sm_(\d+)", text)
        assert target
        major, minor = self.stream.device.compute_capability
        if int(target[1]) > 10 * major + minor:
            pytest.skip(f"needs sm_{target[1].decode()}")
        return ObjectCode.from_ptx(text).get_kernel(name or file)

    def upload(self, array: Array) -> Buffer:
        buffer = self.stream.device.allocate(array.nbytes, stream=self.stream)
        buffer.copy_from(np.ascontiguousarray(array).tobytes(), stream=self.stream)
        return buffer

    def zeros(self, count: int, dtype: Any = np.float32) -> Buffer:
        return self.upload(np.zeros(count, dtype))

    def download(self, buffer: Buffer, dtype: Any = np.float32) -> Array:
        data = bytearray(buffer.size)
        buffer.copy_to(data, stream=self.stream)
        self.stream.sync()
        return np.frombuffer(bytes(data), dtype)

    def run(
        self,
        kernel: Kernel,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        cluster: int | None = None,
    ) -> None:
        config = LaunchConfig(grid=grid, block=block, shmem_size=shared, cluster=cluster)
        launch(self.stream, config, kernel, *arguments)
        self.stream.sync()

    def triton(
        self,
        file: str,
        programs: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        name: str | None = None,
    ) -> None:
        """Four warps; two scratch pointers that only profiling uses come last."""
        kernel = self.kernel(file, name)
        self.run(kernel, programs, 128, *arguments, None, None, shared=shared)

    def floats(self, *shape: int) -> Array:
        return self.random.standard_normal(shape).astype(np.float32)

    def integers(self, low: int, high: int, count: int, dtype: Any = np.int32) -> Array:
        return self.random.integers(low, high, count).astype(dtype)


@pytest.fixture
def bench(stream: Stream) -> Bench:
    return Bench(stream)


def bfloat(values: Array) -> Array:
    """Round to nearest even; the upper halves of float32."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded: Array = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def from_bfloat(values: Array) -> Array:
    widened: Array = (values.astype(np.uint32) << 16).view(np.float32)
    return widened


def fp8_values(exponent_bits: int, finite_only: bool) -> Array:
    """What the 128 codes without a sign stand for; NaN and infinity are infinite."""
    mantissa_bits = 7 - exponent_bits
    bias = 2 ** (exponent_bits - 1) - 1
    codes = np.arange(128)
    exponents, mantissas = codes >> mantissa_bits, codes & (2**mantissa_bits - 1)
    values: Array = np.where(
        exponents == 0,
        mantissas * 2.0 ** (1 - bias - mantissa_bits),
        (1 + mantissas / 2**mantissa_bits) * 2.0 ** (exponents - float(bias)),
    )
    values[127 if finite_only else 124 :] = np.inf
    return values


def to_fp8(values: Array, exponent_bits: int, finite_only: bool) -> Array:
    """Codes, rounded to the nearest even one and saturated."""
    table = fp8_values(exponent_bits, finite_only)
    table = table[np.isfinite(table)]
    magnitude = np.minimum(np.abs(values.astype(np.float64)), table[-1])
    above = np.searchsorted(table, magnitude)
    above = np.clip(above, 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    middle = (low + high) / 2
    up = (magnitude > middle) | ((magnitude == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    signed: Array = (code | (np.signbit(values).astype(np.int64) << 7)).astype(np.uint8)
    return signed


def from_fp8(codes: Array, exponent_bits: int, finite_only: bool) -> Array:
    values = fp8_values(exponent_bits, finite_only)[codes & 127]
    signed: Array = np.where(codes & 128, -values, values)
    return signed


# Triton


def test_triton_add(bench: Bench) -> None:
    n = 1000
    x, y = bench.floats(n), bench.floats(n)
    out = bench.zeros(n)
    bench.triton("triton_add", 4, bench.upload(x), bench.upload(y), out, n)
    np.testing.assert_array_equal(bench.download(out), x + y)


def test_triton_softmax(bench: Bench) -> None:
    x = bench.floats(6, 200)
    out = bench.zeros(x.size)
    bench.triton("triton_softmax", 6, bench.upload(x), out, 200, shared=16)
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(bench.download(out).reshape(x.shape), expected, rtol=1e-5)


def test_triton_layernorm(bench: Bench) -> None:
    x, weight, bias = bench.floats(5, 250), bench.floats(250), bench.floats(250)
    out = bench.zeros(x.size)
    arguments = [bench.upload(array) for array in (x, weight, bias)]
    bench.triton("triton_layernorm", 5, *arguments, out, 250, shared=16)
    centered = x - x.mean(axis=1, keepdims=True)
    scale = np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = centered / scale * weight + bias
    np.testing.assert_allclose(bench.download(out).reshape(x.shape), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32"])
def test_triton_matmul(bench: Bench, kind: str) -> None:
    m, n, k = 64, 32, 96
    a, b = bench.floats(m, k), bench.floats(k, n)
    if kind == "f16":
        left, right = a.astype(np.float16), b.astype(np.float16)
        a, b = left.astype(np.float32), right.astype(np.float32)
    elif kind == "bf16":
        left, right = bfloat(a), bfloat(b)
        a, b = from_bfloat(left), from_bfloat(right)
    else:
        left, right = a, b
    out = bench.zeros(m * n)
    arguments = [bench.upload(left), bench.upload(right), out, m, n, k]
    shared = 16384 if kind == "tf32" else 4096
    grid = (m // 32, n // 32)
    bench.triton(f"triton_matmul_{kind}", grid, *arguments, shared=shared, name="triton_matmul")
    tolerance = 2e-2 if kind == "tf32" else 1e-4
    np.testing.assert_allclose(
        bench.download(out).reshape(m, n), a @ b, rtol=tolerance, atol=tolerance
    )


def test_triton_scan(bench: Bench) -> None:
    x = bench.integers(-50, 50, 512, np.float32)
    out = bench.zeros(512)
    bench.triton("triton_scan", 1, bench.upload(x), out, shared=64)
    np.testing.assert_array_equal(bench.download(out), np.cumsum(x))


def test_triton_histogram(bench: Bench) -> None:
    x = bench.integers(0, 64, 1024)
    out = bench.zeros(64, np.int32)
    bench.triton("triton_histogram", 4, bench.upload(x), out, 1024, shared=256)
    np.testing.assert_array_equal(bench.download(out, np.int32), np.bincount(x, minlength=64))


def test_triton_sort(bench: Bench) -> None:
    x = bench.integers(-(2**31), 2**31, 256)
    out = bench.zeros(256, np.int32)
    bench.triton("triton_sort", 1, bench.upload(x), out, shared=1024)
    np.testing.assert_array_equal(bench.download(out, np.int32), np.sort(x))


def test_triton_transpose(bench: Bench) -> None:
    x = bench.floats(32, 64).astype(np.float16)
    out = bench.zeros(x.size, np.float16)
    bench.triton("triton_transpose", 1, bench.upload(x), out, shared=4096)
    np.testing.assert_array_equal(bench.download(out, np.float16).reshape(64, 32), x.T)


def test_triton_fp8(bench: Bench) -> None:
    x = np.concatenate(
        [bench.floats(500) * 100, np.array([0, -0.0, 1e-9, 500, -1e9, 448], np.float32)]
    )
    x = np.resize(x, 512).astype(np.float32)
    out = bench.zeros(512)
    bench.triton("triton_fp8", 2, bench.upload(x), out)
    expected = from_fp8(to_fp8(x, 4, True), 4, True)
    np.testing.assert_array_equal(bench.download(out), expected)


def test_triton_atomic_max(bench: Bench) -> None:
    x = bench.integers(-(2**31), 2**31, 900)
    out = bench.upload(np.array([-(2**31)], np.int32))
    bench.triton("triton_atomic_max", 4, bench.upload(x), out, 900, shared=16)
    assert bench.download(out, np.int32)[0] == x.max()


def test_triton_attention(bench: Bench) -> None:
    q, k, v = (bench.floats(32, 32).astype(np.float16) for _ in range(3))
    out = bench.zeros(32 * 32)
    arguments = [bench.upload(array) for array in (q, k, v)]
    bench.triton("triton_attention", 1, *arguments, out, np.float32(0.25), shared=4096)
    left, right, value = (array.astype(np.float32) for array in (q, k, v))
    scores = left @ right.T * 0.25
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(
        bench.download(out).reshape(32, 32), weights @ value, rtol=5e-3, atol=5e-3
    )


def test_triton_bf16_sum(bench: Bench) -> None:
    x = bench.integers(-8, 8, 512, np.float32)
    out = bench.zeros(128, np.uint16)
    bench.triton("triton_bf16_sum", 4, bench.upload(bfloat(x)), out)
    expected = x.reshape(4, 128).sum(axis=0)
    np.testing.assert_array_equal(from_bfloat(bench.download(out, np.uint16)), expected)


# numba


def test_numba_saxpy(bench: Bench) -> None:
    x, y = bench.floats(1000), bench.floats(1000)
    out = bench.upload(y)
    kernel = bench.kernel("numba_saxpy")
    bench.run(kernel, 8, 128, np.float32(2.5), bench.upload(x), out, 1000)
    exact = (2.5 * x.astype(np.float64) + y).astype(np.float32)
    np.testing.assert_array_equal(bench.download(out), exact)


def test_numba_reduce(bench: Bench) -> None:
    x = bench.integers(-100, 100, 5000, np.float32)
    out = bench.zeros(4)
    bench.run(bench.kernel("numba_reduce"), 4, 128, bench.upload(x), out, 5000)
    assert bench.download(out).sum() == x.sum()


def test_numba_mandelbrot(bench: Bench) -> None:
    width, height, rounds = 40, 30, 50
    out = bench.zeros(width * height, np.int32)
    kernel = bench.kernel("numba_mandelbrot")
    bench.run(kernel, 10, 128, out, width, height, rounds)
    found = bench.download(out, np.int32)
    i = np.arange(width * height)
    c = (-2 + 3 * (i % width) / width) + 1j * (-1 + 2 * (i // width) / height)
    z = np.zeros_like(c)
    counts = np.zeros(i.size, np.int32)
    for _ in range(rounds):
        inside = np.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        counts += inside
    # A point on the edge may fall to either side.
    assert (found != counts).sum() <= 5


def test_numba_warp_scan(bench: Bench) -> None:
    x = bench.integers(-1000, 1000, 256)
    out = bench.zeros(256, np.int32)
    bench.run(bench.kernel("numba_warp_scan"), 2, 128, bench.upload(x), out)
    expected = np.cumsum(x.reshape(-1, 32), axis=1).ravel()
    np.testing.assert_array_equal(bench.download(out, np.int32), expected)


def test_numba_histogram(bench: Bench) -> None:
    x = bench.integers(0, 256, 3000, np.uint8)
    out = bench.zeros(256, np.uint32)

    def array(buffer: Buffer, array: Array) -> list[Any]:
        # numba's arrays: meminfo, parent, count, element size, data, shape, strides
        return [None, None, array.size, array.itemsize, buffer, array.size, array.itemsize]

    kernel = bench.kernel("numba_histogram")
    arguments = array(bench.upload(x), x) + array(out, np.zeros(256, np.uint32))
    bench.run(kernel, 4, 128, *arguments, 3000)
    np.testing.assert_array_equal(bench.download(out, np.uint32), np.bincount(x, minlength=256))


def test_numba_math(bench: Bench) -> None:
    x = np.linspace(-6, 6, 500)
    out = bench.zeros(500, np.float64)
    bench.run(bench.kernel("numba_math"), 4, 128, bench.upload(x), out, 500)
    erf = np.array([math.erf(v) for v in x])
    expected = np.sin(x) + np.exp(-x * x) + np.log1p(np.abs(x)) + erf + np.sqrt(np.abs(x))
    np.testing.assert_allclose(bench.download(out, np.float64), expected, rtol=1e-14, atol=1e-15)


# NVRTC


def test_nvrtc_wmma_f16(bench: Bench) -> None:
    n = 48
    a, b = bench.floats(n, n).astype(np.float16), bench.floats(n, n).astype(np.float16)
    out = bench.zeros(n * n)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_wmma_f16")
    bench.run(kernel, (3, 3), 32, bench.upload(a), bench.upload(b.T), out, n)
    expected = a.astype(np.float64) @ b.astype(np.float64) / 2
    np.testing.assert_allclose(bench.download(out).reshape(n, n), expected, rtol=5e-5, atol=5e-5)


def test_nvrtc_wmma_s8(bench: Bench) -> None:
    a = bench.integers(-128, 128, 32 * 16, np.int8).reshape(32, 16)
    b = bench.integers(-128, 128, 16 * 8, np.int8).reshape(16, 8)
    c = bench.integers(-1000, 1000, 32 * 8).reshape(32, 8)
    out = bench.upload(c)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_wmma_s8")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b.T), out)
    expected = a.astype(np.int32) @ b.astype(np.int32) + c
    np.testing.assert_array_equal(bench.download(out, np.int32).reshape(32, 8), expected)


def test_nvrtc_wmma_f64(bench: Bench) -> None:
    a, b = bench.random.standard_normal((8, 16)), bench.random.standard_normal((16, 8))
    out = bench.zeros(64, np.float64)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_wmma_f64")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b), out)
    found = bench.download(out, np.float64).reshape(8, 8).T
    np.testing.assert_allclose(found, a @ b, rtol=1e-13, atol=1e-14)


def test_nvrtc_fp8(bench: Bench) -> None:
    x = np.concatenate(
        [bench.floats(500) * 50, np.array([0, -0.0, 1e-8, 460, 1e6, -60000, 3], np.float32)]
    )
    n = x.size
    e4m3, e5m2, back = bench.zeros(n, np.uint8), bench.zeros(n, np.uint8), bench.zeros(n)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_fp8")
    bench.run(kernel, 4, 128, bench.upload(x), e4m3, e5m2, back, n)
    narrow, wide = to_fp8(x, 4, True), to_fp8(x, 5, False)
    np.testing.assert_array_equal(bench.download(e4m3, np.uint8), narrow)
    np.testing.assert_array_equal(bench.download(e5m2, np.uint8), wide)
    expected = (from_fp8(narrow, 4, True) + from_fp8(wide, 5, False)).astype(np.float32)
    np.testing.assert_array_equal(bench.download(back), expected)


def test_nvrtc_bf16(bench: Bench) -> None:
    x, y = bfloat(bench.floats(500)), bfloat(bench.floats(500))
    out = bench.zeros(500, np.uint16)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_bf16")
    bench.run(kernel, 2, 128, bench.upload(x), bench.upload(y), out, 250)
    a, b = from_bfloat(x).astype(np.float64), from_bfloat(y).astype(np.float64)
    expected = np.maximum(from_bfloat(bfloat(a * b + a)), -b.astype(np.float32))
    np.testing.assert_array_equal(from_bfloat(bench.download(out, np.uint16)), expected)


def test_nvrtc_half_reduce(bench: Bench) -> None:
    x = bench.integers(-8, 8, 4000, np.float16)
    out = bench.zeros(1)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_half_reduce")
    bench.run(kernel, 4, 128, bench.upload(x), out, 2000)
    assert bench.download(out)[0] == (x.astype(np.float64) ** 2).sum()


def test_nvrtc_float_math(bench: Bench) -> None:
    x = np.linspace(-20, 20, 700).astype(np.float32)
    out = bench.zeros(700)
    kernel = bench.kernel("nvrtc_kernels", "nvrtc_float_math")
    bench.run(kernel, 6, 128, bench.upload(x), out, 700)
    v = x.astype(np.float64)
    expected = (
        np.sin(v) * np.cos((3 * x).astype(np.float64))
        + np.exp(-np.abs(v))
        + np.log(1 + v * v)
        + np.abs(v) ** np.float64(np.float32(0.3))
        + np.tanh(v)
        + np.fmod(x, np.float32(0.7))
        + 1 / np.sqrt(1 + v * v)
    )
    np.testing.assert_allclose(bench.download(out), expected, rtol=1e-5, atol=1e-5)


def test_nvrtc_scan(bench: Bench) -> None:
    x = bench.integers(-1000, 1000, 512)
    out = bench.upload(x)
    bench.run(bench.kernel("nvrtc_kernels", "nvrtc_scan"), 1, 256, out)
    expected = np.concatenate([[0], np.cumsum(x)[:-1]])
    np.testing.assert_array_equal(bench.download(out, np.int32), expected)


# clang


def test_clang_convolution(bench: Bench) -> None:
    x = bench.integers(-64, 64, 30 * 20, np.float32).reshape(20, 30)
    out = bench.zeros(x.size)
    kernel = bench.kernel("clang_kernels", "clang_convolution")
    bench.run(kernel, 5, 128, bench.upload(x), out, 30, 20)
    weights = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32) / 16
    padded = np.pad(x, 1)
    expected = sum(
        weights[i, j] * padded[i : i + 20, j : j + 30] for i in range(3) for j in range(3)
    )
    np.testing.assert_array_equal(bench.download(out).reshape(20, 30), expected)


def test_clang_transpose(bench: Bench) -> None:
    x = bench.integers(0, 10000, 64 * 64).reshape(64, 64)
    out = bench.zeros(x.size, np.int32)
    kernel = bench.kernel("clang_kernels", "clang_transpose")
    bench.run(kernel, (4, 4), 256, bench.upload(x), out, 64)
    np.testing.assert_array_equal(bench.download(out, np.int32).reshape(64, 64), x.T)


def test_clang_bitonic_sort(bench: Bench) -> None:
    x = bench.integers(0, 2**32, 256, np.uint32)
    out = bench.upload(x)
    bench.run(bench.kernel("clang_kernels", "clang_bitonic_sort"), 1, 256, out, 256)
    np.testing.assert_array_equal(bench.download(out, np.uint32), np.sort(x))


def test_clang_matmul(bench: Bench) -> None:
    a, b = bench.random.standard_normal((24, 24)), bench.random.standard_normal((24, 24))
    out = bench.zeros(24 * 24, np.float64)
    kernel = bench.kernel("clang_kernels", "clang_matmul")
    bench.run(kernel, (3, 3), 64, bench.upload(a), bench.upload(b), out, 24)
    found = bench.download(out, np.float64).reshape(24, 24)
    np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-13)


def test_clang_collatz(bench: Bench) -> None:
    out = bench.zeros(300, np.uint32)
    bench.run(bench.kernel("clang_kernels", "clang_collatz"), 3, 128, out, 300)

    def steps(x: int) -> int:
        count = 0
        while x != 1:
            x, count = (x // 2 if x % 2 == 0 else 3 * x + 1), count + 1
        return count

    assert bench.download(out, np.uint32).tolist() == [steps(n + 1) for n in range(300)]


def test_clang_nbody(bench: Bench) -> None:
    bodies = bench.floats(100, 4)
    bodies[:, 3] = np.abs(bodies[:, 3])
    out = bench.zeros(bodies.size)
    kernel = bench.kernel("clang_kernels", "clang_nbody")
    bench.run(kernel, 1, 128, bench.upload(bodies), out, 100)
    place, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    between = place[None] - place[:, None]
    square = (between**2).sum(axis=2) + 0.01
    force = (between * (mass / square**1.5)[..., None]).sum(axis=1)
    found = bench.download(out).reshape(100, 4)
    np.testing.assert_allclose(found[:, :3], force, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found[:, 3], bodies[:, 3])


def test_clang_ackermann(bench: Bench) -> None:
    out = bench.zeros(12, np.int32)
    bench.run(bench.kernel("clang_kernels", "clang_ackermann"), 1, 12, out)
    expected = [n + 1 for n in range(4)] + [n + 2 for n in range(4)] + [2 * n + 3 for n in range(4)]
    assert bench.download(out, np.int32).tolist() == expected


def test_clang_dispatch(bench: Bench) -> None:
    kinds, values = bench.integers(0, 9, 500), bench.integers(-1000, 1000, 500)
    out = bench.upload(values)
    kernel = bench.kernel("clang_kernels", "clang_dispatch")
    bench.run(kernel, 4, 128, bench.upload(kinds), out, 500)
    functions = [
        lambda x: x + 3,
        lambda x: x ^ 0x55,
        lambda x: x * 7 - 1,
        lambda x: x >> 2,
        lambda x: ~x,
        lambda x: int(math.fmod(x, 11)),
        lambda x: 2 * x,
        lambda x: x * x,
        lambda x: -x,
    ]
    expected = [functions[kind](int(value)) for kind, value in zip(kinds, values, strict=True)]
    assert bench.download(out, np.int32).tolist() == expected


# By hand


@pytest.mark.parametrize("depth", [16, 48, 128])
def test_hand_matmul_f16(bench: Bench, depth: int) -> None:
    a = bench.integers(-8, 9, 16 * depth, np.float16).reshape(16, depth)
    b = bench.integers(-8, 9, 8 * depth, np.float16).reshape(8, depth)
    out = bench.zeros(128)
    kernel = bench.kernel("hand_sm80", "hand_matmul_f16")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b), out, depth)
    expected = a.astype(np.float32) @ b.T.astype(np.float32)
    np.testing.assert_array_equal(bench.download(out).reshape(16, 8), expected)


def test_hand_matmul_integers(bench: Bench) -> None:
    a = bench.integers(-128, 128, 16 * 32, np.int8).reshape(16, 32)
    b = bench.integers(-128, 128, 8 * 32, np.int8).reshape(8, 32)
    c = bench.integers(-1000, 1000, 128).reshape(16, 8)
    near_limit = np.full((16, 8), 2**31 - 500, np.int32)
    bytes_out, nibbles_out = bench.upload(c), bench.upload(near_limit)
    kernel = bench.kernel("hand_sm80", "hand_matmul_integers")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b), bytes_out, nibbles_out)
    found = bench.download(bytes_out, np.int32).reshape(16, 8)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.T.astype(np.int32) + c)

    def nibbles(array: Array) -> Array:
        low, high = (array << 4).astype(np.int8) >> 4, array >> 4
        return np.stack([low, high], axis=-1).reshape(len(array), -1).astype(np.int64)

    exact = nibbles(a) @ nibbles(b).T + near_limit
    found = bench.download(nibbles_out, np.int32).reshape(16, 8)
    np.testing.assert_array_equal(found, np.minimum(exact, 2**31 - 1))


def test_hand_matmul_fp8(bench: Bench) -> None:
    a = to_fp8(bench.integers(-8, 9, 16 * 32, np.float32), 4, True).reshape(16, 32)
    b = to_fp8(bench.integers(-4, 5, 8 * 32, np.float32), 5, False).reshape(8, 32)
    out = bench.zeros(128)
    kernel = bench.kernel("hand_sm89", "hand_matmul_fp8")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b), out)
    expected = from_fp8(a, 4, True) @ from_fp8(b, 5, False).T
    np.testing.assert_array_equal(bench.download(out).reshape(16, 8), expected)


@pytest.mark.parametrize("tiles", [1, 2, 11])
def test_hand_bulk_sum(bench: Bench, tiles: int) -> None:
    x = bench.integers(-100, 100, 1024 * tiles, np.float32)
    out = bench.zeros(3)
    kernel = bench.kernel("hand_sm90", "hand_bulk_sum")
    bench.run(kernel, 3, 128, bench.upload(x), out, tiles)
    sums = np.pad(x.reshape(tiles, 1024).sum(axis=1), (0, -tiles % 3))
    np.testing.assert_array_equal(bench.download(out), sums.reshape(-1, 3).sum(axis=0))


def test_hand_cluster_sum(bench: Bench) -> None:
    x = bench.integers(0, 1000, 1024)
    out = bench.zeros(1024, np.int32)
    kernel = bench.kernel("hand_sm90", "hand_cluster_sum")
    bench.run(kernel, 2, 128, bench.upload(x), out, cluster=4)  # the grid counts clusters
    expected = x + np.repeat(x.reshape(2, 512).sum(axis=1), 512)
    np.testing.assert_array_equal(bench.download(out, np.int32), expected)


def test_hand_transpose(bench: Bench) -> None:
    x = bench.integers(0, 60000, 64, np.uint16).reshape(8, 8)
    out = bench.zeros(64, np.uint16)
    kernel = bench.kernel("hand_sm90", "hand_transpose")
    bench.run(kernel, 1, 32, bench.upload(x), out)
    np.testing.assert_array_equal(bench.download(out, np.uint16).reshape(8, 8), x.T)
