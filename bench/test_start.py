"""What a program pays once: the import, and the first result that was checked."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

FIRST_RESULT = """
from array import array
from cudamod import Device, LaunchConfig, ObjectCode, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
code = ObjectCode.from_ptx(
    b".version 7.0 .target sm_52 .address_size 64 .visible .entry set(.param .u64 p) "
    b"{ .reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 7; ret; }"
)
out = device.allocate(4, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("set"), out)
data = array("I", [0])
out.copy_to(data, stream=stream)
stream.sync()
assert data[0] == 7
"""
PROGRAMS = {"nothing": "pass", "import": "import cudamod", "first result": FIRST_RESULT}


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(benchmark: Any, program: str) -> None:
    """A whole process; that of a program which does nothing is its floor."""
    environment = {**os.environ, "CUDAMOD_EMULATOR_QUIET": "1", "PYTHONSAFEPATH": "1"}
    environment.pop("CUDAMOD_EMULATOR_NULL_LAUNCH", None)

    def run() -> None:
        subprocess.run([sys.executable, "-c", PROGRAMS[program]], env=environment, check=True)

    benchmark.pedantic(run, rounds=10, warmup_rounds=1)
