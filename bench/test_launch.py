"""Launches, each beside the driver call alone under the same ID."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from workloads import ARGUMENT_COUNTS, NAMES, Bench

TIMES = 100  # calls per round: the mean of so many is one measurement


@pytest.mark.parametrize("name", NAMES)
def test_call(benchmark: Callable[..., Any], bench: Bench, name: str) -> None:
    loop = dict(bench.loops())[name]
    benchmark.pedantic(  # type: ignore[attr-defined]
        loop, args=(TIMES,), rounds=50, warmup_rounds=3, setup=bench.device.sync
    )
    benchmark.extra_info["calls per round"] = TIMES  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", ARGUMENT_COUNTS)
def test_floor(benchmark: Callable[..., Any], bench: Bench, count: int) -> None:
    """The driver call alone, in a C loop."""
    benchmark.pedantic(  # type: ignore[attr-defined]
        bench.floor(count), args=(TIMES,), rounds=50, warmup_rounds=3, setup=bench.device.sync
    )
    benchmark.extra_info["calls per round"] = TIMES  # type: ignore[attr-defined]
