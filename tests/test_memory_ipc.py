"""Pools and Buffers of one process in another: handles, descriptors, multiprocessing."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cudamod
from cudamod import (
    Buffer,
    Device,
    DeviceMemoryResource,
    PinnedMemoryResource,
    Stream,
)

TIMEOUT = 60
SPAWN = multiprocessing.get_context("spawn")
KINDS = ["device", "pinned"]
Resource = Any


def make(kind: str, **options: Any) -> Resource:
    if kind == "pinned":
        device = Device(0)
        if not device.properties.host_numa_memory_pools_supported:
            pytest.skip("the device has no pools on NUMA nodes")
        node = max(device.properties.host_numa_id, 0)
        return PinnedMemoryResource({"ipc_enabled": True, "numa_id": node, **options})
    return DeviceMemoryResource(0, {"ipc_enabled": True, **options})


@pytest.fixture(params=KINDS)
def resource(request: pytest.FixtureRequest, device: Device) -> Resource:
    return make(request.param)


@pytest.fixture
def shared(device: Device) -> Resource:
    return make("device")


def filled(resource: Resource, value: int, stream: Stream, size: int = 64) -> Buffer:
    buffer: Buffer = resource.allocate(size, stream=stream)
    buffer.fill(value, stream=stream)
    stream.sync()
    return buffer


def contents(buffer: Buffer, stream: Stream) -> set[int]:
    host = buffer.copy_to(bytearray(buffer.size), stream=stream)
    stream.sync()
    return set(host)


def worker(task: Callable[..., object], pipe: Any, *arguments: Any) -> None:
    """Runs in a process of its own; what the task answers, or raises, goes back."""
    device = Device(0)
    device.set_current()
    try:
        pipe.send((True, task(device.create_stream(), pipe, *arguments)))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))
        raise
    finally:
        del arguments
        gc.collect()


class Process:
    """A process that runs a task, with time limits on everything."""

    def __init__(self, task: Callable[..., object], *arguments: Any) -> None:
        self.pipe, other = SPAWN.Pipe()
        self.process = SPAWN.Process(target=worker, args=(task, other, *arguments), daemon=True)
        self.process.start()
        other.close()

    def receive(self) -> Any:
        assert self.pipe.poll(TIMEOUT), "the process says nothing"
        return self.pipe.recv()

    def result(self) -> Any:
        done, answer = self.receive()
        self.process.join(TIMEOUT)
        assert done, answer
        assert self.process.exitcode == 0
        return answer

    def stop(self) -> None:
        self.process.kill()
        self.process.join(TIMEOUT)


@pytest.fixture
def run() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(task: Callable[..., object], *arguments: Any) -> Process:
        started.append(Process(task, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def write_and_tell(stream: Stream, pipe: Any, resource: Resource, buffer: Buffer) -> Any:
    facts = (
        resource.is_mapped,
        resource.is_ipc_enabled,
        buffer.is_mapped,
        buffer.memory_resource is resource,
        buffer.size,
        buffer.device_id,
        resource.uuid,
        contents(buffer, stream),
    )
    buffer.fill(9, stream=stream)
    stream.sync()
    buffer.close()
    stream.sync()
    return facts


def test_a_resource_and_a_buffer_are_sent(
    resource: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffer = filled(resource, 7, stream)
    answer = run(write_and_tell, resource, buffer).result()
    number = resource.device_id
    assert answer == (True, True, True, True, 64, number, resource.uuid, {7})
    assert contents(buffer, stream) == {9}


def test_a_buffer_brings_its_resource(
    resource: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffer, process = filled(resource, 3, stream), run(receive_buffers, 1)
    process.pipe.send(buffer)
    assert process.result() == ([{3}], 1)


def receive_buffers(stream: Stream, pipe: Any, count: int) -> Any:
    buffers = []
    for _ in range(count):
        assert pipe.poll(TIMEOUT)
        buffers.append(pipe.recv())
    return [contents(buffer, stream) for buffer in buffers], len(
        {id(buffer.memory_resource) for buffer in buffers}
    )


def test_a_pool_is_imported_once(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffers = [filled(shared, value, stream) for value in range(5)]
    process = run(receive_buffers, 5)
    for buffer in buffers:
        process.pipe.send(buffer)
    assert process.result() == ([{value} for value in range(5)], 1)


def unpickle(stream: Stream, pipe: Any, resource: Resource, data: bytes) -> Any:
    first, second = pickle.loads(data), pickle.loads(data)
    same = first.handle == second.handle
    first.close()
    stream.sync()
    return same, contents(second, stream), second.memory_resource is resource


def test_pickled_bytes_find_the_resource(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    """Two imports of one allocation are one to the driver: the first free would end both."""
    buffer = filled(shared, 4, stream)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        data = pickle.dumps(buffer, protocol)
        assert run(unpickle, shared, data).result() == (True, {4}, True)


def unpickle_alone(stream: Stream, pipe: Any, data: bytes) -> str:
    try:
        pickle.loads(data)
    except RuntimeError as error:
        return str(error)
    return "no error"


def test_pickled_bytes_without_the_resource_say_so(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    data = pickle.dumps(filled(shared, 4, stream))
    said = run(unpickle_alone, data).result()
    assert said == f"Memory resource {shared.uuid} was not found"


def use_handles(stream: Stream, pipe: Any, handle: Any, descriptor: Any, pinned: bool) -> Any:
    kind: Any = PinnedMemoryResource if pinned else DeviceMemoryResource
    resource = kind.from_allocation_handle(*(() if pinned else (0,)), handle)
    handle.close()
    buffer = Buffer.from_ipc_descriptor(resource, descriptor, stream=stream)
    answer = (contents(buffer, stream), resource.uuid, buffer.memory_resource is resource)
    descriptor_again = buffer.ipc_descriptor
    resource.close()
    return (*answer, descriptor_again == descriptor, contents(buffer, stream))


def test_handle_and_descriptor_are_sent(
    resource: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffer = filled(resource, 8, stream)
    descriptor, pinned = buffer.ipc_descriptor, isinstance(resource, PinnedMemoryResource)
    assert descriptor.size == 64
    assert pickle.loads(pickle.dumps(descriptor)) == descriptor
    process = run(use_handles, resource.allocation_handle, descriptor, pinned)
    assert process.result() == ({8}, resource.uuid, True, True, {8})


def refusals(stream: Stream, pipe: Any, resource: Resource, buffer: Buffer) -> list[str]:
    from cudamod.memory_ipc import IPCBufferDescriptor

    good = buffer.ipc_descriptor
    uses: list[Callable[[], object]] = [
        lambda: resource.allocate(8, stream=stream),
        lambda: resource.attributes.used_mem_current,
        lambda: buffer.copy_to(stream=stream),
        lambda: setattr(resource.attributes, "release_threshold", 1),
        lambda: Buffer.from_ipc_descriptor(
            resource, IPCBufferDescriptor(b"\7" * 64, 8), stream=stream
        ),
        lambda: Buffer.from_ipc_descriptor(
            resource, IPCBufferDescriptor(good._payload, 1 << 40), stream=stream
        ),
        lambda: Buffer.from_handle(buffer.handle, 8, mr=resource),
        lambda: Buffer.from_ipc_descriptor(stream, good, stream=stream),  # type: ignore[arg-type]
        lambda: Buffer.from_ipc_descriptor(resource, b"", stream=stream),
    ]
    said = []
    for use in uses:
        try:
            use()
            said.append("nothing")
        except Exception as error:
            said.append(type(error).__name__)
    assert contents(buffer, stream) == {5}
    return said


def test_what_an_importing_process_cannot_do(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    said = run(refusals, shared, filled(shared, 5, stream)).result()
    assert said == [
        "TypeError",
        "CUDAError",
        "TypeError",
        "CUDAError",
        "CUDAError",
        "ValueError",
        "TypeError",
        "TypeError",
        "TypeError",
    ]


def forward_by_pipe(stream: Stream, pipe: Any, resource: Resource, buffer: Buffer) -> Any:
    pipe.send(pickle.dumps(buffer))
    pipe.send(resource)
    assert pipe.poll(TIMEOUT)
    return pipe.recv(), contents(buffer, stream)


def test_a_process_hands_on_what_it_got(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffer = filled(shared, 6, stream)
    process = run(forward_by_pipe, shared, buffer)
    data, back = process.receive(), process.receive()
    assert back is shared
    process.pipe.send("thanks")
    assert process.result() == ("thanks", {6})
    assert isinstance(data, bytes)


def keep_and_die(stream: Stream, pipe: Any, resource: Resource, buffer: Buffer) -> Any:
    buffer.fill(2, stream=stream)
    stream.sync()
    pipe.send((True, "dying"))
    os._exit(0)


def test_an_importing_process_may_die(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffer = filled(shared, 1, stream)
    assert run(keep_and_die, shared, buffer).result() == "dying"
    assert contents(buffer, stream) == {2}
    assert run(write_and_tell, shared, buffer).result()[-1] == {2}


def last_words(stream: Stream, pipe: Any) -> Any:
    """The exporter of this test: its objects end with the process."""
    resource = make("device")
    buffer = filled(resource, 5, stream)
    pipe.send((resource, buffer))
    assert pipe.poll(TIMEOUT)
    return pipe.recv()


def test_the_exporter_may_be_the_child(run: Callable[..., Process], stream: Stream) -> None:
    process = run(last_words)
    resource, buffer = process.receive()
    assert (resource.is_mapped, contents(buffer, stream)) == (True, {5})
    buffer.fill(6, stream=stream)
    stream.sync()
    buffer.close()
    process.pipe.send("bye")
    assert process.result() == "bye"


def test_many_processes_at_once(
    shared: Resource, stream: Stream, run: Callable[..., Process]
) -> None:
    buffers = [filled(shared, value, stream) for value in range(3)]
    processes = [run(write_and_tell, shared, buffer) for buffer in buffers]
    for value, process in enumerate(processes):
        assert process.result()[-1] == {value}
    assert [contents(buffer, stream) for buffer in buffers] == [{9}] * 3


def test_a_handle_is_the_resources(shared: Resource) -> None:
    handle = shared.allocation_handle
    assert shared.allocation_handle is handle
    assert (int(handle), handle.uuid, handle.is_closed) == (handle.handle, shared.uuid, False)
    other = handle.duplicate()
    assert other.handle != handle.handle
    file = other.handle
    other.close()
    other.close()
    assert other.is_closed
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)
    with pytest.raises(RuntimeError, match="IPCAllocationHandle has been closed"):
        int(other)
    handle.close()
    assert not shared.allocation_handle.is_closed
    with pytest.raises(TypeError, match="cannot pickle 'IPCAllocationHandle'"):
        pickle.dumps(shared.allocation_handle)
    with pytest.raises(RuntimeError, match="cannot be instantiated directly"):
        type(handle)(5)


def test_handles_are_closed_with_their_resource(device: Device) -> None:
    resource = make("device")
    file = resource.allocation_handle.handle
    os.fstat(file)
    del resource
    gc.collect()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


def test_what_is_not_shared_is_not_sent(device: Device, stream: Stream) -> None:
    resource = DeviceMemoryResource(device, {})
    buffer = resource.allocate(8, stream=stream)
    assert (resource.uuid, resource.is_ipc_enabled) == (None, False)
    for use in (lambda: resource.allocation_handle, lambda: buffer.ipc_descriptor):
        with pytest.raises(RuntimeError, match="not IPC-enabled"):
            use()
    reducer = multiprocessing.reduction.ForkingPickler
    for thing in (resource, buffer, device.memory_resource):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot pickle"):
            reducer.dumps(thing)


def test_the_exporting_process_does_not_import(shared: Resource, stream: Stream) -> None:
    buffer = filled(shared, 1, stream)
    assert pickle.loads(pickle.dumps(shared)) is shared
    assert copy.copy(shared) is shared
    with pytest.raises(RuntimeError, match="was not imported"):
        Buffer.from_ipc_descriptor(shared, buffer.ipc_descriptor, stream=stream)
    for attempt in (copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))):
        with pytest.raises(RuntimeError, match="was not imported"):
            attempt(buffer)
    assert contents(buffer, stream) == {1}


def test_resources_are_known_by_uuid(shared: Resource, device: Device) -> None:
    assert type(shared).from_registry(shared.uuid) is shared
    assert shared.register(shared.uuid) is shared
    with pytest.raises(ValueError, match=f"has the uuid {shared.uuid} already"):
        shared.register(uuid.uuid4())
    with pytest.raises(TypeError, match=r"uuid\.UUID, not str"):
        shared.register("name")
    with pytest.raises(TypeError, match="DeviceMemoryResource"):
        PinnedMemoryResource.from_registry(shared.uuid)
    missing = uuid.uuid4()
    with pytest.raises(RuntimeError, match=f"{missing} was not found"):
        DeviceMemoryResource.from_registry(missing)
    key = shared.uuid
    mapped = DeviceMemoryResource.from_allocation_handle(0, shared.allocation_handle)
    assert (mapped.is_mapped, mapped.uuid, mapped.handle != shared.handle) == (True, key, True)
    assert mapped.register(key) is shared
    shared.close()
    with pytest.raises(RuntimeError, match=rf"{key} was not found \(it has been closed\)"):
        DeviceMemoryResource.from_registry(key)


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        (-1, OSError),
        (9999, OSError),
        ("5", TypeError),
        (None, TypeError),
        (1.0, TypeError),
        (True, TypeError),
    ],
)
def test_a_bad_handle_is_named(device: Device, handle: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        DeviceMemoryResource.from_allocation_handle(0, handle)


def test_a_file_that_is_no_pool_is_refused(device: Device, tmp_path: Any) -> None:
    for content in (b"", b"x" * 5000):
        path = tmp_path / "file"
        path.write_bytes(content)
        with path.open("rb") as file, pytest.raises(cudamod.CUDAError, match="file descriptor"):
            DeviceMemoryResource.from_allocation_handle(0, file.fileno())
    assert make("device").is_ipc_enabled


@pytest.mark.parametrize("payload", [b"", bytes(63), bytes(65), "x" * 64, None], ids=repr)
def test_a_damaged_descriptor_is_refused(payload: Any) -> None:
    from cudamod.memory_ipc import IPCBufferDescriptor

    with pytest.raises(ValueError, match="64 bytes"):
        IPCBufferDescriptor(payload, 8)


def test_a_descriptor_says_little() -> None:
    from cudamod.memory_ipc import IPCBufferDescriptor

    assert repr(IPCBufferDescriptor(bytes(64), 8)) == "<IPCBufferDescriptor size=8>"


def test_a_shared_pool_on_no_node(device: Device) -> None:
    from cudamod import driver

    driver.cuCtxSetCurrent(None)
    with pytest.raises(RuntimeError, match="give numa_id"):
        PinnedMemoryResource({"ipc_enabled": True})
