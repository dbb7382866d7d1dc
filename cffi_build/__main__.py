"""``python -m cffi_build --include DIR --out DIR [--compiler COMMAND]``."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from cffi_build.generate import generate
from cffi_build.header import Header


def main() -> None:
    """Read the command line and generate."""
    parser = argparse.ArgumentParser(prog="python -m cffi_build", description=__doc__)
    parser.add_argument("--include", type=Path, required=True, help="folder with cuda.h")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    parser.add_argument("--compiler", default="cc", help="C compiler to preprocess with")
    options = parser.parse_args()
    generate(Header(options.include, shlex.split(options.compiler)), options.out)


if __name__ == "__main__":
    main()
