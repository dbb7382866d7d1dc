"""Kernels written by hand: matrices, bulk copies, clusters, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_kernels import Array, Bench, from_fp8, to_fp8


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
