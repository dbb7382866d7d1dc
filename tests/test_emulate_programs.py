"""``cudamod emulate``: unmodified programs of cuda.core and of numba-cuda run on it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from test_command import run

PROGRAMS = Path(__file__).parent / "programs"


def have(*names: str) -> bool:
    """Whether the modules and the files of NVIDIA's wheels are installed."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


def have_library(pattern: str) -> bool:
    spec = importlib.util.find_spec("nvidia") if have("nvidia") else None
    folders = (spec.submodule_search_locations or []) if spec else []
    return any(any(Path(folder).glob(f"*/lib/{pattern}")) for folder in folders)


def parts(name: str) -> list[str]:
    source = (PROGRAMS / name).read_text()
    return re.findall(r"^@part\ndef (\w+)", source, re.MULTILINE)


def check(name: str, *options: str) -> None:
    done = run("emulate", *options, "--", sys.executable, "-W", "ignore", str(PROGRAMS / name))
    said = [line for line in done.stdout.splitlines() if re.fullmatch(r"\w+: \w+", line)]
    assert said == [f"{part}: right" for part in parts(name)], done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


CUDA_CORE = pytest.mark.skipif(
    not have("cuda.core", "numpy") or not have_library("libnvrtc.so.*"),
    reason="cuda.core with NVRTC is not installed",
)


@CUDA_CORE
@pytest.mark.skipif(not have_library("libnvJitLink.so.*"), reason="nvJitLink is not installed")
def test_cuda_core_with_nvjitlink() -> None:
    check("cuda_core_program.py")


@CUDA_CORE
@pytest.mark.parametrize("device", ["sm_90", "sm_100", "sm_120"])
def test_cuda_core_with_the_driver_s_linker(device: str) -> None:
    check("cuda_core_program.py", "--hide-nvjitlink", "--devices", device)


@pytest.mark.skipif(not have("numba", "numba_cuda", "numpy"), reason="numba-cuda is not installed")
def test_numba() -> None:
    check("numba_program.py", "--hide-nvjitlink")
