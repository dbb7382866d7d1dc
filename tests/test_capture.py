"""A capture into a graph: what enters it; the end of an object neither enters nor ends it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from ptx import empty

from cudamod import (
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Stream,
    driver,
    handles,
)

MODES = ["GLOBAL", "THREAD_LOCAL", "RELAXED"]


def begin(stream: Stream, mode: str) -> None:
    modes = driver.CUstreamCaptureMode
    driver.cuStreamBeginCapture(stream.handle, modes[f"CU_STREAM_CAPTURE_MODE_{mode}"])


def end(stream: Stream) -> int:
    """End the capture; the number of nodes of its graph."""
    graph = driver.cuStreamEndCapture(stream.handle)
    count = driver.ffi.new("size_t *", 0)
    driver.cuGraphGetNodes(graph, driver.ffi.NULL, count)
    driver.cuGraphDestroy(graph)
    return int(count[0])


MAKERS: dict[str, Callable[[Device, Stream], Any]] = {
    "its memory": lambda device, stream: device.allocate(64, stream=stream),
    "another stream's memory": lambda device, stream: device.allocate(
        64, stream=device.create_stream()
    ),
    "the default stream's memory": lambda device, stream: device.allocate(64),
    "a stream": lambda device, stream: device.create_stream(),
    "a blocking stream": lambda device, stream: device.create_stream(
        options={"nonblocking": False}
    ),
    "an event": lambda device, stream: stream.record(),
    "its pinned memory": lambda device, stream: LegacyPinnedMemoryResource().allocate(
        64, stream=stream
    ),
    "another stream's pinned memory": lambda device, stream: LegacyPinnedMemoryResource().allocate(
        64, stream=device.create_stream()
    ),
    "the default stream's pinned memory": lambda device, stream: (
        LegacyPinnedMemoryResource().allocate(64, stream=device.default_stream)
    ),
    "memory of a new pool": lambda device, stream: DeviceMemoryResource(device, {}).allocate(
        64, stream=stream
    ),
    "a pool": lambda device, stream: DeviceMemoryResource(device, {}),
    "a shared event": lambda device, stream: stream.record(options={"ipc_enabled": True}),
    "a library": lambda device, stream: ObjectCode.from_ptx(empty("k")).load(),
    "a capsule": lambda device, stream: device.allocate(64, stream=stream).__dlpack__(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["close", "drop"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("blocking", [False, True], ids=["", "blocking"])
def test_a_capture_survives_the_end_of(
    device: Device, kind: str, how: str, mode: str, blocking: bool
) -> None:
    stream = device.create_stream(options={"nonblocking": not blocking})
    thing = MAKERS[kind](device, stream)
    stream.sync()
    begin(stream, mode)
    if how == "close" and hasattr(thing, "close"):
        thing.close()
    del thing
    gc.collect()
    assert end(stream) == 0
    device.sync()


@pytest.mark.parametrize("blocking", [False, True], ids=["", "blocking"])
@pytest.mark.parametrize("how", ["end_capture", "allocate", "reclaim", "deallocate"])
def test_memory_is_freed_after_the_capture(device: Device, how: str, blocking: bool) -> None:
    stream = device.create_stream(options={"nonblocking": not blocking})
    pool = DeviceMemoryResource(device, {})
    attributes = pool.attributes
    buffer = pool.allocate(64, stream=stream)
    address = int(driver.cuMemAllocFromPoolAsync(64, pool.handle, stream.handle))
    if how != "deallocate":
        pool.deallocate(address, 64, stream=stream)
    stream.sync()
    begin(stream, "GLOBAL")
    if how == "deallocate":
        pool.deallocate(address, 64, stream=stream)
    buffer.close()
    assert attributes.used_mem_current >= 64
    if how == "end_capture":
        stream.end_capture()
    else:
        assert end(stream) == 0
        if how == "allocate":
            device.allocate(64, stream=stream)
        else:
            handles.reclaim()
    stream.sync()
    assert attributes.used_mem_current == 0


@pytest.mark.parametrize("mode", MODES)
def test_fills_and_copies_between_buffers_are_captured(
    device: Device, stream: Stream, mode: str
) -> None:
    first, second = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    first.fill(0, stream=stream)
    stream.sync()
    begin(stream, mode)
    first.fill(5, stream=stream)
    second.copy_from(first, stream=stream)
    assert end(stream) == 2
    assert first.copy_to(bytearray(64), stream=stream) == bytes(64)  # captured, not run


@pytest.mark.parametrize("mode", MODES)
def test_events_join_another_stream_to_the_capture(
    device: Device, stream: Stream, mode: str
) -> None:
    other = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    stream.sync()
    begin(stream, mode)
    other.wait(stream)
    buffer.fill(1, stream=other)
    stream.wait(other)
    assert end(stream) == 1
    other.sync()


def test_waiting_for_a_capture_is_an_error_that_names_the_stream(
    device: Device, stream: Stream
) -> None:
    begin(stream, "THREAD_LOCAL")
    with pytest.raises(RuntimeError, match=f"cuStreamSynchronize: .*{stream.handle:#x}") as caught:
        stream.sync()
    assert "CAPTURE" in caught.value.name  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="cuStreamEndCapture"):
        end(stream)
