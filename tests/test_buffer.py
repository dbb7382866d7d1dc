"""Buffers: allocated, copied, filled and closed."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudamod
from cudamod import Buffer, Device, Stream, driver

SIZES = [1, 2, 3, 255, 256, 257, 4096, (1 << 20) + 1]


@pytest.mark.parametrize("size", SIZES)
def test_memory_is_allocated_in_stream_order(device: Device, stream: Stream, size: int) -> None:
    buffer = device.allocate(size, stream=stream)
    assert buffer.size == len(buffer) == size
    assert buffer.handle % 256 == 0
    assert buffer.handle != 0
    assert buffer.device_id == device.device_id
    assert buffer.is_device_accessible
    assert not buffer.is_host_accessible
    assert not buffer.is_managed
    assert buffer.owner is None
    assert not buffer.is_closed
    assert repr(buffer) == f"<Buffer address={buffer.handle:#x} size={size} device=0>"
    data = bytes(range(256)) * (size // 256 + 1)
    buffer.copy_from(data[:size], stream=stream)
    assert buffer.copy_to(bytearray(size), stream=stream) == data[:size]


def test_without_a_stream_the_default_stream_orders(device: Device) -> None:
    driver.cuCtxSetCurrent(None)
    buffer = device.allocate(8)
    assert device.allocate(size=8, stream=None).size == 8
    buffer.fill(1, stream=device.default_stream)
    assert buffer.copy_to(bytearray(8), stream=device.default_stream) == b"\1" * 8


def test_nothing_has_no_address(device: Device, stream: Stream) -> None:
    empty = device.allocate(0, stream=stream)
    assert (empty.handle, empty.size, empty.device_id, len(empty)) == (0, 0, 0, 0)
    assert not empty.is_closed
    empty.fill(1, stream=stream)
    empty.fill(b"abcd", stream=stream)
    empty.copy_from(b"", stream=stream)
    assert empty.copy_to(bytearray(), stream=stream) == b""
    other = empty.copy_to(stream=stream)
    assert other.size == 0
    empty.copy_from(other, stream=stream)
    empty.close()
    assert empty.is_closed
    with pytest.raises(RuntimeError, match="Buffer has been closed"):
        empty.fill(1, stream=stream)


@pytest.mark.parametrize("size", [8, np.int64(8), np.uint8(8)])
def test_a_size_is_any_integer(device: Device, size: Any) -> None:
    assert device.allocate(size).size == 8


@pytest.mark.parametrize(
    ("size", "error"),
    [
        (-1, ValueError),
        (-(2**70), ValueError),
        (2**64, OverflowError),
        (2**100, OverflowError),
        (1.0, TypeError),
        ("8", TypeError),
        (None, TypeError),
        (True, TypeError),
        (b"8", TypeError),
    ],
    ids=repr,
)
def test_a_size_that_is_none_is_named(
    device: Device, stream: Stream, size: Any, error: type[Exception]
) -> None:
    named = type(size).__name__ if error is TypeError else str(size)
    with pytest.raises(error, match=f"Device.allocate: size .*{re.escape(named)}"):
        device.allocate(size, stream=stream)


@pytest.mark.parametrize("size", [1 << 45, 1 << 62, (1 << 63) - 1, (1 << 64) - 1])
def test_too_much_is_a_memory_error(device: Device, stream: Stream, size: int) -> None:
    with pytest.raises(MemoryError, match=f"{size} bytes on device 0") as caught:
        device.allocate(size, stream=stream)
    assert isinstance(caught.value, cudamod.CUDAOutOfMemoryError)
    assert isinstance(caught.value, cudamod.CUDAError)
    assert caught.value.name == "CUDA_ERROR_OUT_OF_MEMORY"
    assert device.allocate(8, stream=stream).size == 8


CLOSED_USES: dict[str, Callable[[Buffer, Buffer, Stream], object]] = {
    "copy_to": lambda closed, buffer, stream: closed.copy_to(bytearray(8), stream=stream),
    "copy_to a new one": lambda closed, buffer, stream: closed.copy_to(stream=stream),
    "copy_to another": lambda closed, buffer, stream: closed.copy_to(buffer, stream=stream),
    "be copied to": lambda closed, buffer, stream: buffer.copy_to(closed, stream=stream),
    "copy_from": lambda closed, buffer, stream: closed.copy_from(bytes(8), stream=stream),
    "copy_from another": lambda closed, buffer, stream: closed.copy_from(buffer, stream=stream),
    "be copied from": lambda closed, buffer, stream: buffer.copy_from(closed, stream=stream),
    "fill": lambda closed, buffer, stream: closed.fill(0, stream=stream),
    "interface": lambda closed, buffer, stream: closed.__cuda_array_interface__,
    "capsule": lambda closed, buffer, stream: closed.__dlpack__(),
    "device of the capsule": lambda closed, buffer, stream: closed.__dlpack_device__(),
    "enter": lambda closed, buffer, stream: closed.__enter__(),
}


@pytest.mark.parametrize("size", [0, 8])
@pytest.mark.parametrize("use", CLOSED_USES)
def test_a_closed_buffer_refuses_every_use(
    device: Device, stream: Stream, use: str, size: int
) -> None:
    closed, buffer = device.allocate(size, stream=stream), device.allocate(size, stream=stream)
    closed.close()
    with pytest.raises(RuntimeError, match=r"^Buffer has been closed$"):
        CLOSED_USES[use](closed, buffer, stream)


def test_what_a_closed_buffer_still_tells(device: Device, stream: Stream) -> None:
    buffer = device.allocate(8, stream=stream)
    buffer.close(stream)
    buffer.close()
    buffer.close(stream)
    assert buffer.is_closed
    assert (buffer.handle, buffer.size, buffer.device_id) == (0, 8, 0)
    assert repr(buffer) == "<Buffer closed>"


def test_a_block_closes_its_buffer(device: Device, stream: Stream) -> None:
    with device.allocate(8, stream=stream) as buffer:
        assert not buffer.is_closed
    assert buffer.is_closed
    with pytest.raises(ZeroDivisionError), device.allocate(8, stream=stream) as buffer:
        raise ZeroDivisionError
    assert buffer.is_closed
    with device.allocate(8, stream=stream) as buffer:
        buffer.close()


def test_a_buffer_can_be_referenced_weakly_and_compares_by_identity(device: Device) -> None:
    buffer, other = device.allocate(0), device.allocate(0)
    assert buffer != other
    assert len({buffer, other, buffer}) == 2
    reference = weakref.ref(buffer)
    references = sys.getrefcount(buffer)
    assert reference() is buffer
    assert sys.getrefcount(buffer) == references
    del buffer
    assert reference() is None
