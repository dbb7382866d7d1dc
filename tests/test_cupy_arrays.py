"""CuPy's arrays: address and device by their parts, else by their interface; a stand-in of it."""

from __future__ import annotations

from typing import Any

import pytest
from ptx import Stored

from cudamod import Buffer, Stream


class Memory:
    """What an array calls ``data``."""

    def __init__(self, ptr: Any, device_id: Any) -> None:
        self.ptr, self.device_id = ptr, device_id


class Array:
    """A ``cupy.ndarray`` as far as a launch looks into it."""

    def __init__(self, address: int, data: Any) -> None:
        self.address, self._data, self.asked = address, data, 0

    @property
    def data(self) -> Any:
        if isinstance(self._data, Exception):
            raise self._data
        return self._data

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.asked += 1
        return {"version": 3, "data": (self.address, False), "shape": (1,), "typestr": "<f4"}


Array.__module__ = "cupy"


@pytest.fixture
def buffer(stream: Stream) -> Buffer:
    return stream.device.allocate(64, stream=stream)


def test_the_parts_are_enough(stored: Stored, buffer: Buffer) -> None:
    array = Array(buffer.handle, Memory(buffer.handle + 4, 0))
    assert stored.one("u64", array) == (buffer.handle + 4).to_bytes(8, "little")
    assert array.asked == 0
    empty = Array(0, Memory(0, 0))
    assert stored.one("u64", empty) == bytes(8)


@pytest.mark.parametrize(
    ("ptr", "ordinal"),
    [
        (4096, 7),
        (4096, -1),
        (4096, "0"),
        (4096, None),
        (-1, 0),
        (1 << 64, 0),
        ("4096", 0),
        (4.0, 0),
    ],
)
def test_else_the_interface_tells(stored: Stored, buffer: Buffer, ptr: Any, ordinal: Any) -> None:
    array = Array(buffer.handle, Memory(ptr, ordinal))
    assert stored.one("u64", array) == buffer.handle.to_bytes(8, "little")
    assert array.asked == 1
    host = Array(id(array), Memory(id(array), ordinal if ordinal != 0 else 5))
    with pytest.raises(TypeError, match="argument 2: Array object lies in host memory"):
        stored.one("u64", host)


@pytest.mark.parametrize("data", [None, object(), AttributeError("data"), ValueError("no")])
def test_without_the_parts_the_interface_tells(stored: Stored, buffer: Buffer, data: Any) -> None:
    array = Array(buffer.handle, data)
    assert stored.one("u64", array) == buffer.handle.to_bytes(8, "little")
    assert array.asked == 1


def test_it_is_no_number(stored: Stored, buffer: Buffer) -> None:
    with pytest.raises(TypeError, match=r"argument 2 .*Array object"):
        stored.one("u32", Array(buffer.handle, Memory(buffer.handle, 0)))
