"""Runs programs written for cuda.core, with it or with another module in its place.

    python run_programs.py MODULE NAME...

prints what each showed, as JSON. Each program runs in this process, with device 0 current.
Processes that it starts find the same module in cuda.core's place.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path

HERE = Path(__file__).parent


MODULE, *NAMES = sys.argv[1:]
sys.path.insert(0, str(HERE))
core = importlib.import_module(MODULE)
if MODULE != "cuda.core":
    try:
        package = importlib.import_module("cuda")  # the compilers' bindings are in it, too
    except ModuleNotFoundError:
        package = sys.modules["cuda"] = types.ModuleType("cuda")
    package.core = core  # type: ignore[attr-defined]
    sys.modules["cuda.core"] = core


def main() -> None:
    """Run the programs."""
    import outcome

    results = {}
    for name in NAMES:
        core.Device(0).set_current()
        outcome.shown.clear()
        path = HERE / "programs" / f"{name}.py"
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
        results[name] = dict(outcome.shown)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
