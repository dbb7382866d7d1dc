"""The command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "cudamod"


def command_line(*arguments: str) -> list[str]:
    if COMMAND.exists():
        return [str(COMMAND), *arguments]
    # installed into a folder without scripts
    main = "import sys; from cudamod.command import main; sys.exit(main())"
    return [sys.executable, "-c", main, *arguments]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line(*arguments),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_demo_checks_a_kernel(request: pytest.FixtureRequest) -> None:
    done = run("demo", "--elements", "10000")
    assert done.returncode == 0, done.stderr
    assert "saxpy(b32, f32, b64, b64), 4 parameters" in done.stdout
    assert "all 10,000 elements are right" in done.stdout
    assert re.search(r"bound launcher [\d,]+ ns: [+-]", done.stdout)
    emulated = request.config.getoption("--driver") == "emulated"
    assert ("emulated" in done.stdout.splitlines()[1]) == emulated


def test_the_demo_says_why_it_falls_back() -> None:
    done = run("demo", "--elements", "100", CUDAMOD_DRIVER="auto", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no CUDA driver here (")
    assert "emulated" in done.stdout.splitlines()[2]


def test_the_demo_needs_the_driver_that_was_asked_for(tmp_path: Path) -> None:
    done = run("demo", "--driver", str(tmp_path / "libnothing.so"))
    assert done.returncode == 1
    assert "libnothing.so" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["demo", "--elements", "x"]])
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: cudamod" in done.stderr


def test_no_elements_are_refused() -> None:
    done = run("demo", "--elements", "0")
    assert done.returncode == 2
    assert "--elements must be at least 1, not 0" in done.stderr
