"""What the driver tells of a pool, and what can be set."""

from __future__ import annotations

from typing import Any

import pytest

import cudamod
from cudamod import Device, DeviceMemoryResource, MemoryPoolAttributes, Stream

POLICIES = [
    "reuse_allow_internal_dependencies",
    "reuse_allow_opportunistic",
    "reuse_follow_event_dependencies",
]
CURRENT = ["reserved_mem_current", "used_mem_current"]
HIGH = ["reserved_mem_high", "used_mem_high"]
NAMES = sorted([*POLICIES, *CURRENT, *HIGH, "release_threshold"])


@pytest.fixture
def own(device: Device) -> DeviceMemoryResource:
    return DeviceMemoryResource(device, {})


@pytest.fixture
def attributes(own: DeviceMemoryResource) -> MemoryPoolAttributes:
    return own.attributes


def test_a_new_pool(attributes: MemoryPoolAttributes) -> None:
    assert [getattr(attributes, name) for name in POLICIES] == [True] * 3
    assert [getattr(attributes, name) for name in CURRENT + HIGH] == [0] * 4
    assert attributes.release_threshold == 0
    text = ", ".join(f"{name}={getattr(attributes, name)!r}" for name in NAMES)
    assert repr(attributes) == f"MemoryPoolAttributes({text})"


def test_allocations_are_counted(
    own: DeviceMemoryResource, attributes: MemoryPoolAttributes, stream: Stream
) -> None:
    attributes.release_threshold = 2**64 - 1
    first, second = own.allocate(1000, stream=stream), own.allocate(3000, stream=stream)
    assert (attributes.used_mem_current, attributes.used_mem_high) == (4000, 4000)
    assert attributes.reserved_mem_current >= 4000
    first.close()
    stream.sync()
    assert (attributes.used_mem_current, attributes.used_mem_high) == (3000, 4000)
    attributes.used_mem_high = 0
    attributes.reserved_mem_high = 0
    assert attributes.used_mem_high in (0, 3000)
    second.close()
    stream.sync()
    assert attributes.used_mem_current == 0
    assert attributes.reserved_mem_current > 0
    del first, second, own
    assert attributes.reserved_mem_current > 0


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_set(own: DeviceMemoryResource, name: str) -> None:
    attributes = own.attributes
    setattr(attributes, name, False)
    assert getattr(own.attributes, name) is False
    setattr(attributes, name, True)
    assert getattr(own.attributes, name) is True
    for wrong in (0, 1, None, "yes"):
        with pytest.raises(TypeError, match=f"{name} must be a bool, not {type(wrong).__name__}"):
            setattr(attributes, name, wrong)
    assert getattr(attributes, name) is True


@pytest.mark.parametrize("value", [0, 1, 1 << 30, 2**64 - 1])
def test_the_threshold_is_set(attributes: MemoryPoolAttributes, value: int) -> None:
    attributes.release_threshold = value
    assert attributes.release_threshold == value


@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, ValueError), (2**64, OverflowError), (1.5, TypeError), (True, TypeError)],
)
@pytest.mark.parametrize("name", ["release_threshold", *HIGH])
def test_a_bad_number_is_named(
    attributes: MemoryPoolAttributes, name: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=name):
        setattr(attributes, name, value)


@pytest.mark.parametrize("name", HIGH)
def test_a_mark_is_reset_to_0_alone(attributes: MemoryPoolAttributes, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} can only be reset to 0, not set to 5"):
        setattr(attributes, name, 5)
    setattr(attributes, name, 0)


@pytest.mark.parametrize("name", CURRENT)
def test_amounts_are_read_only(attributes: MemoryPoolAttributes, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(attributes, name, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_view_outlives_its_resource(device: Device, name: str) -> None:
    attributes = DeviceMemoryResource(device, {}).attributes
    before = getattr(attributes, name)
    resource = DeviceMemoryResource(device, {})
    view = resource.attributes
    resource.close()
    assert getattr(view, name) == getattr(attributes, name) == before


@pytest.mark.emulated
@pytest.mark.parametrize("name", NAMES)
def test_a_failing_read_names_the_attribute(attributes: MemoryPoolAttributes, name: str) -> None:
    cudamod.emulator.inject("cuMemPoolGetAttribute", status=1)
    with pytest.raises(cudamod.CUDAError, match=f"memory pool 0x[0-9a-f]+, {name}"):
        getattr(attributes, name)
    assert getattr(attributes, name) is not None
