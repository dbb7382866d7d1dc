"""Events of one process in another."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from test_memory_ipc import Process, run

from cudamod import CUDAError, Device, Event, EventOptions, LaunchConfig, Stream
from cudamod.event_ipc import IPCEventDescriptor

__all__ = ["run"]  # the fixture

SHARED = EventOptions(ipc_enabled=True)
Run = Callable[..., Process]


@pytest.fixture
def held(stream: Stream) -> Iterator[threading.Event]:
    """The stream does nothing more until this is set."""
    gate = threading.Event()
    stream.add_callback(lambda: gate.wait(60))
    yield gate
    gate.set()


@pytest.fixture
def event(device: Device) -> Event:
    return device.create_event(SHARED)


def wait_and_record(stream: Stream, pipe: Any, event: Event, answer: Event) -> Any:
    pipe.send((event.is_done, event.is_ipc_enabled, event.is_timing_enabled, event.device))
    stream.wait(event)
    stream.record(answer)
    event.sync()
    pipe.send(event.is_done)
    stream.sync()
    return answer.is_done


def test_an_event_orders_streams_of_two_processes(
    device: Device, stream: Stream, held: threading.Event, event: Event, run: Run
) -> None:
    answer = device.create_event({"ipc_enabled": True, "blocking_sync": True})
    stream.record(event)
    other = run(wait_and_record, event, answer)
    assert other.receive() == (False, True, False, device)
    assert not other.pipe.poll(0.2)
    assert not event.is_done
    held.set()
    assert other.receive() is True
    assert other.result() is True
    answer.sync()
    second = device.create_stream()
    second.wait(answer)  # recorded there
    second.sync()
    assert answer.is_done
    assert event.is_done


def open_descriptor(stream: Stream, pipe: Any, descriptor: IPCEventDescriptor) -> Any:
    event = Event.from_ipc_descriptor(descriptor)
    facts = [event.is_done, event.is_blocking_sync, event == Event.from_ipc_descriptor(descriptor)]
    try:
        event.ipc_descriptor  # noqa: B018
    except CUDAError as error:
        facts.append(error.name)
    stream.record(event)
    stream.sync()
    event.close()
    pipe.send(facts)
    pipe.recv()  # the exporter lets its event go
    try:
        Event.from_ipc_descriptor(descriptor)
    except CUDAError as error:
        return error.call
    return None


def test_a_descriptor_opens_it(device: Device, run: Run) -> None:
    event = device.create_event(EventOptions(ipc_enabled=True, blocking_sync=True))
    descriptor = event.ipc_descriptor
    assert descriptor == event.ipc_descriptor == pickle.loads(pickle.dumps(descriptor))
    assert descriptor.is_blocking_sync
    assert repr(descriptor) == "<IPCEventDescriptor is_blocking_sync=True>"
    other = run(open_descriptor, descriptor)
    facts = other.receive()
    assert facts[:2] == [True, True]
    assert event.is_done
    event.close()
    other.pipe.send(None)
    assert other.result() in ("cuIpcOpenEventHandle", None)  # a card may know it still


def record_and_die(stream: Stream, pipe: Any, event: Event) -> None:
    stream.add_callback(lambda: pipe.send("held") or threading.Event().wait(60))
    stream.record(event)
    pipe.send("recorded")
    threading.Event().wait(60)


@pytest.mark.emulated
def test_a_process_that_dies_holds_nobody_up(device: Device, event: Event, run: Run) -> None:
    other = run(record_and_die, event)
    assert {other.receive(), other.receive()} == {"held", "recorded"}
    assert not event.is_done
    stream = device.create_stream()
    stream.wait(event)
    os.kill(other.process.pid, signal.SIGKILL)
    stream.sync()
    event.sync()
    assert event.is_done


def test_it_is_an_event_like_any_other_here(
    stream: Stream, event: Event, held: threading.Event
) -> None:
    assert event.is_done
    assert event.is_ipc_enabled
    assert stream.record(event) is event
    assert not event.is_done
    held.set()
    event.sync()
    assert event.is_done
    assert stream.record(options=SHARED).is_ipc_enabled
    assert not stream.record().is_ipc_enabled


def test_what_is_not_shared_is_not_sent(device: Device, event: Event) -> None:
    from multiprocessing.reduction import ForkingPickler

    plain = device.create_event()
    with pytest.raises(RuntimeError, match="Event is not IPC-enabled"):
        plain.ipc_descriptor  # noqa: B018
    with pytest.raises(TypeError, match="not made with ipc_enabled"):
        ForkingPickler.dumps(plain)
    for how in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle"):
            how(event)
    event.close()
    with pytest.raises(RuntimeError, match="Event has been closed"):
        event.ipc_descriptor  # noqa: B018
    with pytest.raises(RuntimeError, match="Event has been closed"):
        ForkingPickler.dumps(event)


def test_the_exporting_process_does_not_open_it(event: Event) -> None:
    with pytest.raises(CUDAError, match="cuIpcOpenEventHandle"):
        Event.from_ipc_descriptor(event.ipc_descriptor)


@pytest.mark.parametrize("wrong", [None, 3, b"\0" * 64, "text", object()], ids=repr)
@pytest.mark.usefixtures("device")
def test_what_is_no_descriptor_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match="must be an IPCEventDescriptor, not"):
        Event.from_ipc_descriptor(wrong)


@pytest.mark.parametrize("payload", [b"", b"\0" * 63, "\0" * 64, None], ids=repr)
def test_a_damaged_descriptor_is_refused(payload: Any) -> None:
    with pytest.raises(ValueError, match="has 64 bytes"):
        IPCEventDescriptor(payload, False)


@pytest.mark.emulated  # a card may take anything
@pytest.mark.usefixtures("device")
def test_bytes_that_are_no_event(event: Event) -> None:
    payload = bytearray(event.ipc_descriptor._payload)
    for bad in (bytes(64), b"\xff" * 64, os.urandom(64), bytes(payload[::-1])):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_HANDLE"):
            Event.from_ipc_descriptor(IPCEventDescriptor(bad, False))


def test_timing_and_sharing_exclude_each_other(device: Device, stream: Stream) -> None:
    both = EventOptions(timing_enabled=True, ipc_enabled=True)
    for make in (device.create_event, lambda options: stream.record(options=options)):
        with pytest.raises(ValueError, match="ipc_enabled has no timing"):
            make(both)
    shared, timed = device.create_event(SHARED), device.create_event({"timing_enabled": True})
    with pytest.raises(RuntimeError, match="has no timing"):
        shared - timed


def test_a_launch_does_not_record_one(event: Event) -> None:
    with pytest.raises(ValueError, match=r"\.event must be made without ipc_enabled"):
        LaunchConfig(grid=1, block=1, programmatic_event=event)


def test_nothing_is_imported_before(run_python: Callable[..., str]) -> None:
    code = """
import sys
from cudamod import Device
device = Device(0)
stream = device.create_stream()
stream.record(options={"blocking_sync": True}).sync()
print("multiprocessing" in sys.modules, "cudamod.event_ipc" in sys.modules)
"""
    assert run_python(code) == "False False\n"


def test_the_option_is_known(device: Device) -> None:
    assert EventOptions().ipc_enabled is False
    assert repr(SHARED) == (
        "EventOptions(timing_enabled=False, blocking_sync=False, ipc_enabled=True)"
    )
    with pytest.raises(TypeError, match="has no option 'ipc'"):
        device.create_event({"ipc": True})
