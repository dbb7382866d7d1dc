"""The caller's current context is after every public call what it was before.

Properties and what every object has (``repr``, ``hash``, ``==``, copies) are called for each public
class by themselves; a method needs a call in ``CALLS``, or the last test fails.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from public_calls import (
    CALLS,
    COMMON,
    SAMPLES,
    a_scene,
    current,
    is_property,
    members,
    public_classes,
)

import cudamod
from cudamod import Device, MemoryResource, driver


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
def test_a_call_leaves_the_current_context_alone(
    device: Device, before: int, call: str, tmp_path: Path
) -> None:
    scene = a_scene(device, str(tmp_path))
    assert current() == before
    if call.startswith("error"):
        with pytest.raises((cudamod.CUDAError, ValueError, RuntimeError)):
            CALLS[call](scene)
    else:
        CALLS[call](scene)
    assert current() == before
    device.sync()  # other streams than its own may still work on what goes now
    del scene
    gc.collect()
    assert current() == before


@pytest.mark.parametrize("name", SAMPLES)
def test_properties_leave_it_alone(device: Device, before: int, name: str, tmp_path: Path) -> None:
    scene = a_scene(device, str(tmp_path))
    thing = SAMPLES[name](scene)
    assert current() == before
    for member, value in members(type(thing)).items():
        if is_property(value):
            # One that needs a current context, or has nothing to tell, says so.
            with contextlib.suppress(cudamod.CUDAError, RuntimeError, TypeError):
                getattr(thing, member)
            assert current() == before, member
    for member, call in COMMON.items():
        with contextlib.suppress(TypeError):
            call(thing)
        assert current() == before, member
    del thing, scene
    gc.collect()
    assert current() == before


def test_every_public_class_has_a_sample() -> None:
    assert set(SAMPLES) == set(public_classes())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_public_method_is_called(name: str) -> None:
    kind = public_classes()[name]
    called = {key.split(",")[0] for key in CALLS}
    if issubclass(kind, MemoryResource):
        name = "DeviceMemoryResource"  # the others have the same methods
    forgotten = [
        member
        for member, value in members(kind).items()
        if not is_property(value)
        and callable(getattr(kind, member))
        and member not in COMMON
        and f"{name}.{member}" not in called
    ]
    assert forgotten == [], f"CALLS has no call of them: {forgotten}"


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
