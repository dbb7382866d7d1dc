"""The installed package is typed, completely and truly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

TYPING = Path(__file__).with_name("typing")
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"


def mypy(folder: Path, *arguments: str, module: str = "mypy") -> subprocess.CompletedProcess[str]:
    """Run mypy where only the installed package is in sight, not the checkout's."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        # Without a driver every function can be looked up, also those that the tests' driver lacks.
        env={**os.environ, "MYPY_CACHE_DIR": str(folder / "cache"), "CUDAMOD_DRIVER": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "what",
    [("-p", "cudamod"), (str(TYPING / "user_program.py"),)],
    ids=["the package", "a user's program"],
)
def test_mypy_finds_nothing(what: tuple[str, ...], tmp_path: Path) -> None:
    done = mypy(tmp_path, "--strict", "--config-file", str(CONFIGURATION), *what)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_finds_every_mistake(tmp_path: Path) -> None:
    program = TYPING / "wrong_program.py"
    done = mypy(tmp_path, "--strict", str(program))
    lines = enumerate(program.read_text().splitlines(), 1)
    expected = {
        number: match[1] for number, line in lines if (match := re.search(r"# ([a-z-]+)$", line))
    }
    pattern = re.compile(r"wrong_program\.py:(\d+): error: .*\[([a-z-]+)\]")
    assert {int(line): code for line, code in pattern.findall(done.stdout)} == expected
    assert len(expected) > 8


def test_stub_of_the_driver_layer_is_true(tmp_path: Path) -> None:
    """Every name of the stub is there at run time, with the stub's signature, and the reverse."""
    done = mypy(tmp_path, "--concise", "cudamod.driver", module="mypy.stubtest")
    assert done.returncode == 0, done.stdout + done.stderr
