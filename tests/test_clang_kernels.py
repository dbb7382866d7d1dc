"""Kernels that clang's NVPTX backend made, against NumPy."""

from __future__ import annotations

import math

import numpy as np
from ptx_kernels import Bench


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
