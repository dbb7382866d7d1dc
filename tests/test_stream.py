"""Streams: made, wrapped, waited for, compared and closed."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import Device, Event, EventOptions, Stream, StreamOptions, driver

MAKERS = [
    pytest.param(Device.create_stream, id="own"),
    pytest.param(lambda device: device.default_stream, id="default"),
]


def priority_range() -> tuple[int, int]:
    """Least and greatest priority of the current context."""
    return driver.cuCtxGetStreamPriorityRange()


@pytest.mark.parametrize(
    ("options", "nonblocking"),
    [
        (None, True),
        (StreamOptions(), True),
        (StreamOptions(nonblocking=False), False),
        (StreamOptions(False), False),
        ({}, True),
        ({"nonblocking": False}, False),
        ({"nonblocking": 0, "priority": None}, False),
    ],
)
def test_options_are_an_object_or_a_dict_or_none(
    device: Device, options: Any, nonblocking: bool
) -> None:
    stream = device.create_stream(options=options)
    assert stream.is_nonblocking is nonblocking
    assert stream.priority == 0
    assert stream.device is device
    assert stream.context == device.context
    assert stream.handle > 2
    assert not stream.is_closed
    assert repr(stream) == f"<Stream handle={stream.handle:#x} context={device.context.handle:#x}>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"non_blocking": True}, "StreamOptions has no option 'non_blocking'"),
        ({"priority": 0, 3: 4}, "StreamOptions has no option 3"),
        (EventOptions(), "StreamOptions, a dict or None, not EventOptions"),
        (5, "not int"),
        ("nonblocking", "not str"),
        ([], "not list"),
        ({"priority": 0.0}, "StreamOptions.priority must be an int, not float"),
        ({"priority": "0"}, "StreamOptions.priority must be an int, not str"),
        ({"priority": True}, "StreamOptions.priority must be an int, not bool"),
        (StreamOptions(priority=b"0"), "StreamOptions.priority must be an int, not bytes"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_option_is_named(device: Device, options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        device.create_stream(options=options)


def test_an_error_of_an_option_passes(device: Device) -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise ZeroDivisionError("neither")

    with pytest.raises(ZeroDivisionError, match="neither"):
        device.create_stream(options={"nonblocking": Undecided()})


def test_every_priority_of_the_range_is_possible(device: Device) -> None:
    least, greatest = priority_range()
    for priority in range(greatest, least + 1):
        assert device.create_stream(options=StreamOptions(priority=priority)).priority == priority
    assert device.create_stream(options={"priority": np.int64(greatest)}).priority == greatest
    assert device.create_stream(options={"priority": None}).priority == least


def test_a_priority_outside_the_range_is_named(device: Device) -> None:
    least, greatest = priority_range()
    for priority in (least + 1, greatest - 1):
        message = rf"priority={priority} is out of range \[{greatest}, {least}\]"
        with pytest.raises(ValueError, match=message):
            device.create_stream(options=StreamOptions(priority=priority))
    for priority in (2**31, 2**63, -(2**31) - 1, 2**100, -(2**100)):
        with pytest.raises(ValueError, match=str(priority)):
            device.create_stream(options={"priority": priority})


def test_obj_and_options_exclude_each_other(device: Device, stream: Stream) -> None:
    assert device.create_stream(stream) is stream
    with pytest.raises(ValueError, match="exclude each other"):
        device.create_stream(stream, StreamOptions())


def test_a_default_stream_belongs_to_its_device(device: Device) -> None:
    driver.cuCtxSetCurrent(None)
    stream = device.default_stream
    assert stream.device is device
    assert stream.context == device.context
    assert stream.handle == 1
    assert stream == device.default_stream
    assert hash(stream) == hash(device.default_stream)
    assert stream.is_nonblocking is False
    stream.sync()
    stream.record().sync()


@pytest.mark.parametrize("handle", [0, 1, np.int64(1)])
def test_handles_0_and_1_are_the_legacy_default_stream(device: Device, handle: Any) -> None:
    assert Stream.from_handle(handle) == device.default_stream
    assert Stream.from_handle(handle=handle).handle == 1


def test_handle_2_is_the_per_thread_default_stream(device: Device) -> None:
    stream = Stream.from_handle(2)
    assert stream.handle == 2
    assert stream.device is device
    assert stream != device.default_stream
    stream.sync()
    stream.record().sync()
    assert stream == Stream.from_handle(2)


@pytest.mark.parametrize("handle", [0, 1, 2])
def test_a_default_stream_by_handle_needs_a_current_context(device: Device, handle: int) -> None:
    driver.cuCtxSetCurrent(None)
    with pytest.raises(cudamod.CUDAError, match=r"device\.default_stream") as caught:
        Stream.from_handle(handle)
    assert caught.value.name == "CUDA_ERROR_INVALID_CONTEXT"


@pytest.mark.parametrize("handle", [None, True, False, 0.0, "1", b"1", (1,), object(), Stream])
def test_what_is_no_integer_is_no_handle(device: Device, handle: Any) -> None:
    with pytest.raises(TypeError, match=r"Stream\.from_handle: handle must be an int, not "):
        Stream.from_handle(handle)


@pytest.mark.parametrize("handle", [-1, -(2**63), -(2**64), 2**64, 2**200])
def test_a_handle_has_64_bits(device: Device, handle: int) -> None:
    with pytest.raises(OverflowError, match=re.escape(str(handle))):
        Stream.from_handle(handle)


@pytest.mark.emulated
@pytest.mark.parametrize("handle", [3, 0xDEAD0, 2**63, 2**64 - 1])
def test_a_handle_of_no_stream_is_named(device: Device, handle: int) -> None:
    with pytest.raises(cudamod.CUDAError, match=f"{handle:#x}") as caught:
        Stream.from_handle(handle)
    assert caught.value.name == "CUDA_ERROR_INVALID_HANDLE"


def test_our_own_handle_finds_its_owner_again(device: Device, stream: Stream) -> None:
    again = Stream.from_handle(stream.handle)
    assert again == stream
    assert hash(again) == hash(stream)
    handle = stream.handle
    stream.close()
    assert again.handle == handle  # closing one object says nothing about the other
    again.sync()


def test_a_foreign_stream_is_wrapped_but_not_owned(device: Device) -> None:
    raw = driver.cuStreamCreate(1)
    value = int(driver.ffi.cast("uintptr_t", raw))
    stream = Stream.from_handle(value)
    assert (stream.handle, stream.device, stream.is_nonblocking) == (value, device, True)
    stream.record().sync()
    stream.close()
    del stream
    gc.collect()
    driver.cuStreamSynchronize(raw)
    driver.cuStreamDestroy(raw)


def test_a_stream_runs_in_the_context_that_it_was_made_in(
    device: Device, other_context: int
) -> None:
    driver.cuCtxSetCurrent(other_context)
    raw = driver.cuStreamCreate(1)
    driver.cuCtxSetCurrent(None)
    stream = Stream.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    assert stream.context.handle == other_context != device.context.handle
    buffer = device.allocate(8, stream=stream)
    buffer.fill(3, stream=stream)
    assert buffer.copy_to(bytearray(8), stream=stream) == bytearray(b"\3" * 8)
    buffer.close()
    event = stream.record()
    assert event.context == stream.context
    event.sync()
    stream.sync()
    driver.cuStreamDestroy(raw)


def test_record_makes_an_event_or_takes_one(device: Device, stream: Stream) -> None:
    made = stream.record()
    assert (made.is_timing_enabled, made.is_blocking_sync) == (False, False)
    assert stream.record(options={"timing_enabled": True}).is_timing_enabled
    assert stream.record(options=EventOptions(blocking_sync=True)).is_blocking_sync
    event = device.create_event()
    assert stream.record(event) is event
    assert stream.record(event=event) is event
    with pytest.raises(ValueError, match="exclude each other"):
        stream.record(event, EventOptions())
    with pytest.raises(TypeError, match=r"event must be an Event, not (cudamod\._core\.)?Stream"):
        stream.record(stream)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="EventOptions has no option 'timing'"):
        stream.record(options={"timing": True})


def test_wait_takes_an_event_or_a_stream(device: Device, stream: Stream) -> None:
    buffer = device.allocate(1 << 16, stream=stream)
    other = device.create_stream()
    buffer.fill(1, stream=stream)
    other.wait(stream)
    buffer.fill(2, stream=other)
    stream.wait(other.record())
    host = buffer.copy_to(bytearray(1 << 16), stream=stream)
    assert host == b"\2" * (1 << 16)
    stream.wait(device.default_stream)
    device.default_stream.wait(stream)


@pytest.mark.parametrize("value", [None, 0, 1, "stream", object(), Event, Stream])
def test_wait_takes_nothing_else(stream: Stream, value: Any) -> None:
    with pytest.raises(TypeError, match="stream"):
        stream.wait(value)


def test_streams_compare_by_what_they_are(device: Device, stream: Stream) -> None:
    other = device.create_stream()
    assert stream == stream
    assert stream != other
    assert len({stream, other, Stream.from_handle(stream.handle)}) == 2
    assert stream != stream.handle
    assert stream != None  # noqa: E711
    assert (stream == object()) is False


@pytest.mark.parametrize("make", MAKERS)
def test_hash_and_place_in_a_set_survive_closing(
    device: Device, make: Callable[[Device], Stream]
) -> None:
    stream = make(device)
    before, known = hash(stream), {stream}
    stream.close()
    assert hash(stream) == before
    assert stream in known
    assert stream == stream


def test_a_closed_stream_is_only_itself(device: Device) -> None:
    first, second = device.create_stream(), device.create_stream()
    first.close()
    second.close()
    assert first != second
    assert first != device.create_stream()


def test_a_stream_can_be_referenced_weakly(device: Device) -> None:
    stream = device.create_stream()
    reference = weakref.ref(stream)
    assert reference() is stream
    del stream
    assert reference() is None


def test_options_are_values() -> None:
    options = StreamOptions(nonblocking=False, priority=-1)
    assert options == StreamOptions(False, -1)
    assert options != StreamOptions()
    assert hash(options) == hash(StreamOptions(False, -1))
    assert repr(options) == "StreamOptions(nonblocking=False, priority=-1)"
    options.__init__(True, 0)  # type: ignore[misc]
    assert options.priority == -1
    with pytest.raises(AttributeError, match="StreamOptions is immutable"):
        options.priority = 0
    with pytest.raises(AttributeError, match="StreamOptions is immutable"):
        del options.priority
