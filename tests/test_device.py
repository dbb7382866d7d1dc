"""Devices: which there are, what they are, and which one is current."""

from __future__ import annotations

import copy
import operator
import pickle
import re
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import Device, driver


class Index:
    """An integer that is no int."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def current() -> int:
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))


def test_all_devices_are_there_once() -> None:
    devices = Device.get_all_devices()
    assert len(devices) == Device.count() == driver.cuDeviceGetCount() >= 1
    assert [device.device_id for device in devices] == list(range(len(devices)))
    assert all(Device(number) is device for number, device in enumerate(devices))


@pytest.mark.parametrize("number", [0, np.int64(0), np.uint8(0), Index(0)])
def test_an_ordinal_is_any_integer(number: Any) -> None:
    assert Device(number) is Device(0)
    assert Device(device_id=number) is Device(0)
    assert Device(0).can_access_peer(number) in (False, True)


@pytest.mark.parametrize("number", [-1, -(2**31), 2**31 - 1, 2**31, 2**32, 2**64, -(2**70), 2**70])
def test_an_ordinal_out_of_range_is_named(number: int) -> None:
    with pytest.raises(ValueError, match=re.escape(str(number))):
        Device(number)
    with pytest.raises(ValueError, match=re.escape(str(number))):
        Device(0).can_access_peer(number)


def test_the_first_ordinal_that_is_out_of_range_is_refused() -> None:
    count = Device.count()
    with pytest.raises(ValueError, match=rf"\[0, {count}\), got {count}"):
        Device(count)


@pytest.mark.parametrize(
    "value", [True, False, 0.0, "0", b"0", [], object(), np.float64(0), Device]
)
def test_what_is_no_integer_is_no_ordinal(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        Device(value)
    with pytest.raises(TypeError, match=type(value).__name__):
        Device(0).can_access_peer(value)


def test_an_error_of_index_passes() -> None:
    class Failing:
        def __index__(self) -> int:
            raise ZeroDivisionError("no ordinal today")

    with pytest.raises(ZeroDivisionError, match="no ordinal today"):
        Device(Failing())


@pytest.mark.parametrize("arguments", [(0, 0), (None, None)])
def test_a_device_takes_one_argument(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Device(*arguments)
    with pytest.raises(TypeError):
        Device(ordinal=0)  # type: ignore[call-arg]


def test_without_a_context_the_current_device_is_the_first() -> None:
    assert current() == 0
    assert Device() is Device(None) is Device(0)


def test_the_current_device_is_the_contexts() -> None:
    last = Device(Device.count() - 1)
    last.set_current()
    try:
        assert Device() is last
        assert current() == last.context.handle
    finally:
        driver.cuCtxSetCurrent(None)
    assert Device() is Device(0)


def test_set_current_answers_the_context_that_was_current_before(
    device: Device, other_context: int
) -> None:
    driver.cuCtxSetCurrent(other_context)
    before = device.set_current(device.context)
    assert isinstance(before, cudamod.Context)
    assert (before.handle, before.device) == (other_context, device)
    assert current() == device.context.handle
    assert device.set_current(before) == device.context
    assert current() == before.handle
    assert device.set_current() is None  # without an argument there is nothing to restore
    assert current() == device.context.handle


def test_set_current_with_a_context_makes_it_current(device: Device) -> None:
    driver.cuCtxSetCurrent(None)
    assert device.set_current(device.context) is None
    assert current() == device.context.handle


@pytest.mark.parametrize("value", [0, 1, "context", object(), Device])
def test_set_current_takes_only_contexts(device: Device, value: Any) -> None:
    with pytest.raises(TypeError, match="Context"):
        device.set_current(value)
    assert current() == device.context.handle


def test_contexts_compare_by_what_they_are(device: Device) -> None:
    first, second = device.context, device.context
    assert first == second
    assert hash(first) == hash(second)
    assert first != first.handle
    assert first.device is device
    assert first.handle != 0
    assert f"{first.handle:#x}" in repr(first)
    assert device.create_stream().context == first


def test_compute_capability_is_a_named_pair(device: Device) -> None:
    capability = device.compute_capability
    assert capability == (capability.major, capability.minor)
    assert pickle.loads(pickle.dumps(capability)) == capability
    assert repr(capability) == f"ComputeCapability(major={capability[0]}, minor={capability[1]})"
    assert device.arch == f"{capability.major}{capability.minor}"
    assert capability.major == device.properties.compute_capability_major
    assert capability.minor == device.properties.compute_capability_minor
    assert capability >= (5, 0)


def test_properties_are_the_drivers_attributes(device: Device) -> None:
    properties = device.properties
    names = dir(properties)
    assert {"max_threads_per_block", "warp_size", "multiprocessor_count"} <= set(names)
    assert len(names) == len(set(names)) > 100
    for name in ("MAX_THREADS_PER_BLOCK", "WARP_SIZE", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"):
        attribute = driver.CUdevice_attribute[f"CU_DEVICE_ATTRIBUTE_{name}"]
        assert getattr(properties, name.lower()) == driver.cuDeviceGetAttribute(attribute, 0)
    assert properties.warp_size == 32


def test_a_property_that_is_none_is_an_attribute_error(device: Device) -> None:
    with pytest.raises(AttributeError, match="warp_sise"):
        _ = device.properties.warp_sise
    assert not hasattr(device.properties, "")
    with pytest.raises(AttributeError):
        device.properties.warp_size = 64  # type: ignore[attr-defined]


def test_names_and_addresses_are_the_drivers(device: Device) -> None:
    name = driver.ffi.new("char[256]")
    driver.cuDeviceGetName(name, 256, 0)
    assert device.name == driver.ffi.string(name).decode()
    assert int(driver.cuDeviceGetByPCIBusId(device.pci_bus_id)) == 0
    assert device.uuid.replace("-", "") == bytes(driver.ffi.buffer(driver.cuDeviceGetUuid(0))).hex()
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device.uuid)
    assert re.fullmatch(
        r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]", device.pci_bus_id
    )
    uuids = [device.uuid for device in Device.get_all_devices()]
    assert len(set(uuids)) == len(uuids)


def test_a_device_is_its_number(device: Device) -> None:
    assert int(device) == device.device_id == 0
    assert device == Device(0)
    assert device != 0
    assert hash(device) == hash(Device(0))
    assert repr(device) == "<Device 0>"
    with pytest.raises(TypeError):
        operator.lt(device, device)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_device_pickles_as_its_number(device: Device, protocol: int) -> None:
    assert pickle.loads(pickle.dumps(device, protocol)) is device
    assert copy.copy(device) is device
    assert copy.deepcopy([device])[0] is device


def test_a_device_has_no_attributes_of_its_own(device: Device) -> None:
    with pytest.raises(AttributeError):
        device.colour = "green"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        device.device_id = 1  # type: ignore[misc]


def test_peer_access_is_asked_of_the_driver(device: Device) -> None:
    for peer in Device.get_all_devices():
        if peer is not device:
            assert device.can_access_peer(peer) == bool(driver.cuDeviceCanAccessPeer(0, int(peer)))
            assert device.can_access_peer(int(peer)) == device.can_access_peer(peer)


def test_sync_waits_without_a_current_context(device: Device) -> None:
    buffer = device.allocate(64, stream=device.default_stream)
    buffer.fill(7, stream=device.default_stream)
    driver.cuCtxSetCurrent(None)
    device.sync()
    assert current() == 0
