"""The argument contract: what is passed by value as bytes, and what ctypes has."""

from __future__ import annotations

import array
import ctypes
import struct
from typing import Any

import pytest
from ptx import Stored


class Pair(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_char), ("scale", ctypes.c_double)]


class Packed(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("tag", ctypes.c_char), ("scale", ctypes.c_double)]


class Either(ctypes.Union):
    _fields_ = [("number", ctypes.c_uint32), ("bytes", ctypes.c_uint8 * 12)]


class Byte(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint8)]


def test_structures_and_unions(stored: Stored) -> None:
    pair = Pair(b"x", 0.5)
    assert stored.one("bytes[16]", pair) == bytes(pair)
    union = Either(number=0xDEADBEEF)
    assert stored.one("bytes[12]", union) == bytes(union)
    assert stored.one("bytes[9]", Packed(b"y", -1.0)) == b"y" + struct.pack("<d", -1.0)
    assert stored.one("bytes[1]", Byte(7)) == b"\x07"

    class Derived(Pair):
        pass

    assert stored.one("bytes[16]", Derived(b"z", 2.0)) == bytes(Pair(b"z", 2.0))
    assert stored.one("bytes[32]", (Pair * 2)(pair, pair)) == 2 * bytes(pair)


def test_a_structure_goes_where_only_its_size_is_known(stored: Stored) -> None:
    class Half(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint16)]

    class Eight(ctypes.Structure):
        _fields_ = [("words", ctypes.c_uint32 * 2)]

    assert stored.one("b8", Byte(200)) == b"\xc8"
    assert stored.one("b16", Half(0x1234)) == b"\x34\x12"
    assert stored.one("b64", Eight((1, 2))) == struct.pack("<2I", 1, 2)


@pytest.mark.parametrize("parameter", ["u64", "f64", "u32", "f32"])
@pytest.mark.parametrize("signature", [None, "ptr"])
def test_a_structure_is_no_scalar(stored: Stored, parameter: str, signature: str | None) -> None:
    class Same(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint8 * (int(parameter[1:]) // 8))]

    if signature and parameter != "u64":
        return
    with pytest.raises(TypeError, match=r"'store', argument 2 \(.*\): .*Same"):
        stored.one(parameter, Same(), signature=signature)


@pytest.mark.parametrize("size", [8, 9, 15, 17, 24])
def test_a_struct_of_another_size_is_refused(stored: Stored, size: int) -> None:
    numpy = pytest.importorskip("numpy")
    for value in (
        Pair(),
        bytes(16),
        bytearray(16),
        memoryview(bytes(16)),
        numpy.zeros((), "i8,i8")[()],
    ):
        with pytest.raises(TypeError, match=rf"'store', argument 2 \(bytes\[{size}\]\)") as caught:
            stored.one(f"bytes[{size}]", value)
        assert type(value).__name__ in str(caught.value)
        assert "16 bytes" in str(caught.value)


def test_numpy_structs_have_the_layout_of_their_dtype(stored: Stored) -> None:
    numpy = pytest.importorskip("numpy")
    fields = [("a", "i1"), ("b", "f8")]
    aligned = numpy.dtype(fields, align=True)
    packed = numpy.dtype(fields)
    assert (aligned.itemsize, packed.itemsize) == (16, 9)
    value = (5, 2.5)
    arrived = stored.one("bytes[16]", numpy.array(value, aligned)[()])
    assert arrived[0] == 5
    assert arrived[8:] == struct.pack("<d", 2.5)
    assert stored.one("bytes[9]", numpy.array(value, packed)[()]) == b"\x05" + struct.pack(
        "<d", 2.5
    )
    with pytest.raises(TypeError, match=r"void object has 9 bytes, the parameter 16"):
        stored.one("bytes[16]", numpy.array(value, packed)[()])
    assert stored.one("bytes[12]", numpy.void(b"twelve bytes")) == b"twelve bytes"
    record = numpy.rec.array([value], dtype=aligned)[0]
    assert stored.one("bytes[16]", record)[8:] == struct.pack("<d", 2.5)
    assert stored.one("b64", numpy.array((1, 2), "i4,i4")[()]) == struct.pack("<2i", 1, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 12, 16, 100, 4000, 5000, 32_000])
def test_bytes_by_value(stored: Stored, size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(size))
    shuffled = memoryview(bytes(reversed(data)))[::-1]
    for value in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        assert stored.one(f"bytes[{size}]", value) == data
    if size > 1:
        with pytest.raises(TypeError, match=r"argument 2 .*contiguous"):
            stored.one(f"bytes[{size}]", shuffled)
    words = array.array("I", range(size // 4))
    if size % 4 == 0:
        assert stored.one(f"bytes[{size}]", memoryview(words)) == words.tobytes()


@pytest.mark.parametrize("parameter", ["b8", "b16", "b32", "b64", "u8", "u32", "f32", "u64", "f64"])
def test_bytes_are_no_scalar(stored: Stored, parameter: str) -> None:
    size = int(parameter[1:]) // 8
    for value in (bytes(size), bytearray(size), memoryview(bytes(size)), (ctypes.c_uint8 * size)()):
        with pytest.raises(TypeError, match=r"'store', argument 2 \("):
            stored.one(parameter, value)


def test_a_struct_parameter_takes_no_number(stored: Stored) -> None:
    for parameter in ("bytes[4]", "bytes[8]", "bytes[16]", "bytes[12]"):
        for value in (1, 1.0, True, None, 1j, ctypes.c_double(1), ctypes.c_int(1)):
            with pytest.raises(TypeError, match=r"'store', argument 2 \(bytes\["):
                stored.one(parameter, value)


CTYPES_INTEGERS = [
    "c_int8",
    "c_uint8",
    "c_int16",
    "c_uint16",
    "c_int32",
    "c_uint32",
    "c_int64",
    "c_uint64",
    "c_size_t",
    "c_long",
    "c_ulonglong",
    "c_byte",
]


@pytest.mark.parametrize("name", CTYPES_INTEGERS)
def test_ctypes_integers(stored: Stored, name: str) -> None:
    kind = getattr(ctypes, name)
    size = ctypes.sizeof(kind)
    for number in (0, 1, 2 ** (8 * size - 1) - 1, -1, -(2 ** (8 * size - 1))):
        value = kind(number)
        assert stored.one(f"u{8 * size}", value) == bytes(value)
        assert stored.one(f"b{8 * size}", value) == bytes(value)
        assert stored.one("u64", value) == (value.value & 2**64 - 1).to_bytes(8, "little")
        assert stored.one("f64", value) == struct.pack("<d", value.value)
    if size > 1:
        with pytest.raises(OverflowError, match="argument 2"):
            stored.one("u8", kind(300))
    for other in {8, 16, 32, 64} - {8 * size}:
        with pytest.raises(TypeError, match=r"argument 2 .* size"):
            stored.one(f"b{other}", kind(1))


def test_ctypes_floats_bools_and_addresses(stored: Stored) -> None:
    assert stored.one("f32", ctypes.c_float(0.1)) == struct.pack("<f", 0.1)
    assert stored.one("f32", ctypes.c_double(0.1)) == struct.pack("<f", 0.1)
    assert stored.one("f64", ctypes.c_float(0.1)) == bytes(
        ctypes.c_double(ctypes.c_float(0.1).value)
    )
    assert stored.one("b32", ctypes.c_float(0.1)) == struct.pack("<f", 0.1)
    assert stored.one("b64", ctypes.c_double(0.1)) == struct.pack("<d", 0.1)
    with pytest.raises(OverflowError, match=r"argument 2 \(f32\)"):
        stored.one("f32", ctypes.c_double(1e39))
    for flag in (True, False):
        for parameter in ("u8", "u32", "b8"):
            size = int(parameter[1:]) // 8
            assert stored.one(parameter, ctypes.c_bool(flag)) == bytes([flag]).ljust(size, b"\0")
        assert stored.one("u8", ctypes.c_bool(flag), signature="bool") == bytes([flag])
    address = 0x7F00_1234_5678
    for signature in (None, "ptr", "u64"):
        assert stored.one("u64", ctypes.c_void_p(address), signature=signature) == address.to_bytes(
            8, "little"
        )
        assert stored.one("u64", ctypes.c_void_p(None), signature=signature) == bytes(8)
    assert stored.one("b64", ctypes.c_void_p(2**64 - 1)) == b"\xff" * 8
    for parameter in ("f64", "f32", "u32", "b32", "u8", "bytes[8]"):
        with pytest.raises(TypeError, match="argument 2"):
            stored.one(parameter, ctypes.c_void_p(1))


@pytest.mark.parametrize("parameter", ["u8", "u32", "u64", "b64", "f64", "bytes[8]", "bytes[16]"])
def test_other_ctypes_are_refused(stored: Stored, parameter: str) -> None:
    values: list[Any] = [
        ctypes.c_char(b"x"),
        ctypes.c_wchar("x"),
        ctypes.c_char_p(b"x"),
        ctypes.c_wchar_p("x"),
        ctypes.py_object(1),
        ctypes.c_int.__ctype_be__(1),
        ctypes.c_double.__ctype_be__(1),
        ctypes.pointer(ctypes.c_int()),
        ctypes.byref(ctypes.c_int()),
    ]
    if ctypes.sizeof(ctypes.c_longdouble) != ctypes.sizeof(ctypes.c_double):
        values.append(ctypes.c_longdouble(1))
    for value in values:
        with pytest.raises(TypeError, match=r"'store', argument 2 \("):
            stored.one(parameter, value)


def test_the_limit_of_all_parameters_together(stored: Stored) -> None:
    data = bytes(i % 253 for i in range(32_764 - 8))
    kernel = stored.kernel(f"bytes[{len(data)}]")
    assert kernel.arguments_info[1].size == len(data)
    assert stored([f"bytes[{len(data)}]"], data) == [data]


def test_many_parameters(stored: Stored) -> None:
    values = [i * 0x01010101 & 0xFFFFFFFF for i in range(300)]
    assert stored(["u32"] * 300, *values) == [struct.pack("<I", v) for v in values]


def test_errors_stay_short(stored: Stored) -> None:
    for value in (bytes(30_000), "x" * 30_000, list(range(10_000))):
        with pytest.raises(TypeError) as caught:
            stored.one("u32", value)
        assert len(str(caught.value)) < 400
    with pytest.raises(OverflowError, match="argument 2"):
        stored.one("u32", 10**5000)  # more digits than Python writes

    class Nameless:
        def __repr__(self) -> str:
            raise LookupError("no text")

    with pytest.raises(TypeError, match=r"argument 2 .* Nameless"):
        stored.one("u32", Nameless())
