"""Signatures: what the image and the mangled name tell, and those given to `Kernel.bind`."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from ptx import HEADER, ONE, Stored, empty

from cudamod import Kernel, ObjectCode, Stream

NAMES = [
    *("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "b8", "b16", "b32", "b64"),
    *("f16", "bf16", "f32", "f64", "bool", "c64", "c128", "ptr"),
]
SIZES = {"bf16": 2, "bool": 1, "c64": 8, "c128": 16, "ptr": 8}


def size_of(name: str) -> int:
    return SIZES.get(name) or int(name[1:]) // 8


def kernel_of(*parameters: str, name: str = "k") -> Kernel:
    return ObjectCode.from_ptx(empty(name, parameters=parameters)).get_kernel(name)


@pytest.mark.parametrize(
    ("parameters", "signature"),
    [
        ([], ""),
        (["u32", "f32", "u64"], "b32, f32, b64"),
        (["s8", "s16", "u8", "s64"], "b8, b16, b8, b64"),
        (["f64", "f16"], "f64, f16"),
        (["bytes[12]", "bytes[8]"], "bytes[12], bytes[8]"),
        (["b32"], None),
        (["u32", "b64"], None),
    ],
)
def test_of_ptx(stream: Stream, parameters: list[str], signature: str | None) -> None:
    kernel = kernel_of(*parameters)
    assert kernel.signature == signature
    launcher = kernel.bind(ONE, stream)
    assert launcher.signature == signature
    if signature is not None:
        assert kernel.bind(ONE, stream, signature=signature).signature == signature


def test_a_pointer_that_ptx_declares_is_one(stream: Stream) -> None:
    text = (
        HEADER
        + ".visible .entry k(.param .u64 .ptr .global .align 4 p, .param .u64 .ptr q) { ret; }"
    )
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    assert kernel.signature == "ptr, ptr"
    with pytest.raises(TypeError, match=r"argument 1 \(ptr\)"):
        kernel.bind(ONE, stream)(0, 1.0)


@pytest.mark.parametrize(
    ("name", "parameters", "signature"),
    [
        ("_Z1kPfPKdi", ["u64", "u64", "u32"], "ptr, ptr, i32"),
        ("_Z1kjmxbc", ["u32", "u64", "u64", "u8", "u8"], "u32, u64, i64, bool, i8"),
        ("_Z1kahst", ["u8", "u8", "u16", "u16"], "i8, u8, i16, u16"),
        ("_Z1kfd", ["f32", "f64"], "f32, f64"),
        ("_Z1kv", [], ""),
        ("_Z4axpyIfEvT_PKS0_PS0_m", ["f32", "u64", "u64", "u64"], "f32, ptr, ptr, u64"),
        ("_Z1k3Agg", ["bytes[24]"], "bytes[24]"),
        ("_Z1kif", ["f32", "u32"], "i32, f32"),  # same sizes: the name is exact
        ("_Z1kdi", ["u32", "u32"], "b32, b32"),  # the name lies about a size: the image counts
        ("_Z1ki", ["u32", "u32"], "b32, b32"),  # and about the count
    ],
)
def test_of_a_mangled_name(
    stream: Stream, name: str, parameters: list[str], signature: str
) -> None:
    assert kernel_of(*parameters, name=name).signature == signature


def test_a_mangled_name_tells_signs_and_pointers(stored: Stored, stream: Stream) -> None:
    kernel = stored.kernel("u32", "u8", "u64", name="_Z1kPviaPf")
    launcher = kernel.bind(ONE, stream)
    out = stream.device.allocate(13, stream=stream)
    launcher(out, -(2**31), -128, out)
    for values, index, kind in [
        ((2**31, 0, 0), 1, "i32"),
        ((-(2**31) - 1, 0, 0), 1, "i32"),
        ((0, 128, 0), 2, "i8"),
        ((0, -129, 0), 2, "i8"),
        ((0, 0, -1), 3, "ptr"),
    ]:
        with pytest.raises(OverflowError, match=rf"'_Z1kPviaPf', argument {index} \({kind}\)"):
            launcher(out, *values)
    with pytest.raises(TypeError, match=r"argument 3 \(ptr\)"):
        launcher(out, 0, 0, 1.0)
    with pytest.raises(TypeError, match=r"argument 1 \(i32\)"):
        launcher(out, out, 0, 0)
    stream.sync()


@pytest.mark.parametrize("name", NAMES)
def test_every_name(stream: Stream, name: str) -> None:
    kernel = kernel_of(f"bytes[{size_of(name)}]")
    for signature in (name, f"  {name}\n", [name], (name,)):
        assert kernel.bind(ONE, stream, signature=signature).signature == name


def test_bytes_by_name(stream: Stream) -> None:
    kernel = kernel_of("bytes[24]", "u32")
    assert kernel.bind(ONE, stream, signature="bytes[24], b32").signature == "bytes[24], b32"
    for name in (
        "bytes",
        "bytes[]",
        "bytes[0]",
        "bytes[-1]",
        "bytes[x]",
        "bytes[40000]",
        "bytes[24",
        "bytes[ 24]",
    ):
        with pytest.raises(ValueError, match="parameter 0 has the unknown type"):
            kernel.bind(ONE, stream, signature=f"{name}, u32")


@pytest.mark.parametrize(
    "name",
    ["fp8e4", "i128", "*foo", "int", "float32", "F32", "f8", "u1", "", "ptr*", "f32 f32", "void"],
)
def test_unknown_names(stream: Stream, name: str) -> None:
    kernel = kernel_of("u32", "u32")
    for signature in (f"u32, {name}", ["u32", name]):
        with pytest.raises(
            ValueError, match="signature: parameter 1 has the unknown type"
        ) as caught:
            kernel.bind(ONE, stream, signature=signature)
        assert name in str(caught.value)


@pytest.mark.parametrize("element", [None, 3, int, float, object(), ["u32"], b"u32"], ids=repr)
def test_unknown_elements(stream: Stream, element: Any) -> None:
    with pytest.raises(ValueError, match="parameter 1 has the unknown type"):
        kernel_of("u32", "u32").bind(ONE, stream, signature=["u32", element])


@pytest.mark.parametrize(
    "signature", [3, 1.5, {"u32": 1}, object(), b"u32", int, {"u32"}], ids=repr
)
def test_what_is_no_signature(stream: Stream, signature: Any) -> None:
    with pytest.raises(TypeError, match="signature must be a text or a sequence"):
        kernel_of("u32").bind(ONE, stream, signature=signature)


def test_a_signature_that_contradicts_the_kernel(stream: Stream) -> None:
    kernel = kernel_of("u32", "f32")
    for signature, said in [
        ("u32", "'k' takes 2 parameters, but the signature has 1"),
        ("u32, f32, ptr", "'k' takes 2 parameters, but the signature has 3"),
        ("", "'k' takes 2 parameters, but the signature has 0"),
        ([], "'k' takes 2 parameters, but the signature has 0"),
        ("u32, f64", r"'k': parameter 1 has 4 bytes, but the signature says f64 \(8 bytes\)"),
        ("ptr, f32", r"'k': parameter 0 has 4 bytes, but the signature says ptr \(8 bytes\)"),
        ("bytes[5], f32", "'k': parameter 0 has 4 bytes"),
    ]:
        with pytest.raises(ValueError, match=said):
            kernel.bind(ONE, stream, signature=signature)
    # What the image says of a class is taken back by the caller: bits are bits.
    assert kernel.bind(ONE, stream, signature="f32, i32").signature == "f32, i32"


def test_numpy_dtypes(stream: Stream) -> None:
    numpy = pytest.importorskip("numpy")
    expected = {
        "int8": "i8",
        "uint16": "u16",
        "int32": "i32",
        "uint64": "u64",
        "float16": "f16",
        "float32": "f32",
        "float64": "f64",
        "bool": "bool",
        "complex64": "c64",
        "complex128": "c128",
    }
    for name, signature in expected.items():
        dtype = numpy.dtype(name)
        kernel = kernel_of(f"bytes[{dtype.itemsize}]")
        for element in (dtype, dtype.type):
            assert kernel.bind(ONE, stream, signature=[element]).signature == signature
    struct_type = numpy.dtype([("a", "i1"), ("b", "f8")], align=True)
    kernel = kernel_of("bytes[16]")
    assert kernel.bind(ONE, stream, signature=[struct_type]).signature == "bytes[16]"
    for name in (">i4", "M8[s]", "m8[s]", "O", "U4", "S8", "V0", numpy.longdouble):
        with pytest.raises(ValueError, match="parameter 0 has the unknown type"):
            kernel_of("u32").bind(ONE, stream, signature=[numpy.dtype(name)])
    if numpy.dtype("longdouble").itemsize > 8:
        with pytest.raises(ValueError, match="unknown type"):
            kernel_of("bytes[16]").bind(ONE, stream, signature=[numpy.longdouble])


def test_ml_dtypes_bfloat16(stored: Stored) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert stored.one("b16", 1.5, signature=ml_dtypes.bfloat16) == b"\xc0\x3f"


def test_ctypes_types(stream: Stream) -> None:
    class Pair(ctypes.Structure):
        _fields_ = [("tag", ctypes.c_char), ("scale", ctypes.c_double)]

    class Either(ctypes.Union):
        _fields_ = [("number", ctypes.c_uint32), ("more", ctypes.c_uint8 * 12)]

    expected: list[tuple[Any, str]] = [
        (ctypes.c_int8, "i8"),
        (ctypes.c_uint8, "u8"),
        (ctypes.c_short, "i16"),
        (ctypes.c_int, "i32"),
        (ctypes.c_uint32, "u32"),
        (ctypes.c_longlong, "i64"),
        (ctypes.c_size_t, "u64"),
        (ctypes.c_float, "f32"),
        (ctypes.c_double, "f64"),
        (ctypes.c_bool, "bool"),
        (ctypes.c_void_p, "ptr"),
        (ctypes.POINTER(ctypes.c_float), "ptr"),
        (Pair, "bytes[16]"),
        (Either, "bytes[12]"),
        (ctypes.c_int * 3, "bytes[12]"),
    ]
    for element, signature in expected:
        kernel = kernel_of(f"bytes[{ctypes.sizeof(element)}]")
        assert kernel.bind(ONE, stream, signature=(element,)).signature == signature
    for element in (
        ctypes.c_char,
        ctypes.c_wchar,
        ctypes.c_char_p,
        ctypes.py_object,
        ctypes.c_int.__ctype_be__,
    ):
        with pytest.raises(ValueError, match="parameter 0 has the unknown type"):
            kernel_of("u64").bind(ONE, stream, signature=[element])


@pytest.mark.parametrize("count", [0, 1, 2, 4, 20])
def test_a_wrong_number_of_arguments(stored: Stored, stream: Stream, count: int) -> None:
    kernel = stored.kernel("u32", "f32")
    for signature in (None, "ptr, u32, f32"):
        with pytest.raises(TypeError, match=f"kernel 'store' takes 3 arguments, got {count}"):
            kernel.bind(ONE, stream, signature=signature)(*[0] * count)


def test_nested_arguments_are_refused(stored: Stored) -> None:
    for value in ((1, 2), [1, 2], ((1,),), {"a": 1}):
        with pytest.raises(TypeError, match="argument 2"):
            stored.one("u64", value)


def test_a_signature_gives_meaning_to_bits(stored: Stored) -> None:
    assert stored.one("b32", 1.5, signature="f32") == struct.pack("<f", 1.5)
    assert stored.one("b16", 1.5, signature="bf16") == b"\xc0\x3f"
    assert stored.one("u32", 1.5, signature="f32") == struct.pack("<f", 1.5)
    with pytest.raises(OverflowError):
        stored.one("b32", -1, signature="u32")


@pytest.mark.parametrize("signature", ["\ud800", ("\ud800",)])
def test_what_is_no_text_is_a_value_error(stream: Stream, signature: Any) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        kernel_of("u32").bind(ONE, stream, signature=signature)
