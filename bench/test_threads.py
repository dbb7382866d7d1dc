"""Launches from several threads, beside threads that are busy in Python."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

import pytest
from workloads import Bench

SECONDS = 0.5


def busy(end: threading.Event) -> None:
    """Python that never lets the interpreter lock go by itself."""
    value = 1
    while not end.is_set():
        for _ in range(1000):
            value = value * 1103515245 + 12345 & 0x7FFFFFFF


@pytest.mark.parametrize("gil", ["release", "auto", "hold"])
@pytest.mark.parametrize("others", [0, 1, 4], ids="{} busy".format)
@pytest.mark.parametrize("launching", [1, 2, 4, 8], ids="{} launching".format)
def test_threads(benchmark: Any, bench: Bench, launching: int, others: int, gil: str) -> None:
    """Launches per second of all threads, and the 99th percentile of one launch."""
    kernel, arguments = bench.kernel(4), bench.arguments(4)
    end = threading.Event()
    durations: list[list[int]] = [[] for _ in range(launching)]

    def launch(mine: list[int]) -> None:
        launcher = kernel.bind(bench.config, bench.device.create_stream(), gil=gil)
        clock, a, b = time.perf_counter_ns, *arguments[:2]
        while not end.is_set():
            begin = clock()
            launcher(a, b, 100, 1.5)
            mine.append(clock() - begin)

    def run() -> None:
        threads = [threading.Thread(target=launch, args=(mine,)) for mine in durations]
        threads += [threading.Thread(target=busy, args=(end,)) for _ in range(others)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        end.set()
        for thread in threads:
            thread.join()

    benchmark.pedantic(run, rounds=1)
    bench.device.sync()
    measured = sorted(duration for mine in durations for duration in mine)
    benchmark.extra_info.update(
        {
            "launches per second": len(measured) / SECONDS,
            "median, ns": statistics.median(measured),
            "p99, ns": measured[len(measured) * 99 // 100],
        }
    )
