"""Writes the generated tables into the documentation; ``tests/test_docs.py`` compares them.

python docs/tables.py
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).with_name("emulated-driver.md")


def behaviours() -> str:
    """The emulated driver's table of behaviours, from the driver itself."""
    from cudamod import driver, emulator

    driver.use("emulated")
    rows = [f"| {row.topic} | {row.basis} | {row.text} |" for row in emulator.behaviours()]
    return "\n".join(["| topic | basis | behaviour |", "|---|---|---|", *rows])


def with_table(page: str, table: str) -> str:
    """The page with the table between its marks."""
    return re.sub(
        r"(<!-- behaviours -->\n).*?(<!-- end -->)",
        lambda marks: f"{marks[1]}{table}\n{marks[2]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(), behaviours()))
