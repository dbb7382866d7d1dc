"""What a replayed sequence costs, by its length and the number of arguments changed before each.

    python bench/sequences.py [--rounds N]

Prints a Markdown table: nanoseconds per launch, of the CPU in the call and end to end (call and
synchronisation), and the same launches one by one. Medians over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from workloads import Bench

import cudamod
from cudamod import LaunchSequence, driver

LENGTHS = (1, 10, 100, 1000)
CHANGES = (0, 1, 10, 100)


def measure(
    call: Callable[[], object], sync: Callable[[], None], rounds: int
) -> tuple[float, float]:
    """Median nanoseconds of the call alone, and of the call with everything that it started."""
    alone, whole = [], []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        middle = time.perf_counter_ns()
        sync()
        alone.append(middle - start)
        whole.append(time.perf_counter_ns() - start)
    return statistics.median(alone), statistics.median(whole)


def rows(bench: Bench, rounds: int) -> list[str]:
    """A row for each length and number of changes."""
    table = []
    launcher = bench.kernels[4].bind(bench.config, bench.stream)
    for length in LENGTHS:
        launches = [launcher.prepare(*bench.arguments(4)) for _ in range(length)]
        sequence = LaunchSequence(launches)
        sequence()
        bench.stream.sync()

        def one_by_one(launches: list[cudamod.Prepared] = launches) -> None:
            for launch in launches:
                launch()

        alone, whole = measure(one_by_one, bench.stream.sync, rounds)
        table.append(f"| {length} | one by one | {alone / length:.0f} | {whole / length:.0f} |")
        for changed in CHANGES:
            if changed > length:
                continue
            alone_all, whole_all = [], []
            for number in range(rounds):
                for launch in launches[:changed]:
                    launch.set_arg(2, number)
                alone, whole = measure(sequence, bench.stream.sync, 1)
                alone_all.append(alone)
                whole_all.append(whole)
            cpu = statistics.median(alone_all) / length
            end = statistics.median(whole_all) / length
            table.append(f"| {length} | {changed} | {cpu:.0f} | {end:.0f} |")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    bench = Bench()
    print(f"{driver.describe()}; {bench.device.name}; cudamod {cudamod.__version__}\n")
    print("| launches | arguments changed | CPU, ns per launch | end to end, ns per launch |")
    print("|---|---|---|---|")
    print("\n".join(rows(bench, options.rounds)))


if __name__ == "__main__":
    main()
