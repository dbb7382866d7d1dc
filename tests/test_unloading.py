"""The moments at which an object must not end, and what happens when its last handle goes there.

``docs/handles.md`` has the table of these situations.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ptx import ONE, Stored, empty, read
from public_calls import a_graph, a_pool, a_scene, a_sequence, instantiated

import cudamod
from cudamod import (
    Buffer,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Stream,
    driver,
    emulator,
    handles,
)

RunPython = Callable[..., str]

#: Runs until the host writes another value than 0.
WAITING = b"""
.version 8.0
.target sm_50
.address_size 64
.visible .entry wait(.param .u64 flag)
{
    .reg .b32 %r<2>; .reg .b64 %d<2>; .reg .pred %p<2>;
    ld.param.u64 %d1, [flag];
again:
    ld.volatile.global.u32 %r1, [%d1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


@pytest.fixture(autouse=True)
def settled(device: Device) -> Iterator[None]:
    """Nothing is retired before the test, and the limits are the usual ones after it."""
    gc.collect()
    handles.reclaim()
    yield
    handles.set_retirement_limits()
    gc.collect()
    handles.reclaim()


class Running:
    """A kernel that runs until it is let go."""

    def __init__(self, stream: Stream, image: bytes = WAITING) -> None:
        self.stream = stream
        self.memory = LegacyPinnedMemoryResource().allocate(4)
        self.flag = ctypes.c_uint32.from_address(self.memory.handle)
        self.flag.value = 0
        self.code: ObjectCode | None = ObjectCode.from_ptx(image)
        self.launcher: Any = self.code.get_kernel("wait").bind(ONE, stream)
        self.launcher(self.memory)
        self.done = stream.record()

    def drop(self) -> None:
        """Let go of every handle of the library."""
        self.code = self.launcher = None
        gc.collect()

    def end(self) -> None:
        self.flag.value = 1
        self.done.sync()


def loaded(name: str = "k") -> ObjectCode:
    return ObjectCode.from_ptx(empty(name)).load()


def works(device: Device) -> None:
    """Another thread's launch gets through, and soon."""

    def launch() -> None:
        stream = device.create_stream()
        loaded().get_kernel("k").bind(ONE, stream)()
        stream.sync()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(launch).result(60)


def test_a_library_goes_while_its_kernel_runs(device: Device) -> None:
    running = Running(device.create_stream())
    try:
        running.drop()
        assert handles.retired().libraries == 1
        works(device)
        assert not running.done.is_done
    finally:
        running.end()
    assert handles.reclaim() == 2


def test_a_library_goes_beside_an_endless_kernel(device: Device) -> None:
    handles.set_retirement_limits(libraries=0, image_bytes=0)
    running = Running(device.create_stream())
    try:
        for _ in range(70):  # beyond the usual limit
            loaded().get_kernel("k").load()
        works(device)
        assert handles.retired().libraries == 71
        assert not running.done.is_done
    finally:
        running.end()


@pytest.mark.parametrize("who", ["this thread", "another thread"])
def test_a_library_is_unloaded_during_a_capture(device: Device, who: str) -> None:
    stream = device.create_stream()
    kernel = loaded().get_kernel("k")
    kernel.load()
    used = loaded("used").get_kernel("used").bind(ONE, stream)
    used()
    stream.sync()
    modes = driver.CUstreamCaptureMode

    def begin() -> None:
        device.set_current()
        driver.cuStreamBeginCapture(stream.handle, modes.CU_STREAM_CAPTURE_MODE_GLOBAL)
        used()

    def end() -> int:
        graph = driver.cuStreamEndCapture(stream.handle)
        count = driver.ffi.new("size_t *", 0)
        driver.cuGraphGetNodes(graph, driver.ffi.NULL, count)
        driver.cuGraphDestroy(graph)
        return int(count[0])

    with ThreadPoolExecutor(1) as pool:
        run = (
            (lambda call: call())
            if who == "this thread"
            else lambda call: pool.submit(call).result()
        )
        run(begin)
        del kernel
        gc.collect()
        assert handles.reclaim() == 1
        assert run(end) == 1
        pool.submit(driver.cuCtxSetCurrent, None).result()


def test_a_graph_of_others_outlives_everything_of_ours(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(8, stream=stream)
    out.fill(0, stream=stream)
    stream.sync()
    driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(2))  # relaxed
    launcher(out, 7)
    graph = driver.cuStreamEndCapture(stream.handle)
    executable = driver.cuGraphInstantiate(graph, 0)
    driver.cuGraphDestroy(graph)
    del launcher
    stored._kernels.clear()
    gc.collect()
    handles.set_retirement_limits(libraries=8, image_bytes=0)
    others = [loaded().get_kernel("k") for _ in range(200)]
    del others
    handles.reclaim()
    others = [loaded().get_kernel("k") for _ in range(200)]  # where the kernel's code was
    for _ in range(3):
        out.fill(0, stream=stream)
        driver.cuGraphLaunch(executable, stream.handle)
        assert read(out, stream)[:4] == b"\x07\0\0\0"
    assert handles.reclaim() == 0
    del others
    driver.cuGraphExecDestroy(executable)
    stream.sync()
    works(stream.device)


@pytest.mark.emulated
def test_a_launch_that_could_not_keep_its_library_in_a_graph(device: Device) -> None:
    """The next launch into the capture keeps it, and what was made for the first try is gone."""
    stream = device.create_stream()
    launcher = loaded().get_kernel("k").bind(ONE, stream)
    stream.begin_capture()
    for call in ("cuUserObjectCreate", "cuGraphRetainUserObject"):
        emulator.inject(call, status=999)
        with pytest.raises(cudamod.CUDAError, match=call):
            launcher()
    assert emulator.counts()["user_object"] == 0
    launcher()
    assert emulator.counts()["user_object"] == 1
    graph = stream.end_capture()
    del launcher
    gc.collect()
    assert handles.reclaim() == 0
    del graph
    assert handles.reclaim() == 1


def test_unloading_at_once_is_no_matter_of_the_drivers_threads(run_python: RunPython) -> None:
    """The last handle may be a graph's, whose destructor may not call the driver."""
    code = f"""
import warnings
from cudamod import Device, LaunchConfig, ObjectCode, handles
warnings.simplefilter("error")
device = Device(0)
stream = device.create_stream()
stream.begin_capture()
ObjectCode.from_ptx({empty("k")!r}).get_kernel("k").bind(LaunchConfig(grid=1, block=1), stream)()
graph = stream.end_capture()
del graph
device.sync()
print([handle.kind for handle in handles.leaks()], handles.reclaim())
"""
    assert run_python(code, CUDAMOD_UNLOAD="now") == "['stream'] 0\n"


#: One object of each family, and all that it needs.
FAMILIES: dict[str, Callable[[Device, Stream], Any]] = {
    "library": lambda device, stream: loaded(),
    "kernel": lambda device, stream: loaded().get_kernel("k"),
    "launcher": lambda device, stream: loaded().get_kernel("k").bind(ONE, stream),
    "stream": lambda device, stream: device.create_stream(),
    "event": lambda device, stream: device.create_event(),
    "memory": lambda device, stream: device.allocate(8, stream=stream),
    "memory of its own stream": lambda device, stream: device.allocate(
        8, stream=device.create_stream()
    ),
    "pinned memory": lambda device, stream: LegacyPinnedMemoryResource().allocate(8, stream=stream),
    "pool": lambda device, stream: a_pool(),
    "memory of a pool": lambda device, stream: a_pool().allocate(8, stream=stream),
    "graph": lambda device, stream: a_graph(a_scene(device, "")),
    "executable graph": lambda device, stream: instantiated(a_graph(a_scene(device, ""))),
    "sequence": lambda device, stream: a_sequence(a_scene(device, "")),
}


def everything_gone(device: Device) -> Any:
    """What is alive after garbage, work and retired objects are gone."""
    gc.collect()
    device.sync()
    handles.reclaim()
    alive = {(handle.kind, handle.serial) for handle in handles.live()}
    try:
        return alive, emulator.counts()
    except emulator.NotEmulatedError:
        return alive


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_end_inside_a_host_callback(device: Device, stream: Stream, kind: str) -> None:
    """The driver refuses every call there: the object ends at the next public call."""
    FAMILIES[kind](device, stream)
    before = everything_gone(device)
    things = [FAMILIES[kind](device, stream)]
    things[0] = [things[0]]
    things[0].append(things)  # a cycle: the collector runs in the callback

    def callback(held: list[Any] = things) -> None:
        held.clear()
        gc.collect()

    stream.add_callback(callback)
    del things, callback
    stream.sync()
    assert everything_gone(device) == before


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_end_with_the_last_reference_of_a_thread(
    device: Device, stream: Stream, kind: str
) -> None:
    FAMILIES[kind](device, stream)
    before = everything_gone(device)
    local = threading.local()

    def work() -> None:
        local.kept = FAMILIES[kind](device, stream)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert everything_gone(device) == before


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_end_inside_of_an_arguments_conversion(
    device: Device, stored: Stored, kind: str
) -> None:
    stream = stored.stream
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = device.allocate(4, stream=stream)
    launcher(out, 1)
    stream.sync()
    FAMILIES[kind](device, stream)
    before = everything_gone(device)
    things: list[Any] = [FAMILIES[kind](device, stream)]
    things.append(things)

    class Number:
        def __index__(self) -> int:
            nonlocal things
            things = []
            gc.collect()
            return 42

    launcher(out, Number())
    assert read(out, stream) == b"\x2a\0\0\0"
    assert everything_gone(device) == before


def test_the_launched_library_goes_in_its_own_arguments_conversion(stored: Stored) -> None:
    """The launch itself keeps what it launches."""
    stream = stored.stream
    out = stream.device.allocate(4, stream=stream)
    held = [stored.kernel("u32").bind(ONE, stream)]
    stored._kernels.clear()

    class Number:
        def __index__(self) -> int:
            held.clear()
            gc.collect()
            handles.reclaim()
            return 42

    held[0](out, Number())
    assert read(out, stream) == b"\x2a\0\0\0"
    gc.collect()
    assert handles.reclaim() == 1


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_capture_in_global_mode_survives(
    device: Device, stream: Stream, kind: str, how: str
) -> None:
    thing = FAMILIES[kind](device, stream)
    stream.sync()
    driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(0))
    if how == "close" and hasattr(thing, "close"):
        thing.close()
    del thing
    gc.collect()
    handles.reclaim()
    graph = driver.cuStreamEndCapture(stream.handle)
    count = driver.ffi.new("size_t *", 0)
    driver.cuGraphGetNodes(graph, driver.ffi.NULL, count)
    driver.cuGraphDestroy(graph)
    assert count[0] == 0


FAULT = """
import gc, warnings
import cudamod
from cudamod import Device, LaunchConfig, ObjectCode, handles
device = Device(0)
stream = device.create_stream()
kernel = ObjectCode.from_ptx(b".version 8.0\\n.target sm_50\\n.address_size 64\\n"
    b".visible .entry fails() { trap; }\\n").get_kernel("fails")
pool = cudamod.DeviceMemoryResource(device, {})
things = [(device.create_stream(), device.create_event(), device.allocate(8, stream=stream),
           pool.allocate(8, stream=stream)) for _ in range(20)]
kernel.bind(LaunchConfig(grid=1, block=1), stream)()
try:
    stream.sync()
except cudamod.CUDAError as error:
    print(error.name)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    del things, stream, pool, kernel
    gc.collect()
    handles.reclaim()
    for _ in range(3):
        try:
            device.create_event()
        except cudamod.CUDAError:
            pass
print(len(caught), {w.category.__name__ for w in caught})
"""


def test_after_a_fault_there_is_one_warning(run_python: RunPython) -> None:
    name, told = run_python(FAULT).splitlines()
    assert name == "CUDA_ERROR_LAUNCH_FAILED"
    assert told == "1 {'CUDAWarning'}"


RESET = f"""
import gc, warnings
import cudamod
from cudamod import Device, LaunchConfig, ObjectCode, driver, handles
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
kernel.bind(LaunchConfig(grid=1, block=1), stream)()
stream.sync()
driver.cuDevicePrimaryCtxReset(0)
warnings.simplefilter("error")
del kernel
gc.collect()
assert handles.retired().libraries == 1
assert handles.reclaim() == 1
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    del stream
    handles.reclaim()
print("done")
"""


def test_a_library_outlives_a_reset_of_its_primary_context(run_python: RunPython) -> None:
    assert run_python(RESET) == "done\n"


def test_eight_threads_that_load_stay_within_the_bound(device: Device) -> None:
    handles.set_retirement_limits(libraries=16, image_bytes=0)
    most = [0] * 8
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        stream = device.create_stream()
        config = LaunchConfig(grid=1, block=1)
        barrier.wait()
        for _ in range(60):
            loaded().get_kernel("k").bind(config, stream)()
            most[number] = max(most[number], handles.retired().libraries)
        stream.sync()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert 0 < max(most) <= 16 + 8  # each thread that loads may have one more
    assert handles.retired().libraries <= 16 + 8


OUT_OF_MEMORY: dict[str, tuple[str, Callable[[Device, Stream], Any]]] = {
    "a library": ("cuLibraryLoadData", lambda device, stream: loaded()),
    "memory": ("cuMemAllocFromPoolAsync", lambda device, stream: device.allocate(8, stream=stream)),
    "memory of a pool": (
        "cuMemAllocFromPoolAsync",
        lambda device, stream: a_pool().allocate(8, stream=stream),
    ),
    "pinned memory": (
        "cuMemAllocHost",
        lambda device, stream: LegacyPinnedMemoryResource().allocate(8, stream=stream),
    ),
}


@pytest.mark.emulated
@pytest.mark.parametrize("what", OUT_OF_MEMORY)
def test_exhausted_memory_reclaims_and_tries_once_more(
    device: Device, stream: Stream, what: str
) -> None:
    call, make = OUT_OF_MEMORY[what]
    handles.set_retirement_limits(libraries=0, image_bytes=0)
    loaded()
    assert handles.retired().libraries == 1
    emulator.inject(call, nth=1, status=2)
    kept: Buffer | ObjectCode = make(device, stream)
    assert handles.retired().libraries == 0
    emulator.inject(call, nth=1, status=2)  # nothing is retired: there is no second try
    with pytest.raises(cudamod.CUDAOutOfMemoryError):
        make(device, stream)
    loaded()
    for nth in (1, 2):  # the second try fails as well: there is no third
        emulator.inject(call, nth=nth, status=2)
    with pytest.raises(cudamod.CUDAOutOfMemoryError):
        make(device, stream)
    emulator.reset()
    del kept
