"""Runs under callgrind: every workload between two calls that callgrind cuts its counts at.

Prints the names in the order of the cuts; ``instruction_gate.py`` reads both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from workloads import Bench

TIMES = 1000

# Callgrind cuts at the C function behind this one, which nothing else calls.
cut: Callable[[], int] = sys.getrecursionlimit


def nothing(times: int) -> None:
    """The loop alone, which is subtracted."""
    for _ in range(times):
        pass


def main() -> None:
    """Count every workload, after calls that let the interpreter specialise."""
    bench = Bench()
    for name, loop in [("empty loop", nothing), *bench.loops(), *bench.torch_loop()]:
        for _ in range(3):
            loop(TIMES)
        cut()
        loop(TIMES)
        cut()
        print(name, flush=True)


main()
