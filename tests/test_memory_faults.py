"""Every driver call of the memory resources fails once: an error, nothing leaks, then all is well.

The calls are not listed here: each operation is recorded, and then run once for each of its calls
with that call failing.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import cudamod
from cudamod import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    PinnedMemoryResource,
    Stream,
    driver,
    emulator,
    handles,
)

pytestmark = pytest.mark.emulated

INVALID_VALUE, OUT_OF_MEMORY, UNKNOWN = 1, 2, 999
OTHERS = range(1, Device.count())

#: Calls that end an object: when one fails, the driver's object stays; see test_a_failing_end.
ENDING = {"cuMemFreeAsync", "cuMemFreeHost", "cuMemPoolDestroy"}


class Setting:
    """What operations work on; made anew for each."""

    def __init__(self, device: Device, stream: Stream) -> None:
        self.device, self.stream = device, stream
        self.pool = DeviceMemoryResource(device, {"ipc_enabled": True})
        self.buffer = self.pool.allocate(64, stream=stream)
        self.descriptor = self.buffer.ipc_descriptor
        self.mapped = DeviceMemoryResource.from_allocation_handle(0, self.pool.allocation_handle)

    def raw(self) -> int:
        """Memory of the pool that no Buffer owns."""
        pool = driver.ffi.cast("CUmemoryPool", self.pool.handle)
        stream = driver.ffi.cast("CUstream", self.stream.handle)
        return int(driver.cuMemAllocFromPoolAsync(64, pool, stream))

    def imported(self) -> Buffer:
        return Buffer.from_ipc_descriptor(self.mapped, self.descriptor, stream=self.stream)


OPERATIONS: dict[str, Callable[[Setting], Any]] = {
    "a pool of a device": lambda s: DeviceMemoryResource(0, {}),
    "a shared pool": lambda s: DeviceMemoryResource(0, {"ipc_enabled": True}),
    "the current pool": lambda s: DeviceMemoryResource(0),
    "a pinned pool": lambda s: PinnedMemoryResource({}),
    "a pinned pool on a node": lambda s: PinnedMemoryResource({"numa_id": 0}),
    "the current pinned pool": lambda s: PinnedMemoryResource(),
    "a managed pool": lambda s: ManagedMemoryResource({}),
    "the current managed pool": lambda s: ManagedMemoryResource(),
    "memory": lambda s: s.pool.allocate(64, stream=s.stream),
    "memory of the device": lambda s: s.device.allocate(64, stream=s.stream),
    "memory of the default stream": lambda s: s.device.allocate(64),
    "pinned memory": lambda s: LegacyPinnedMemoryResource().allocate(64, stream=s.stream),
    "pinned memory of a pool": lambda s: PinnedMemoryResource({}).allocate(64, stream=s.stream),
    "managed memory": lambda s: ManagedMemoryResource({}).allocate(64, stream=s.stream),
    "a copy": lambda s: s.buffer.copy_to(stream=s.stream),
    "reading attributes": lambda s: repr(s.pool.attributes),
    "setting an attribute": lambda s: setattr(s.pool.attributes, "release_threshold", 5),
    "giving access": lambda s: s.pool.peer_accessible_by.update(OTHERS),
    "replacing access": lambda s: setattr(s.pool, "peer_accessible_by", OTHERS[:1]),
    "who has access": lambda s: set(s.pool.peer_accessible_by),
    "exporting a pool": lambda s: DeviceMemoryResource(0, {"ipc_enabled": True}).allocation_handle,
    "exporting memory": lambda s: s.buffer.ipc_descriptor,
    "importing a pool": lambda s: DeviceMemoryResource.from_allocation_handle(
        0, s.pool.allocation_handle
    ),
    "importing memory": lambda s: s.imported(),
    "taking memory over": lambda s: Buffer.from_handle(s.buffer.handle, 64, owner=s.buffer),
}

ENDS: dict[str, Callable[[Setting], Any]] = {
    "memory of a pool": lambda s: s.pool.allocate(64, stream=s.stream),
    "memory of the device": lambda s: s.device.allocate(64, stream=s.stream),
    "pinned memory": lambda s: LegacyPinnedMemoryResource().allocate(64, stream=s.stream),
    "imported memory": lambda s: s.imported(),
    "a pool": lambda s: DeviceMemoryResource(0, {}),
    "a pool with peers": lambda s: with_peers(),
    "an imported pool": lambda s: imported_pool(),
    "a pinned pool": lambda s: PinnedMemoryResource({}),
}


def with_peers() -> DeviceMemoryResource:
    resource = DeviceMemoryResource(0, {})
    resource.peer_accessible_by = OTHERS
    return resource


def imported_pool() -> DeviceMemoryResource:
    exporter = DeviceMemoryResource(0, {"ipc_enabled": True})
    return DeviceMemoryResource.from_allocation_handle(0, exporter.allocation_handle)


def settled() -> dict[str, int]:
    gc.collect()
    handles.reclaim()
    return emulator.counts()


def recorded(run: Callable[[], Any]) -> list[tuple[str, int]]:
    """The calls of an operation, each with how many of its name came before it, from 1."""
    with emulator.recording():
        kept = run()
    calls = [call.name for call in emulator.journal()]
    del kept
    return [(name, calls[: i + 1].count(name)) for i, name in enumerate(calls)]


def quietly(run: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cudamod.CUDAWarning)
        run()
        settled()
        Device(0).sync()  # a public call, at which warnings are delivered


def error_of(run: Callable[[], Any]) -> cudamod.CUDAError | None:
    try:
        quietly(run)
    except cudamod.CUDAError as error:
        return error
    return None


@pytest.mark.parametrize("status", [INVALID_VALUE, OUT_OF_MEMORY, UNKNOWN])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failing_call(device: Device, stream: Stream, name: str, status: int) -> None:
    operation, setting = OPERATIONS[name], Setting(device, stream)
    operation(setting)
    setting.pool.peer_accessible_by = []
    before = settled()
    for call, nth in recorded(lambda: operation(setting)):
        setting.pool.peer_accessible_by = []
        if call in ENDING:
            continue
        emulator.inject(call, nth=nth, status=status)
        error = error_of(lambda: operation(setting))
        emulator.reset()
        assert error is None or (error.status, error.call) == (status, call), nth
        del error
        setting.pool.peer_accessible_by = []
        quietly(lambda: None)
        assert settled() == before, (call, nth)
        operation(setting)
    setting.pool.peer_accessible_by = []
    assert settled() == before


#: Calls after which an operation may go on: those of a clean-up, and those it can do without.
MAY_FAIL = {
    *ENDING,
    "cuCtxPopCurrent",
    "cuEventCreate",
    "cuEventDestroy",
    "cuEventQuery",
    "cuEventRecord",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuThreadExchangeStreamCaptureMode",
    "cuCtxPushCurrent",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failing_call_is_an_error(device: Device, stream: Stream, name: str) -> None:
    operation, setting = OPERATIONS[name], Setting(device, stream)
    operation(setting)
    setting.pool.peer_accessible_by = []
    for call, nth in recorded(lambda: operation(setting)):
        if call in MAY_FAIL:
            continue
        setting.pool.peer_accessible_by = []
        emulator.inject(call, nth=nth, status=UNKNOWN)
        with pytest.raises(cudamod.CUDAError, match=call):
            operation(setting)
        emulator.reset()


@pytest.mark.parametrize("name", ENDS)
def test_a_failing_end(device: Device, stream: Stream, name: str) -> None:
    """What ends an object fails: a warning at most, and the next object is as good as any."""
    make, setting = ENDS[name], Setting(device, stream)
    quietly(lambda: make(setting))

    def end(thing: list[Any]) -> None:
        thing.clear()
        gc.collect()

    things = [make(setting)]
    with emulator.recording():
        end(things)
    calls = [call.name for call in emulator.journal()]
    assert calls
    for index, call in enumerate(calls):
        things = [make(setting)]
        emulator.inject(call, nth=calls[: index + 1].count(call), status=UNKNOWN)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            end(things)
            emulator.reset()
            device.sync()
        assert all(w.category is cudamod.CUDAWarning for w in caught)
        told = " ".join(str(w.message) for w in caught)
        if call in ENDING:
            assert call in told
        fresh = setting.pool.allocate(8, stream=stream)
        fresh.fill(1, stream=stream)
        assert fresh.copy_to(bytearray(8), stream=stream) == b"\1" * 8


def test_exhausted_memory_is_tried_again(device: Device, stream: Stream) -> None:
    pool, other = DeviceMemoryResource(device, {}), DeviceMemoryResource(device, {})
    emulator.inject("cuMemAllocFromPoolAsync", nth=1, status=OUT_OF_MEMORY)
    with pytest.raises(cudamod.CUDAOutOfMemoryError, match="64 bytes on device 0"):
        pool.allocate(64, stream=stream)
    # A pool that waits for its last frees is what can be given back.
    other.allocate(64, stream=stream).close()
    emulator.inject("cuEventQuery", nth=1, status=600)  # CUDA_ERROR_NOT_READY
    other.close()
    del other
    emulator.inject("cuMemAllocFromPoolAsync", nth=1, status=OUT_OF_MEMORY)
    assert pool.allocate(64, stream=stream).size == 64
    emulator.inject("cuMemAllocFromPoolAsync", nth=1, status=OUT_OF_MEMORY)
    with pytest.raises(cudamod.CUDAOutOfMemoryError):
        pool.allocate(64, stream=stream)
    assert emulator.injections_left() == 0


def test_a_pool_waits_for_its_last_frees(device: Device, stream: Stream) -> None:
    """A driver on which a pool is destroyed before they have run crashes in a later call."""
    before = settled()
    pool = DeviceMemoryResource(device, {})
    buffer = pool.allocate(64, stream=stream)
    with emulator.recording():
        emulator.inject("cuEventQuery", nth=1, status=600)  # CUDA_ERROR_NOT_READY
        pool.close()
        del pool
        buffer.close()
    names = [call.name for call in emulator.journal()]
    assert "cuMemPoolDestroy" not in names
    assert names.index("cuMemFreeAsync") < names.index("cuEventRecord")
    assert emulator.counts()["pool"] == before["pool"] + 1
    with emulator.recording():
        DeviceMemoryResource(device, {})
    assert [call.name for call in emulator.journal()].count("cuMemPoolDestroy") == 2
    assert settled() == before


def test_a_pool_waits_for_memory_of_the_drivers_calls(device: Device, stream: Stream) -> None:
    before = settled()
    setting = Setting(device, stream)
    pointer = setting.raw()
    del setting
    assert settled()["pool"] == before["pool"] + 1
    driver.cuMemFree(pointer)
    assert settled() == before


def test_a_stream_that_is_gone_is_waited_for(device: Device) -> None:
    pool = DeviceMemoryResource(device, {})
    first = device.create_stream()
    pool.allocate(64, stream=first).close()
    first.close()
    second = device.create_stream()
    with emulator.recording():
        pool.allocate(64, stream=second).close()
        pool.allocate(64, stream=second).close()
    created = [call.name for call in emulator.journal()].count("cuEventCreate")
    assert created == 1


def test_the_same_with_peers(run_python: Callable[..., str]) -> None:
    """Access can be given where there are other devices."""
    code = f"""
import sys
import pytest
chosen = "(failing_call or failing_end) and (access or peers or pinned)"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", {__file__!r}, "-k", chosen]))
"""
    if not OTHERS:
        assert " passed" in run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80,sm_75")
