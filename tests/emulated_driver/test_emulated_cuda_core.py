"""Unmodified cuda.core on the emulated driver, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver

FLOW = Path(__file__).parent / "cuda_core_flow.py"


def have_cuda_core() -> bool:
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not have_cuda_core(), reason="cuda.core is not installed")
def test_the_ordinary_flow(shared_driver: EmulatedDriver, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").symlink_to(shared_driver.path)
    done = subprocess.run(
        [sys.executable, str(FLOW)],
        env={
            **os.environ,
            "LD_LIBRARY_PATH": str(tmp_path),
            "CUDAMOD_EMULATOR_QUIET": "1",
            "CUDAMOD_EMULATOR_LEAKS": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all right"
    # cuda.core never unloads a library; nothing else of its objects may be left.
    assert "still alive at exit: 3 library\n" in done.stderr
