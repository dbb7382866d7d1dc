"""The argument contract: floats, half precision, complex numbers, NumPy's scalars of these."""

from __future__ import annotations

import decimal
import fractions
import math
import struct
from typing import Any

import pytest
from ptx import Stored

INF, NAN = math.inf, math.nan
F32_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]

#: Finite values that sit on the edges of rounding somewhere.
VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    1 / 3,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    2**-149,
    2**-150,
    2**-150 * (1 + 2**-52),
    1.4e-45,
    1.1754942e-38,
    2**-126,
    1 + 2**-24,
    1 + 2**-24 + 2**-52,
    1 + 3 * 2**-24,
    16777217.0,
    2**-24,
    2**-25,
    2**-25 * (1 + 2**-52),
    6.1e-5,
    2**-14,
    2**-14 - 2**-25,
    65504.0,
    65519.99,
    1 + 2**-11,
    1 + 2**-11 + 2**-52,
    1 + 3 * 2**-11,
    2049.0,
    2051.0,
    1 + 2**-8,
    1 + 2**-8 + 2**-52,
    1 + 3 * 2**-8,
    2**-133,
    2**-134,
    2**-134 * (1 + 2**-52),
    257.0,
]


def bfloat16(value: float) -> bytes:
    """Round to nearest even by arithmetic on fractions, independently of the library."""
    sign = 0x8000 if math.copysign(1, value) < 0 else 0
    if value == 0:
        return struct.pack("<H", sign)
    magnitude = fractions.Fraction(abs(value))
    exponent = max(math.frexp(abs(value))[1] - 1, -126)
    scaled = magnitude / fractions.Fraction(2) ** (exponent - 7)
    whole = round(scaled)  # of a Fraction: half to even
    bits = whole if exponent == -126 else (exponent + 126 << 7) + whole
    return struct.pack("<H", sign | bits)


@pytest.mark.parametrize("parameter", ["f64", "f32"])
@pytest.mark.parametrize("value", [*VALUES, INF, -INF, 3.4e38, F32_MAX], ids=repr)
def test_a_float_is_rounded_to_nearest_even(stored: Stored, parameter: str, value: float) -> None:
    expected = struct.pack({"f64": "<d", "f32": "<f"}[parameter], value)
    assert stored.one(parameter, value) == expected


@pytest.mark.parametrize("value", [*VALUES, INF, -INF], ids=repr)
def test_half_precision(stored: Stored, value: float) -> None:
    if abs(value) < 65520 or math.isinf(value):
        expected = struct.pack("<e", value)
        assert stored.one("f16", value) == expected
        assert stored.one("b16", value, signature="f16") == expected
    if math.isfinite(value):
        assert stored.one("b16", value, signature="bf16") == bfloat16(value)


@pytest.mark.parametrize(
    ("parameter", "signature", "quiet"),
    [
        ("f64", None, 0x7FF8 << 48),
        ("f32", None, 0x7FC00000),
        ("f16", None, 0x7E00),
        ("b16", "bf16", 0x7FC0),
    ],
)
def test_nan_stays_one(stored: Stored, parameter: str, signature: str | None, quiet: int) -> None:
    size = int(parameter[1:]) // 8
    assert stored.one(parameter, NAN, signature=signature) == quiet.to_bytes(size, "little")
    negative = quiet | 1 << 8 * size - 1
    arrived = stored.one(parameter, math.copysign(NAN, -1), signature=signature)
    assert arrived == negative.to_bytes(size, "little")


@pytest.mark.parametrize(
    ("parameter", "signature", "largest", "too_large"),
    [
        ("f32", None, F32_MAX, F32_MAX + 2.0**103),
        ("f16", None, 65504.0, 65520.0),
        ("b16", "bf16", 3.3895313892515355e38, 3.4e38),
    ],
)
def test_a_finite_value_never_becomes_infinite(
    stored: Stored, parameter: str, signature: str | None, largest: float, too_large: float
) -> None:
    below = math.nextafter(too_large, 0) if parameter != "b16" else largest
    for value in (largest, below):
        assert stored.one(parameter, value, signature=signature) == stored.one(
            parameter, largest, signature=signature
        )
    for value in (too_large, -too_large, 1e308):
        with pytest.raises(
            OverflowError, match=rf"'store', argument 2 \({signature or parameter}\)"
        ) as caught:
            stored.one(parameter, value, signature=signature)
        assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("parameter", "signature", "fraction"),
    [("f64", None, 53), ("f32", None, 24), ("f16", None, 11), ("b16", "bf16", 8)],
)
def test_an_integer_is_rounded_once(
    stored: Stored, parameter: str, signature: str | None, fraction: int
) -> None:
    # Halfway between two neighbours, give or take a bit that a double can't hold.
    top = 2**14 if parameter == "f16" else 2**60
    half = top >> fraction
    for value in (
        0,
        7,
        -7,
        top,
        top + half,
        top + half + 1,
        top + half - 1,
        top + 3 * half,
        -top - half - 1,
    ):
        if value != int(value):
            continue
        unit = top >> (fraction - 1)
        rounded = value if abs(value) < unit else round(fractions.Fraction(value, unit)) * unit
        expected = stored.one(parameter, float(rounded), signature=signature)
        assert stored.one(parameter, value, signature=signature) == expected, value
    if parameter != "f16":
        numpy = pytest.importorskip("numpy")
        value = top + half + 1
        assert stored.one(parameter, numpy.int64(value), signature=signature) == stored.one(
            parameter, float(top + 2 * half), signature=signature
        )


def test_large_integers_as_floats(stored: Stored) -> None:
    assert stored.one("f32", 2**127) == struct.pack("<f", 2.0**127)
    assert stored.one("f32", 2**127 + 2**103 + 1) == struct.pack("<f", 2.0**127 + 2.0**104)
    assert stored.one("f64", -(2**1023)) == struct.pack("<d", -(2.0**1023))
    for parameter, value in (("f32", 2**128), ("f32", -(2**200)), ("f64", 2**1024), ("f16", 65520)):
        with pytest.raises(OverflowError, match=rf"argument 2 \({parameter}\)"):
            stored.one(parameter, value)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("parameter", ["f16", "f32", "f64"])
def test_numpy_floats_are_rounded(stored: Stored, name: str, parameter: str) -> None:
    numpy = pytest.importorskip("numpy")
    wanted = {"f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}[parameter]
    with numpy.errstate(all="ignore"):
        for value in [*VALUES, INF, -INF]:
            scalar = getattr(numpy, name)(value)
            expected = wanted(scalar)
            if numpy.isfinite(scalar) and not numpy.isfinite(expected):
                with pytest.raises(OverflowError, match=rf"argument 2 \({parameter}\)"):
                    stored.one(parameter, scalar)
            else:
                assert stored.one(parameter, scalar) == expected.tobytes(), value
        assert numpy.isnan(
            numpy.frombuffer(stored.one(parameter, getattr(numpy, name)(NAN)), dtype=wanted)[0]
        )


def test_floats_where_only_the_size_is_known(stored: Stored) -> None:
    numpy = pytest.importorskip("numpy")
    assert stored.one("b64", 1.5) == struct.pack("<d", 1.5)
    for parameter in ("b8", "b16", "b32"):
        with pytest.raises(TypeError, match=r"argument 2 .*numpy\.float32.*signature"):
            stored.one(parameter, 1.5)
    for name, parameter in (("float16", "b16"), ("float32", "b32"), ("float64", "b64")):
        scalar = getattr(numpy, name)(-2.5)
        assert stored.one(parameter, scalar) == scalar.tobytes()
        for other in {"b8", "b16", "b32", "b64"} - {parameter}:
            with pytest.raises(TypeError, match=r"argument 2 \(\d byte"):
                stored.one(other, scalar)


@pytest.mark.parametrize(
    "value", [decimal.Decimal("1.5"), fractions.Fraction(1, 2), "1.5", b"1.5", [1.5], 1j]
)
@pytest.mark.parametrize("parameter", ["f16", "f32", "f64"])
def test_what_is_no_real_number_is_no_float(stored: Stored, parameter: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"'store', argument 2 \({parameter}\)") as caught:
        stored.one(parameter, value)
    assert type(value).__name__ in str(caught.value)


def test_a_subclass_of_float_is_one(stored: Stored) -> None:
    class Metres(float):
        pass

    assert stored.one("f32", Metres(0.1)) == struct.pack("<f", 0.1)
    assert stored.one("b64", Metres(0.1)) == struct.pack("<d", 0.1)


COMPLEX = [1 + 2j, -0.0 - 0.0j, complex(0.1, 1 / 3), complex(INF, -INF), complex(2**-149, 3e38)]


@pytest.mark.parametrize("value", COMPLEX, ids=repr)
def test_complex(stored: Stored, value: complex) -> None:
    numpy = pytest.importorskip("numpy")
    single = struct.pack("<2f", value.real, value.imag)
    double = struct.pack("<2d", value.real, value.imag)
    assert stored.one("bytes[8]", value, signature="c64") == single
    assert stored.one("bytes[16]", value, signature="c128") == double
    assert stored.one("bytes[8]", numpy.complex128(value), signature="c64") == single
    assert stored.one("bytes[16]", numpy.complex128(value), signature="c128") == double
    assert stored.one("bytes[8]", numpy.complex64(value), signature="c64") == single
    assert stored.one("b64", numpy.complex64(value)) == single


def test_what_is_no_complex_number(stored: Stored) -> None:
    for parameter, signature in (("bytes[8]", "c64"), ("bytes[16]", "c128")):
        for value in (1, 1.0, True, None, "1j"):
            with pytest.raises(TypeError, match=rf"argument 2 \({signature}\)"):
                stored.one(parameter, value, signature=signature)
    for value in (1e39j, 1e39 + 0j):
        with pytest.raises(OverflowError, match=r"argument 2 \(c64\)"):
            stored.one("bytes[8]", value, signature="c64")
    for parameter in ("f32", "f64", "u64", "b64", "bytes[16]"):
        with pytest.raises(TypeError, match="argument 2"):
            stored.one(parameter, 1j)


@pytest.mark.parametrize("kind", ["longdouble", "clongdouble"])
@pytest.mark.parametrize("parameter", ["f64", "b64", "u64", "bytes[16]"])
def test_extended_precision_is_refused(stored: Stored, kind: str, parameter: str) -> None:
    numpy = pytest.importorskip("numpy")
    if numpy.dtype(kind).itemsize in (8, 16) and kind == "clongdouble":
        pytest.skip("long double is double here")
    with pytest.raises(TypeError, match="argument 2"):
        stored.one(parameter, getattr(numpy, kind)(1))


@pytest.mark.parametrize("parameter", ["b64", "u64", "f64", "bytes[8]"])
def test_dates_and_text_are_refused(stored: Stored, parameter: str) -> None:
    numpy = pytest.importorskip("numpy")
    scalars = [
        numpy.datetime64(1, "s"),
        numpy.timedelta64(1, "s"),
        numpy.str_("ab"),
        numpy.bytes_(b"abcdefgh"),
    ]
    for scalar in scalars:
        with pytest.raises(TypeError, match="argument 2"):
            stored.one(parameter, scalar)
