"""A program that knows numba.cuda alone; it says ``NAME: right`` for each part that works."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # what numba-cuda 0.30 still asks of NumPy

from numba import cuda, vectorize

warnings.simplefilter("ignore")
PARTS: list[Callable[[], None]] = []


def part(function: Callable[[], None]) -> Callable[[], None]:
    PARTS.append(function)
    return function


def refusal(call: Callable[[], object]) -> str:
    """What the exception says that the call must raise."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no exception")


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@part
def arrays() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    on_device = cuda.to_device(y)
    saxpy[4, 256](np.float32(2), cuda.to_device(x), on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), 2 * x + 1)


@part
def shared_memory() -> None:
    @cuda.jit
    def reverse(a):
        shared = cuda.shared.array(64, dtype=np.int32)
        t = cuda.threadIdx.x
        shared[t] = a[t]
        cuda.syncthreads()
        a[t] = shared[63 - t]

    values = np.arange(64, dtype=np.int32)
    on_device = cuda.to_device(values)
    reverse[1, 64](on_device)
    np.testing.assert_array_equal(on_device.copy_to_host(), values[::-1])


@part
def atomics() -> None:
    @cuda.jit
    def histogram(a, counts):
        i = cuda.grid(1)
        if i < a.size:
            cuda.atomic.add(counts, a[i], 1)

    values = np.random.default_rng(1).integers(0, 10, 5000).astype(np.int32)
    counts = cuda.to_device(np.zeros(10, np.int32))
    histogram[20, 256](values, counts)
    np.testing.assert_array_equal(counts.copy_to_host(), np.bincount(values, minlength=10))


@part
def mathematics() -> None:
    @cuda.jit
    def evaluate(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = math.sin(x[i]) + math.exp(x[i]) * math.sqrt(x[i]) + math.log(x[i] + 1)

    x, y = np.linspace(0, 5, 300), np.zeros(300)
    evaluate[3, 128](x, y)
    np.testing.assert_allclose(y, np.sin(x) + np.exp(x) * np.sqrt(x) + np.log(x + 1), rtol=1e-12)


@part
def reductions() -> None:
    total = cuda.reduce(lambda a, b: a + b)
    assert total(np.arange(1000, dtype=np.float64)) == 499500


@part
def universal_functions() -> None:
    @vectorize(["float32(float32, float32)"], target="cuda")
    def add(a, b):
        return a + b

    x = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(add(x, x), 2 * x)


@part
def exceptions() -> None:
    @cuda.jit(debug=True, opt=False)
    def refuse(a):
        if cuda.grid(1) == 3:
            raise ValueError("no threes")

    assert "no threes" in refusal(lambda: refuse[1, 32](np.zeros(1)))


@part
def streams_and_events() -> None:
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    values = np.arange(10, dtype=np.float32)
    start.record(stream)
    with cuda.pinned(values):
        on_device = cuda.to_device(values, stream=stream)
        saxpy[1, 32, stream](np.float32(1), on_device, on_device)
        back = on_device.copy_to_host(stream=stream)
    end.record(stream)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    np.testing.assert_array_equal(back, 2 * values)


def main() -> None:
    for function in PARTS:
        try:
            function()
            print(f"{function.__name__}: right")
        except Exception:
            traceback.print_exc()
            print(f"{function.__name__}: wrong")


if __name__ == "__main__":
    main()
