"""What becomes of libraries that nobody needs: retired by the last handle, unloaded when safe."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ptx import ONE, Stored, empty, read

from cudamod import CUDAError, Device, ObjectCode, Stream, driver, emulator, handles, launch


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """No retired library before the test, and the usual limits after it."""
    limits = handles.retirement_limits()
    gc.collect()
    handles.reclaim()
    yield
    handles.set_retirement_limits(libraries=limits.libraries, image_bytes=limits.image_bytes)
    gc.collect()
    handles.reclaim()


def loaded(image: bytes = empty("k")) -> ObjectCode:
    return ObjectCode.from_ptx(image).load()


def test_dropping_the_last_handle_retires(device: Device) -> None:
    image = empty("k")
    code = loaded(image)
    assert handles.retired() == (0, 0)
    del code
    assert handles.retired() == (1, len(image))
    assert (handles.retired().libraries, handles.retired().image_bytes) == (1, len(image))
    assert handles.reclaim() == 1
    assert handles.retired() == (0, 0)
    assert handles.reclaim() == 0


@pytest.mark.emulated
def test_retiring_calls_no_driver(device: Device) -> None:
    live = emulator.counts()["library"]
    code = loaded()
    with emulator.recording():
        del code
    assert emulator.journal() == []
    assert emulator.counts()["library"] == live + 1
    with emulator.recording():
        handles.reclaim()
    names = [call.name for call in emulator.journal()]
    assert names.count("cuLibraryUnload") == 1
    at = names.index("cuLibraryUnload")  # pools of other tests may be asked before, too
    assert names[at - 1] == names[at + 1] == "cuThreadExchangeStreamCaptureMode"
    assert emulator.counts()["library"] == live


KEEPERS: dict[str, Callable[[ObjectCode, Stream], Any]] = {
    "code": lambda code, stream: code,
    "kernel": lambda code, stream: code.get_kernel("k"),
    "attributes": lambda code, stream: code.get_kernel("k").attributes,
    "attributes of a device": lambda code, stream: code.get_kernel("k").attributes[0],
    "occupancy": lambda code, stream: code.get_kernel("k").occupancy,
    "launcher": lambda code, stream: code.get_kernel("k").bind(ONE, stream),
    "another launcher": lambda code, stream: code.get_kernel("k").bind(ONE, stream).on(stream),
    "kernel of a launcher": lambda code, stream: code.get_kernel("k").bind(ONE, stream).kernel,
    "method": lambda code, stream: code.get_kernel("k").bind,
}


@pytest.mark.parametrize("what", KEEPERS)
def test_who_keeps_a_library(stream: Stream, what: str) -> None:
    kept = KEEPERS[what](loaded(), stream)
    gc.collect()
    assert handles.retired().libraries == 0
    assert handles.reclaim() == 0
    del kept
    gc.collect()
    assert handles.retired().libraries == 1


def test_a_load_unloads_beyond_the_limit(device: Device) -> None:
    handles.set_retirement_limits(libraries=3, image_bytes=0)
    assert handles.retirement_limits() == (3, 0)
    for expected in (1, 2, 3, 4):
        loaded()
        assert handles.retired().libraries == expected
    loaded()
    assert handles.retired().libraries == 1


def test_the_limit_of_bytes(device: Device) -> None:
    image = empty("k")
    handles.set_retirement_limits(libraries=0, image_bytes=2 * len(image))
    for expected in (1, 2, 3, 1, 2, 3, 1):
        loaded(image)
        assert handles.retired().libraries == expected


def test_without_limits_only_reclaim_unloads(device: Device) -> None:
    handles.set_retirement_limits(libraries=0, image_bytes=0)
    for _ in range(100):
        loaded()
    assert handles.retired().libraries == 100
    assert handles.reclaim() == 100


def test_the_usual_limits() -> None:
    handles.set_retirement_limits()
    assert handles.retirement_limits() == (64, 64 << 20)


@pytest.mark.parametrize("bad", [-1, 2**64, "1", None, 1.5])
def test_limits_that_are_none(bad: Any) -> None:
    before = handles.retirement_limits()
    for given in ({"libraries": bad}, {"image_bytes": bad}):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            handles.set_retirement_limits(**given)
    assert handles.retirement_limits() == before


@pytest.mark.emulated
def test_ten_thousand_libraries_leave_nothing(device: Device, stream: Stream) -> None:
    live = emulator.counts()["library"]
    image = empty("k")
    for _ in range(2000):
        launch(stream, ONE, ObjectCode.from_ptx(image).get_kernel("k"))
    stream.sync()
    limit = handles.retirement_limits().libraries
    assert emulator.counts()["library"] <= live + limit + 1
    handles.reclaim()
    assert emulator.counts()["library"] == live


@pytest.mark.emulated
def test_memory_that_runs_out_reclaims_and_tries_again(device: Device) -> None:
    handles.set_retirement_limits(libraries=0, image_bytes=0)
    loaded()
    emulator.inject("cuLibraryLoadData", status=2)
    assert loaded().get_kernel("k").name == "k"
    assert handles.retired().libraries == 1  # the last one; the first was unloaded
    handles.reclaim()
    emulator.inject("cuLibraryLoadData", status=2)
    with pytest.raises(MemoryError) as caught:
        loaded()
    assert isinstance(caught.value, CUDAError)
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.mark.parametrize(
    ("manner", "retired", "live"), [("deferred", 5, 5), ("now", 0, 0), ("never", 0, 5)]
)
def test_the_manner_of_unloading(run_python: Any, manner: str, retired: int, live: int) -> None:
    code = f"""
from cudamod import Device, ObjectCode, handles
Device(0).set_current()
for _ in range(5):
    ObjectCode.from_ptx({empty("k")!r}).load()
print(handles.retired().libraries)
try:
    from cudamod import emulator
    print(emulator.counts()["library"])
except emulator.NotEmulatedError:
    print({live})
"""
    assert run_python(code, CUDAMOD_UNLOAD=manner).split() == [str(retired), str(live)]


def test_a_graph_keeps_the_library_of_its_kernels(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    out.fill(0, stream=stream)
    stream.sync()
    raw = driver.ffi.cast("CUstream", stream.handle)
    try:
        driver.cuStreamBeginCapture(raw, 2)  # relaxed
    except CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_SUPPORTED":
            raise
        pytest.skip("this driver does not capture")
    launcher(out, 7)
    launcher(out, 8)
    graph = driver.cuStreamEndCapture(raw)
    executable = driver.cuGraphInstantiate(graph, 0)
    del launcher
    stored._kernels.clear()
    gc.collect()
    assert handles.retired().libraries == 0
    for _ in range(3):  # what is loaded in between would lie where the kernel was
        loaded()
    handles.reclaim()
    driver.cuGraphLaunch(executable, raw)
    assert read(out, stream) == b"\x08\0\0\0"
    driver.cuGraphExecDestroy(executable)
    driver.cuGraphDestroy(graph)
    stream.sync()


def test_an_exit_with_everything_alive(run_python: Any) -> None:
    code = f"""
import sys, threading
from cudamod import Device, LaunchConfig, ObjectCode
device = Device(0); device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
launcher = kernel.bind(LaunchConfig(grid=1, block=1), stream)
launcher()
views = kernel.attributes, kernel.occupancy
cycle = [kernel]; cycle.append(cycle)
thread = threading.Thread(target=launcher); thread.start(); thread.join()
sys.modules["kept"] = launcher
print("out")
"""
    assert run_python(code).strip() == "out"
