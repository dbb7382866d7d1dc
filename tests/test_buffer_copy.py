"""What goes into a buffer and comes out of it: copies and fills."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cudamod import Buffer, Device, Stream

SOURCES: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "memoryview of a slice": lambda data: memoryview(b"x" + data + b"x")[1:-1],
    "memoryview of words": lambda data: memoryview(data).cast("I"),
    "memoryview of a table": lambda data: memoryview(data).cast("B", [4, len(data) // 4]),
    "array": lambda data: array.array("d", data),
    "numpy": lambda data: np.frombuffer(data, np.uint8),
    "numpy in C order": lambda data: np.frombuffer(data, np.float32).reshape(4, -1),
    "numpy in Fortran order": lambda data: np.frombuffer(data, np.int16).reshape(4, -1).T,
    "numpy of records": lambda data: np.frombuffer(data, np.dtype("i4, f4")),
    "numpy of complex": lambda data: np.frombuffer(data, np.complex128),
    "numpy of halves": lambda data: np.frombuffer(data, np.float16),
    "numpy of booleans": lambda data: np.frombuffer(data, np.uint8).view(np.bool_),
    "numpy, a row": lambda data: np.frombuffer(data * 2, np.uint8).reshape(2, -1)[1],
    "numpy scalar": lambda data: np.frombuffer(data, np.dtype(f"V{len(data)}"))[0],
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_bytes_of_a_source_arrive(device: Device, stream: Stream, kind: str) -> None:
    data = bytes(range(128))
    buffer = device.allocate(len(data), stream=stream)
    buffer.fill(0xFF, stream=stream)
    buffer.copy_from(SOURCES[kind](data), stream=stream)
    assert buffer.copy_to(bytearray(len(data)), stream=stream) == data


DESTINATIONS: dict[str, Callable[[int], Any]] = {
    "bytearray": bytearray,
    "memoryview": lambda size: memoryview(bytearray(size)),
    "memoryview of words": lambda size: memoryview(bytearray(size)).cast("I"),
    "array": lambda size: array.array("B", bytes(size)),
    "numpy": lambda size: np.zeros(size, np.uint8),
    "numpy in C order": lambda size: np.zeros((4, size // 16), np.float32),
    "numpy in Fortran order": lambda size: np.zeros((4, size // 16), np.int32, order="F"),
    "numpy of records": lambda size: np.zeros(size // 8, "i4, f4"),
}


@pytest.mark.parametrize("kind", DESTINATIONS)
def test_a_destination_gets_the_bytes_and_is_answered(
    device: Device, stream: Stream, kind: str
) -> None:
    data = bytes(range(128))
    buffer = device.allocate(len(data), stream=stream)
    buffer.copy_from(data, stream=stream)
    destination = DESTINATIONS[kind](len(data))
    assert buffer.copy_to(destination, stream=stream) is destination
    assert memoryview(destination).tobytes("A") == data  # as it lies in memory


NOT_CONTIGUOUS: dict[str, Any] = {
    "memoryview": memoryview(bytearray(32))[::2],
    "memoryview backwards": memoryview(bytearray(16))[::-1],
    "numpy": np.zeros(32, np.uint8)[::2],
    "numpy, a column": np.zeros((16, 2), np.uint8)[:, 0],
    "numpy backwards": np.zeros(16, np.uint8)[::-1],
    "numpy broadcast": np.broadcast_to(np.zeros(1, np.uint8), (16,)),
}


@pytest.mark.parametrize("kind", NOT_CONTIGUOUS)
def test_what_is_not_contiguous_is_refused(device: Device, stream: Stream, kind: str) -> None:
    buffer = device.allocate(16, stream=stream)
    with pytest.raises((ValueError, BufferError), match=r"contiguous|read-only"):
        buffer.copy_to(NOT_CONTIGUOUS[kind], stream=stream)
    with pytest.raises((ValueError, BufferError), match="contiguous"):
        buffer.copy_from(NOT_CONTIGUOUS[kind], stream=stream)


@pytest.mark.parametrize(
    "destination",
    [bytes(16), memoryview(bytes(16)), np.frombuffer(bytes(16), np.uint8), np.void(bytes(16))],
    ids=lambda value: type(value).__name__,
)
def test_a_destination_must_be_writable(device: Device, stream: Stream, destination: Any) -> None:
    buffer = device.allocate(16, stream=stream)
    buffer.fill(0xFF, stream=stream)
    with pytest.raises((ValueError, BufferError), match=r"writable|read-only|readonly"):
        buffer.copy_to(destination, stream=stream)
    stream.sync()
    assert bytes(destination) == bytes(16)


@pytest.mark.parametrize("value", [1, 1.0, "text", [1, 2], object(), Device], ids=repr)
def test_what_has_no_bytes_is_neither_source_nor_destination(
    device: Device, stream: Stream, value: Any
) -> None:
    buffer = device.allocate(16, stream=stream)
    with pytest.raises(TypeError, match="bytes-like"):
        buffer.copy_from(value, stream=stream)
    with pytest.raises(TypeError, match="bytes-like"):
        buffer.copy_to(value, stream=stream)
    with pytest.raises(TypeError, match="bytes-like"):
        buffer.copy_from(None, stream=stream)


@pytest.mark.parametrize("size", [0, 1, 15, 17, 64])
def test_sizes_that_differ_are_named(device: Device, stream: Stream, size: int) -> None:
    buffer, other = device.allocate(16, stream=stream), device.allocate(size, stream=stream)
    into = rf"source \({size} bytes\) and destination \(16 bytes\)"
    out = rf"source \(16 bytes\) and destination \({size} bytes\)"
    for source in (bytes(size), np.zeros(size, np.uint8), other):
        with pytest.raises(ValueError, match=into):
            buffer.copy_from(source, stream=stream)
    for destination in (bytearray(size), np.zeros(size, np.uint8), other):
        with pytest.raises(ValueError, match=out):
            buffer.copy_to(destination, stream=stream)


def test_buffers_are_copied_to_each_other(device: Device, stream: Stream) -> None:
    first, second = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    first.copy_from(bytes(range(64)), stream=stream)
    assert first.copy_to(second, stream=stream) is second
    third = second.copy_to(stream=stream)
    assert isinstance(third, Buffer)
    assert third.size == 64
    assert third.handle not in (first.handle, second.handle)
    fourth = device.allocate(64, stream=stream)
    fourth.copy_from(third, stream=stream)
    fourth.copy_from(fourth, stream=stream)
    assert fourth.copy_to(bytearray(64), stream=stream) == bytes(range(64))


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        (0, b"\0"),
        (255, b"\xff"),
        (True, b"\1"),
        (b"\x12", b"\x12"),
        (b"\x12\x34", b"\x12\x34"),
        (b"\x12\x34\x56\x78", b"\x12\x34\x56\x78"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd"), b"abcd"),
        (np.uint8(7), b"\7"),
        (np.int16(-2), np.int16(-2).tobytes()),
        (np.float32(1.5), np.float32(1.5).tobytes()),
        (np.array([1, 2], np.uint16), np.array([1, 2], np.uint16).tobytes()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("size", [4, 64, 1000])
def test_a_fill_repeats_its_pattern(
    device: Device, stream: Stream, value: Any, pattern: bytes, size: int
) -> None:
    buffer = device.allocate(size, stream=stream)
    buffer.fill(value, stream=stream)
    assert buffer.copy_to(bytearray(size), stream=stream) == pattern * (size // len(pattern))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (256, OverflowError, "256"),
        (-1, OverflowError, "-1"),
        (2**100, OverflowError, str(2**100)),
        (b"", ValueError, "not 0"),
        (b"abc", ValueError, "not 3"),
        (b"abcdefgh", ValueError, "not 8"),
        (np.int64(1), ValueError, "not 8"),
        (1.0, TypeError, "float"),
        ("a", TypeError, "str"),
        (None, TypeError, "NoneType"),
        (b"ab", ValueError, "15 bytes are no multiple of 2"),
        (b"abcd", ValueError, "15 bytes are no multiple of 4"),
    ],
    ids=repr,
)
def test_a_fill_names_what_is_no_pattern(
    device: Device, stream: Stream, value: Any, error: type[Exception], message: str
) -> None:
    buffer = device.allocate(15, stream=stream)
    with pytest.raises(error, match=message):
        buffer.fill(value, stream=stream)
