"""Whole small programs that NVRTC made, against NumPy and the standard library."""

from __future__ import annotations

import ctypes
import hashlib
import math

import numpy as np
import pytest
from ptx_kernels import Array, Bench

FILE, CLUSTERS = "nvrtc_programs", "nvrtc_clusters"


def same(found: Array, expected: Array) -> None:
    np.testing.assert_array_equal(found, expected)


def close(found: Array, expected: Array, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_scan_that_looks_back(bench: Bench) -> None:
    x = bench.random.integers(-(2**50), 2**50, 256 * 9)
    out, state = bench.zeros(x.size, np.int64), bench.zeros(9, np.int32)
    own, total, ticket = (bench.zeros(9, dtype) for dtype in (np.int64, np.int64, np.uint32))
    kernel = bench.kernel(FILE, "nvrtc_scan_look_back")
    bench.run(kernel, 9, 256, bench.upload(x), out, state, own, total, ticket)
    same(bench.download(out, np.int64), np.cumsum(x))


def test_radix_sort(bench: Bench) -> None:
    x = bench.integers(0, 2**32, 512, np.uint32) & np.uint32(0xFF0F00FF)
    keys, values = bench.upload(x), bench.upload(np.arange(512, dtype=np.uint32))
    bench.run(bench.kernel(FILE, "nvrtc_radix_sort"), 1, 512, keys, values)
    order = np.argsort(x, kind="stable")
    same(bench.download(keys, np.uint32), x[order])
    same(bench.download(values, np.uint32), order.astype(np.uint32))


def test_quicksort_by_recursion(bench: Bench) -> None:
    x = bench.floats(40, 33)
    rows = bench.upload(x)
    bench.run(bench.kernel(FILE, "nvrtc_quicksort"), 2, 20, rows, 33)
    same(bench.download(rows).reshape(40, 33), np.sort(x, axis=1))


def test_histogram(bench: Bench) -> None:
    x = bench.integers(0, 256, 5000, np.uint8) // 2
    bins = bench.upload(np.full(256, 2**40, np.uint64))
    bench.run(bench.kernel(FILE, "nvrtc_histogram"), 4, 128, bench.upload(x), bins, x.size)
    same(bench.download(bins, np.uint64) - np.uint64(2**40), np.bincount(x, minlength=256))


def test_stencil_in_two_dimensions(bench: Bench) -> None:
    width, height = 37, 29
    x = bench.integers(-100, 100, width * height, np.float32).reshape(height, width)
    one, two = bench.upload(x), bench.zeros(x.size)
    kernel = bench.kernel(FILE, "nvrtc_stencil_2d")
    for _ in range(3):
        bench.run(kernel, (3, 2), (16, 16), one, two, width, height)
        one, two = two, one
        p = np.pad(x, 1, mode="edge")
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        x = np.float32(0.5) * x + np.float32(0.125) * around
    close(bench.download(one).reshape(height, width), x)


def test_stencil_in_three_dimensions(bench: Bench) -> None:
    x = bench.random.standard_normal((7, 9, 11))
    out = bench.zeros(x.size, np.float64)
    size = (ctypes.c_int * 3)(11, 9, 7)
    kernel = bench.kernel(FILE, "nvrtc_stencil_3d")
    bench.run(kernel, (2, 3, 4), (8, 4, 2), bench.upload(x), out, np.void(bytes(size)))
    p = np.pad(x, 1)
    shifted = [np.roll(p, by, axis) for axis in range(3) for by in (-1, 1)]
    expected = (sum(shifted) - 6 * p)[1:-1, 1:-1, 1:-1]
    close(bench.download(out, np.float64).reshape(x.shape), expected, 1e-14)


def test_fourier_transform(bench: Bench) -> None:
    x = (bench.floats(3, 256) + 1j * bench.floats(3, 256)).astype(np.complex64)
    out = bench.zeros(x.size, np.complex64)
    bench.run(bench.kernel(FILE, "nvrtc_fft"), 3, 128, bench.upload(x), out)
    close(bench.download(out, np.complex64).reshape(3, 256), np.fft.fft(x), 2e-5)


def test_transpose(bench: Bench) -> None:
    x = bench.random.standard_normal((21, 35)) + 1j * bench.random.standard_normal((21, 35))
    out = bench.zeros(x.size, np.complex128)
    kernel = bench.kernel(FILE, "nvrtc_transpose")
    bench.run(kernel, (3, 2), (16, 16), bench.upload(x), out, 35, 21)
    same(bench.download(out, np.complex128).reshape(35, 21), x.T)


def test_reduction(bench: Bench) -> None:
    x = bench.integers(-1000, 1000, 3001, np.float64) / 4
    total = bench.zeros(1, np.float64)
    least, most = bench.upload(np.array([2**31 - 1], np.int32)), bench.zeros(1, np.int32)
    kernel = bench.kernel(FILE, "nvrtc_reduce")
    bench.run(kernel, 3, 128, bench.upload(x), total, least, most, x.size)
    assert bench.download(total, np.float64)[0] == x.sum()
    assert bench.download(least, np.int32)[0] == math.floor(x.min())
    assert bench.download(most, np.int32)[0] == math.ceil(x.max())


ATOMICS = np.dtype(
    [(name, np.int32) for name in ("add", "sub", "low", "high")]
    + [(name, np.uint32) for name in ("ulow", "uhigh", "both", "any", "odd", "up", "down", "last")]
    + [(name, np.uint64) for name in ("add64", "low64", "high64", "both64", "any64", "odd64")]
    + [("real", np.float32), ("pad", np.uint32), ("twice", np.float64)]
    + [("half", np.float16, 2), ("brain", np.uint16, 2), ("greatest", np.float32)]
    + [("small", np.uint16), ("end", np.uint16)]
)


def test_atomics_of_all_types(bench: Bench) -> None:
    start = np.zeros(1, ATOMICS)
    start["ulow"] = start["both"] = 2**32 - 1
    start["both64"] = 2**64 - 1
    memory, shared = bench.upload(start), bench.upload(start)
    bench.run(bench.kernel(FILE, "nvrtc_atomics"), 2, 48, memory, shared)
    words = np.uint64
    for buffer, first in ((memory, 0), (shared, 48)):
        t = np.arange(first, 96)
        found = bench.download(buffer, ATOMICS)[0]
        expected = {
            "add": t.sum(),
            "sub": -t.sum(),
            "low": min(0, t.min() - 100),
            "high": max(0, t.max() - 100),
            "ulow": t.min() * 7 + 3,
            "uhigh": t.max() * 7 + 3,
            "both": np.bitwise_and.reduce((~(1 << t % 32) | 0xFF) & 0xFFFFFFFF),
            "any": np.bitwise_or.reduce(1 << t % 20),
            "odd": np.bitwise_xor.reduce(0x9E3779B9 * t & 0xFFFFFFFF),
            "up": t.size % 10,
            "down": -t.size % 10,
            "last": 77,
            "add64": words(int(t.sum()) << 33),
            "low64": words(-int(t.max()) * 5000000000 % 2**64),
            "high64": words(int(t.max()) * 5000000000),
            "both64": np.bitwise_and.reduce(~(words(1) << (t % 64).astype(words)) | words(0xF0)),
            "any64": np.bitwise_or.reduce(words(1) << (t % 50).astype(words)),
            "odd64": np.bitwise_xor.reduce(words(0x9E3779B97F4A7C15) * t.astype(words)),
            "real": t.size * 0.5,
            "twice": t.size * 0.25,
            "small": t.size,
        }
        assert {name: found[name] for name in expected} == expected
        same(found["half"], np.array([t.size, -t.size / 2], np.float16))
        brain = (found["brain"].astype(np.uint32) << 16).view(np.float32)
        same(brain, np.array([t.size / 2, t.size], np.float32) * (buffer is memory))
        assert found["greatest"] == pytest.approx(np.sin(t).max() + 2, abs=1e-5)


def test_matrix_product_with_asynchronous_copies(bench: Bench) -> None:
    a, b = (bench.integers(-8, 8, 96 * 96, np.float32).reshape(96, 96) for _ in range(2))
    out = bench.zeros(a.size)
    kernel = bench.kernel(FILE, "nvrtc_matmul_async")
    bench.run(kernel, (3, 3), 256, bench.upload(a), bench.upload(b), out, 96)
    same(bench.download(out).reshape(96, 96), a @ b)


def test_matrix_instruction_of_bfloat16(bench: Bench) -> None:
    a, b = (bench.integers(-16, 16, n * 16, np.float32).reshape(n, 16) for n in (16, 8))
    halves = [bench.upload((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
    out = bench.zeros(128)
    bench.run(bench.kernel(FILE, "nvrtc_mma_bf16"), 1, 32, *halves, out)
    same(bench.download(out).reshape(16, 8), a @ b.T + 1)


def test_matrix_instruction_of_bytes(bench: Bench) -> None:
    a = bench.integers(-128, 128, 16 * 32, np.int8).reshape(16, 32)
    b = bench.integers(0, 256, 8 * 32, np.uint8).reshape(8, 32)
    out = bench.zeros(128, np.int32)
    kernel = bench.kernel(FILE, "nvrtc_mma_int8")
    bench.run(kernel, 1, 32, bench.upload(a), bench.upload(b), out)
    expected = a.astype(np.int32) @ b.T.astype(np.int32) - 7
    same(bench.download(out, np.int32).reshape(16, 8), expected)


def test_softmax(bench: Bench) -> None:
    x = bench.floats(5, 77) * 10
    out = bench.zeros(x.size)
    bench.run(bench.kernel(FILE, "nvrtc_softmax"), 5, 32, bench.upload(x), out, 77)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    close(bench.download(out).reshape(x.shape), e / e.sum(axis=1, keepdims=True), 1e-6)


def test_layernorm(bench: Bench) -> None:
    x, scale = bench.floats(4, 200).astype(np.float16), bench.floats(200)
    out = bench.zeros(x.size, np.float16)
    kernel = bench.kernel(FILE, "nvrtc_layernorm")
    bench.run(kernel, 4, 128, bench.upload(x), bench.upload(scale), out, 100, ctypes.c_float(1e-5))
    v = x.astype(np.float64)
    mean, spread = v.mean(axis=1, keepdims=True), v.var(axis=1, keepdims=True)
    expected = (v - mean) / np.sqrt(spread + 1e-5) * scale
    close(bench.download(out, np.float16).reshape(x.shape), expected, 2e-3)


def test_philox(bench: Bench) -> None:
    """Random numbers that are defined bit by bit; the first is the paper's own example."""
    out = bench.zeros(4 * 64, np.uint32)
    kernel = bench.kernel(FILE, "nvrtc_philox")
    bench.run(kernel, 1, 64, out, 0)
    found = bench.download(out, np.uint32).reshape(64, 4)
    assert [f"{word:08x}" for word in found[0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    bench.run(kernel, 1, 64, out, 12345)
    found = bench.download(out, np.uint32).reshape(64, 4)
    for thread in (0, 1, 63):
        c, k, mask = [thread, 0, 0, 0], [12345, 0], 2**32 - 1
        for _ in range(10):
            low, high = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [high >> 32 ^ c[1] ^ k[0], high & mask, low >> 32 ^ c[3] ^ k[1], low & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        assert found[thread].tolist() == c


def test_normal_numbers(bench: Bench) -> None:
    x = bench.random.uniform(0.001, 1, (500, 2)).astype(np.float32)
    out = bench.zeros(x.size)
    bench.run(bench.kernel(FILE, "nvrtc_box_muller"), 4, 128, bench.upload(x), out, 500)
    v = x.astype(np.float64)
    length, angle = np.sqrt(-2 * np.log(v[:, 0])), 2 * np.pi * v[:, 1]
    expected = np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1)
    close(bench.download(out).reshape(x.shape), expected, 3e-5)


def test_printf(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.run(bench.kernel(FILE, "nvrtc_printf"), 2, 64, 7, None)
    assert capfd.readouterr().out == "values 7  1.75 7f6e5d4c3b24 h%\n"


def test_trees_on_the_heap(bench: Bench) -> None:
    x = bench.integers(-50, 50, 20 * 12).reshape(12, 20)
    out, heights = bench.zeros(x.size, np.int32), bench.zeros(12, np.int32)
    bench.run(bench.kernel(FILE, "nvrtc_tree"), 2, 6, bench.upload(x), out, heights, 20)
    same(bench.download(out, np.int32).reshape(x.shape), np.sort(x, axis=1))
    for row, height in zip(x, bench.download(heights, np.int32), strict=True):
        assert height == height_of(row.tolist())


def height_of(values: list[int]) -> int:
    if not values:
        return 0
    first, *rest = values
    smaller = height_of([v for v in rest if v < first])
    return 1 + max(smaller, height_of([v for v in rest if v >= first]))


def test_virtual_and_indirect_calls(bench: Bench) -> None:
    out = bench.zeros(64)
    bench.run(bench.kernel(FILE, "nvrtc_virtual"), 1, 64, out)
    t = np.arange(64)
    scaled = np.where(t % 3 == 0, 0.5 * t * t, -1.5 * t * t)
    same(bench.download(out), np.where(t % 2 == 0, 2 * scaled, -scaled))


def test_a_grid_that_meets(bench: Bench) -> None:
    x = bench.integers(0, 1000, 300, np.float32)
    one, two = bench.upload(x), bench.zeros(300)
    bench.run(bench.kernel(FILE, "nvrtc_grid_sync"), 4, 64, one, two, 300, 6, cooperative=True)
    for _ in range(6):
        p = np.pad(x, 1, mode="edge")
        x = np.float32(0.25) * p[:-2] + np.float32(0.5) * x + np.float32(0.25) * p[2:]
    close(bench.download(one), x, 1e-6)


def test_sha256(bench: Bench) -> None:
    x = bench.integers(0, 256, 64 * 32, np.uint8).reshape(64, 32)
    out = bench.zeros(x.size, np.uint8)
    bench.run(bench.kernel(FILE, "nvrtc_sha256"), 2, 32, bench.upload(x), out)
    found = bench.download(out, np.uint8).reshape(64, 32)
    assert [row.tobytes() for row in found] == [hashlib.sha256(row.tobytes()).digest() for row in x]


def test_wide_integers(bench: Bench) -> None:
    a, b = (bench.random.integers(0, 2**64, 100, np.uint64) for _ in range(2))
    product, powers = bench.zeros(200, np.uint64), bench.zeros(100, np.uint64)
    kernel = bench.kernel(FILE, "nvrtc_wide_integers")
    bench.run(kernel, 1, 128, bench.upload(a), bench.upload(b), product, powers, 100)
    words = bench.download(product, np.uint64).reshape(100, 2).tolist()
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert [low + (high << 64) for low, high in words] == [x * y for x, y in pairs]
    found = bench.download(powers, np.uint64).tolist()
    assert found == [pow(x, y % 1000, 1000000007) for x, y in pairs]


def test_a_sparse_matrix(bench: Bench) -> None:
    dense = bench.integers(-9, 9, 30 * 90, np.float32).reshape(30, 90)
    dense[bench.random.random(dense.shape) < 0.6] = 0
    rows = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    _, columns = np.nonzero(dense)
    x, y = bench.integers(-9, 9, 90, np.float32), bench.zeros(30)
    parts = [bench.upload(p) for p in (rows, columns.astype(np.int32), dense[dense != 0], x)]
    bench.run(bench.kernel(FILE, "nvrtc_sparse"), 8, 128, *parts, y, 30)
    same(bench.download(y), dense @ x)


def test_argmax(bench: Bench) -> None:
    x = bench.floats(1500) - 10
    x[[700, 300]] = -0.5
    best = bench.zeros(1, np.uint64)
    bench.run(bench.kernel(FILE, "nvrtc_argmax"), 4, 128, bench.upload(x), best, x.size)
    assert ~bench.download(best, np.uint64)[0] & np.uint64(2**32 - 1) == x.argmax() == 300


def test_edit_distance(bench: Bench) -> None:
    a, b = b"the emulated driver runs on any laptop", b"an emulator drives the laptops of many"
    out = bench.zeros(1, np.int32)
    kernel = bench.kernel(FILE, "nvrtc_edit_distance")
    words = [bench.upload(np.frombuffer(word, np.uint8)) for word in (a, b)]
    bench.run(kernel, 1, 65, *words, len(a), len(b), out)
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        last, row = row, [i]
        for j, other in enumerate(b, 1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (letter != other)))
    assert bench.download(out, np.int32)[0] == row[-1]


def test_components_of_a_graph(bench: Bench) -> None:
    edges = bench.integers(0, 200, 2 * 150).reshape(150, 2)
    parent = bench.upload(np.arange(200, dtype=np.int32))
    bench.run(bench.kernel(FILE, "nvrtc_components"), 3, 64, parent, bench.upload(edges), 150)
    expected = np.arange(200)
    for a, b in edges:
        low, high = sorted((expected[a], expected[b]))
        expected[expected == high] = low
    found = bench.download(parent, np.int32)
    for _ in range(200):
        found = found[found]
    same(found, expected)


def test_the_game_of_life(bench: Bench) -> None:
    width, height = 96, 40
    cells = bench.integers(0, 2, width * height, np.uint8).reshape(height, width)
    packed = np.packbits(cells, axis=1, bitorder="little").view(np.uint32)
    one, two = bench.upload(packed), bench.zeros(packed.size, np.uint32)
    kernel = bench.kernel(FILE, "nvrtc_life")
    for _ in range(4):
        bench.run(kernel, height, width // 32, one, two, width // 32, height)
        one, two = two, one
        shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x]
        around = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint8)
    found = bench.download(one, np.uint32).reshape(height, -1).view(np.uint8)
    same(np.unpackbits(found, axis=1, bitorder="little"), cells)


def test_grey(bench: Bench) -> None:
    x = bench.integers(0, 256, 4 * 300, np.uint8).reshape(300, 4)
    out = bench.zeros(300, np.uint8)
    bench.run(bench.kernel(FILE, "nvrtc_grey"), 3, 128, bench.upload(x), out, 300)
    weights = np.array([0x4D, 0x96, 0x1D, 0])
    same(bench.download(out, np.uint8), (x.astype(np.int32) @ weights + 128) >> 8)


def test_counts_by_key(bench: Bench) -> None:
    x = bench.integers(0, 5, 1000)
    counts, leaders = bench.zeros(5, np.uint32), bench.zeros(1, np.uint32)
    kernel = bench.kernel(FILE, "nvrtc_by_key")
    bench.run(kernel, 8, 128, bench.upload(x), counts, leaders, 1000)
    same(bench.download(counts, np.uint32), np.bincount(x))
    warps = [np.unique(x[first : first + 32]).size for first in range(0, 1000, 32)]
    assert bench.download(leaders, np.uint32)[0] == sum(warps)


def test_histogram_of_a_cluster(bench: Bench) -> None:
    x = bench.integers(0, 1024, 4000, np.uint32)
    out = bench.zeros(1024, np.uint32)
    bench.run(bench.kernel(CLUSTERS, "nvrtc_cluster_histogram"), 4, 256, bench.upload(x), out, 4000)
    same(bench.download(out, np.uint32), np.bincount(x, minlength=1024))


@pytest.mark.parametrize("blocks", [2, 8])
def test_a_ring_of_blocks(bench: Bench, blocks: int) -> None:
    x = bench.integers(0, 50, 64 * blocks * 2, np.float32).reshape(2, blocks, 64)
    rows = bench.upload(x)
    kernel = bench.kernel(CLUSTERS, "nvrtc_cluster_ring")
    bench.run(kernel, 2, 64, rows, 5, cluster=blocks)  # two clusters
    for _ in range(5):
        x = np.roll(x * 2 + np.arange(blocks, dtype=np.float32)[None, :, None], 1, axis=1)
    same(bench.download(rows).reshape(x.shape), x)


def test_a_pipeline_of_bulk_copies(bench: Bench) -> None:
    a, b = (bench.integers(-8, 8, 256 * 11, np.float32) for _ in range(2))
    out = bench.zeros(1)
    kernel = bench.kernel(CLUSTERS, "nvrtc_pipeline")
    bench.run(kernel, 1, 160, bench.upload(a), bench.upload(b), out, 11)
    assert bench.download(out)[0] == a @ b
