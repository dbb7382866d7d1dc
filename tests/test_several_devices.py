"""Several devices in one process, emulated: each object stays on its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ptx import HEADER

pytestmark = pytest.mark.emulated

RunPython = Callable[..., str]

FOUR = "sm_90,sm_80,sm_75,sm_90"

PREAMBLE = """
import threading
import pytest
import cudamod
from cudamod import Buffer, Device, Event, EventOptions, Stream, driver

def current():
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))

devices = Device.get_all_devices()
assert len(devices) == Device.count() == 4
"""

PTX = (
    HEADER
    + """.visible .global .align 4 .u32 v;
.visible .entry put(.param .u64 p, .param .u32 n)
{
.reg .b64 %p; .reg .b32 %n;
ld.param.u64 %p, [p]; ld.param.u32 %n, [n]; st.global.u32 [%p], %n; ret;
}
"""
).encode()

PROGRAMS = {
    "each is itself": """
assert [d.device_id for d in devices] == [0, 1, 2, 3]
assert [d.arch for d in devices] == ["90", "80", "75", "90"]
assert [tuple(d.compute_capability) for d in devices] == [(9, 0), (8, 0), (7, 5), (9, 0)]
assert len({d.uuid for d in devices}) == len({d.pci_bus_id for d in devices}) == 4
assert len({d.context.handle for d in devices}) == 4
assert len(set(devices)) == 4 and devices[0] != devices[3]
assert devices[1].properties.compute_capability_major == 8
assert devices[0].properties.max_shared_memory_per_block_optin == 232448
assert all(d.context.device is d for d in devices)
with pytest.raises(ValueError, match=r"\\[0, 4\\), got 4"):
    Device(4)
""",
    "properties are each device's": """
names = dir(devices[0].properties)
for d in devices:
    for name in names:
        attribute = driver.CUdevice_attribute["CU_DEVICE_ATTRIBUTE_" + name.upper()]
        assert getattr(d.properties, name) == driver.cuDeviceGetAttribute(attribute, int(d)), name
""",
    "Device() follows the current context": """
assert Device() is devices[0]
for d in reversed(devices):
    d.set_current()
    assert Device() is d and current() == d.context.handle
    assert Stream.from_handle(0) == Stream.from_handle(1) == d.default_stream
    assert Stream.from_handle(2).device is d
def work():
    assert Device() is devices[0]
    devices[2].set_current()
    assert Device() is devices[2]
thread = threading.Thread(target=work); thread.start(); thread.join()
assert Device() is devices[0]
""",
    "objects live on their device, whatever is current": """
for d in devices:
    for now in [None, *devices]:
        now.set_current() if now else driver.cuCtxSetCurrent(None)
        before = current()
        stream = d.create_stream()
        event = stream.record(options=EventOptions(True))
        buffer = d.allocate(64, stream=stream)
        assert (stream.device, event.device, buffer.device_id) == (d, d, d.device_id)
        assert stream.context == event.context == d.context
        assert d.create_event().device is d
        buffer.fill(int(d) + 1, stream=stream)
        assert buffer.copy_to(bytearray(64), stream=stream) == bytes([int(d) + 1]) * 64
        assert buffer.copy_to(stream=stream).device_id == d.device_id
        assert d.allocate(8).device_id == d.device_id
        assert d.allocate(0).device_id == d.device_id
        assert buffer.__dlpack_device__() == (2, d.device_id)
        buffer.__dlpack__()
        assert Buffer.from_handle(buffer.handle, 64).device_id == d.device_id
        assert Stream.from_handle(stream.handle).device is d
        d.default_stream.sync(); d.sync(); event.sync()
        assert event - event == 0
        assert current() == before
        del stream, event, buffer
        assert current() == before
""",
    "default streams differ": """
streams = [d.default_stream for d in devices]
assert [s.handle for s in streams] == [1] * 4
assert len(set(streams)) == 4
assert all(a != b for a in streams for b in streams if a is not b)
for d, s in zip(devices, streams):
    assert s.device is d and s.record().device is d
""",
    "a stream of another device is refused": """
stream = devices[1].create_stream()
for d in (devices[0], devices[2], devices[3]):
    for use in (lambda: d.allocate(8, stream=stream), lambda: d.create_stream(stream),
                lambda: d.allocate(0, stream=stream),
                lambda: d.allocate(8, stream=devices[1].default_stream)):
        with pytest.raises(ValueError, match=f"runs on device 1, not device {int(d)}"):
            use()
assert devices[1].create_stream(stream) is stream
with pytest.raises(ValueError, match="lives on device 1, not 0"):
    devices[0].set_current(devices[1].context)
""",
    "streams wait for each other across devices": """
first, second = devices[0].create_stream(), devices[3].create_stream()
first.wait(second); second.wait(first.record()); first.sync(); second.sync()
with pytest.raises(cudamod.CUDAError) as caught:
    first.record(second.record())
assert caught.value.call == "cuEventRecord", caught.value
a = first.record(options=EventOptions(True)); b = second.record(options=EventOptions(True))
first.sync(); second.sync()
with pytest.raises(cudamod.CUDAError, match="one device"):
    a - b
""",
    "buffers are copied across devices": """
first, second = devices[0].create_stream(), devices[1].create_stream()
a, b = devices[0].allocate(64, stream=first), devices[1].allocate(64, stream=second)
a.copy_from(bytes(range(64)), stream=first)
second.wait(first)
b.copy_from(a, stream=second)
assert b.copy_to(bytearray(64), stream=second) == bytes(range(64))
c = a.copy_to(stream=second)
assert c.device_id == 1
assert c.copy_to(bytearray(64), stream=second) == bytes(range(64))
""",
    "a capsule for a stream of another device": """
import ctypes
first, second = devices[0].create_stream(), devices[1].create_stream()
buffer = devices[0].allocate(64, stream=first)
buffer.__dlpack__(stream=second.handle)
with pytest.raises(BufferError):
    buffer.__dlpack__(dl_device=(2, 1))
""",
    "peers are asked of the driver": """
for a in devices:
    for b in devices:
        assert a.can_access_peer(b) == bool(driver.cuDeviceCanAccessPeer(int(a), int(b)))
""",
    "a thread for each": """
def work(d, out):
    for turn in range(20):
        stream = d.create_stream()
        buffer = d.allocate(256, stream=stream)
        buffer.fill(16 * int(d) + turn % 16, stream=stream)
        out.append(set(buffer.copy_to(bytearray(256), stream=stream)) == {16 * int(d) + turn % 16})
outs = [[] for _ in range(8)]
threads = [threading.Thread(target=work, args=(devices[i % 4], outs[i])) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert outs == [[True] * 20] * 8
""",
    "nothing touches device 0": """
from cudamod import emulator
d = devices[3]
with emulator.recording():
    stream = d.create_stream(); buffer = d.allocate(8, stream=stream)
    buffer.fill(0, stream=stream); stream.sync(); d.sync()
retained = [c.arguments for c in emulator.journal() if c.name == "cuDevicePrimaryCtxRetain"]
assert len(retained) == 1 and "3" in retained[0], retained
""",
    "one image serves all": f"""
from cudamod import LaunchConfig, ObjectCode, handles, launch
PTX = {PTX!r}
code = ObjectCode.from_ptx(PTX)
kernel = code.get_kernel("put")
launched = []
for d in [devices[2], *devices, *reversed(devices)]:
    for now in (None, d, devices[1]):
        now.set_current() if now else driver.cuCtxSetCurrent(None)
        stream = d.create_stream()
        out = d.allocate(4, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=1), kernel, out, 7 + int(d))
        assert int.from_bytes(out.copy_to(bytearray(4), stream=stream), "little") == 7 + int(d)
        kernel.bind(LaunchConfig(grid=1, block=1), stream)(out, 1)
        stream.sync()
assert code.get_kernel("put") is kernel and code.kernels() == ["put"]
""",
    "attributes and limits are each device's": f"""
from cudamod import LaunchConfig, ObjectCode
PTX = {PTX!r}
kernel = ObjectCode.from_ptx(PTX).get_kernel("put")
assert [kernel.attributes[d].binary_version for d in devices] == [90, 80, 75, 90]
assert [kernel.attributes[int(d)].ptx_version for d in devices] == [75] * 4
limits = [d.properties.max_shared_memory_per_block_optin for d in devices]
assert len(set(limits)) == 3
for d, limit in zip(devices, limits):
    with pytest.raises(ValueError, match=f"device {{int(d)}} allows {{limit}} per block"):
        kernel.attributes[d].max_dynamic_shared_size_bytes = limit + 1
    with pytest.raises(ValueError, match=f"device {{int(d)}} allows {{limit}} per block"):
        kernel.bind(LaunchConfig(grid=1, block=1, shmem_size=limit + 1), d.default_stream)
    kernel.bind(LaunchConfig(grid=1, block=1, shmem_size=limit), d.default_stream)
assert [kernel.attributes[d].max_dynamic_shared_size_bytes for d in devices] == limits
kernel.attributes[2].max_dynamic_shared_size_bytes = 5
assert [kernel.attributes[d].max_dynamic_shared_size_bytes for d in devices] == [
    limits[0], limits[1], 5, limits[3]]
devices[1].set_current()
assert kernel.attributes.binary_version == 80
assert kernel.attributes.max_dynamic_shared_size_bytes == limits[1]
""",
    "variables and modules are each context's": f"""
from cudamod import ObjectCode, handles
PTX = {PTX!r}
code = ObjectCode.from_ptx(PTX)
variables, modules = [], []
for d in devices:
    d.set_current()
    variable = code.get_global("v")
    assert variable.device_id == int(d)
    variable.copy_from(bytes([int(d)] * 4), stream=d.default_stream)
    variables.append(variable); modules.append(code.get_module())
assert len({{v.handle for v in variables}}) == len(set(modules)) == 4
driver.cuCtxSetCurrent(None)
for d, variable in zip(devices, variables):
    assert variable.copy_to(bytearray(4), stream=d.default_stream) == bytes([int(d)] * 4)
with pytest.raises(ValueError, match="lies on device 2, but the launch is on device 0"):
    from cudamod import LaunchConfig, launch
    launch(devices[0].default_stream, LaunchConfig(grid=1, block=1), code.get_kernel("put"),
           variables[2], 0)
""",
    "object code touches no device": f"""
from cudamod import Kernel, ObjectCode, emulator
import copy, pickle
PTX = {PTX!r}
code = ObjectCode.from_ptx(PTX)
with emulator.recording():
    kernel = code.get_kernel("put"); code.kernels(); code.log; code.images()
    assert code == copy.copy(code)
    Kernel.from_handle(kernel.handle); pickle.loads(pickle.dumps((code, kernel)))
    kernel.attributes[3].num_regs; kernel.attributes[2].preferred_shared_memory_carveout = 1
    with pytest.raises(cudamod.CUDAError): code.get_global("v")
    with pytest.raises(cudamod.CUDAError): code.get_module()
    with pytest.raises(cudamod.CUDAError): kernel.num_arguments
retained = [c for c in emulator.journal() if "PrimaryCtxRetain" in c.name or "CtxSet" in c.name]
assert retained == [] and current() == 0
with emulator.recording():
    stream = devices[3].create_stream(); out = devices[3].allocate(4, stream=stream)
    kernel.load(devices[3]); kernel.bind(cudamod.LaunchConfig(grid=1, block=1), stream)(out, 1)
    stream.sync()
retained = [c.arguments for c in emulator.journal() if c.name == "cuDevicePrimaryCtxRetain"]
assert len(retained) == 1 and "3" in retained[0], retained
""",
    "pickled by number": """
import copy, pickle
assert pickle.loads(pickle.dumps(devices)) == devices
assert copy.deepcopy(devices[2]) is devices[2]
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_several_devices(run_python: RunPython, program: str) -> None:
    out = run_python(
        PREAMBLE + PROGRAMS[program] + "\nprint('done')", CUDAMOD_EMULATOR_DEVICES=FOUR
    )
    assert out == "done\n"
