"""The command ``cudamod``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and answer its exit status."""
    parser = argparse.ArgumentParser(prog="cudamod", description="CUDA kernels from Python.")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_demo(commands.add_parser("demo", help=_DEMO, description=_sentence(_DEMO)))
    emulate = commands.add_parser(
        "emulate",
        help=_EMULATE,
        description=_sentence(_EMULATE),
        usage="cudamod emulate [options] -- program [argument ...]",
    )
    _add_emulate(emulate)
    own, program = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = parser.parse_args(own)
    if options.command == "demo":
        if program is not None:
            parser.error(f"unrecognized arguments: {' '.join(['--', *program])}")
        from cudamod import demo

        return demo.run(driver_choice=options.driver, elements=options.elements)
    if not program:
        emulate.error("a program to run is needed, after --")

    from cudamod import emulate as emulation

    return emulation.run(program, _settings(options), hide_linker=options.hide_nvjitlink)


_DEMO = "load a kernel, inspect it, launch it, check every element of its result"
_EMULATE = "run an unmodified program on the emulated driver, without a GPU"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """What is before the first ``--``, and the program after it."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--driver",
        metavar="CHOICE",
        help="auto, emulated or a path (without: the card, or else the emulated driver)",
    )
    parser.add_argument(
        "--elements", type=int, default=1_000_000, metavar="N", help="default: a million"
    )


def _add_emulate(parser: argparse.ArgumentParser) -> None:
    text = _matching
    check = "(uninitialized|races|barriers|streams|all)"
    number, positive = text("[0-9]+", "a number"), text("0*[1-9][0-9]*", "a positive number")
    parser.add_argument(
        "--devices",
        type=text("none|sm_[0-9]+[af]?(,sm_[0-9]+[af]?)*", "architectures such as sm_90,sm_80"),
        metavar="LIST",
        help="architectures, one for each device: sm_90,sm_80 (default: one sm_90)",
    )
    parser.add_argument(
        "--memory",
        type=text("[0-9]+[KMG]?", "a number of bytes, with an optional suffix K, M or G"),
        metavar="BYTES",
        help="per device, with K, M or G (default: 16G)",
    )
    parser.add_argument("--driver-version", type=number, metavar="N", help="default: 13050")
    parser.add_argument(
        "--manner",
        choices=["strict", "faithful"],
        help="strict (default) reports what a real driver lets pass; faithful answers as a card",
    )
    parser.add_argument("--seed", type=number, metavar="N", help="shuffles schedules")
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="threads that run one kernel (default: 1)"
    )
    parser.add_argument(
        "--journal",
        type=os.path.abspath,
        metavar="FILE",
        help="write every driver call there at exit; %%p in it is the process's number",
    )
    parser.add_argument(
        "--leaks", action="store_true", help="what is still alive at exit, on stderr"
    )
    parser.add_argument(
        "--fail",
        type=text(r"(\*|cu\w+):[0-9]+:[0-9]+", "call:nth:status, such as cuMemAlloc:2:2"),
        action="append",
        metavar="CALL:NTH:STATUS",
        help="the NTH call of CALL answers STATUS; may be repeated",
    )
    parser.add_argument(
        "--checks",
        type=text(f"{check}(,{check})*", "checks: uninitialized, races, barriers, streams or all"),
        metavar="LIST",
        help="check kernels for more than bounds: uninitialized,races,barriers,streams or all",
    )
    parser.add_argument(
        "--hide-nvjitlink",
        action="store_true",
        help="hide nvJitLink: cuda.core and numba-cuda then link PTX with the driver, whose "
        "result can run; nvJitLink's is machine code, which can't",
    )
    parser.add_argument(
        "--null-launch", action="store_true", help="count launches and run no kernel"
    )


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return text

    return read


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """What was chosen, by the names of the emulated driver's environment variables."""
    chosen = {
        name.upper(): value
        for name, value in vars(options).items()
        if name not in ("command", "hide_nvjitlink") and value not in (None, False)
    }
    return {
        name: "1" if value is True else ",".join(value) if isinstance(value, list) else value
        for name, value in chosen.items()
    }
