"""What was exported is imported again while an earlier import of it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from cudamod import Buffer, Device, DeviceMemoryResource, Stream, handles

THREADS = 4


class Shared:
    """A pool, memory of it that is full of 5, and what another process gets of both."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.pool = DeviceMemoryResource(device, {"ipc_enabled": True})
        stream = device.create_stream()
        self.buffer = self.pool.allocate(64, stream=stream)
        self.buffer.fill(5, stream=stream)
        stream.sync()
        self.descriptor = self.buffer.ipc_descriptor

    def import_pool(self) -> DeviceMemoryResource:
        return DeviceMemoryResource.from_allocation_handle(0, self.pool.allocation_handle)

    def import_buffer(self, pool: DeviceMemoryResource, stream: Stream) -> Buffer:
        return Buffer.from_ipc_descriptor(pool, self.descriptor, stream=stream)


@pytest.fixture
def shared(device: Device) -> Iterator[Shared]:
    """Afterwards all imports are freed, without which an imported pool can't be destroyed."""
    yield Shared(device)
    device.sync()
    handles.reclaim()


def check(buffer: Buffer, stream: Stream) -> None:
    host = buffer.copy_to(bytearray(64), stream=stream)
    stream.sync()
    assert set(host) == {5}


def in_threads(device: Device, work: Callable[[Stream], None]) -> None:
    streams = [device.create_stream(options={"nonblocking": True}) for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(work, streams):
            pass


def test_threads_import_and_drop_the_same_memory(shared: Shared) -> None:
    mapped = shared.import_pool()

    def work(stream: Stream) -> None:
        for _ in range(100):
            buffer = shared.import_buffer(mapped, stream)
            check(buffer, stream)
            buffer.close()

    in_threads(shared.device, work)


def test_threads_drop_the_same_memory_while_they_capture(shared: Shared) -> None:
    mapped = shared.import_pool()

    def work(stream: Stream) -> None:
        for _ in range(50):
            buffer = shared.import_buffer(mapped, stream)
            check(buffer, stream)
            stream.begin_capture()
            buffer.close()
            time.sleep(0)  # the others' turn
            stream.end_capture()

    in_threads(shared.device, work)


def test_threads_import_and_drop_the_same_pool(shared: Shared) -> None:
    def work(stream: Stream) -> None:
        for turn in range(50):
            mapped = shared.import_pool()
            buffer = shared.import_buffer(mapped, stream)
            check(buffer, stream)
            buffer.close()
            if turn % 2:
                stream.sync()
            mapped.close()

    in_threads(shared.device, work)


@pytest.mark.parametrize("other", [False, True], ids=["", "other"])
@pytest.mark.parametrize("blocking", [False, True], ids=["", "blocking"])
def test_memory_that_a_capture_kept_is_taken_back(
    shared: Shared, blocking: bool, other: bool
) -> None:
    stream = shared.device.create_stream(options={"nonblocking": not blocking})
    user = shared.device.create_stream(options={"nonblocking": True}) if other else stream
    mapped = shared.import_pool()
    buffer = shared.import_buffer(mapped, stream)
    address = buffer.handle
    stream.begin_capture()
    for _ in range(3):
        buffer.close()
        buffer = shared.import_buffer(mapped, user)
    assert buffer.handle == address
    stream.end_capture()
    handles.reclaim()
    stream.sync()
    check(buffer, user)


def test_memory_is_imported_again_before_its_free_has_run(shared: Shared, stream: Stream) -> None:
    gates = [threading.Event(), threading.Event()]
    mapped = shared.import_pool()
    try:
        held = [shared.device.create_stream() for _ in gates]
        for gate, order in zip(gates, held, strict=True):
            order.add_callback(partial(gate.wait, 20))
            shared.import_buffer(mapped, order).close()
        gates[0].set()
        held[0].sync()
        check(shared.import_buffer(mapped, stream), stream)
    finally:
        for gate in gates:
            gate.set()
    for order in held:
        order.sync()


@pytest.mark.parametrize("again", [1, 2])
def test_a_pool_is_imported_again_before_its_frees_are_done(
    shared: Shared, stream: Stream, again: int
) -> None:
    gate, held = threading.Event(), shared.device.create_stream()
    held.add_callback(lambda: gate.wait(20))
    try:
        mapped = shared.import_pool()
        handle = int(mapped.handle)
        shared.import_buffer(mapped, held).close()
        for _ in range(again):
            mapped.close()
            mapped = shared.import_pool()
            assert int(mapped.handle) == handle
    finally:
        gate.set()
    held.sync()
    handles.reclaim()
    check(shared.import_buffer(mapped, stream), stream)
