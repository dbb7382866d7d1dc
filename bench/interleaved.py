"""Timing several ways to do one thing, in turn, so that all see the same clock."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from floors import Timer
from workloads import Loop

FLOOR, OURS = "C", "cudamod"


def timed(loop: Loop) -> Timer:
    """The time of a Python loop; of one that answers a float itself, that."""

    def run(times: int) -> float:
        begin = time.perf_counter_ns()
        told = loop(times)
        elapsed = time.perf_counter_ns() - begin
        return told if isinstance(told, float) else elapsed / times

    return run


@dataclass
class Row:
    """What was measured of one way: nanoseconds per call, one for each round."""

    times: list[float] = field(default_factory=list)

    def summary(self, floor: list[float] | None) -> dict[str, float]:
        """Minimum, median, and the median of the differences to the floor, round by round."""
        found = {"minimum": min(self.times), "median": statistics.median(self.times)}
        if floor is not None and floor is not self.times:
            # What drifts, drifts for both.
            found["over C"] = statistics.median(
                a - b for a, b in zip(self.times, floor, strict=True)
            )
        return found


class Interleaved:
    """Runs our own call as the benchmark, and every other way once in each round beside it."""

    def __init__(self, benchmark: Any, settle: Callable[[], object]) -> None:
        self.benchmark = benchmark
        self.settle = settle

    def __call__(
        self,
        ours: Loop,
        *,
        floor: Timer | None = None,
        peers: dict[str, Loop] | None = None,
        calls: int = 100,
        rounds: int = 50,
        per: int = 1,
        **information: Any,
    ) -> None:
        """Measure; ``calls`` of each per round. ``per``: what one call does that often."""
        others: dict[str, Timer] = {} if floor is None else {FLOOR: floor}
        others.update({name: timed(loop) for name, loop in (peers or {}).items()})
        rows = {name: Row() for name in (*others, OURS)}
        own_timer = timed(ours)

        def before() -> None:
            for name, timer in others.items():
                rows[name].times.append(timer(calls) / per)
                self.settle()

        def own() -> None:
            rows[OURS].times.append(own_timer(calls) / per)

        for _ in range(3):
            before()
            own()
            self.settle()
        for row in rows.values():
            row.times.clear()
        gc.collect()
        gc.disable()
        try:
            self.benchmark.pedantic(own, setup=before, rounds=rounds, teardown=self.settle)
        finally:
            gc.enable()
        base = rows[FLOOR].times if floor is not None else None
        self.benchmark.extra_info.update(
            {
                "calls per round": calls,
                "ns per call": {name: row.summary(base) for name, row in rows.items()},
                **information,
            }
        )
