"""The command ``cudamod``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and answer its exit status."""
    parser = argparse.ArgumentParser(prog="cudamod", description="CUDA kernels from Python.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="load a kernel, inspect it, launch it, check every element of its result"
    )
    demo.add_argument(
        "--driver",
        metavar="CHOICE",
        help="auto, emulated or a path (without: the card, or else the emulated driver)",
    )
    demo.add_argument(
        "--elements", type=int, default=1_000_000, metavar="N", help="default: a million"
    )
    options = parser.parse_args(arguments)

    from cudamod import demo as demonstration

    return demonstration.run(driver_choice=options.driver, elements=options.elements)
