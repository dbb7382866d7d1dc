"""``cudamod emulate``: unmodified programs of cuda.core, cuda.bindings and numba-cuda run on it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from compiling import needs_nvjitlink, needs_nvrtc
from test_command import run

PROGRAMS = Path(__file__).parent / "programs"


def have(*names: str) -> bool:
    """Whether the modules are installed."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


def parts(name: str) -> list[str]:
    source = (PROGRAMS / name).read_text()
    return re.findall(r"^@part\ndef (\w+)", source, re.MULTILINE)


def check(name: str, *options: str) -> None:
    done = run("emulate", *options, "--", sys.executable, "-W", "ignore", str(PROGRAMS / name))
    said = [line for line in done.stdout.splitlines() if re.fullmatch(r"\w+: \w+", line)]
    assert said == [f"{part}: right" for part in parts(name)], done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


needs_cuda_core = pytest.mark.skipif(
    not have("cuda.core", "numpy"), reason="cuda.core is not installed"
)


@needs_cuda_core
@needs_nvrtc
@needs_nvjitlink
def test_cuda_core_with_nvjitlink() -> None:
    check("cuda_core_program.py")


@needs_cuda_core
@needs_nvrtc
@pytest.mark.parametrize("device", ["sm_90", "sm_100", "sm_120"])
def test_cuda_core_with_the_driver_s_linker(device: str) -> None:
    check("cuda_core_program.py", "--hide-nvjitlink", "--devices", device)


@pytest.mark.skipif(not have("cuda.bindings", "numpy"), reason="cuda.bindings is not installed")
def test_cuda_bindings() -> None:
    check("cuda_bindings_program.py")


@pytest.mark.skipif(not have("numba", "numba_cuda", "numpy"), reason="numba-cuda is not installed")
def test_numba() -> None:
    check("numba_program.py", "--hide-nvjitlink")
