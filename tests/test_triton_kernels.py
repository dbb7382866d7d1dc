"""Kernels that Triton made, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_kernels import Bench, bfloat, from_bfloat, from_fp8, to_fp8


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
