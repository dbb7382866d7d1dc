"""Kernels that numba made, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from ptx_kernels import Array, Bench

from cudamod import Buffer


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
