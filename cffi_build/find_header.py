"""Print the folder of ``cuda.h`` of the installed ``nvidia-cuda-runtime`` distribution."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

DISTRIBUTIONS = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")


def find_include() -> Path | None:
    """The folder, or None without such a distribution."""
    for name in DISTRIBUTIONS:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "cuda.h":
                return Path(str(file.locate())).resolve().parent
    return None


def main() -> None:
    include = find_include()
    if include is None:
        sys.exit(f"cuda.h not found: install one of {', '.join(DISTRIBUTIONS)}")
    print(include)


if __name__ == "__main__":
    main()
