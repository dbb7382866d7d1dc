"""The process around the driver: its end, forks, and Ctrl-C while a kernel never ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver, opening, run_script

ENDLESS = """
import os, threading
from test_emulated_asynchrony import *
driver.make_current()
kernels, stream = Kernels(driver), stream_of(driver)
context = Pointer(driver.get("cuCtxGetCurrent", Pointer))
kernels.close_gate(stream)
"""

LOOP = b""".version 8.0
.target sm_50
.address_size 64
.visible .entry k() { L: bra L; ret; }
"""

ENDS = {
    "at once": "",
    "with more work behind": """
for _ in range(20):
    kernels.put(kernels.flag_memory, 0, stream)
""",
    "while another thread waits": """
def wait():
    driver.call("cuCtxSetCurrent", context)
    driver.status("cuStreamSynchronize", stream)
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
""",
    "with a function of the host to come": """
@ctypes.CFUNCTYPE(None, Pointer)
def function(_):
    print("never")
other = stream_of(driver, NON_BLOCKING)
driver.call("cuLaunchHostFunc", stream, function, None)
""",
    "with kernels in many streams": """
for _ in range(20):
    kernels.close_gate(stream_of(driver, NON_BLOCKING))
""",
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("seed", ["0", "5"])
def test_a_process_ends_with_endless_kernels(driver: EmulatedDriver, how: str, seed: str) -> None:
    begin = time.monotonic()
    done = run_script(driver.path, ENDLESS + ENDS[how], CUDAMOD_EMULATOR_SEED=seed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - begin < 20


def test_a_fork_leaves_the_workers_alone(driver: EmulatedDriver) -> None:
    script = (
        ENDLESS
        + """
for number in range(10):
    child = os.fork()
    if not child:
        calls = [driver.status("cuCtxSynchronize"), driver.status("cuStreamQuery", stream)]
        calls.append(driver.status("cuInit", 0))
        sys.exit(0 if calls == [3, 3, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0
    kernels.put(kernels.flag_memory, 1, stream)
kernels.open_gate()
driver.call("cuCtxSynchronize")
print("fine")
"""
    )
    done = run_script(driver.path, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


@contextmanager
def waiting(path: Path, script: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that will wait for an endless kernel as soon as it has said so."""
    # The shell that runs these tests in the background has children ignore SIGINT.
    signals = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", signals + opening(path) + ENDLESS + script],
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1", **environment},
        cwd=path.parent,  # where no checkout's cudamod is found
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            yield process
        finally:
            process.kill()


WAITS = {
    "stream": 'status = driver.status("cuStreamSynchronize", stream)',
    "context": 'status = driver.status("cuCtxSynchronize")',
    "copy": "status = driver.status('cuMemcpyDtoH', bytes(4), kernels.flag_memory, SIZE(4))",
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("seed", ["0", "5"])
def test_ctrl_c_ends_an_endless_kernel(driver: EmulatedDriver, wait: str, seed: str) -> None:
    script = f"""
print("waiting", flush=True)
try:
    {WAITS[wait]}
    print("returned", status)
except KeyboardInterrupt:
    print("interrupted", driver.status("cuCtxSynchronize"))
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    with waiting(driver.path, script, CUDAMOD_EMULATOR_SEED=seed) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "interrupted 702\nTrue\n", "")


def test_ctrl_c_can_be_left_alone(driver: EmulatedDriver) -> None:
    script = """
print("waiting", flush=True)
driver.status("cuStreamSynchronize", stream)
"""
    with waiting(driver.path, script, CUDAMOD_EMULATOR_INTERRUPT="0") as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)


def test_ctrl_c_ends_a_program_without_a_handler(driver: EmulatedDriver) -> None:
    script = """
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("waiting", flush=True)
driver.status("cuStreamSynchronize", stream)
"""
    with waiting(driver.path, script) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT


def test_ctrl_c_reaches_a_program_of_cudamod(driver: EmulatedDriver) -> None:
    script = f"""
from cudamod import Device, LaunchConfig, ObjectCode, driver, launch
driver.use({str(driver.path)!r})
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx({LOOP!r}).get_kernel("k")
launch(stream, LaunchConfig(grid=1, block=1), kernel)
print("waiting", flush=True)
try:
    stream.sync()
except KeyboardInterrupt:
    print("interrupted")
"""
    with waiting(driver.path, "kernels.open_gate()\n" + script) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
