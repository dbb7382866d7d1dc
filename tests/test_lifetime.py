"""Who dies when: dependencies, garbage collection, and contexts that go first."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import cudamod
from cudamod import Device, EventOptions, Stream, emulator

RunPython = Callable[..., str]


def calls(*names: str) -> list[str]:
    return [call.name for call in emulator.journal() if call.name in names]


@pytest.mark.emulated
def test_nothing_is_left_of_what_was_dropped(device: Device) -> None:
    device.default_stream.record()
    gc.collect()
    before = emulator.counts()
    for _ in range(20):
        stream = device.create_stream()
        buffer = device.allocate(64, stream=stream)
        events = [stream.record(options=EventOptions(True)) for _ in range(3)]
        capsule = buffer.__dlpack__()
        del stream, buffer, events, capsule
    gc.collect()
    assert emulator.counts() == before


@pytest.mark.emulated
def test_memory_is_freed_in_the_stream_that_it_was_allocated_on(device: Device) -> None:
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    handle = stream.handle
    with emulator.recording():
        stream.close()
        del stream
        assert calls("cuStreamDestroy", "cuMemFreeAsync") == []
        buffer.close()
    assert calls("cuStreamDestroy", "cuMemFreeAsync") == ["cuMemFreeAsync", "cuStreamDestroy"]
    freed = next(call for call in emulator.journal() if call.name == "cuMemFreeAsync")
    assert f"{handle:#x}" in freed.arguments


@pytest.mark.emulated
def test_memory_is_freed_in_the_stream_that_close_names(device: Device) -> None:
    first, second = device.create_stream(), device.create_stream()
    buffer = device.allocate(64, stream=first)
    second.wait(first)
    with emulator.recording():
        buffer.close(second)
    freed = [call for call in emulator.journal() if call.name == "cuMemFreeAsync"]
    assert [f"{second.handle:#x}" in call.arguments for call in freed] == [True]


@pytest.mark.emulated
def test_each_object_is_destroyed_once(device: Device) -> None:
    with emulator.recording():
        stream = device.create_stream()
        again = Stream.from_handle(stream.handle)
        event = stream.record()
        for thing in (stream, stream, event, event, again, again):
            thing.close()
        del stream, again, event
    assert calls("cuStreamDestroy", "cuEventDestroy") == ["cuEventDestroy", "cuStreamDestroy"]


@pytest.mark.emulated
def test_a_failure_in_a_destructor_is_told_at_the_next_call(device: Device) -> None:
    stream = device.create_stream()
    emulator.inject("cuStreamDestroy", nth=1, status=719)
    handle = stream.handle
    stream.close()
    with pytest.warns(cudamod.CUDAWarning, match=f"cuStreamDestroy: .*LAUNCH_FAILED.*{handle:#x}"):
        device.sync()
    device.sync()  # once
    emulator.reset()


@pytest.mark.emulated
def test_a_failure_in_a_destructor_may_be_an_error(device: Device) -> None:
    event, stream = device.create_event(), device.create_stream()
    emulator.inject("cuEventDestroy", nth=1, status=1)
    del event
    with pytest.raises(cudamod.CUDAWarning, match="cuEventDestroy"):
        stream.sync()  # pytest turns warnings into errors
    stream.sync()


@pytest.mark.emulated
def test_a_driver_that_is_going_away_is_no_news(device: Device) -> None:
    stream = device.create_stream()
    emulator.inject("cuStreamDestroy", nth=1, status=4)  # CUDA_ERROR_DEINITIALIZED
    stream.close()
    device.sync()
    emulator.reset()


def test_cycles_are_collected(device: Device) -> None:
    class Node:
        pass

    references = []
    for _ in range(10):
        node: Any = Node()
        node.stream = device.create_stream()
        node.event = node.stream.record()
        node.buffer = device.allocate(64, stream=node.stream)
        node.view = cudamod.Buffer.from_handle(node.buffer.handle, 64, owner=node)
        node.self = node
        references.append(weakref.ref(node))
        del node
    gc.collect()
    assert [reference() for reference in references] == [None] * 10


def test_objects_die_inside_the_collector(device: Device, stream: Stream) -> None:
    class Dying:
        def __init__(self) -> None:
            self.me = self
            self.buffer = device.allocate(64, stream=stream)

        def __del__(self) -> None:
            self.buffer.fill(1, stream=stream)
            self.buffer.close()
            stream.record().sync()
            died.append(device.create_stream().handle)

    died: list[int] = []
    old = gc.get_threshold()
    gc.set_threshold(1, 1, 1)  # the collector runs inside of everything that allocates
    try:
        for _ in range(20):
            Dying()
            device.create_event({"timing_enabled": False})
            buffer = device.allocate(8, stream=stream)
            assert buffer.copy_to(bytearray(8), stream=stream) is not None
            buffer.__dlpack__()
            _ = buffer.__cuda_array_interface__, device.compute_capability, dir(device.properties)
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert len(died) == 20


@pytest.mark.emulated
def test_a_context_that_is_gone_is_an_error_and_no_crash(
    device: Device, run_python: RunPython
) -> None:
    out = run_python(
        """
import warnings
import cudamod
from cudamod import Device, Stream, driver
device = Device(0)
context = driver.cuCtxCreate(None, 0, 0)
stream = Stream.from_handle(int(driver.ffi.cast("uintptr_t", driver.cuStreamCreate(1))))
buffer = device.allocate(64, stream=stream)
event = stream.record()
driver.cuCtxDestroy(context)
for use in (stream.sync, stream.record, lambda: buffer.fill(0, stream=stream), event.sync,
            lambda: buffer.copy_to(bytearray(64), stream=stream)):
    try:
        use()
    except cudamod.CUDAError as error:
        print(error.name)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    del buffer, event, stream
    device.sync()
print(all(w.category is cudamod.CUDAWarning for w in caught), "done")
"""
    )
    lines = out.split("\n")
    assert len(lines) == 7
    assert all(line.startswith("CUDA_ERROR_") for line in lines[:5])
    assert lines[5] == "True done"


@pytest.mark.emulated
def test_a_reset_primary_context_is_an_error_and_no_crash(run_python: RunPython) -> None:
    out = run_python(
        """
import warnings
import cudamod
from cudamod import Device, driver
warnings.simplefilter("ignore")
device = Device(0)
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
driver.cuDevicePrimaryCtxReset(0)
for use in (stream.sync, lambda: buffer.fill(0, stream=stream), device.create_stream,
            lambda: device.allocate(64), device.sync):
    try:
        use()
    except cudamod.CUDAError as error:
        assert error.name.startswith("CUDA_ERROR_"), error
del stream, buffer
print("done")
"""
    )
    assert out == "done\n"
