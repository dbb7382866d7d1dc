"""Memory of others as a Buffer, and our memory for others by ``__cuda_array_interface__``."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import Buffer, Device, Stream, driver


class Owner:
    """Whatever keeps memory alive."""


def address_of(pointer: Any) -> int:
    return int(driver.ffi.cast("uintptr_t", pointer))


@pytest.fixture
def pinned(device: Device) -> Iterator[int]:
    pointer = driver.cuMemAllocHost(64)
    yield address_of(pointer)
    driver.cuMemFreeHost(pointer)


@pytest.fixture
def managed(device: Device) -> Iterator[int]:
    pointer = driver.cuMemAllocManaged(64, 1)  # CU_MEM_ATTACH_GLOBAL
    yield int(pointer)
    driver.cuMemFree(pointer)


def test_device_memory_is_found_where_it_lies(device: Device, stream: Stream) -> None:
    ours = device.allocate(64, stream=stream)
    ours.fill(5, stream=stream)
    buffer = Buffer.from_handle(ours.handle, 64, owner=ours)
    assert (buffer.handle, buffer.size, buffer.device_id) == (ours.handle, 64, 0)
    assert (buffer.is_host_accessible, buffer.is_managed) == (False, False)
    assert buffer.owner is ours
    assert buffer.copy_to(bytearray(64), stream=stream) == b"\5" * 64
    buffer.close()
    assert buffer.owner is None
    assert ours.copy_to(bytearray(64), stream=stream) == b"\5" * 64


def test_a_part_of_an_allocation_is_memory_too(device: Device, stream: Stream) -> None:
    ours = device.allocate(64, stream=stream)
    ours.copy_from(bytes(range(64)), stream=stream)
    part = Buffer.from_handle(ours.handle + 16, 8, owner=ours)
    assert part.copy_to(bytearray(8), stream=stream) == bytes(range(16, 24))
    part.fill(0, stream=stream)
    host = ours.copy_to(bytearray(64), stream=stream)
    assert host == bytes(range(16)) + bytes(8) + bytes(range(24, 64))


def test_pinned_memory_is_everywhere(device: Device, stream: Stream, pinned: int) -> None:
    buffer = Buffer.from_handle(pinned, 64)
    assert (buffer.device_id, buffer.is_host_accessible, buffer.is_managed) == (-1, True, False)
    buffer.fill(9, stream=stream)
    stream.sync()
    assert bytes(driver.ffi.buffer(driver.ffi.cast("char *", pinned), 64)) == b"\t" * 64


def test_managed_memory_is_everywhere(device: Device, stream: Stream, managed: int) -> None:
    buffer = Buffer.from_handle(managed, 64)
    assert (buffer.device_id, buffer.is_host_accessible, buffer.is_managed) == (-1, True, True)
    buffer.fill(b"\1\2", stream=stream)
    assert buffer.copy_to(bytearray(64), stream=stream) == b"\1\2" * 32


def test_an_address_is_looked_up_without_a_current_context(device: Device) -> None:
    ours = device.allocate(64)
    driver.cuCtxSetCurrent(None)
    assert Buffer.from_handle(ours.handle, 64, owner=ours).device_id == 0


def test_nothing_lies_at_address_0(device: Device) -> None:
    empty = Buffer.from_handle(0, 0)
    assert (empty.handle, empty.size) == (0, 0)
    with pytest.raises(ValueError, match="there are no 8 bytes at address 0"):
        Buffer.from_handle(0, 8)


def test_memory_of_the_host_is_refused(device: Device) -> None:
    host = np.zeros(64, np.uint8)
    with pytest.raises(cudamod.CUDAError, match="neither device, pinned nor managed") as caught:
        Buffer.from_handle(host.ctypes.data, 64)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
    assert f"{host.ctypes.data:#x}" in caught.value.subject


@pytest.mark.parametrize("address", [1, 0x10, 1 << 47, (1 << 63) + 8, (1 << 64) - 1])
def test_an_unknown_address_is_named(device: Device, address: int) -> None:
    with pytest.raises(cudamod.CUDAError, match=f"{address:#x}"):
        Buffer.from_handle(address, 8)


def test_freed_memory_is_unknown(device: Device) -> None:
    pointer = int(driver.cuMemAlloc(64))
    assert Buffer.from_handle(pointer, 64).device_id == 0
    driver.cuMemFree(pointer)
    with pytest.raises(cudamod.CUDAError, match=f"{pointer:#x}"):
        Buffer.from_handle(pointer, 64)


@pytest.mark.parametrize("address", [None, True, 0.0, "0", b"0", object()], ids=repr)
def test_what_is_no_integer_is_no_address(device: Device, address: Any) -> None:
    message = f"Buffer.from_handle: ptr must be an int, not {type(address).__name__}"
    with pytest.raises(TypeError, match=message):
        Buffer.from_handle(address, 0)


@pytest.mark.parametrize("address", [-1, -(2**64), 2**64, 2**100])
def test_an_address_has_64_bits(device: Device, address: int) -> None:
    with pytest.raises(OverflowError, match=re.escape(str(address))):
        Buffer.from_handle(address, 8)


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), (2**64, OverflowError), (8.0, TypeError), (None, TypeError)],
)
def test_a_size_that_is_none_is_named(device: Device, size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"Buffer\.from_handle: size"):
        Buffer.from_handle(0, size)


def test_integers_of_numpy_are_integers(device: Device) -> None:
    ours = device.allocate(64)
    buffer = Buffer.from_handle(np.uint64(ours.handle), np.int32(64), owner=ours)
    assert (buffer.handle, buffer.size) == (ours.handle, 64)


def test_an_owner_lives_as_long_as_the_buffer(device: Device) -> None:
    ours, owner = device.allocate(64), Owner()
    reference = weakref.ref(owner)
    buffer = Buffer.from_handle(ours.handle, 64, owner=owner)
    del owner
    assert reference() is buffer.owner is not None
    del buffer
    assert reference() is None


def test_an_owner_that_holds_the_buffer_is_collected(device: Device) -> None:
    ours, owner = device.allocate(64), Owner()
    reference = weakref.ref(owner)
    owner.buffer = Buffer.from_handle(ours.handle, 64, owner=owner)  # type: ignore[attr-defined]
    del owner
    gc.collect()
    assert reference() is None


def test_an_owner_may_use_the_buffer_while_it_dies(device: Device) -> None:
    ours = device.allocate(64)
    seen = []

    class Curious:
        def __del__(self) -> None:
            seen.append((buffer.is_closed, buffer.handle, buffer.owner))
            buffer.close()

    buffer = Buffer.from_handle(ours.handle, 64, owner=Curious())
    buffer.close()
    assert seen == [(True, 0, None)]


def test_the_interface_describes_bytes(device: Device, stream: Stream) -> None:
    buffer = device.allocate(64, stream=stream)
    assert buffer.__cuda_array_interface__ == {
        "shape": (64,),
        "typestr": "|u1",
        "data": (buffer.handle, False),
        "strides": None,
        "version": 3,
        "stream": stream.handle,
    }


def test_the_interfaces_stream_is_never_0(device: Device, stream: Stream) -> None:
    assert device.allocate(64).__cuda_array_interface__["stream"] == 1
    per_thread = device.allocate(64, stream=Stream.from_handle(2))
    assert per_thread.__cuda_array_interface__["stream"] == 2
    foreign = Buffer.from_handle(per_thread.handle, 64)
    assert foreign.__cuda_array_interface__["stream"] is None


def test_the_interface_of_nothing_has_address_0(device: Device) -> None:
    interface = device.allocate(0).__cuda_array_interface__
    assert (interface["shape"], interface["data"]) == ((0,), (0, False))


def test_a_long_chain_of_owners_is_let_go(device: Device) -> None:
    first = last = device.allocate(8)
    for _ in range(200_000):
        last = Buffer.from_handle(first.handle, 8, owner=last)
    del last
    assert not first.is_closed
