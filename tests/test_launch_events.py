"""Events in launch attributes: recorded by the driver, kept alive by the configuration."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
from typing import Any

import pytest
from ptx import ONE, empty

from cudamod import (
    Device,
    Event,
    Kernel,
    LaunchCompletionEvent,
    LaunchConfig,
    ObjectCode,
    ProgrammaticEvent,
    Stream,
    driver,
    emulator,
    launch,
)


def config(**attributes: Any) -> LaunchConfig:
    return LaunchConfig(**{"grid": 1, "block": 32, **attributes})


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


def event_parameters() -> list[Any]:
    return [
        pytest.param("programmatic_event", ProgrammaticEvent, id="programmatic"),
        pytest.param("launch_completion_event", LaunchCompletionEvent, id="completion"),
    ]


@pytest.mark.parametrize(("name", "kind"), event_parameters())
def test_an_event_is_recorded(stream: Stream, kernel: Kernel, name: str, kind: Any) -> None:
    if kind is ProgrammaticEvent and stream.device.compute_capability.major < 9:
        pytest.skip("programmatic events need compute capability 9.0")
    for given in (lambda e: e, kind, lambda e: {"event": e}):
        event = stream.device.create_event()
        made = config(**{name: given(event)})
        kept = getattr(made, name)
        assert type(kept) is kind
        assert kept.event == event
        assert kept == kind(event)
        launch(stream, made, kernel)
        stream.sync()
        event.sync()
        assert event.is_done
    stream.sync()


@pytest.mark.emulated
def test_events_arrive(stream: Stream, kernel: Kernel) -> None:
    first, second = stream.device.create_event(), stream.device.create_event()
    made = config(
        programmatic_event=ProgrammaticEvent(first, flags=0, trigger_at_block_start=True),
        launch_completion_event=second,
    )
    with emulator.recording():
        kernel.bind(made, stream)(grid=2)
        given = emulator.launches()[-1].attributes
    assert given == {
        7: struct.pack("Qii", first.handle, 0, 1).ljust(64, b"\0"),
        12: struct.pack("Qi", second.handle, 0).ljust(64, b"\0"),
    }


@pytest.mark.parametrize(("name", "kind"), event_parameters())
def test_events_that_are_refused(device: Device, name: str, kind: Any) -> None:
    timed = device.create_event(options={"timing_enabled": True})
    with pytest.raises(ValueError, match=rf"{name}\.event must be made without timing"):
        config(**{name: timed})
    event = device.create_event()
    for flags, error in ((1, ValueError), (3, ValueError), (-1, ValueError), ("0", TypeError)):
        with pytest.raises(error, match=rf"LaunchConfig\.{name}\.flags must be"):
            config(**{name: kind(event, flags)})
    with pytest.raises(TypeError, match="no option 'evt'"):
        config(**{name: {"event": event, "evt": 1}})
    event.close()
    with pytest.raises(RuntimeError, match="Event has been closed"):
        config(**{name: event})


def test_one_event_for_both(device: Device) -> None:
    event = device.create_event()
    with pytest.raises(ValueError, match="must be two events"):
        config(programmatic_event=event, launch_completion_event=event)


@pytest.mark.parametrize(("name", "kind"), event_parameters())
def test_a_config_keeps_its_event(stream: Stream, kernel: Kernel, name: str, kind: Any) -> None:
    if kind is ProgrammaticEvent and stream.device.compute_capability.major < 9:
        pytest.skip("programmatic events need compute capability 9.0")
    event = stream.device.create_event()
    made = config(**{name: event})
    handle = event.handle
    event.close()
    del event
    gc.collect()
    others = [stream.device.create_event() for _ in range(20)]
    assert handle not in [other.handle for other in others]
    launch(stream, made, kernel)
    stream.sync()
    kept: Event = getattr(made, name).event
    assert kept.handle == handle
    kept.sync()
    del made
    gc.collect()
    assert kept.is_done


def test_configs_with_events_are_values(device: Device) -> None:
    first, second = device.create_event(), device.create_event()
    one, other = config(programmatic_event=first), config(programmatic_event=second)
    assert one == config(programmatic_event=ProgrammaticEvent(first))
    assert hash(one) == hash(config(programmatic_event=first))
    assert one != other
    assert one != config(launch_completion_event=first)
    assert one != config(programmatic_event=ProgrammaticEvent(first, 0, True))
    assert copy.copy(one) == one == copy.deepcopy(one)
    for made in (one, config(launch_completion_event=first)):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=r"cannot pickle a LaunchConfig with a .*_event: "):
                pickle.dumps(made, protocol)


@pytest.mark.parametrize(("name", "kind"), event_parameters())
def test_an_event_of_another_context(
    stream: Stream, kernel: Kernel, other_context: int, name: str, kind: Any
) -> None:
    made = config(**{name: stream.device.create_event()})
    driver.cuCtxPushCurrent(driver.ffi.cast("CUcontext", other_context))
    raw = driver.cuStreamCreate(1)
    driver.cuCtxPopCurrent()
    elsewhere = Stream.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    launcher = kernel.bind(ONE, stream)
    for call in (
        lambda: launch(elsewhere, made, kernel),
        lambda: kernel.bind(made, elsewhere),
        lambda: kernel.bind(made, stream)(stream=elsewhere),
        lambda: kernel.bind(made, stream).on(elsewhere),
    ):
        with pytest.raises(ValueError, match=rf"LaunchConfig\.{name}: .* another context"):
            call()
    launcher(stream=elsewhere)
    elsewhere.close()
    driver.cuStreamSynchronize(raw)
    driver.cuStreamDestroy(raw)
