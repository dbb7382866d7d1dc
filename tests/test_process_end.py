"""The end of the interpreter with everything alive, and fork."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ptx import empty

RunPython = Callable[..., str]

EVERYTHING = (
    f"""
IMAGE = {empty("k", parameters=["u32"])!r}
"""
    + """
import sys
import cudamod
from cudamod import Buffer, Device, EventOptions, Stream, StreamOptions, driver, handles
device = Device(0)
device.set_current()
stream = device.create_stream()
event = stream.record(options=EventOptions(True))
buffer = device.allocate(1 << 16, stream=stream)
view = Buffer.from_handle(buffer.handle, 16, owner=buffer)
capsules = [buffer.__dlpack__(), view.__dlpack__(max_version=(1, 0))]
context, properties, default = device.context, device.properties, device.default_stream
foreign = Stream.from_handle(int(driver.ffi.cast("uintptr_t", driver.cuStreamCreate(1))))
pool = cudamod.DeviceMemoryResource(device, dict(ipc_enabled=True))
pooled, attributes = pool.allocate(64, stream=stream), pool.attributes
handle = pool.allocation_handle
mapped = cudamod.DeviceMemoryResource.from_allocation_handle(0, handle)
imported = Buffer.from_ipc_descriptor(mapped, pooled.ipc_descriptor, stream=stream)
pinned = cudamod.LegacyPinnedMemoryResource().allocate(64)
class Mine(cudamod.MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    def deallocate(self, ptr, size, *, stream): self.freed = ptr
foreign_pool = Mine()
lent = Buffer.from_handle(buffer.handle, 16, mr=foreign_pool, stream=stream)
code = cudamod.ObjectCode.from_ptx(IMAGE)
kernel = code.get_kernel("k")
views = kernel.attributes, kernel.attributes[0], kernel.occupancy
config = cudamod.LaunchConfig(grid=1, block=1)
launcher, automatic = kernel.bind(config, stream), kernel.bind(config, stream, gil="auto")
launcher(1)
for number in range(70): automatic(number)
prepared = launcher.prepare(2)
sequence = cudamod.LaunchSequence([prepared, launcher.prepare(3)])
sequence()
stream.begin_capture()
launcher(4)
graph = stream.end_capture()
graph.instantiate()
graph.launch(stream)
stream.add_callback(lambda held=buffer: None)
try:
    mapping = cudamod.TensorMap.tiled(buffer, 16, shape=64, data_type="float32")
except cudamod.CUDAError:
    mapping = None  # compute capability 9.0
others = []
for make in (cudamod.PinnedMemoryResource, cudamod.ManagedMemoryResource):
    try:
        others.append((make({}), make({}).allocate(64, stream=stream)))
    except cudamod.CUDAError:
        pass
compiling = cudamod.CompileCache("cache"), cudamod.Program("", "c++")
retired = cudamod.ObjectCode.from_ptx(IMAGE).get_kernel("k")
del retired
stream.sync()
cycle = [stream, event, buffer, view, context, pool, pooled, mapped, imported, pinned, lent]
cycle += [code, kernel, views, launcher, automatic, prepared, sequence, graph, others]
foreign_pool.cycle = cycle
cycle.append(cycle)
sys.modules["cudamod.kept"] = everything = dict(globals())
"""
)

ENDS: dict[str, tuple[str, int]] = {
    "the end": ("", 0),
    "sys.exit": ("sys.exit()", 0),
    "sys.exit with a status": ("sys.exit(3)", 3),
    "os._exit": ("import os; os._exit(0)", 0),
    "an exception": ("raise SystemExit(0)", 0),
    "work in flight": ("buffer.fill(1, stream=stream)", 0),
    "use at exit": (
        "import atexit; atexit.register(lambda: (stream.record().sync(), buffer.close()))",
        0,
    ),
    "a destructor at exit": (
        "class Late:\n"
        "    def __del__(self, device=device, stream=stream): stream.close(); device.allocate(8)\n"
        "late = Late()",
        0,
    ),
    "a thread that ended": (
        "import threading\n"
        "thread = threading.Thread(target=lambda: globals().update(t=device.create_stream()))\n"
        "thread.start(); thread.join()",
        0,
    ),
    "a daemon thread at work": (
        "import threading\n"
        "ready = threading.Event()\n"
        "def work():\n"
        "    while True:\n"
        "        device.create_stream().record().sync(); ready.set()\n"
        "threading.Thread(target=work, daemon=True).start(); ready.wait()",
        0,
    ),
    "modules gone": ("del sys.modules['cudamod'], sys.modules['cudamod._core']", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_in_silence(tmp_path: Path, end: str) -> None:
    code, status = ENDS[end]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", EVERYTHING + code],
        cwd=tmp_path,
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.emulated
def test_the_emulated_driver_announces_itself_once(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "CUDAMOD_EMULATOR_QUIET"}
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == done.stderr.count("emulated driver, not a GPU") == 1


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("filters", "heading"),
    [
        ("default", "CUDAWarning: cuStreamDestroy: CUDA_ERROR_LAUNCH_FAILED"),
        ("error", "cudamod.errors.CUDAWarning: cuStreamDestroy"),
        ("ignore", ""),
    ],
)
def test_what_a_destructor_had_to_say_comes_out_at_the_end(
    tmp_path: Path, filters: str, heading: str
) -> None:
    code = """
import cudamod
from cudamod import emulator
emulator.inject("cuStreamDestroy", nth=1, status=719)
cudamod.Device(0).create_stream().close()
"""
    done = subprocess.run(
        [sys.executable, "-W", filters, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert heading in done.stderr
    assert ("cuStreamDestroy" in done.stderr) is bool(heading)


FORK = (
    EVERYTHING
    + """
import gc, os
del everything, sys.modules["cudamod.kept"]
pid = os.fork()
if pid == 0:
    {child}
else:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0, status
    buffer.fill(3, stream=stream)
    assert buffer.copy_to(bytearray(1 << 16), stream=stream) == bytes([3]) * (1 << 16)
    print("parent")
"""
)

CHILDREN = {
    "does nothing": "pass",
    "exits": "sys.exit(0)",
    "drops everything": "del stream, event, buffer, view, capsules, context, cycle; gc.collect()",
    "drops the pools": "del cycle, foreign_pool, lent, pool, pooled, mapped, imported, pinned; "
    "del attributes, handle; gc.collect()",
    "closes everything": "event.close(), view.close(), buffer.close(stream), stream.close(), "
    "pooled.close(), imported.close(), pool.close(), mapped.close(), handle.close(), "
    "lent.close()",
    "drops code and graphs": "del cycle, code, kernel, views, launcher, automatic, prepared; "
    "del sequence, graph, mapping, others, compiling; gc.collect()",
    "closes code and graphs": "graph.close(); handles.reclaim()",
    "closes in a block": "exec('with buffer: pass')",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("child", CHILDREN)
def test_a_forked_child_leaves_the_parents_objects_alone(run_python: RunPython, child: str) -> None:
    assert run_python(FORK.replace("{child}", CHILDREN[child])) == "parent\n"


@pytest.mark.emulated
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("child", CHILDREN)
def test_a_forked_child_makes_no_driver_call(run_python: RunPython, child: str) -> None:
    code = FORK.replace(
        "{child}",
        "from cudamod import emulator; emulator.start_recording(); "
        + CHILDREN[child].replace("pass", "0", 1)
        + "; gc.collect(); assert emulator.journal() == [], emulator.journal()",
    )
    assert run_python(code) == "parent\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "use",
    [
        "device.create_stream()",
        "stream.sync()",
        "buffer.fill(0, stream=stream)",
        "device.allocate(8)",
        # No event.sync(): of an event that is done already, the driver tells even a child.
    ],
)
def test_using_the_driver_in_a_forked_child_is_an_error(run_python: RunPython, use: str) -> None:
    child = f"""
    try:
        {use}
    except cudamod.CUDAError as error:
        assert error.name == "CUDA_ERROR_NOT_INITIALIZED", error
        os._exit(0)
    os._exit(1)"""
    assert run_python(FORK.replace("{child}", child.strip())) == "parent\n"
