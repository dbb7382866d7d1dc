"""The argument contract: Python and NumPy integers, objects with ``__index__``, and bools."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from ptx import Stored

WIDTHS = (8, 16, 32, 64)

#: Parameter types that take an integer, as (PTX parameter, signature, lowest, highest).
INTEGERS: list[tuple[str, str | None, int, int]] = []
for bits in WIDTHS:
    either = (-(2 ** (bits - 1)), 2**bits - 1)
    INTEGERS += [
        (f"u{bits}", None, *either),  # PTX knows no sign
        (f"s{bits}", None, *either),
        (f"b{bits}", None, *either),  # only the size is known
        (f"u{bits}", f"i{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        (f"u{bits}", f"u{bits}", 0, 2**bits - 1),
        (f"u{bits}", f"b{bits}", *either),
    ]
IDS = [f"{ptx}-{given or 'inferred'}" for ptx, given, _, _ in INTEGERS]


def little(value: int, size: int) -> bytes:
    return (value & (2 ** (8 * size) - 1)).to_bytes(size, "little")


@pytest.mark.parametrize(("ptx", "given", "low", "high"), INTEGERS, ids=IDS)
def test_every_integer_in_range_arrives_and_none_beyond(
    stored: Stored, ptx: str, given: str | None, low: int, high: int
) -> None:
    size = int(ptx[1:]) // 8
    middle = [0, 1, 2**7 - 1, 2 ** (8 * size - 1) - 1, low // 2, high // 2, -1]
    for value in {low, low + 1, high, high - 1, *middle}:
        if low <= value <= high:
            assert stored.one(ptx, value, signature=given) == little(value, size), value
    for value in (low - 1, high + 1, 2 ** (8 * size) + 5, -(2 ** (8 * size)) - 5, 2**64, -(2**70)):
        with pytest.raises(OverflowError, match=r"'store', argument 2 ") as caught:
            stored.one(ptx, value, signature=given)
        assert str(value) in str(caught.value)
        assert f"{-low and -abs(low)} .. {high}" in str(caught.value)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("ptx", ["u", "b"])
@pytest.mark.parametrize("value", [True, False])
def test_a_bool_is_one_or_zero_in_every_width(
    stored: Stored, ptx: str, bits: int, value: bool
) -> None:
    numpy = pytest.importorskip("numpy")
    expected = little(int(value), bits // 8)
    assert stored.one(f"{ptx}{bits}", value) == expected
    assert stored.one(f"{ptx}{bits}", numpy.bool_(value)) == expected


def test_a_bool_parameter_takes_bools_and_the_numbers_0_and_1(stored: Stored) -> None:
    numpy = pytest.importorskip("numpy")
    for value in (True, False, 1, 0, numpy.True_, numpy.False_, numpy.uint8(1)):
        assert stored.one("u8", value, signature="bool") == bytes([int(value)])
    for value in (2, -1, 256):
        with pytest.raises(OverflowError, match=r"argument 2 \(bool\)"):
            stored.one("u8", value, signature="bool")
    with pytest.raises(TypeError, match=r"argument 2 \(bool\)"):
        stored.one("u8", 1.0, signature="bool")


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("parameter", ["f32", "f64"])
def test_a_bool_is_no_float_and_no_pointer(stored: Stored, parameter: str, value: bool) -> None:
    numpy = pytest.importorskip("numpy")
    for flag in (value, numpy.bool_(value)):
        with pytest.raises(TypeError, match="argument 2"):
            stored.one(parameter, flag)
        with pytest.raises(TypeError, match=r"argument 2 \(ptr\)"):
            stored.one("u64", flag, signature="ptr")


def test_addresses_are_unsigned(stored: Stored) -> None:
    for value in (0, 1, 2**63 - 1, 2**63, 2**63 + 0x1000, 2**64 - 1):
        assert stored.one("u64", value, signature="ptr") == little(value, 8)
    for value in (-1, -(2**63), 2**64):
        with pytest.raises(OverflowError, match=r"argument 2 \(ptr\)"):
            stored.one("u64", value, signature="ptr")


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value


class Level(enum.IntEnum):
    HIGH = 2**31 - 1


class Metres(int):
    def __index__(self) -> int:
        raise AssertionError("an int already is one")


def test_what_has_index_is_an_integer(stored: Stored) -> None:
    assert stored.one("u32", Index(7)) == little(7, 4)
    assert stored.one("u64", Index(2**64 - 1)) == little(2**64 - 1, 8)
    assert stored.one("b16", Index(-2)) == little(-2, 2)
    assert stored.one("u64", Index(4096), signature="ptr") == little(4096, 8)
    assert stored.one("u32", Level.HIGH) == little(2**31 - 1, 4)
    assert stored.one("u32", Metres(9)) == little(9, 4)
    with pytest.raises(OverflowError, match="argument 2"):
        stored.one("u8", Index(256))


def test_errors_of_index_come_out(stored: Stored) -> None:
    class Broken:
        def __index__(self) -> int:
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        stored.one("u32", Broken())
    with pytest.raises(TypeError):
        stored.one("u32", Index("7"))


@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_numpy_integers(stored: Stored, name: str) -> None:
    numpy = pytest.importorskip("numpy")
    kind = getattr(numpy, name)
    low, high = int(numpy.iinfo(name).min), int(numpy.iinfo(name).max)
    size = kind().itemsize
    for value in (low, high, 0, high // 3):
        assert stored.one(f"u{8 * size}", kind(value)) == kind(value).tobytes()
        assert stored.one(f"b{8 * size}", kind(value)) == kind(value).tobytes()
        if size < 8:  # exactly, into a wider one
            assert stored.one("u64", kind(value)) == little(value, 8)
            assert stored.one("u64", kind(value), signature="i64") == little(value, 8)
    for bits in WIDTHS:
        if bits != 8 * size:
            with pytest.raises(TypeError, match=rf"argument 2 \({bits // 8} byte"):
                stored.one(f"b{bits}", kind(1))
    with pytest.raises(OverflowError, match="argument 2"):
        stored.one("u8", kind(high), signature="bool")
    if size > 1:
        with pytest.raises(OverflowError, match="argument 2"):
            stored.one("u8", kind(high))


@pytest.mark.parametrize("parameter", ["u8", "u32", "u64", "b32", "b64"])
@pytest.mark.parametrize(
    "value", ["1", None, [1], (1,), {1}, object(), 1j, ..., len, range(3), int], ids=repr
)
def test_what_is_no_number_is_refused(stored: Stored, parameter: str, value: Any) -> None:
    if value is None and parameter in ("u64", "b64"):
        assert stored.one(parameter, None) == bytes(8)  # a null pointer
        return
    with pytest.raises(TypeError, match=r"kernel 'store', argument 2 \(.*\)") as caught:
        stored.one(parameter, value)
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize("parameter", ["u8", "s16", "u32", "s64"])
def test_a_float_is_no_integer(stored: Stored, parameter: str) -> None:
    for value in (1.0, 0.5, float("nan")):
        with pytest.raises(TypeError, match=r"argument 2 .* float"):
            stored.one(parameter, value)


def test_the_error_points_at_the_argument(stored: Stored) -> None:
    values = [1, 2, 3, 4, 2**33, 6, 7, 8]
    with pytest.raises(OverflowError, match=r"'store', argument 5 \(i32\): 8589934592 is out of"):
        stored(["u32"] * 8, *values, signature=["i32"] * 8)
