"""Memory resources: where Buffers come from, and who lives as long as whom."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Stream,
    driver,
)


def host_pools(device: Device) -> None:
    if not device.properties.host_memory_pools_supported:
        pytest.skip("the device has no pools of host memory")


@pytest.fixture
def own(device: Device) -> DeviceMemoryResource:
    return DeviceMemoryResource(device, DeviceMemoryResourceOptions())


def test_a_device_has_a_resource(device: Device, stream: Stream) -> None:
    resource = device.memory_resource
    assert isinstance(resource, DeviceMemoryResource)
    assert device.memory_resource is resource
    assert resource.handle == int(
        driver.ffi.cast("uintptr_t", driver.cuDeviceGetMemPool(device.device_id))
    )
    assert (resource.device_id, resource.is_handle_owned, resource.is_closed) == (0, False, False)
    assert (resource.is_device_accessible, resource.is_host_accessible) == (True, False)
    assert (resource.is_ipc_enabled, resource.is_mapped, resource.is_managed) == (False,) * 3
    assert resource.uuid is None
    buffer = device.allocate(64, stream=stream)
    assert buffer.memory_resource is resource
    assert device.allocate(0, stream=stream).memory_resource is resource
    assert resource.attributes.release_threshold == 2**64 - 1


def test_a_pool_of_our_own(device: Device, stream: Stream, own: DeviceMemoryResource) -> None:
    assert own.is_handle_owned
    assert own.handle not in (0, device.memory_resource.handle)
    assert repr(own) == f"<DeviceMemoryResource memory pool {own.handle:#x} device=0>"
    buffer = own.allocate(100, stream=stream)
    assert (buffer.size, buffer.device_id, buffer.memory_resource) == (100, 0, own)
    assert own.attributes.used_mem_current == 100
    buffer.fill(3, stream=stream)
    copy = buffer.copy_to(stream=stream)
    assert copy.memory_resource is own
    assert copy.copy_to(bytearray(100), stream=stream) == b"\3" * 100
    empty = own.allocate(0, stream=stream)
    assert (empty.size, empty.handle, empty.memory_resource) == (0, 0, own)
    buffer.close()
    copy.close()
    stream.sync()
    assert own.attributes.used_mem_current == 0


@pytest.mark.parametrize(
    "options",
    [{}, {"max_size": 1 << 25}, DeviceMemoryResourceOptions(max_size=np.int64(1 << 25))],
    ids=repr,
)
def test_options_are_an_object_or_a_dict(device: Device, stream: Stream, options: Any) -> None:
    resource = DeviceMemoryResource(device_id=0, options=options)
    assert resource.is_handle_owned
    assert resource.allocate(8, stream=stream).size == 8


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (5, TypeError, "DeviceMemoryResourceOptions, a dict or None, not int"),
        (cudamod.StreamOptions(), TypeError, "not StreamOptions"),
        ({"size": 5}, TypeError, "size"),
        ({"max_size": -1}, ValueError, "max_size must be >= 0, not -1"),
        ({"max_size": 2**64}, OverflowError, "max_size"),
        ({"max_size": "1"}, TypeError, "max_size must be an int, not str"),
    ],
    ids=repr,
)
def test_bad_options_are_named(
    device: Device, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DeviceMemoryResource(device, options)


@pytest.mark.parametrize("number", [-1, Device.count(), 99])
def test_there_is_no_resource_of_no_device(number: int) -> None:
    with pytest.raises(ValueError, match=str(number)):
        DeviceMemoryResource(number)


def test_a_pool_has_a_limit(device: Device, stream: Stream) -> None:
    resource = DeviceMemoryResource(device, {"max_size": 1 << 20})
    with pytest.raises(cudamod.CUDAOutOfMemoryError, match=f"{64 << 20} bytes on device 0"):
        resource.allocate(64 << 20, stream=stream)
    assert resource.allocate(1 << 20, stream=stream).size == 1 << 20


CLOSED_USES: dict[str, Callable[[Any, Stream], object]] = {
    "allocate": lambda closed, stream: closed.allocate(8, stream=stream),
    "allocate nothing": lambda closed, stream: closed.allocate(0, stream=stream),
    "attributes": lambda closed, stream: closed.attributes,
    "peers": lambda closed, stream: closed.peer_accessible_by,
    "set peers": lambda closed, stream: setattr(closed, "peer_accessible_by", []),
    "handle to send": lambda closed, stream: closed.allocation_handle,
    "of a device": lambda closed, stream: setattr(stream.device, "memory_resource", closed),
    "from_handle": lambda closed, stream: Buffer.from_handle(
        stream.device.allocate(8, stream=stream).handle, 8, mr=closed
    ),
    "from_ipc_descriptor": lambda closed, stream: Buffer.from_ipc_descriptor(
        closed, descriptor(), stream=stream
    ),
}


def descriptor() -> Any:
    from cudamod.memory_ipc import IPCBufferDescriptor

    return IPCBufferDescriptor(bytes(64), 8)


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("use", CLOSED_USES)
def test_a_closed_resource_refuses_every_use(
    device: Device, stream: Stream, use: str, owned: bool
) -> None:
    closed = DeviceMemoryResource(device, {} if owned else None)
    closed.close()
    closed.close()
    with pytest.raises(RuntimeError, match="has been closed"):
        CLOSED_USES[use](closed, stream)
    assert (closed.is_closed, closed.handle, closed.device_id) == (True, 0, 0)
    assert closed.is_handle_owned is owned
    assert repr(closed) == "<DeviceMemoryResource closed>"
    assert device.allocate(8, stream=stream).size == 8


def test_buffers_outlive_their_resource(
    device: Device, stream: Stream, own: DeviceMemoryResource
) -> None:
    buffer, attributes = own.allocate(64, stream=stream), own.attributes
    own.close()
    assert buffer.memory_resource is own
    buffer.fill(5, stream=stream)
    assert buffer.copy_to(bytearray(64), stream=stream) == b"\5" * 64
    with pytest.raises(RuntimeError, match="DeviceMemoryResource has been closed"):
        buffer.copy_to(stream=stream)
    assert attributes.used_mem_current == 64
    buffer.close()
    stream.sync()
    assert attributes.used_mem_current == 0
    assert buffer.memory_resource is None


def test_a_resource_is_let_go(device: Device, stream: Stream) -> None:
    own = DeviceMemoryResource(device, {})
    reference = weakref.ref(own)
    buffer = own.allocate(64, stream=stream)
    del own
    assert reference() is buffer.memory_resource
    buffer.close()
    assert reference() is None


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), (2**64, OverflowError), (1.0, TypeError), (None, TypeError)],
)
def test_a_size_that_is_none_is_named(
    own: DeviceMemoryResource, stream: Stream, size: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"DeviceMemoryResource\.allocate: size"):
        own.allocate(size, stream=stream)


@pytest.mark.parametrize("wrong", [None, 5, "stream", object()], ids=repr)
def test_a_stream_is_needed(own: DeviceMemoryResource, device: Device, wrong: Any) -> None:
    with pytest.raises(TypeError, match="stream"):
        own.allocate(8, stream=wrong)
    with pytest.raises(TypeError):
        own.allocate(8)  # type: ignore[call-arg]


def test_another_resource_for_a_device(
    device: Device, stream: Stream, own: DeviceMemoryResource
) -> None:
    before = device.memory_resource
    try:
        device.memory_resource = own
        assert device.memory_resource is own
        assert device.allocate(8, stream=stream).memory_resource is own
        assert device.allocate(8).memory_resource is own
        assert own.attributes.used_mem_high >= 8
    finally:
        device.memory_resource = before
    assert device.allocate(8, stream=stream).memory_resource is before


@pytest.mark.parametrize("wrong", [None, 5, "pool", Device, MemoryResource], ids=repr)
def test_what_is_no_resource_is_refused(device: Device, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"Device\.memory_resource must be a MemoryResource"):
        device.memory_resource = wrong
    with pytest.raises(TypeError, match="mr must be a MemoryResource"):
        Buffer.from_handle(device.allocate(8).handle, 8, mr=wrong or 5)


class Recording(MemoryResource):
    """A resource of Python over a device's."""

    is_device_accessible = True
    is_host_accessible = False

    def __init__(self, inner: Any, fails: bool = False) -> None:
        self.inner, self.fails = inner, fails
        self.live: dict[int, Buffer] = {}
        self.freed: list[tuple[int, int, Any]] = []

    @property
    def device_id(self) -> int:  # type: ignore[override]
        return int(self.inner.device_id)

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        inner = self.inner.allocate(size, stream=stream)
        self.live[inner.handle] = inner
        return Buffer.from_handle(inner.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        self.freed.append((ptr, size, stream))
        if self.fails:
            raise ZeroDivisionError
        self.live.pop(ptr).close(stream)


def test_a_resource_of_python(device: Device, stream: Stream) -> None:
    resource = Recording(device.memory_resource)
    buffer = resource.allocate(64, stream=stream)
    assert (buffer.memory_resource, buffer.owner, buffer.device_id) == (resource, None, 0)
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, False)
    address = buffer.handle
    buffer.fill(7, stream=stream)
    copy = buffer.copy_to(stream=stream)
    assert copy.memory_resource is resource
    buffer.close()
    assert resource.freed == [(address, 64, stream)]
    del copy
    assert len(resource.freed) == 2
    assert resource.live == {}


def test_a_resource_of_python_for_a_device(device: Device, stream: Stream) -> None:
    before, resource = device.memory_resource, Recording(device.memory_resource)
    try:
        device.memory_resource = resource
        assert device.allocate(32, stream=stream).memory_resource is resource
    finally:
        device.memory_resource = before
    assert [size for _, size, _ in resource.freed] == [32]


def test_the_stream_of_the_deallocation(device: Device, stream: Stream) -> None:
    resource, other = Recording(device.memory_resource), device.create_stream()
    first, buffer = (resource.allocate(8, stream=stream) for _ in range(2))
    inner = device.allocate(8, stream=stream)
    stream.sync()  # other streams free the memory
    first.close(other)
    buffer.set_deallocation_stream(other)
    del buffer
    assert [order for _, _, order in resource.freed] == [other, other]
    default = Buffer.from_handle(inner.handle, 8, mr=resource)
    resource.live[inner.handle] = inner
    default.close()
    assert resource.freed[-1][2] == device.default_stream


def test_a_consumer_of_a_buffer_keeps_its_memory(device: Device, stream: Stream) -> None:
    resource = Recording(device.memory_resource)
    buffer = resource.allocate(8, stream=stream)
    capsule = buffer.__dlpack__()
    buffer.close()
    assert resource.freed == []
    del capsule
    assert len(resource.freed) == 1


def test_a_failing_deallocation_is_told(
    device: Device, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: told.append(failure.exc_type))
    resource = Recording(device.memory_resource, fails=True)
    buffer = resource.allocate(8, stream=stream)
    buffer.close()
    assert told == [ZeroDivisionError]


def test_a_resource_that_keeps_its_buffer_is_collected(device: Device, stream: Stream) -> None:
    resource = Recording(device.memory_resource)
    resource.kept = resource.allocate(8, stream=stream)  # type: ignore[attr-defined]
    freed, reference = resource.freed, weakref.ref(resource)
    del resource
    gc.collect()
    assert reference() is None
    assert len(freed) == 1


def test_a_base_class_has_nothing(device: Device, stream: Stream) -> None:
    bare = MemoryResource()
    uses: list[Callable[[], object]] = [
        lambda: bare.allocate(8, stream=stream),
        lambda: bare.deallocate(8, 8, stream=stream),
        lambda: bare.is_device_accessible,
        lambda: bare.is_host_accessible,
        lambda: bare.device_id,
    ]
    for use in uses:
        with pytest.raises(TypeError, match=r"MemoryResource\.\w+ must be implemented"):
            use()
    assert bare.is_managed is False
    with pytest.raises(TypeError):
        MemoryResource(5)  # type: ignore[call-arg]


class OfTheHost(MemoryResource):
    """A resource whose memory no device reaches."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self) -> None:
        self.array = np.zeros(64, np.uint8)

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        return Buffer.from_handle(self.array.ctypes.data, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        pass


def test_memory_that_no_device_reaches(device: Device, stream: Stream) -> None:
    from ptx import ONE, empty

    from cudamod import ObjectCode

    resource = OfTheHost()
    buffer = resource.allocate(64)
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (False, True)
    assert (buffer.device_id, buffer.__dlpack_device__()) == (-1, (1, 0))
    kernel = ObjectCode.from_ptx(empty("k", parameters=["u64"])).get_kernel("k")
    with pytest.raises(TypeError, match="no device reaches it"):
        cudamod.launch(stream, ONE, kernel, buffer)
    device_memory = device.allocate(64, stream=stream)
    device_memory.fill(4, stream=stream)
    buffer.copy_from(device_memory, stream=stream)
    stream.sync()
    assert bytes(resource.array) == b"\4" * 64
    assert buffer.copy_to(bytearray(64), stream=stream) == b"\4" * 64


def test_memory_of_the_drivers_call_is_taken_over(
    device: Device, stream: Stream, own: DeviceMemoryResource
) -> None:
    pool = driver.ffi.cast("CUmemoryPool", own.handle)
    raw = driver.ffi.cast("CUstream", stream.handle)
    pointer = int(driver.cuMemAllocFromPoolAsync(64, pool, raw))
    buffer = Buffer.from_handle(pointer, 64, mr=own, stream=stream)
    assert (buffer.memory_resource, buffer.device_id) == (own, 0)
    with pytest.raises(ValueError, match="belongs to another Buffer"):
        Buffer.from_handle(pointer, 64, mr=own)
    with pytest.raises(ValueError, match="belongs to a Buffer"):
        own.deallocate(pointer, 64, stream=stream)
    with pytest.raises(ValueError, match="is not where an allocation"):
        Buffer.from_handle(pointer, 64, mr=device.memory_resource)
    with pytest.raises(ValueError, match="is not where an allocation"):
        Buffer.from_handle(pointer + 16, 8, mr=own)
    buffer.close()
    stream.sync()
    assert own.attributes.used_mem_current == 0
    pointer = int(driver.cuMemAllocFromPoolAsync(64, pool, raw))
    attributes = own.attributes
    own.close()
    own.deallocate(pointer, 64, stream=stream)
    stream.sync()
    assert attributes.used_mem_current == 0
    own.deallocate(0, 0, stream=stream)


def test_what_is_specified_together(device: Device, own: DeviceMemoryResource) -> None:
    address = device.allocate(8).handle
    with pytest.raises(ValueError, match="cannot be both specified together"):
        Buffer.from_handle(address, 8, own, object())
    with pytest.raises(ValueError, match="stream requires a memory resource"):
        Buffer.from_handle(address, 8, stream=device.default_stream)


def test_pinned_memory_without_a_pool(device: Device, stream: Stream) -> None:
    resource = LegacyPinnedMemoryResource()
    assert (resource.is_device_accessible, resource.is_host_accessible) == (True, True)
    assert resource.device_id == -1
    buffer = resource.allocate(64)
    assert (buffer.device_id, buffer.is_host_accessible, buffer.is_managed) == (-1, True, False)
    assert buffer.memory_resource is resource
    buffer.fill(9, stream=stream)
    stream.sync()
    host = driver.ffi.buffer(driver.ffi.cast("char *", buffer.handle), 64)
    assert bytes(host) == b"\t" * 64
    assert buffer.copy_to(stream=stream).memory_resource is resource
    assert buffer.__dlpack_device__() == (3, 0)
    assert resource.allocate(0).handle == 0
    assert resource.allocate(8, stream=stream).size == 8
    with pytest.raises(ValueError, match="belongs to a Buffer"):
        resource.deallocate(buffer.handle, 64)
    pointer = int(driver.ffi.cast("uintptr_t", driver.cuMemAllocHost(64)))
    resource.deallocate(pointer, 64, stream=stream)
    pointer = int(driver.ffi.cast("uintptr_t", driver.cuMemAllocHost(64)))
    Buffer.from_handle(pointer, 64, mr=resource).close()
    with pytest.raises(cudamod.CUDAError, match=f"{pointer:#x}"):
        Buffer.from_handle(pointer, 64)
    driver.cuCtxSetCurrent(None)
    assert resource.allocate(8, stream=stream).size == 8
    with pytest.raises(RuntimeError, match="no context is current"):
        resource.allocate(8)


def test_a_pool_of_pinned_memory(device: Device, stream: Stream) -> None:
    host_pools(device)
    for resource in (PinnedMemoryResource(PinnedMemoryResourceOptions()), PinnedMemoryResource()):
        assert (resource.device_id, resource.numa_id, resource.is_managed) == (-1, -1, False)
        assert (resource.is_device_accessible, resource.is_host_accessible) == (True, True)
        buffer = resource.allocate(64, stream=stream)
        assert (buffer.device_id, buffer.is_host_accessible) == (-1, True)
        buffer.fill(6, stream=stream)
        stream.sync()
        host = driver.ffi.buffer(driver.ffi.cast("char *", buffer.handle), 64)
        assert bytes(host) == b"\6" * 64
        assert buffer.memory_resource is resource
        assert resource.attributes.used_mem_current >= 64


def test_a_pool_on_a_node(device: Device, stream: Stream) -> None:
    if not device.properties.host_numa_memory_pools_supported:
        pytest.skip("the device has no pools on NUMA nodes")
    node = max(device.properties.host_numa_id, 0)
    resource = PinnedMemoryResource({"numa_id": node})
    assert resource.numa_id == node
    assert resource.allocate(8, stream=stream).is_host_accessible
    with pytest.raises(cudamod.CUDAError, match="NUMA node 99"):
        PinnedMemoryResource({"numa_id": 99})


@pytest.mark.parametrize(
    ("node", "error"), [(-1, ValueError), ("0", TypeError), (True, TypeError), (0.0, TypeError)]
)
def test_a_node_is_a_number(device: Device, node: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="numa_id"):
        PinnedMemoryResource({"numa_id": node})


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("options", "location", "number"),
    [
        (None, None, -1),
        ({}, None, -1),
        ({"preferred_location": 0}, ("device", 0), 0),
        ({"preferred_location": -1}, ("host", None), -1),
        ({"preferred_location_type": "device", "preferred_location": 0}, ("device", 0), 0),
        ({"preferred_location_type": "host"}, ("host", None), -1),
        ({"preferred_location_type": "host_numa"}, ("host_numa", 0), -1),
        ({"preferred_location_type": "host_numa", "preferred_location": 0}, ("host_numa", 0), -1),
    ],
    ids=repr,
)
def test_a_pool_of_managed_memory(
    device: Device, stream: Stream, options: Any, location: Any, number: int
) -> None:
    resource = cudamod.ManagedMemoryResource(options)
    assert (resource.preferred_location, resource.device_id) == (location, number)
    assert (resource.is_managed, resource.is_host_accessible) == (True, True)
    assert resource.is_handle_owned is (options is not None)
    buffer = resource.allocate(64, stream=stream)
    assert (buffer.is_managed, buffer.is_host_accessible) == (True, True)
    assert buffer.device_id == number
    assert buffer.__dlpack_device__()[0] == 13
    buffer.fill(1, stream=stream)
    assert buffer.copy_to(bytearray(64), stream=stream) == b"\1" * 64


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"preferred_location": 99}, ValueError),
        ({"preferred_location": -2}, ValueError),
        ({"preferred_location": "0"}, TypeError),
        ({"preferred_location": True}, TypeError),
        ({"preferred_location_type": "moon"}, ValueError),
        ({"preferred_location_type": "device"}, ValueError),
        ({"preferred_location_type": "host", "preferred_location": 0}, ValueError),
        ({"preferred_location_type": "host_numa", "preferred_location": -1}, ValueError),
    ],
    ids=repr,
)
def test_a_bad_location_is_named(device: Device, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"location|device_id"):
        cudamod.ManagedMemoryResource(options)


def test_nothing_is_allocated_into_a_capture(
    device: Device, stream: Stream, own: DeviceMemoryResource
) -> None:
    buffer = own.allocate(64, stream=stream)
    stream.sync()
    try:
        driver.cuStreamBeginCapture(
            stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        )
    except cudamod.CUDAError as error:
        if error.name == "CUDA_ERROR_NOT_SUPPORTED":
            pytest.skip("this driver has no capture")
        raise
    with pytest.raises(RuntimeError, match="cannot allocate on a capturing stream"):
        own.allocate(64, stream=stream)
    with pytest.raises(RuntimeError, match="cannot allocate on a capturing stream"):
        device.allocate(64, stream=stream)
    other = device.create_stream()
    outside = own.allocate(64, stream=other)
    buffer.close()
    outside.close()
    graph = driver.cuStreamEndCapture(stream.handle)
    count = driver.ffi.new("size_t *", 0)
    driver.cuGraphGetNodes(graph, driver.ffi.NULL, count)
    driver.cuGraphDestroy(graph)
    assert count[0] == 0


def owned_pools() -> set[int]:
    live = cudamod.handles.live()
    return {h.serial for h in live if (h.kind, h.lifetime) == ("memory pool", "owned")}


def test_pools_end_while_their_memory_is_still_used(device: Device, stream: Stream) -> None:
    """The driver (580.159) divides by zero when a pool goes before its frees have run."""
    size, fills = (64 << 20, 20) if "emulated" not in device.name else (1 << 12, 2)
    before = owned_pools()
    for turn in range(60):
        pool = DeviceMemoryResource(device, {})
        buffer = pool.allocate(size, stream=stream)
        for _ in range(fills):
            buffer.fill(1, stream=stream)
        buffer.close()
        pool.close()
        del pool
        if turn % 2:
            device.sync()
    stream.sync()
    cudamod.handles.reclaim()
    assert owned_pools() <= before
