"""Launches from Python beside the driver call alone, interleaved in one process: a Markdown table.

Absolute times drift with the machine's clock; the differences within one run are what counts. Peers
run where they are installed, with the same kernel and the same objects.

    python bench/compare.py [--rounds N] [--launches N]
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import sys
import time
from collections.abc import Callable

from workloads import Bench, empty_kernel, loop_over

import cudamod
from cudamod import driver

Timer = Callable[[int], float]
"""Answers nanoseconds per call for that many calls."""


def timed(loop: Callable[[int], object]) -> Timer:
    """The time of a Python loop."""

    def run(times: int) -> float:
        begin = time.perf_counter_ns()
        loop(times)
        return (time.perf_counter_ns() - begin) / times

    return run


def ours(bench: Bench) -> dict[str, tuple[int, Timer]]:
    """The floor and our own calls: name to argument count and timer."""
    rows: dict[str, tuple[int, Timer]] = {}
    for count in (0, 4, 8, 16):
        rows[f"C loop over cuLaunchKernelEx, {count} args"] = count, bench.floor(count)
        for gil in ("release", "hold"):
            launcher = bench.kernels[count].bind(bench.config, bench.stream, gil=gil)
            loop = loop_over(launcher, *bench.arguments(count))
            rows[f"launcher, {count} args, GIL {gil}"] = count, timed(loop)
    four = bench.kernels[4]
    for kind, arguments in {
        "Python scalars": bench.arguments(4),
        "NumPy scalars": bench.numpy_arguments(4),
    }.items():
        loop = loop_over(cudamod.launch, bench.stream, bench.config, four, *arguments)
        rows[f"launch(), 4 args, {kind}"] = 4, timed(loop)
    return rows


def cuda_core(counts: tuple[int, ...] = (0, 4, 8, 16)) -> dict[str, tuple[int, Timer]]:
    """cuda.core's launch with its own Buffers and NumPy scalars; nothing where it is missing."""
    try:
        import numpy as np
        from cuda import core
    except ImportError:
        return {}
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    config = core.LaunchConfig(grid=1, block=1)
    rows: dict[str, tuple[int, Timer]] = {}
    for count in counts:
        kernel = core.ObjectCode.from_ptx(empty_kernel(count)).get_kernel("empty")
        kinds = (buffer, buffer, np.int32(100), np.float32(1.5))
        arguments = [kinds[i % 4] for i in range(count)]
        loop = loop_over(core.launch, stream, config, kernel, *arguments)
        rows[f"cuda.core {core.__version__} launch, {count} args, NumPy scalars"] = (
            count,
            timed(loop),
        )
    return rows


def torch_tensors(bench: Bench) -> dict[str, tuple[int, Timer]]:
    """Four torch tensors as pointers; nothing where torch or a card is missing."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    tensor = torch.zeros(16, device="cuda")
    kinds = (tensor, tensor, 100, 1.5)
    launcher = bench.kernels[4].bind(bench.config, bench.stream)
    return {
        f"launcher, 4 args of which 2 are torch {torch.__version__} tensors": (
            4,
            timed(loop_over(launcher, *kinds)),
        )
    }


def measure(
    rows: dict[str, tuple[int, Timer]], rounds: int, launches: int, settle: Callable[[], None]
) -> dict[str, list[float]]:
    """Every row once per round, so that all see the same clock."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    for _, timer in rows.values():
        timer(launches)
        settle()
    for _ in range(rounds):
        for name, (_, timer) in rows.items():
            times[name].append(timer(launches))
            settle()
    return times


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--launches", type=int, default=200, help="per row and round")
    options = parser.parse_args()
    bench = Bench()
    rows = {**ours(bench), **cuda_core(), **torch_tensors(bench)}
    times = measure(rows, options.rounds, options.launches, bench.device.sync)
    print(f"Driver: {driver.describe()}; device: {bench.device.name}; ", end="")
    print(f"{platform.python_implementation()} {platform.python_version()}; ", end="")
    print(f"cudamod {cudamod.__version__}; {datetime.date.today()}; ", end="")
    print(f"{options.rounds} interleaved rounds of {options.launches} launches.\n")
    print("| ns per launch | minimum | median | median over C |")
    print("|---|---|---|---|")
    floors = {count: name for name, (count, _) in rows.items() if name.startswith("C loop")}
    for name, (count, _) in rows.items():
        median = statistics.median(times[name])
        floor = floors[count]
        # Paired round by round: what drifts, drifts for both.
        over = statistics.median(a - b for a, b in zip(times[name], times[floor], strict=True))
        extra = "" if name == floor else f"{over:+.0f}"
        print(f"| {name} | {min(times[name]):.0f} | {median:.0f} | {extra} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
