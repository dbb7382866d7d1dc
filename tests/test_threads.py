"""Many threads at once: each makes, uses and drops its own, or all share one."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import Buffer, Device, EventOptions, Stream, driver, emulator

THREADS = 8


def together(work: Callable[[int], Any]) -> list[Any]:
    """Run the work in 8 threads that start at once; their results, or the first error."""
    barrier = threading.Barrier(THREADS)

    def start(number: int) -> Any:
        barrier.wait(60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def current() -> int:
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))


def test_a_new_thread_has_no_context_and_needs_none(device: Device) -> None:
    def work(number: int) -> bytes:
        assert current() == 0
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        buffer.fill(number, stream=stream)
        event = stream.record()
        event.sync()
        host = buffer.copy_to(bytearray(64), stream=stream)
        device.sync()
        assert current() == 0
        return bytes(host)

    assert together(work) == [bytes([number]) * 64 for number in range(THREADS)]


def test_threads_make_use_and_drop_their_own(device: Device) -> None:
    def work(number: int) -> int:
        right = 0
        for turn in range(40):
            stream = device.create_stream(options={"nonblocking": turn % 2 == 0})
            first = stream.record(options=EventOptions(True))
            data = np.full(256 + turn, number * 16 + turn % 16, np.uint8)
            buffer = device.allocate(data.nbytes, stream=stream)
            buffer.copy_from(data, stream=stream)
            copied = buffer.copy_to(stream=stream)
            buffer.close()
            host = np.zeros_like(data)
            copied.copy_to(host, stream=stream)
            second = stream.record(options=EventOptions(True))
            second.sync()
            right += bool((host == data).all()) and second - first >= 0
            stream.close()
        return right

    assert together(work) == [40] * THREADS


@pytest.mark.emulated
def test_threads_leave_nothing_behind(device: Device) -> None:
    device.default_stream.sync()
    gc.collect()
    before = emulator.counts()

    def work(number: int) -> None:
        for _ in range(25):
            stream = device.create_stream()
            device.allocate(64, stream=stream).fill(number, stream=stream)
            stream.record()

    together(work)
    assert emulator.counts() == before


def test_threads_share_a_stream(device: Device, stream: Stream) -> None:
    def work(number: int) -> bytes:
        buffer = device.allocate(1024, stream=stream)
        for _ in range(20):
            buffer.fill(number, stream=stream)
            stream.record().sync()
            stream.wait(stream)
            assert Stream.from_handle(stream.handle) == stream
        return bytes(buffer.copy_to(bytearray(1024), stream=stream))

    assert together(work) == [bytes([number]) * 1024 for number in range(THREADS)]


def test_threads_close_what_others_use(device: Device) -> None:
    """Whoever comes too late gets the error; nobody crashes."""
    for _ in range(20):
        stream = device.create_stream()
        event = stream.record()
        buffer = device.allocate(4096, stream=device.default_stream)
        device.default_stream.sync()

        def work(
            number: int, stream: Stream = stream, event: Any = event, buffer: Buffer = buffer
        ) -> int:
            if number == 0:
                buffer.close()
                event.close()
                stream.close()
                return 0
            refused = 0
            for use in (
                lambda: buffer.fill(number, stream=stream),
                lambda: stream.wait(event),
                lambda: buffer.copy_to(bytearray(4096), stream=stream),
                event.sync,
                stream.sync,
            ):
                try:
                    use()
                except RuntimeError as error:
                    assert "has been closed" in str(error)  # noqa: PT017
                    refused += 1
            return refused

        assert all(refused <= 5 for refused in together(work))
        assert buffer.is_closed
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            stream.sync()


def test_threads_drop_what_others_made(device: Device) -> None:
    def make(number: int) -> list[Any]:
        stream = device.create_stream()
        return [stream, stream.record(), device.allocate(64, stream=stream), stream.record()]

    made = together(make)

    def drop(number: int) -> int:
        mine = made[number]
        made[number] = []
        mine.clear()
        return len(mine)

    made = made[1:] + made[:1]
    assert together(drop) == [0] * THREADS
    device.sync()


def test_each_thread_has_its_own_per_thread_stream(device: Device) -> None:
    def work(number: int) -> bytes:
        device.set_current()
        stream = Stream.from_handle(2)
        buffer = device.allocate(512, stream=stream)
        buffer.fill(number, stream=stream)
        return bytes(buffer.copy_to(bytearray(512), stream=stream))

    assert together(work) == [bytes([number]) * 512 for number in range(THREADS)]


def test_first_use_of_the_library_by_many_threads(run_python: Callable[..., str]) -> None:
    """Nothing has been opened, no context exists, and 8 threads begin at once."""
    out = run_python(
        """
import gc
import threading
import cudamod
barrier = threading.Barrier(8)
seen = []
def work():
    barrier.wait()
    device = cudamod.Device(0)
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    buffer.fill(1, stream=stream)
    assert buffer.copy_to(bytearray(64), stream=stream) == bytes([1]) * 64
    seen.append((id(device), device.context.handle, device.default_stream == device.default_stream))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(seen) == 8, seen
print(len(set(seen)))
"""
    )
    assert out == "1\n"


def test_waiting_lets_other_threads_run(device: Device, stream: Stream) -> None:
    """A wait releases the interpreter lock, which the stream's host function needs."""
    reached = threading.Event()

    host_function = driver.ffi.callback("void(void *)", lambda _: reached.set())
    driver.cuLaunchHostFunc(stream.handle, host_function, None)
    stream.sync()
    assert reached.is_set()
    reached.clear()
    driver.cuLaunchHostFunc(stream.handle, host_function, None)
    event = stream.record()
    event.sync()
    assert reached.is_set()
    reached.clear()
    driver.cuLaunchHostFunc(stream.handle, host_function, None)
    buffer = device.allocate(64, stream=stream)
    assert isinstance(buffer.copy_to(bytearray(64), stream=stream), bytearray)
    device.sync()
    assert reached.is_set()
    assert cudamod.driver.opened()


def test_threads_share_a_pool(device: Device) -> None:
    pool = cudamod.DeviceMemoryResource(device, {})

    def work(number: int) -> int:
        right = 0
        for turn in range(40):
            stream = device.create_stream()
            buffer = pool.allocate(64 + turn, stream=stream)
            buffer.fill(number * 16 + turn % 16, stream=stream)
            host = buffer.copy_to(bytearray(64 + turn), stream=stream)
            stream.sync()
            right += set(host) == {number * 16 + turn % 16}
            assert pool.attributes.used_mem_current > 0
            buffer.close()
        return right

    assert together(work) == [40] * THREADS
    device.sync()
    assert pool.attributes.used_mem_current == 0


def test_threads_make_and_drop_pools(device: Device) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            stream = device.create_stream()
            pool = cudamod.DeviceMemoryResource(device, {})
            first, second = (pool.allocate(64, stream=stream) for _ in range(2))
            first.close()
            pool.close()
            del pool
            second.fill(number, stream=stream)
            host = second.copy_to(bytearray(64), stream=stream)
            stream.sync()
            assert bytes(host) == bytes([number]) * 64
            cudamod.handles.reclaim()

    together(work)


def test_a_buffer_closed_by_two_threads_is_freed_once(device: Device) -> None:
    pool = cudamod.DeviceMemoryResource(device, {})
    for _ in range(40):
        buffer = pool.allocate(64, stream=device.default_stream)
        together(lambda number, buffer=buffer: buffer.close())  # type: ignore[misc]
    device.sync()
    assert pool.attributes.used_mem_current == 0


def test_threads_import_one_allocation(device: Device) -> None:
    pool = cudamod.DeviceMemoryResource(device, {"ipc_enabled": True})
    stream = device.create_stream()
    buffer = pool.allocate(64, stream=stream)
    buffer.fill(5, stream=stream)
    stream.sync()
    mapped = cudamod.DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle)
    descriptor = buffer.ipc_descriptor

    def work(number: int) -> set[int]:
        seen: set[int] = set()
        own = device.create_stream()
        for _ in range(20):
            again = Buffer.from_ipc_descriptor(mapped, descriptor, stream=own)
            host = again.copy_to(bytearray(64), stream=own)
            own.sync()
            seen |= set(host)
            again.close()
        return seen

    assert together(work) == [{5}] * THREADS
