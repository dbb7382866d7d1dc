"""Events: recorded, waited for, compared, measured between and closed."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import cudamod
from cudamod import Device, Event, EventOptions, Stream, StreamOptions, driver

TIMED = EventOptions(timing_enabled=True)


@pytest.mark.parametrize(
    ("options", "timing", "blocking"),
    [
        (None, False, False),
        (EventOptions(), False, False),
        (EventOptions(True), True, False),
        (EventOptions(blocking_sync=True), False, True),
        ({}, False, False),
        ({"timing_enabled": True, "blocking_sync": True}, True, True),
        ({"timing_enabled": 1}, True, False),
    ],
)
def test_options_are_an_object_or_a_dict_or_none(
    device: Device, stream: Stream, options: Any, timing: bool, blocking: bool
) -> None:
    for event in (device.create_event(options), stream.record(options=options)):
        assert event.is_timing_enabled is timing
        assert event.is_blocking_sync is blocking
        assert event.device is device
        assert event.context == device.context
        assert repr(event) == f"<Event handle={event.handle:#x}>"
        stream.record(event)
        event.sync()
        assert event.is_done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timing": True}, "EventOptions has no option 'timing'"),
        ({None: True}, "EventOptions has no option None"),
        (StreamOptions(), "EventOptions, a dict or None, not StreamOptions"),
        (True, "not bool"),
    ],
)
def test_what_is_no_option_is_named(
    device: Device, stream: Stream, options: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        device.create_event(options)
    with pytest.raises(TypeError, match=re.escape(message)):
        stream.record(options=options)


def test_an_event_that_was_never_recorded_is_done(device: Device) -> None:
    event = device.create_event()
    assert event.is_done
    event.sync()


def test_an_event_is_done_after_its_stream(device: Device, stream: Stream) -> None:
    buffer = device.allocate(1 << 20, stream=stream)
    buffer.fill(1, stream=stream)
    event = stream.record()
    event.sync()
    assert event.is_done
    driver.cuCtxSetCurrent(None)
    assert event.is_done
    event.sync()


def test_the_difference_of_two_events_is_milliseconds(device: Device, stream: Stream) -> None:
    first = stream.record(options=TIMED)
    device.allocate(1 << 16, stream=stream).fill(1, stream=stream)
    second = stream.record(options=TIMED)
    second.sync()
    elapsed = second - first
    assert isinstance(elapsed, float)
    assert 0 <= elapsed < 60_000
    assert first - first == 0
    assert math.isclose(first - second, -elapsed, abs_tol=1e-3)
    driver.cuCtxSetCurrent(None)
    assert second - first == elapsed


def test_an_event_without_timing_has_no_difference(stream: Stream) -> None:
    timed, untimed = stream.record(options=TIMED), stream.record()
    stream.sync()
    for later, earlier in ((timed, untimed), (untimed, timed), (untimed, untimed)):
        with pytest.raises(RuntimeError, match=f"{untimed.handle:#x} has no timing") as caught:
            _ = later - earlier
        assert not isinstance(caught.value, cudamod.CUDAError)


def test_an_event_that_was_not_recorded_has_no_difference(device: Device, stream: Stream) -> None:
    recorded, fresh = stream.record(options=TIMED), device.create_event(TIMED)
    stream.sync()
    for later, earlier in ((recorded, fresh), (fresh, recorded), (fresh, fresh)):
        with pytest.raises(cudamod.CUDAError, match="must have been recorded") as caught:
            _ = later - earlier
        assert caught.value.name == "CUDA_ERROR_INVALID_HANDLE"
        assert f"{fresh.handle:#x}" in caught.value.subject


@pytest.mark.parametrize("other", [0, 1.0, None, "event", object()])
def test_only_an_event_can_be_subtracted(stream: Stream, other: Any) -> None:
    event = stream.record(options=TIMED)
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = event - other
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = other - event


def test_events_compare_by_what_they_are(device: Device) -> None:
    first, second = device.create_event(), device.create_event()
    assert first == first
    assert first != second
    assert first != first.handle
    assert (first == None) is False  # noqa: E711
    assert len({first, second, first}) == 2


def test_hash_and_place_in_a_set_survive_closing(device: Device) -> None:
    event, other = device.create_event(), device.create_event()
    before, known = hash(event), {event}
    event.close()
    other.close()
    assert hash(event) == before
    assert event in known
    assert other not in known
    assert event == event
    assert event != other
    assert event != device.create_event()


CLOSED_USES: dict[str, Callable[[Event, Event, Stream], object]] = {
    "sync": lambda closed, event, stream: closed.sync(),
    "is_done": lambda closed, event, stream: closed.is_done,
    "device": lambda closed, event, stream: closed.device,
    "context": lambda closed, event, stream: closed.context,
    "record": lambda closed, event, stream: stream.record(closed),
    "wait": lambda closed, event, stream: stream.wait(closed),
    "later": lambda closed, event, stream: closed - event,
    "earlier": lambda closed, event, stream: event - closed,
    "both": lambda closed, event, stream: closed - closed,
}


@pytest.mark.parametrize("use", CLOSED_USES)
def test_a_closed_event_refuses_every_use(stream: Stream, use: str) -> None:
    event, closed = stream.record(options=TIMED), stream.record(options=TIMED)
    closed.close()
    with pytest.raises(RuntimeError, match=r"^Event has been closed$"):
        CLOSED_USES[use](closed, event, stream)


def test_what_a_closed_event_still_tells(stream: Stream) -> None:
    event = stream.record(options=TIMED)
    event.close()
    event.close()
    assert event.is_closed
    assert event.handle == 0
    assert event.is_timing_enabled
    assert repr(event) == "<Event closed>"


def test_an_event_outlives_its_stream(device: Device) -> None:
    stream = device.create_stream()
    first, second = stream.record(options=TIMED), stream.record(options=TIMED)
    stream.close()
    del stream
    second.sync()
    assert second - first >= 0


def test_an_event_can_be_recorded_again_and_in_another_stream(
    device: Device, stream: Stream
) -> None:
    event = device.create_event()
    other = device.create_stream()
    for target in (stream, other, stream, device.default_stream):
        assert target.record(event) is event
        event.sync()
        other.wait(event)


def test_an_event_can_be_referenced_weakly(device: Device) -> None:
    event = device.create_event()
    reference = weakref.ref(event)
    assert reference() is event
    del event
    assert reference() is None


def test_an_event_of_another_context_is_named(device: Device, other_context: int) -> None:
    driver.cuCtxSetCurrent(other_context)
    raw = driver.cuStreamCreate(1)
    foreign = Stream.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    event = device.create_event()
    with pytest.raises(cudamod.CUDAError, match=f"{event.handle:#x}") as caught:
        foreign.record(event)
    assert caught.value.call == "cuEventRecord"
    foreign.wait(device.create_stream().record())  # waiting across contexts is allowed
    foreign.sync()
    driver.cuStreamDestroy(raw)


def test_options_are_values() -> None:
    assert EventOptions(True) == EventOptions(timing_enabled=True, blocking_sync=False)
    assert EventOptions(True) != EventOptions()
    assert EventOptions() != StreamOptions()
    assert hash(EventOptions(True)) == hash(EventOptions(True))
    assert repr(EventOptions()) == (
        "EventOptions(timing_enabled=False, blocking_sync=False, ipc_enabled=False)"
    )
    with pytest.raises(AttributeError, match="EventOptions is immutable"):
        EventOptions().timing_enabled = True
    with pytest.raises(TypeError):
        EventOptions(ipc=True)  # type: ignore[call-arg]
