"""Seeing the handles: what is alive, what comes and goes, what was never released."""

from __future__ import annotations

import gc
import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ptx import empty

from cudamod import Device, ObjectCode, Stream, handles

HERE = re.escape(__file__)


@pytest.fixture
def traced() -> Iterator[list[handles.TraceEvent]]:
    events: list[handles.TraceEvent] = []
    handles.trace(events.append)
    yield events
    handles.trace(None)


def of_kind(kind: str, value: int | None = None) -> list[handles.LiveHandle]:
    return [h for h in handles.live() if h.kind == kind and value in (None, h.value)]


def line_of(text: str) -> int:
    """The number of the one line of this file that ends with the text."""
    with open(__file__, encoding="utf-8") as file:
        lines = [number for number, line in enumerate(file, 1) if line.rstrip().endswith(text)]
    assert len(lines) == 1
    return lines[0]


def test_a_live_handle_tells_what_it_is(device: Device) -> None:
    stream = device.create_stream()
    (found,) = of_kind("stream", stream.handle)
    assert (found.lifetime, found.references) == ("owned", 1)
    assert found.dependencies == (("context", stream.context.handle),)
    assert found.site is None
    assert 0 <= found.age < 60
    memory = device.allocate(16, stream=stream)
    (dependent,) = of_kind("device memory", memory.handle)
    pool = device.memory_resource.handle
    assert dependent.dependencies == (("stream", stream.handle), ("memory pool", pool))
    assert dependent.serial > found.serial
    assert dependent.age < of_kind("stream", stream.handle)[0].age
    assert of_kind("stream", stream.handle)[0].references == 2


def test_a_kernel_depends_on_its_library(device: Device) -> None:
    kernel = ObjectCode.from_ptx(empty("k")).get_kernel("k")
    (found,) = of_kind("kernel", kernel.handle)
    ((kind, value),) = found.dependencies
    assert (kind, found.lifetime) == ("library", "owned")
    assert len(of_kind("library", value)) == 1


def test_what_lives_as_long_as_the_process_is_no_leak(device: Device) -> None:
    value = device.default_stream.handle
    assert {h.lifetime for h in of_kind("stream", value)} == {"process"}
    assert value not in [h.value for h in handles.leaks() if h.kind == "stream"]


def test_what_belongs_to_others_is_no_leak(device: Device, stream: Stream) -> None:
    from cudamod import driver

    raw = driver.cuStreamCreate(0)
    foreign = Stream.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    (found,) = of_kind("stream", foreign.handle)
    assert found.lifetime == "borrowed"
    assert foreign.handle not in [h.value for h in handles.leaks()]
    del foreign
    driver.cuStreamDestroy(raw)


def test_a_handle_ends_with_its_last_reference(device: Device) -> None:
    stream = device.create_stream()
    value = stream.handle
    memory = device.allocate(16, stream=stream)
    del stream
    assert len(of_kind("stream", value)) == 1
    memory.close()
    assert of_kind("stream", value) == []


def test_leaks_are_what_somebody_still_holds(device: Device) -> None:
    before = {h.serial for h in handles.leaks()}
    kept = device.create_stream()
    cycle: list[Any] = [device.create_stream()]
    cycle.append(cycle)
    del cycle
    assert [h.value for h in handles.leaks() if h.serial not in before] == [kept.handle]


def test_a_trace_tells_of_creation_and_destruction(
    device: Device, traced: list[handles.TraceEvent]
) -> None:
    stream = device.create_stream()  # the traced one
    value = stream.handle
    (found,) = of_kind("stream", value)
    site = f"{__file__}:{line_of('# the traced one')}"
    assert found.site == site
    del stream
    device.create_event().sync()
    assert traced[:3] == [
        (True, "stream", value, found.serial, site),
        (False, "stream", value, found.serial, site),
        traced[2],
    ]
    assert (traced[2].created, traced[2].kind) == (True, "event")


def test_the_site_is_the_users_line_not_ours(
    device: Device, traced: list[handles.TraceEvent]
) -> None:
    code = ObjectCode.from_ptx(empty("k"))
    code.get_kernel("k")  # loads
    (found,) = of_kind("library")[-1:]
    assert found.site == f"{__file__}:{line_of('# loads')}"


def test_a_trace_ends(device: Device) -> None:
    events: list[handles.TraceEvent] = []
    handles.trace(events.append)
    first = device.create_stream()
    handles.trace(None)
    assert [(e.created, e.value) for e in events] == [(True, first.handle)]
    device.create_stream().sync()
    del first
    device.create_stream().sync()
    assert len(events) == 1


def test_a_logger_can_trace(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("handles")
    with caplog.at_level(logging.DEBUG, logger.name):
        handles.trace(logger)
        try:
            stream = device.create_stream()
            stream.sync()
        finally:
            handles.trace(None)
    assert [f"created stream {stream.handle:#x}" in r.getMessage() for r in caplog.records] == [
        True
    ]


@pytest.mark.parametrize("bad", [1, "x", object(), []])
def test_what_cannot_trace(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"trace\(\).*" + re.escape(repr(bad))):
        handles.trace(bad)


def test_a_tracer_that_raises_stops_nothing(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: unraisable.append(event.exc_value))

    def raises(event: handles.TraceEvent) -> None:
        raise LookupError(event.kind)

    handles.trace(raises)
    try:
        stream = device.create_stream()
        stream.sync()
    finally:
        handles.trace(None)
    assert [str(e) for e in unraisable] == ["stream"]


def test_a_tracer_may_make_handles(device: Device) -> None:
    made: list[Stream] = []

    def makes(event: handles.TraceEvent) -> None:
        if len(made) < 3:
            made.append(device.create_stream())

    handles.trace(makes)
    try:
        device.create_stream().sync()
    finally:
        handles.trace(None)
    assert made


def test_threads_see_a_whole_list(device: Device) -> None:
    """While others create and destroy, every entry is complete and none is there twice."""
    end = threading.Event()

    def churn() -> None:
        while not end.is_set():
            streams = [device.create_stream() for _ in range(4)]
            del streams[1::2]

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            serials = [h.serial for h in handles.live()]
            assert serials == sorted(set(serials))
    finally:
        end.set()
        for thread in threads:
            thread.join()
    del thread, threads
    gc.collect()


LEAK = """
import ctypes
from cudamod import Device
device = Device(0)
device.set_current()
kept = device.create_stream()  # leaked: a reference that nobody gives back
device.default_stream
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
module_level = device.create_stream()
cycle = [device.create_stream()]
cycle.append(cycle)
print(kept.handle)
"""


@pytest.mark.parametrize("check", ["0", "1", None])
def test_the_check_at_exit(run_python_both: Any, check: str | None) -> None:
    out, err = run_python_both(LEAK, CUDAMOD_LEAK_CHECK=check, CUDAMOD_EMULATOR_QUIET="1")
    if check == "1":
        assert err == (
            "cudamod: handles that were never released:\n"
            f"  stream {int(out):#x}, 1 reference, made at <string>:6\n"
        )
    else:
        assert err == ""


def test_no_leak_no_report(run_python_both: Any) -> None:
    code = "from cudamod import Device\nstreams = [Device(0).create_stream() for _ in range(3)]"
    _, err = run_python_both(code, CUDAMOD_LEAK_CHECK="1", CUDAMOD_EMULATOR_QUIET="1")
    assert err == ""


def test_a_forked_child_reports_nothing(run_python_both: Any) -> None:
    # Python's own warning of a fork beside the driver's threads is not what is asked here.
    quiet = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
    code = (
        quiet
        + LEAK
        + "import os, sys\nif (pid := os.fork()):\n    os.waitpid(pid, 0)\n    os._exit(0)\n"
    )
    _, err = run_python_both(code, CUDAMOD_LEAK_CHECK="1", CUDAMOD_EMULATOR_QUIET="1")
    assert err == ""


def test_a_trace_by_the_environment(run_python_both: Any) -> None:
    code = (
        "from cudamod import Device\n"
        "s = Device(0).create_stream()\n"
        "print(s.handle)\n"
        "del s\n"
        "Device(0).create_stream().sync()\n"
    )
    out, err = run_python_both(code, CUDAMOD_TRACE="1", CUDAMOD_EMULATOR_QUIET="1")
    made = f"stream {int(out):#x} (made at <string>:2)"
    assert err.splitlines()[:2] == [f"cudamod: created {made}", f"cudamod: destroyed {made}"]


@pytest.mark.parametrize("variable", ["CUDAMOD_TRACE", "CUDAMOD_LEAK_CHECK"])
def test_a_variable_with_another_value_is_refused(
    run_python: Callable[..., str], variable: str
) -> None:
    code = "try:\n    import cudamod\nexcept ImportError as error:\n    print(error)"
    assert run_python(code, **{variable: "yes"}) == f"{variable} must be 0 or 1, not 'yes'\n"
