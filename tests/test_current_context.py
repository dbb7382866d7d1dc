"""The caller's current context is after every public call what it was before."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import cudamod
from cudamod import Buffer, Device, Event, EventOptions, Stream, driver, handles


@dataclass
class Scene:
    device: Device
    stream: Stream
    event: Event
    buffer: Buffer
    other: Buffer


CALLS: dict[str, Callable[[Scene], object]] = {
    "Device()": lambda s: Device(),
    "Device(0)": lambda s: Device(0),
    "Device.count": lambda s: Device.count(),
    "Device.get_all_devices": lambda s: Device.get_all_devices(),
    "Device.name": lambda s: s.device.name,
    "Device.uuid": lambda s: s.device.uuid,
    "Device.pci_bus_id": lambda s: s.device.pci_bus_id,
    "Device.compute_capability": lambda s: s.device.compute_capability,
    "Device.arch": lambda s: s.device.arch,
    "Device.properties": lambda s: s.device.properties.warp_size,
    "Device.context": lambda s: (s.device.context.handle, s.device.context.device),
    "Device.default_stream": lambda s: s.device.default_stream,
    "Device.create_stream": lambda s: s.device.create_stream(),
    "Device.create_stream, priority": lambda s: s.device.create_stream(options={"priority": 0}),
    "Device.create_stream, foreign": lambda s: s.device.create_stream(s.stream),
    "Device.create_event": lambda s: s.device.create_event(),
    "Device.allocate": lambda s: s.device.allocate(8, stream=s.stream),
    "Device.allocate, default": lambda s: s.device.allocate(8),
    "Device.allocate, nothing": lambda s: s.device.allocate(0),
    "Device.sync": lambda s: s.device.sync(),
    "Device.can_access_peer": lambda s: s.device.can_access_peer(0),
    "Stream.from_handle": lambda s: Stream.from_handle(s.stream.handle),
    "Stream.sync": lambda s: s.stream.sync(),
    "Stream.sync, default": lambda s: s.device.default_stream.sync(),
    "Stream.record": lambda s: s.stream.record(),
    "Stream.record, event": lambda s: s.stream.record(s.event),
    "Stream.record, default": lambda s: s.device.default_stream.record(options=EventOptions(True)),
    "Stream.wait": lambda s: s.stream.wait(s.event),
    "Stream.wait, stream": lambda s: s.stream.wait(s.device.default_stream),
    "Stream.priority": lambda s: s.stream.priority,
    "Stream.is_nonblocking": lambda s: s.stream.is_nonblocking,
    "Stream.device": lambda s: (s.stream.device, s.stream.context, s.stream.handle),
    "Event.sync": lambda s: s.event.sync(),
    "Event.is_done": lambda s: s.event.is_done,
    "Event - Event": lambda s: s.event - s.event,
    "Event.device": lambda s: (s.event.device, s.event.context),
    "Buffer.copy_to": lambda s: s.buffer.copy_to(bytearray(8), stream=s.stream),
    "Buffer.copy_to, default": lambda s: s.buffer.copy_to(
        bytearray(8), stream=s.device.default_stream
    ),
    "Buffer.copy_to, new": lambda s: s.buffer.copy_to(stream=s.stream),
    "Buffer.copy_from": lambda s: s.buffer.copy_from(bytes(8), stream=s.stream),
    "Buffer.copy_from, buffer": lambda s: s.buffer.copy_from(s.other, stream=s.stream),
    "Buffer.fill": lambda s: s.buffer.fill(1, stream=s.stream),
    "Buffer.fill, default": lambda s: s.buffer.fill(b"ab", stream=s.device.default_stream),
    "Buffer.close": lambda s: s.other.close(),
    "Buffer.close, default": lambda s: s.other.close(s.device.default_stream),
    "Buffer.from_handle": lambda s: Buffer.from_handle(s.buffer.handle, 8),
    "Buffer.__dlpack__": lambda s: s.buffer.__dlpack__(),
    "Buffer.__dlpack__, other": lambda s: s.buffer.__dlpack__(
        stream=s.device.default_stream.handle
    ),
    "Buffer interface": lambda s: s.buffer.__cuda_array_interface__,
    "Event.close": lambda s: s.event.close(),
    "handles.reclaim": lambda s: handles.reclaim(),
    "error in Device.allocate": lambda s: s.device.allocate(1 << 62, stream=s.stream),
    "error in Device.create_stream": lambda s: s.device.create_stream(options={"priority": 99}),
    "error in Event - Event": lambda s: s.event - s.stream.record(),
    "error in Event - fresh": lambda s: s.event - s.device.create_event({"timing_enabled": True}),
    "error in Buffer.from_handle": lambda s: Buffer.from_handle(24, 8),
    "error in Buffer.copy_from": lambda s: s.buffer.copy_from(bytes(9), stream=s.stream),
    "error in Buffer.__dlpack__": lambda s: s.buffer.__dlpack__(stream=0),
}


def current() -> int:
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))


@pytest.fixture(params=["none", "primary", "other"])
def before(request: Any, device: Device, other_context: int) -> Iterator[int]:
    """A current context: none, the device's primary one, or another one."""
    context = {"none": 0, "primary": device.context.handle, "other": other_context}[request.param]
    # Setting none on a card takes the topmost off the thread's stack, and another may lie below.
    while current() and not context:
        driver.cuCtxPopCurrent()
    driver.cuCtxSetCurrent(context)
    yield context
    device.set_current()


@pytest.mark.parametrize("call", CALLS)
def test_a_call_leaves_the_current_context_alone(device: Device, before: int, call: str) -> None:
    stream = device.create_stream()
    scene = Scene(
        device,
        stream,
        stream.record(options=EventOptions(True)),
        device.allocate(8, stream=stream),
        device.allocate(8, stream=stream),
    )
    stream.sync()
    assert current() == before
    if call.startswith("error"):
        with pytest.raises((cudamod.CUDAError, ValueError, RuntimeError)):
            CALLS[call](scene)
    else:
        CALLS[call](scene)
    assert current() == before
    del stream, scene
    gc.collect()
    assert current() == before


def test_the_stack_of_contexts_is_as_deep_as_before(device: Device, other_context: int) -> None:
    driver.cuCtxPushCurrent(other_context)
    stream = device.create_stream()
    buffer = device.allocate(8, stream=stream)
    buffer.fill(1, stream=stream)
    stream.sync()
    del buffer, stream
    popped = int(driver.ffi.cast("uintptr_t", driver.cuCtxPopCurrent()))
    assert popped == other_context
    assert current() == device.context.handle


def test_only_set_current_changes_it(device: Device, other_context: int) -> None:
    driver.cuCtxSetCurrent(None)
    device.set_current()
    assert current() == device.context.handle
    driver.cuCtxSetCurrent(other_context)
    device.set_current()
    assert current() == device.context.handle
