"""Kernels that NVRTC made, against NumPy."""

from __future__ import annotations

import numpy as np
from ptx_kernels import Bench, bfloat, from_bfloat, from_fp8, to_fp8


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
