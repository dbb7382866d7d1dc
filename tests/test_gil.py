"""The interpreter lock around a launch: released, held, or held while that is provably short."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE, empty

from cudamod import CUDAError, Device, Kernel, ObjectCode, Stream, driver, emulator

WATCHER = r"""
#include <Python.h>
static int held = -1;
extern "C" void watch(void*, int, char*, size_t) { held = PyGILState_Check(); }
extern "C" int last() { int was = held; held = -1; return was; }
"""


@pytest.fixture(scope="module")
def lock_during_a_failing_call(
    cxx: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Callable[[], object]], bool]:
    """Whether the thread held the lock while the driver refused a call and said why."""
    if not driver.has("cuLogsRegisterCallback"):
        pytest.skip("this driver does not explain itself")
    folder = tmp_path_factory.mktemp("watcher")
    source, library = folder / "watcher.cpp", folder / "watcher.so"
    source.write_text(WATCHER)
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        pytest.skip("no headers of Python here")
    subprocess.run(
        [*cxx, "-shared", "-fPIC", f"-I{include}", "-o", str(library), str(source)], check=True
    )
    watcher = ctypes.CDLL(str(library))
    address = ctypes.cast(watcher.watch, ctypes.c_void_p).value
    handle = driver.ffi.new("CUlogsCallbackHandle*")
    callback = driver.ffi.cast("CUlogsCallback", address)
    assert driver.lib.cuLogsRegisterCallback(callback, driver.ffi.NULL, handle) == 0

    def ask(call: Callable[[], object]) -> bool:
        watcher.last()
        with pytest.raises(CUDAError):
            call()
        held = watcher.last()
        assert held in (0, 1), "the driver said nothing"
        return bool(held)

    return ask


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


def test_release_and_hold(lock_during_a_failing_call: Any, kernel: Kernel, stream: Stream) -> None:
    for manner, held in (("release", False), ("hold", True)):
        launcher = kernel.bind(ONE, stream, gil=manner)  # type: ignore[arg-type]
        assert lock_during_a_failing_call(lambda: launcher(block=2048)) is held  # noqa: B023


@pytest.mark.parametrize("where", ["own", "default", "foreign"])
def test_auto_holds_once_the_kernel_is_resident(
    lock_during_a_failing_call: Any, kernel: Kernel, device: Device, where: str
) -> None:
    own = device.create_stream()
    if where == "foreign":
        raw = int(driver.ffi.cast("uintptr_t", driver.cuStreamCreate(1)))
    stream = {
        "own": lambda: own,
        "default": lambda: device.default_stream,
        "foreign": lambda: Stream.from_handle(raw),
    }[where]()
    launcher = kernel.bind(ONE, stream, gil="auto")
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is False
    launcher()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True
    for _ in range(1000):
        launcher()
        stream.sync()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True


def test_a_kernel_that_was_loaded_is_resident(
    lock_during_a_failing_call: Any, kernel: Kernel, stream: Stream
) -> None:
    launcher = kernel.bind(ONE, stream, gil="auto")
    kernel.load(stream.context)
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True


def test_auto_releases_on_a_per_thread_stream(
    lock_during_a_failing_call: Any, kernel: Kernel, device: Device
) -> None:
    launcher = kernel.bind(ONE, Stream.from_handle(2), gil="auto")
    launcher()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is False
    device.sync()


def test_auto_releases_while_a_callback_is_pending(
    lock_during_a_failing_call: Any, kernel: Kernel, stream: Stream
) -> None:
    launcher = kernel.bind(ONE, stream, gil="auto")
    launcher()
    seen: list[bool] = []

    @driver.ffi.callback("void(void*)")
    def host(data: Any) -> None:
        # Not yet done, whatever it waits for.
        seen.append(True)

    @driver.ffi.callback("void(CUstream, CUresult, void*)")
    def stream_callback(raw: Any, status: Any, data: Any) -> None:
        seen.append(True)

    for enqueue in (
        lambda: driver.cuLaunchHostFunc(stream.handle, host, None),
        lambda: driver.cuStreamAddCallback(stream.handle, stream_callback, None, 0),
    ):
        seen.clear()
        enqueue()
        stream.sync()
        assert seen == [True]
        assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True
    with pytest.raises(CUDAError):
        driver.cuLaunchHostFunc(stream.handle, None, None)
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True


@pytest.mark.emulated
def test_a_pending_callback_is_seen(
    lock_during_a_failing_call: Any, kernel: Kernel, stream: Stream, device: Device
) -> None:
    import threading

    other = device.create_stream()
    launcher = kernel.bind(ONE, other, gil="auto")
    launcher()
    inside, finish = threading.Event(), threading.Event()

    @driver.ffi.callback("void(void*)")
    def host(data: Any) -> None:
        inside.set()
        finish.wait(60)

    thread = threading.Thread(target=lambda: driver.cuLaunchHostFunc(stream.handle, host, None))
    thread.start()
    assert inside.wait(60)
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is False
    finish.set()
    thread.join()
    stream.sync()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True


@pytest.mark.emulated
@pytest.mark.parametrize("manner", ["release", "hold", "auto"])
def test_an_event_marks_64_launches(kernel: Kernel, stream: Stream, manner: Any) -> None:
    launcher = kernel.bind(ONE, stream, gil=manner)
    launcher()
    with emulator.recording():
        for _ in range(20):
            for _ in range(64):
                launcher()
            stream.sync()  # with too many unfinished it would neither hold nor mark
    records = [call for call in emulator.journal() if call.name == "cuEventRecord"]
    assert len(records) == pytest.approx(20 if manner == "auto" else 0, abs=1)
    stream.sync()


@pytest.mark.emulated
def test_the_marks_end_with_the_stream(kernel: Kernel, device: Device) -> None:
    launcher = kernel.bind(ONE, device.default_stream)
    launcher()
    before = emulator.counts()
    stream = device.create_stream()
    launcher = kernel.bind(ONE, stream, gil="auto")
    for _ in range(1000):
        launcher()
    stream.sync()
    del launcher, stream
    assert emulator.counts() == before


@pytest.mark.emulated
@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord", "cuEventQuery"])
def test_without_marks_it_releases(
    lock_during_a_failing_call: Any, kernel: Kernel, stream: Stream, call: str
) -> None:
    launcher = kernel.bind(ONE, stream, gil="auto")
    launcher()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True
    emulator.inject(call, nth=1, status=999)
    for _ in range(300):
        launcher()
    assert emulator.injections_left() == 0
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is False
    stream.sync()


# Python host callbacks while the queue of launches is full, in processes that may hang.

PROGRAM = """
import ctypes, faulthandler, sys, time
import cudamod
from cudamod import CUDAError, Device, LaunchConfig, ObjectCode, _core, driver
device = Device(0); device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx(b'''{ptx}''').get_kernel("k")
launcher = kernel.bind(LaunchConfig(grid=1, block=1), stream, gil="{gil}")
launcher(); stream.sync()
library = ctypes.CDLL(_core.driver_open()["path"])  # as another library in the process has it
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
seen = []
@Callback
def other(data):
    time.sleep(0.2)
    seen.append(1)
@driver.ffi.callback("void(void*)")
def ours(data):
    time.sleep(0.2)
    seen.append(1)
def enqueue_other():
    status = library.cuLaunchHostFunc(ctypes.c_void_p(stream.handle), other, None)
    assert status == 0, status
def enqueue_ours():
    driver.cuLaunchHostFunc(stream.handle, ours, None)
def fill():
    function = int(driver.ffi.cast("uintptr_t", driver.cuKernelGetFunction(kernel.handle)))
    for _ in range(1000):
        library.cuLaunchKernel(ctypes.c_void_p(function), 1, 1, 1, 1, 1, 1, 0,
                               ctypes.c_void_p(stream.handle), None, None)
faulthandler.dump_traceback_later({seconds}, exit=True)  # needs no interpreter lock
{body}
stream.sync()
assert seen, seen
print("done")
"""

LAUNCHES = "for _ in range(5000): launcher()"


def start(folder: Path, gil: str, body: str, seconds: float) -> subprocess.Popen[str]:
    """The program; once it has warmed up, it ends itself after so many seconds."""
    code = PROGRAM.format(ptx=empty("k").decode(), gil=gil, body=body, seconds=seconds)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finishes(process: subprocess.Popen[str]) -> bool:
    """Whether the program came to its end, and did not hang."""
    out, err = process.communicate(timeout=300)
    if process.returncode == 1 and err.startswith("Timeout ("):
        return False
    assert (process.returncode, out) == (0, "done\n"), out + err
    return True


@pytest.mark.parametrize("gil", ["release", "auto"])
@pytest.mark.parametrize("whose", ["ours", "other"])
@pytest.mark.parametrize("when", ["before", "among"])
def test_a_full_queue_behind_a_python_callback(
    tmp_path: Path, gil: str, whose: str, when: str
) -> None:
    body = f"enqueue_{whose}()\n{LAUNCHES}"
    if when == "among":
        body = f"{LAUNCHES}\nfor _ in range(3):\n    enqueue_{whose}()\n    {LAUNCHES}"
    assert finishes(start(tmp_path, gil, body, 120))


# The documented counterexamples: manner, and what it does not survive.
COUNTEREXAMPLES = {
    "hold, our callback": ("hold", f"enqueue_ours()\n{LAUNCHES}"),
    "hold, another library's": ("hold", f"enqueue_other()\n{LAUNCHES}"),
    "auto, another library's, and the queue full of its launches": (
        "auto",
        f"enqueue_other()\nfill()\n{LAUNCHES}",
    ),
}


@pytest.fixture(scope="module")
def hangs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Which counterexamples hang; all run at once, since each that does takes the whole time.

    The same programs that release the lock run beside them: only where those finish in the time
    was it enough.
    """
    folder = tmp_path_factory.mktemp("hangs")
    for seconds in (2, 15, 60):
        started = {
            (name, manner): start(folder, manner, body, seconds)
            for name, (gil, body) in COUNTEREXAMPLES.items()
            for manner in (gil, "release")
        }
        done = {key: finishes(process) for key, process in started.items()}
        if all(done[name, "release"] for name in COUNTEREXAMPLES):
            return {name: not done[name, gil] for name, (gil, _) in COUNTEREXAMPLES.items()}
    pytest.fail("released launches did not finish in a minute")


@pytest.mark.parametrize("example", COUNTEREXAMPLES)
def test_what_a_lock_held_does_not_survive(hangs: dict[str, bool], example: str) -> None:
    """The callback waits for the lock, the launch for room in the queue."""
    if not hangs[example]:
        pytest.skip("this driver's queue has no end, or room for these: no launch has to wait")


def test_a_busy_thread_does_not_slow_down_who_holds(run_python: Callable[..., str]) -> None:
    """A thread that computes takes a released lock for a whole switch interval."""
    code = f"""
import sys, threading, time
from cudamod import Device, LaunchConfig, ObjectCode
sys.setswitchinterval(0.05)
device = Device(0); device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
launcher = kernel.bind(LaunchConfig(grid=1, block=1), stream, gil="auto")
launcher(); stream.sync()
running = True
def busy():
    while running: pass
thread = threading.Thread(target=busy); thread.start()
begin = time.monotonic()
for _ in range(20):
    for _ in range(10): launcher()
elapsed = time.monotonic() - begin
running = False; thread.join(); stream.sync()
assert elapsed < 200 * 0.05 / 2, elapsed
"""
    run_python(code)


def test_it_is_the_processs_choice(run_python: Callable[..., str]) -> None:
    code = f"""
from cudamod import Device, LaunchConfig, ObjectCode, launch
device = Device(0); device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
for _ in range(300):
    launch(stream, LaunchConfig(grid=1, block=1), kernel)
    kernel[1, 1, stream]()
stream.sync()
print(kernel[1, 1, stream].gil)
"""
    assert run_python(code, CUDAMOD_GIL="auto") == "auto\n"


@pytest.mark.emulated
@pytest.mark.parametrize("refused", [False, True])
def test_a_captured_callback_counts_until_its_graph_is_gone(
    lock_during_a_failing_call: Any, kernel: Kernel, device: Device, refused: bool
) -> None:
    stream = device.create_stream()
    launcher = kernel.bind(ONE, stream, gil="auto")
    launcher()
    stream.begin_capture()
    if refused:
        emulator.inject("cuLaunchHostFunc", status=2)
        with pytest.raises(MemoryError):
            stream.add_callback(lambda: None)
    else:
        stream.add_callback(lambda: None)
    graph = stream.end_capture()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is refused
    graph.close()
    assert lock_during_a_failing_call(lambda: launcher(block=2048)) is True
