"""Which launch faulted: CUDAMOD_LAUNCH_BLOCKING and CUDAMOD_LAUNCH_LOG."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ptx import HEADER, empty, storing

RunPython = Callable[..., str]

TRAP = (HEADER + ".visible .entry bad(.param .u32 n) { trap; ret; }\n").encode()

PROGRAM = f"""
import cudamod, pickle
from cudamod import CUDAError, Device, LaunchConfig, ObjectCode, launch
device = Device(0); device.set_current()
stream = device.create_stream()
one = LaunchConfig(grid=1, block=1)
good = ObjectCode.from_ptx({storing(["f32", "f64", "bytes[24]"])!r}).get_kernel("store")
bad = ObjectCode.from_ptx({TRAP!r}).get_kernel("bad")
out = device.allocate(64, stream=stream)
address = hex(out.handle)
"""


def test_a_fault_comes_with_the_last_launches(run_python: RunPython) -> None:
    code = (
        PROGRAM
        + """
good.bind(one, stream)(out, 9.0, 9.0, bytes(24))
good.bind(one, stream)(out, 1.5, -2.25, bytes(range(24)))
bad[(2, 3), 4, stream, 16](7)
try:
    stream.sync()
except CUDAError as error:
    assert error.call == "cuStreamSynchronize", error
    first, second = error.launches
    assert first.startswith(f"store("), first
    for text in (address, "1.5", "-2.25", "0x000102030405060708090a0b0c0d0e0f..."):
        assert text in first, (text, first)
    for text in ("bad(", " 7)", "grid (2, 3, 1)", "block (4, 1, 1)", "shmem_size 16",
                 f"stream {hex(stream.handle)} of device 0", "<string>:"):
        assert text in second, (text, second)
    for text in error.launches:
        assert text in str(error)
    assert pickle.loads(pickle.dumps(error)).launches == error.launches
    print("told")
"""
    )
    assert run_python(code, CUDAMOD_LAUNCH_LOG="2") == "told\n"


def test_without_a_log_nothing_is_told(run_python: RunPython) -> None:
    code = (
        PROGRAM
        + """
bad.bind(one, stream)(7)
try:
    stream.sync()
except CUDAError as error:
    print(error.launches, "last launches" in str(error))
"""
    )
    for nothing in (None, "", "0"):
        assert run_python(code, CUDAMOD_LAUNCH_LOG=nothing) == "() False\n"


def test_other_errors_are_told_without_the_log(run_python: RunPython) -> None:
    code = (
        PROGRAM
        + """
try:
    bad.bind(one, stream)(7, block=2048)
except CUDAError as error:
    print(error.launches)
"""
    )
    assert run_python(code, CUDAMOD_LAUNCH_LOG="5") == "()\n"


def test_blocking_launches_raise_where_the_fault_is(run_python: RunPython) -> None:
    code = (
        PROGRAM
        + """
good.bind(one, stream)(out, 1.0, 2.0, bytes(24))
for call in (lambda: bad.bind(one, stream)(7),):
    try:
        call()
    except CUDAError as error:
        assert "kernel 'bad', grid (1, 1, 1)" in str(error), error
        print(error.call)
"""
    )
    assert run_python(code, CUDAMOD_LAUNCH_BLOCKING="1") == "cuStreamSynchronize\n"
    assert run_python(code, CUDAMOD_LAUNCH_BLOCKING="0") == ""


def test_blocking_launches_on_every_kind_of_stream(run_python: RunPython) -> None:
    code = (
        PROGRAM
        + """
from cudamod import Stream, driver
for on in (device.default_stream, Stream.from_handle(2), stream):
    for gil in ("release", "hold", "auto"):
        for number in range(100):
            good.bind(one, on, gil=gil)(out, float(number), 2.0, bytes(24))
driver.cuCtxSetCurrent(None)
good.bind(one, device.default_stream)(out, 1.0, 2.0, bytes(24))
print("done")
"""
    )
    assert run_python(code, CUDAMOD_LAUNCH_BLOCKING="1", CUDAMOD_LAUNCH_LOG="3") == "done\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDAMOD_LAUNCH_BLOCKING", "yes"),
        ("CUDAMOD_LAUNCH_LOG", "-1"),
        ("CUDAMOD_LAUNCH_LOG", "many"),
        ("CUDAMOD_LAUNCH_LOG", "1.5"),
        ("CUDAMOD_LAUNCH_LOG", "99999999999999"),
    ],
)
def test_a_wrong_choice_is_refused(tmp_path: Path, name: str, value: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import cudamod"],
        cwd=tmp_path,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert name in done.stderr
    assert value in done.stderr


def test_threads_log_at_once(run_python: RunPython) -> None:
    code = f"""
import threading
from cudamod import Device, LaunchConfig, ObjectCode, _core
device = Device(0); device.set_current()
one = LaunchConfig(grid=1, block=1)
kernel = ObjectCode.from_ptx({empty("k", parameters=["u32"])!r}).get_kernel("k")
def use(number):
    stream = device.create_stream()
    launcher = kernel.bind(one, stream)
    for turn in range(100):
        launcher(number * 1000 + turn)
        assert len(_core.launch_log()) <= 50
    stream.sync()
threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(_core.launch_log()), len(set(_core.launch_log())))
"""
    assert run_python(code, CUDAMOD_LAUNCH_LOG="50") == "50 50\n"
