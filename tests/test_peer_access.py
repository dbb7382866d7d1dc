"""Devices that use each other's pools, emulated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.emulated

PREAMBLE = """
import pytest
import cudamod
from cudamod import (Device, DeviceMemoryResource, LaunchConfig, ObjectCode,
                     PinnedMemoryResource, driver, emulator, launch)

devices = Device.get_all_devices()
streams = [d.create_stream() for d in devices]
PTX = b'''.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 to, .param .u64 from) {
.reg .b64 %a, %b;
.reg .b32 %x;
ld.param.u64 %a, [to];
ld.param.u64 %b, [from];
ld.global.u32 %x, [%b];
add.u32 %x, %x, 1;
st.global.u32 [%a], %x;
ret;
}
'''
add = ObjectCode.from_ptx(PTX).get_kernel("add")
one = LaunchConfig(grid=1, block=1)

def run(number, to, source):
    launch(streams[number], one, add, to, source)
    streams[number].sync()

def word(buffer, number):
    host = buffer.copy_to(bytearray(4), stream=streams[number])
    streams[number].sync()
    return int.from_bytes(host, "little")

def made(resource, number, value=0):
    buffer = resource.allocate(4, stream=streams[number])
    buffer.fill(value.to_bytes(4, "little"), stream=streams[number])
    streams[number].sync()
    return buffer

own = DeviceMemoryResource(0, {})
peers = own.peer_accessible_by
"""

PROGRAMS = {
    "nobody at first": """
assert set(peers) == set() and len(peers) == 0 and 1 not in peers and 0 not in peers
assert repr(peers) == "PeerAccessibleBySetProxy(set())"
""",
    "a kernel of another device is refused": """
theirs, mine = made(own, 0, 5), made(devices[1].memory_resource, 1)
with pytest.raises(ValueError, match="lies on device 0, but the launch is on device 1"):
    run(1, mine, theirs)
assert word(mine, 1) == 0
""",
    "with access it reads and writes": """
theirs, mine = made(own, 0, 5), made(devices[1].memory_resource, 1)
peers.add(devices[1])
run(1, mine, theirs)
assert word(mine, 1) == 6
run(1, theirs, mine)
assert word(theirs, 0) == 7
later = made(own, 0, 9)
run(1, mine, later)
assert word(mine, 1) == 10
with pytest.raises(ValueError, match="lies on device 0, but the launch is on device 2"):
    run(2, made(devices[2].memory_resource, 2), theirs)
peers.discard(1)
with pytest.raises(ValueError, match="lies on device 0"):
    run(1, mine, theirs)
""",
    "an address without access is a fault": """
theirs, mine = made(own, 0, 5), made(devices[1].memory_resource, 1)
with pytest.raises(cudamod.CUDAError, match="no peer access") as caught:
    run(1, mine, theirs.handle)
assert caught.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
emulator.reset()
""",
    "a set of devices": """
peers.update([1, devices[2]], [3])
assert set(peers) == {devices[1], devices[2], devices[3]}
assert [d.device_id for d in peers] == [1, 2, 3] and len(peers) == 3
assert 1 in peers and devices[2] in peers and 0 not in peers and 9 not in peers
assert True not in peers and "1" not in peers
peers.difference_update([1], [2])
assert set(peers) == {devices[3]}
peers.symmetric_difference_update([3, 1])
assert set(peers) == {devices[1]}
peers.intersection_update([1, 2], [1])
assert set(peers) == {devices[1]}
peers |= {2}; peers &= {devices[2], devices[3]}
assert set(own.peer_accessible_by) == {devices[2]}
peers ^= {2, 3}; assert set(peers) == {devices[3]}
peers -= {3}; assert set(peers) == set()
peers.add(0); peers.update([0]); assert len(peers) == 0
own.peer_accessible_by = {1, devices[3]}
assert set(peers) == {devices[1], devices[3]}
assert peers | {devices[0]} == {devices[0], devices[1], devices[3]}
assert peers & {devices[1]} == {devices[1]} and peers == {devices[1], devices[3]}
assert peers - {devices[1]} == {devices[3]} and peers.isdisjoint({devices[0]})
assert peers >= {devices[1]} and peers.pop() in devices
own.peer_accessible_by = []
assert not peers
""",
    "one driver call for all": """
with emulator.recording():
    own.peer_accessible_by = [1, 2, 3]
    own.peer_accessible_by = [1, 2, 3]
    peers.update([1, 2])
    peers.clear()
    peers.clear()
calls = [c.name for c in emulator.journal() if c.name == "cuMemPoolSetAccess"]
assert len(calls) == 2, calls
""",
    "bad devices": """
for wrong, error in ((9, ValueError), (-1, ValueError), ("1", TypeError), (1.0, TypeError)):
    with pytest.raises(error):
        peers.add(wrong)
    with pytest.raises(error):
        own.peer_accessible_by = [1, wrong]
    assert not peers
with pytest.raises(TypeError):
    own.peer_accessible_by = 5
""",
    "a proxy of a closed resource": """
own.close()
for use in (lambda: len(peers), lambda: 1 in peers, lambda: peers.add(1), peers.clear):
    with pytest.raises(RuntimeError, match="DeviceMemoryResource has been closed"):
        use()
""",
    "a pool with peers is taken from them before it ends": """
own.peer_accessible_by = [1, 2]
buffer = made(own, 0)
with emulator.recording():
    own.close()
    del own, buffer, peers
    cudamod.handles.reclaim()
calls = [c.name for c in emulator.journal() if c.name in ("cuMemPoolSetAccess",
         "cuMemPoolDestroy", "cuMemFreeAsync")]
assert calls == ["cuMemFreeAsync", "cuMemPoolSetAccess", "cuMemPoolDestroy"], calls
""",
    "a buffer is copied without access": """
theirs = made(own, 0, 77)
mine = devices[1].allocate(4, stream=streams[1])
mine.copy_from(theirs, stream=streams[1])
assert word(mine, 1) == 77
assert theirs.copy_to(stream=streams[1]).device_id == 0
""",
    "each device has its resource": """
resources = [d.memory_resource for d in devices]
assert [r.device_id for r in resources] == [0, 1, 2, 3]
assert len({r.handle for r in resources}) == 4
with pytest.raises(ValueError, match="lies on device 1, not 0"):
    devices[0].memory_resource = resources[1]
for number, resource in enumerate(resources):
    buffer = devices[number].allocate(8, stream=streams[number])
    assert buffer.memory_resource is resource and buffer.device_id == number
    assert resource.allocate(8, stream=streams[(number + 1) % 4]).device_id == number
""",
    "pinned memory is everywhere": """
resource = PinnedMemoryResource({})
buffer = made(resource, 0, 1)
for number in range(4):
    run(number, buffer, buffer)
assert word(buffer, 2) == 5
""",
    "nothing touches another device": """
with emulator.recording():
    resource = DeviceMemoryResource(3, {})
    buffer = made(resource, 3)
    buffer.close(); resource.close()
retained = [c.arguments for c in emulator.journal() if c.name == "cuDevicePrimaryCtxRetain"]
assert retained == []
""",
    "the current context stays": """
def current():
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))

for now in [None, *devices]:
    now.set_current() if now else driver.cuCtxSetCurrent(None)
    before = current()
    resource = DeviceMemoryResource(2, {"ipc_enabled": True})
    buffer = resource.allocate(8, stream=streams[2])
    resource.attributes.used_mem_current, resource.peer_accessible_by.add(1)
    resource.allocation_handle, buffer.ipc_descriptor, repr(resource), resource.uuid
    mapped = DeviceMemoryResource.from_allocation_handle(2, resource.allocation_handle)
    again = cudamod.Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=streams[2])
    again.close(); mapped.close()
    devices[2].memory_resource, buffer.memory_resource
    pinned = PinnedMemoryResource({})
    pinned.allocate(8, stream=streams[1]).close()
    cudamod.LegacyPinnedMemoryResource().allocate(8, stream=streams[1]).close()
    cudamod.ManagedMemoryResource({}).allocate(8, stream=streams[0]).close()
    resource.close(); buffer.close()
    assert current() == before
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_peers(run_python: Callable[..., str], program: str) -> None:
    out = run_python(
        PREAMBLE + PROGRAMS[program] + "\nprint('done')",
        CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80,sm_75,sm_90",
    )
    assert out == "done\n"
