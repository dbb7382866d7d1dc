"""Writes the generated tables into the documentation; ``tests/test_docs.py`` compares them.

python docs/tables.py
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent


def behaviours() -> str:
    """The emulated driver's table of behaviours, from the driver itself."""
    from cudamod import driver, emulator

    driver.use("emulated")
    rows = [f"| {row.topic} | {row.basis} | {row.text} |" for row in emulator.behaviours()]
    return "\n".join(["| topic | basis | behaviour |", "|---|---|---|", *rows])


def program_options() -> str:
    """The options of programs, from their fields."""
    from cudamod import ProgramOptions

    return _options(ProgramOptions, {"nvrtc": "NVRTC", "nvvm": "libNVVM"})


def linker_options() -> str:
    """The options of linkers, from their fields."""
    from cudamod import LinkerOptions

    return _options(LinkerOptions, {"nvjitlink": "nvJitLink", "driver": "driver"})


def _options(cls: type[Any], backends: dict[str, str]) -> str:
    def cells(field: dataclasses.Field[Any]) -> Iterator[str]:
        yield f"`{field.name}`"
        yield str(field.metadata["says"])
        for backend in backends:
            flag = field.metadata["flags"].get(backend)
            yield f"`{flag}`" if flag else ""

    head = ["option", "meaning", *backends.values()]
    rows = [head, ["---"] * len(head), *map(list, map(cells, dataclasses.fields(cls)))]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


# The tables by the mark in the page that each follows.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "behaviours": ("emulated-driver.md", behaviours),
    "program options": ("compiling.md", program_options),
    "linker options": ("compiling.md", linker_options),
}


def with_table(page: str, mark: str, table: str) -> str:
    """The page with the table between its marks."""
    return re.sub(
        rf"(<!-- {mark} -->\n).*?(<!-- end -->)",
        lambda marks: f"{marks[1]}{table}\n{marks[2]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for mark, (name, table) in TABLES.items():
        path = DOCS / name
        path.write_text(with_table(path.read_text(), mark, table()))
