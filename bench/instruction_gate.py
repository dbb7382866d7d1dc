"""Instructions per call, counted by callgrind, compared with the committed numbers.

They repeat exactly for one interpreter build, which a timer never does. The driver is the emulated
one in its null-launch mode, so what counts is this library alone.

    python bench/instruction_gate.py            compare; more than 2 % above fails
    python bench/instruction_gate.py --record   write the counts of this interpreter build

An interpreter build without committed numbers is counted, said to be unknown, and passes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import cudamod

HERE = Path(__file__).parent
COMMITTED = HERE / "instructions.json"
TOLERANCE = 0.02

# The goals of the launch path, where there is one: what a launch may cost at most.
GOALS = {
    "launcher, 0 args, release": 800,
    "launcher, 4 args, release": 1100,
    "launcher, 8 args, release": 1350,
    "launcher, 16 args, release": 1850,
    "launcher, 0 args, hold": 350,
    "launcher, 4 args, hold": 600,
    "launcher, 8 args, hold": 850,
    "launcher, 16 args, hold": 1350,
    "launcher, 0 args, auto": 410,
    "launcher, 4 args, auto": 660,
    "launcher, 8 args, auto": 910,
    "launcher, 16 args, auto": 1410,
    "launch(), 4 args": 1400,
    "prepared, 4 args, release": 750,
    "prepared, 4 args, hold": 300,
}


def interpreter_build() -> str:
    """What the counts depend on: the interpreter, how it was compiled, and by what."""
    flags = sysconfig.get_config_var("CONFIG_ARGS") or ""
    kind = "optimised" if "--enable-optimizations" in flags else "plain"
    version = platform.python_version()
    return f"CPython {version} {kind} {platform.python_compiler()} {platform.machine()}"


def count() -> dict[str, float]:
    """Instructions per call of every workload, the empty loop's subtracted."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        environment = {
            **os.environ,
            "CUDAMOD_DRIVER": "emulated",
            "CUDAMOD_EMULATOR_NULL_LAUNCH": "1",
            "CUDAMOD_EMULATOR_QUIET": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join([str(Path(cudamod.__file__).parents[1]), *sys.path[1:]]),
        }
        done = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--callgrind-out-file={out}",
                "--dump-before=Py_GetRecursionLimit",
                "--zero-before=Py_GetRecursionLimit",
                # A virtual environment's python may be a script, which callgrind can't follow.
                os.path.realpath(sys.executable),
                str(HERE / "count_instructions.py"),
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"the counted program failed:\n{done.stdout}{done.stderr}")
        names = done.stdout.splitlines()
        dumps = sorted(out.parent.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        # Two cuts per workload: up to the first lies its warming up, between them the loop.
        totals = [_total(path) for path in dumps[-2 * len(names) :]][1::2]
        if not names or len(totals) != len(names):
            raise SystemExit(f"{len(names)} workloads but {len(totals)} counts: no cuts?")
        return {
            name: (total - totals[0]) / 1000
            for name, total in zip(names[1:], totals[1:], strict=True)
        }


def _total(path: Path) -> int:
    found = re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{path} has no totals")
    return int(found[1])


def main() -> int:
    """Count, compare, print a table; answer the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="commit the counts of this build")
    options = parser.parse_args()
    build = interpreter_build()
    committed = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    known = committed.get(build)
    counts = count()
    print(f"instructions per call, emulated driver, null launches, {build}")
    bad = 0
    for name, value in counts.items():
        before = None if known is None else known.get(name)
        verdict = "" if before is None else f"{value / before - 1:+.1%}"
        if before is not None and value > before * (1 + TOLERANCE):
            verdict += "  MORE THAN BEFORE"
            bad += 1
        goal = GOALS.get(name)
        if goal is not None and value > goal:
            verdict += f"  ABOVE THE GOAL OF {goal}"
            bad += 1
        print(f"  {name:60} {value:8.1f}  {verdict}")
    if options.record:
        committed[build] = counts
        COMMITTED.write_text(json.dumps(committed, indent=1, sort_keys=True) + "\n")
        print(f"recorded in {COMMITTED.name}")
        return 0
    if known is None:
        print("this interpreter build has no committed numbers: compared with the goals alone")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
