"""TensorMap: what it encodes, what it refuses, and that kernels are given it."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from exchange import exchangeable
from ptx import ONE, Stored

import cudamod
from cudamod import (
    Buffer,
    CUDAError,
    Device,
    DriverTooOldError,
    Kernel,
    Stream,
    TensorMap,
    driver,
    emulator,
    launch,
)

ROWS, COLUMNS = 64, 128
TYPES = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "int32": 4,
    "uint64": 8,
    "int64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "bfloat16": 2,
    "float32_ftz": 4,
    "tfloat32": 4,
    "tfloat32_ftz": 4,
}


@pytest.fixture
def buffer(device: Device, stream: Stream) -> Buffer:
    if device.compute_capability.major < 9:
        pytest.skip("needs tensor maps")
    return device.allocate(ROWS * COLUMNS * 8, stream=stream)


def tiled(tensor: Any, box: Any = (8, 16), **given: Any) -> TensorMap:
    return TensorMap.tiled(
        tensor, box, **{"shape": (ROWS, COLUMNS), "data_type": "float32", **given}
    )


class Array:
    """What CuPy and Numba arrays are to us."""

    def __init__(self, address: int, **interface: Any) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (ROWS, COLUMNS),
            "typestr": "<f4",
            "strides": None,
            **interface,
        }


def encoded(map_: TensorMap) -> dict[str, Any]:
    """The emulated driver's own encoding."""
    data = bytes(map_)
    assert data[:4] == b"TMAP"
    names = ("kind", "type", "rank", "interleave", "swizzle", "l2", "oob", "mode")
    found: dict[str, Any] = dict(zip(names, data[4:12], strict=True))
    found["address"] = struct.unpack_from("Q", data, 16)[0]
    rank = found["rank"]
    found["dimensions"] = struct.unpack_from("5Q", data, 24)[:rank]
    found["strides"] = struct.unpack_from("4Q", data, 64)[: rank - 1]
    found["box"] = struct.unpack_from("5H", data, 96)
    found["lower"] = struct.unpack_from("3h", data, 106)
    found["upper"] = struct.unpack_from("3h", data, 112)
    found["element_strides"] = tuple(data[118 : 118 + rank])
    return found


# What is encoded.


@pytest.mark.emulated
def test_everything_is_handed_on_innermost_first(buffer: Buffer) -> None:
    made = TensorMap.tiled(
        buffer,
        (2, 4, 16),
        shape=(4, 8, 64),
        strides=(4096, 256),
        element_strides=(1, 2, 3),
        data_type="bfloat16",
        swizzle="64b",
        l2_promotion="256b",
        oob_fill="nan_request_zero_fma",
    )
    found = encoded(made)
    assert found == {
        "kind": 0,
        "type": 9,
        "rank": 3,
        "interleave": 0,
        "swizzle": 2,
        "l2": 3,
        "oob": 1,
        "mode": 0,
        "address": buffer.handle,
        "dimensions": (64, 8, 4),
        "strides": (256, 4096),
        "box": (16, 4, 2, 0, 0),
        "lower": (0, 0, 0),
        "upper": (0, 0, 0),
        "element_strides": (3, 2, 1),
    }


@pytest.mark.emulated
def test_im2col_is_handed_on_innermost_first(buffer: Buffer) -> None:
    made = TensorMap.im2col(
        buffer, (-1, -2), (1, 2), 32, 100, shape=(2, 5, 6, 64), data_type="uint8", swizzle="32b"
    )
    found = encoded(made)
    assert (found["kind"], found["rank"], found["swizzle"]) == (1, 4, 1)
    assert found["dimensions"] == (64, 6, 5, 2)
    assert found["strides"] == (64, 384, 1920)
    assert (found["lower"], found["upper"]) == ((-2, -1, 0), (2, 1, 0))
    assert found["box"][:2] == (32, 100)


def test_a_description_of_itself(buffer: Buffer) -> None:
    made = tiled(buffer)
    assert made.device == Device(0)
    assert made.address == buffer.handle
    assert len(bytes(made)) == 128
    assert repr(made) == (
        f"<TensorMap address={buffer.handle:#x} float32(64, 128), tiled, box (8, 16)>"
    )


@pytest.mark.parametrize("name", TYPES)
def test_data_types(buffer: Buffer, name: str) -> None:
    columns = 32 // TYPES[name]
    made = tiled(buffer, (8, columns), data_type=name)
    number = list(TYPES).index(name)
    assert bytes(tiled(buffer, (8, columns), data_type=number)) == bytes(made)


def test_data_types_of_others(buffer: Buffer) -> None:
    numpy = pytest.importorskip("numpy")

    class torch:  # noqa: N801  (its dtypes are written so)
        def __str__(self) -> str:
            return "torch.bfloat16"

    for given, name in (
        (numpy.float32, "float32"),
        (numpy.dtype("f2"), "float16"),
        (numpy.dtype(numpy.int64), "int64"),
        (torch(), "bfloat16"),
        (driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, "tfloat32"),
    ):
        assert bytes(tiled(buffer, data_type=given)) == bytes(tiled(buffer, data_type=name))
    for wrong in ("float8", numpy.float128, numpy.complex64, 16, -1, "int16", object()):
        with pytest.raises(ValueError, match="none of a tensor map's"):
            tiled(buffer, data_type=wrong)


@pytest.mark.parametrize("rank", range(1, 6))
def test_ranks(buffer: Buffer, rank: int) -> None:
    shape = (2, 2, 2, 2, 64)[5 - rank :]
    made = TensorMap.tiled(buffer, (1,) * (rank - 1) + (16,), shape=shape, data_type="float32")
    assert f"float32{shape}" in repr(made)
    if rank == 1:
        assert bytes(TensorMap.tiled(buffer, 16, shape=64, data_type="float32")) == bytes(made)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("swizzle", ["none", "32b", "64b", "128b"]),
        ("l2_promotion", ["none", "64b", "128b", "256b"]),
        ("oob_fill", ["none", "nan_request_zero_fma"]),
        ("interleave", ["none", "16b"]),
    ],
)
def test_modes_by_name_and_number(buffer: Buffer, name: str, values: list[str]) -> None:
    given = {"shape": (2, 8, 4)}
    seen = set()
    for number, value in enumerate(values):
        made = bytes(tiled(buffer, (1, 2, 4), **given, **{name: value}))
        assert bytes(tiled(buffer, (1, 2, 4), **given, **{name: number})) == made
        seen.add(made)
    assert len(seen) == len(values)
    for wrong in ("512b", 99, -1, 1.0):
        error = TypeError if wrong == 1.0 else ValueError
        with pytest.raises(error, match=rf"TensorMap\.tiled: {name} must be one of \('none'"):
            tiled(buffer, (1, 2, 4), **given, **{name: wrong})


def test_interleave_32b(buffer: Buffer) -> None:
    assert tiled(buffer, (1, 2, 8), shape=(2, 8, 8), interleave="32b", swizzle="32b")
    with pytest.raises(ValueError, match="interleave '32b' needs swizzle '32b'"):
        tiled(buffer, (1, 2, 8), shape=(2, 8, 8), interleave="32b")


# Where the tensor comes from.


def test_tensors_of_others(buffer: Buffer) -> None:
    wanted = bytes(tiled(buffer))
    by_interface = TensorMap.tiled(Array(buffer.handle), (8, 16))
    assert bytes(by_interface) == wanted
    assert by_interface.device == Device(0)
    strided = Array(buffer.handle, strides=(COLUMNS * 4, 4))
    assert bytes(TensorMap.tiled(strided, (8, 16))) == wanted
    exchanged = exchangeable(buffer.handle - 16, offset=16)
    exchanged.shape, exchanged.dtype = (ROWS, COLUMNS), (2, 32)
    assert bytes(TensorMap.tiled(exchanged, (8, 16))) == wanted
    exchanged.strides = (COLUMNS, 1)
    assert bytes(TensorMap.tiled(exchanged, (8, 16))) == wanted
    assert bytes(tiled(buffer.handle)) == wanted
    assert tiled(buffer.handle).device is None
    other = TensorMap.tiled(Array(buffer.handle), (8, 16), data_type="tfloat32")
    assert bytes(other) == bytes(tiled(buffer, data_type="tfloat32"))


def test_types_of_tensors_of_others(buffer: Buffer) -> None:
    for code, bits, name in (
        (0, 32, "int32"),
        (0, 64, "int64"),
        (1, 8, "uint8"),
        (2, 16, "float16"),
        (2, 64, "float64"),
        (4, 16, "bfloat16"),
    ):
        tensor = exchangeable(buffer.handle)
        tensor.shape, tensor.dtype = (ROWS, COLUMNS), (code, bits)
        assert repr(TensorMap.tiled(tensor, (8, 16))).split()[2].startswith(name)
    for typestr in ("<f4", "<u2", "|u1", "<i8"):
        assert TensorMap.tiled(Array(buffer.handle, typestr=typestr), (8, 16))
    for typestr in ("<c8", ">f4", "|b1", "<V2", "<i2"):
        with pytest.raises(ValueError, match=r"data_type|none of a tensor map's"):
            TensorMap.tiled(Array(buffer.handle, typestr=typestr), (8, 16))
    assert TensorMap.tiled(Array(buffer.handle, typestr="<V2"), (8, 16), data_type="bfloat16")
    with pytest.raises(ValueError, match="'float16' has another size than the tensor's 'float32'"):
        TensorMap.tiled(Array(buffer.handle), (8, 16), data_type="float16")


def test_what_is_no_tensor(buffer: Buffer) -> None:
    numpy = pytest.importorskip("numpy")
    for wrong in (None, "x", 1.5, True, object(), [1], numpy.zeros((4, 64), "f4")):
        with pytest.raises(TypeError, match=r"TensorMap\.tiled: .* is no tensor"):
            tiled(wrong)
    host = numpy.zeros((ROWS, COLUMNS), "f4")
    with pytest.raises(TypeError, match="lies in host memory"):
        TensorMap.tiled(Array(host.ctypes.data), (8, 16))
    on_host = exchangeable(host.ctypes.data, device=(1, 0))
    on_host.shape, on_host.dtype = (ROWS, COLUMNS), (2, 32)
    with pytest.raises(TypeError, match="lies in host memory"):
        TensorMap.tiled(on_host, (8, 16))
    for broken in ({"data": None}, {"data": (1,)}, {"shape": None}, {"mask": object()}):
        with pytest.raises(TypeError):
            TensorMap.tiled(Array(buffer.handle, **broken), (8, 16))
    with pytest.raises(TypeError, match="strides of another length"):
        TensorMap.tiled(Array(buffer.handle, strides=(4,)), (8, 16))
    with pytest.raises((ValueError, OverflowError)):
        tiled(-16)
    with pytest.raises((ValueError, OverflowError)):
        tiled(2**64)


def test_shape_and_type_belong_to_what_has_none(buffer: Buffer) -> None:
    for missing, said in (("shape", "need shape="), ("data_type", "need data_type=")):
        for tensor in (buffer, buffer.handle):
            with pytest.raises(TypeError, match=said):
                tiled(tensor, **{missing: None})
    for given in ({"shape": (ROWS, COLUMNS)}, {"strides": (512, 4)}):
        with pytest.raises(TypeError, match="its own shape and strides"):
            TensorMap.tiled(Array(buffer.handle), (8, 16), **given)


def test_a_closed_buffer(buffer: Buffer) -> None:
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer has been closed"):
        tiled(buffer)


def test_a_tensor_larger_than_its_buffer(device: Device, stream: Stream, buffer: Buffer) -> None:
    small = device.allocate(ROWS * COLUMNS * 4, stream=stream)
    made = tiled(small)
    with pytest.raises(ValueError, match=r"tensor of 33280 bytes exceeds the Buffer's 32768"):
        tiled(small, shape=(ROWS + 1, COLUMNS))
    with pytest.raises(ValueError, match="exceeds the Buffer's 32768"):
        tiled(small, strides=(1024,))
    with pytest.raises(ValueError, match="exceeds the Buffer's 1024"):
        made.replace_address(device.allocate(1024, stream=stream))


# Rules.


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shape": ()}, "1 to 5 dimensions, not 0"),
        ({"shape": (1,) * 6}, "1 to 5 dimensions, not 6"),
        ({"shape": (0, COLUMNS)}, r"shape \(0, 128\) must be in 1"),
        ({"shape": (-1, COLUMNS)}, "must be in 1"),
        ({"shape": (2**32 + 1, 4)}, r"must be in 1 \.\. 2\*\*32"),
        ({"shape": (4, 5)}, r"strides \(20,\) must be multiples of 16 bytes"),
        ({"strides": (520,)}, r"strides \(520,\) must be multiples of 16"),
        ({"strides": (-512,)}, r"strides \(-512,\) must be"),
        ({"strides": (2**40,)}, r"below 2\*\*40"),
        ({"strides": (512, 8)}, "the innermost dimension must be contiguous"),
        ({"strides": (1, 512, 4)}, "one for each of the 2 dimensions"),
        ({"box": (8,)}, r"box_dim \(8,\) must have one for each of the 2"),
        ({"box": (0, 16)}, r"box_dim \(0, 16\) must be in 1 \.\. 256"),
        ({"box": (257, 16)}, r"must be in 1 \.\. 256"),
        ({"box": (8, 3)}, "innermost is 12 bytes, which must be a multiple of 16"),
        ({"box": (8, 16), "swizzle": "32b"}, "64 bytes, more than the 32 of swizzle '32b'"),
        ({"box": (8, 32), "swizzle": "64b"}, "128 bytes, more than the 64 of swizzle '64b'"),
        ({"box": (8, 64), "swizzle": "128b"}, "256 bytes, more than the 128 of swizzle '128b'"),
        ({"element_strides": (1,)}, "element_strides .* one for each of the 2"),
        ({"element_strides": (0, 1)}, r"element_strides \(0, 1\) must be in 1 \.\. 8"),
        ({"element_strides": (9, 1)}, r"must be in 1 \.\. 8"),
        ({"interleave": "16b"}, "interleave '16b' needs at least 3 dimensions, the tensor has 2"),
        ({"data_type": "int32", "oob_fill": 1}, "needs a floating-point type, not 'int32'"),
        ({"data_type": "16u6_align16b", "shape": (4, 64)}, "multiple of 128|multiples of 32"),
        ({"data_type": "16u4_align16b", "swizzle": "64b"}, "needs one of the swizzles"),
        ({"data_type": "16u4_align16b"}, "innermost must be 128 with data type '16u4_align16b'"),
        ({"data_type": "16u4_align8b", "shape": (1, 31)}, "whole bytes|multiple of 2"),
    ],
    ids=str,
)
def test_rules_of_tiled(buffer: Buffer, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=rf"TensorMap\.tiled: .*({said})"):
        tiled(buffer, given.pop("box", (8, 16)), **given)


def test_kinds_of_arguments(buffer: Buffer) -> None:
    for name, value in (
        ("shape", "ab"),
        ("shape", 1.5),
        ("shape", (1.5, 2)),
        ("strides", b"ab"),
        ("element_strides", {1: 2}.values),
    ):
        with pytest.raises(TypeError, match=rf"TensorMap\.tiled: {name} must be an int"):
            tiled(buffer, **{name: value})
    with pytest.raises(TypeError, match="box_dim must be an int"):
        tiled(buffer, None)
    with pytest.raises(TypeError):
        TensorMap.tiled(buffer)  # type: ignore[call-arg]


def test_alignment(buffer: Buffer) -> None:
    for offset in (1, 8, 15):
        with pytest.raises(ValueError, match=r"address 0x.* must be a multiple of 16 bytes"):
            tiled(buffer.handle + offset)
    assert tiled(buffer.handle + 16)
    with pytest.raises(ValueError, match="not null"):
        tiled(0)
    given = {"shape": (2, 8, 64), "interleave": "32b", "swizzle": "32b"}
    with pytest.raises(ValueError, match="must be a multiple of 32 bytes"):
        tiled(buffer.handle + 16, (1, 2, 8), **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shape": (8, 32)}, "needs at least 3 dimensions, the tensor has 2"),
        ({"lower": (0, 0)}, r"pixel_box_lower_corner \(0, 0\) must have one for each of the 1"),
        ({"upper": ()}, r"pixel_box_upper_corner \(\) must have one"),
        ({"lower": (-32769,)}, r"must be in -32768 \.\. 32767"),
        ({"shape": (1, 4, 4, 32), "lower": (0, 128), "upper": (0, 0)}, r"in -128 \.\. 127"),
        (
            {"shape": (1, 4, 4, 4, 32), "lower": (0, 0, -17), "upper": (0, 0, 0)},
            r"in -16 \.\. 15",
        ),
        ({"lower": (4,), "upper": (-4,)}, "pixel box .* is empty in a tensor"),
        ({"channels": 0}, r"channels_per_pixel 0 must be in 1 \.\. 256"),
        ({"channels": 257}, r"in 1 \.\. 256"),
        ({"channels": 3}, "12 bytes, which must be a multiple of 16"),
        ({"channels": 16, "swizzle": "32b"}, "64 bytes, more than the 32"),
        ({"pixels": 0}, r"pixels_per_column 0 must be in 1 \.\. 1024"),
        ({"pixels": 1025}, r"in 1 \.\. 1024"),
    ],
    ids=str,
)
def test_rules_of_im2col(buffer: Buffer, given: dict[str, Any], said: str) -> None:
    values = {"lower": (0,), "upper": (0,), "channels": 16, "pixels": 8, **given}
    corners = [values.pop(name) for name in ("lower", "upper", "channels", "pixels")]
    keywords = {"shape": (2, 8, 32), "data_type": "float32", **values}
    with pytest.raises(ValueError, match=rf"TensorMap\.im2col: .*{said}"):
        TensorMap.im2col(buffer, *corners, **keywords)


def test_im2col(buffer: Buffer) -> None:
    made = TensorMap.im2col(
        buffer, (-1,), (-1,), 16, 8, shape=(2, 8, 32), data_type="float32", swizzle="64b"
    )
    assert "im2col, 8 pixels of 16 channels" in repr(made)
    with pytest.raises(TypeError, match="channels_per_pixel must be an int, not float"):
        TensorMap.im2col(buffer, (0,), (0,), 1.5, 8, shape=(2, 8, 32), data_type="float32")  # type: ignore[arg-type]


WIDE = {"shape": (2, 8, 8, 32), "data_type": "float32"}


def test_im2col_wide_needs_its_device(device: Device, buffer: Buffer) -> None:
    def wide() -> TensorMap:
        return TensorMap.im2col_wide(buffer, 0, 0, 32, 8, **WIDE)

    if not driver.has("cuTensorMapEncodeIm2colWide"):
        with pytest.raises(DriverTooOldError):
            wide()
    elif device.compute_capability.major < 10:
        with pytest.raises(CUDAError, match=r"compute capability 10\.0 is needed, device 0 has 9"):
            wide()
    else:
        assert "im2col_wide" in repr(wide())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"swizzle": "none"}, "swizzle 'none' must be '64b', '128b' or"),
        ({"mode": "w64"}, r"mode must be one of \('w', 'w128'\)"),
        ({"shape": (8, 32)}, "at least 3 dimensions"),
        ({"lower": 40000}, r"pixel_box_lower_corner_width 40000 must be in -32768"),
        ({"upper": -40000}, "pixel_box_upper_corner_width"),
        ({"lower": 8}, "pixel box .* is empty"),
        ({"channels": 64}, "more than the 128 of swizzle '128b'"),
        ({"pixels": 2000}, r"in 1 \.\. 1024"),
    ],
    ids=str,
)
def test_rules_of_im2col_wide(buffer: Buffer, given: dict[str, Any], said: str) -> None:
    values = {"lower": 0, "upper": 0, "channels": 32, "pixels": 8, **WIDE, **given}
    corners = [values.pop(name) for name in ("lower", "upper", "channels", "pixels")]
    with pytest.raises(ValueError, match=rf"TensorMap\.im2col_wide: .*{said}"):
        TensorMap.im2col_wide(buffer, *corners, **values)


@pytest.mark.emulated
def test_other_devices_and_drivers(run_python: Callable[..., str]) -> None:
    code = """
import cudamod
from cudamod import *
device = Device(0)
device.set_current()
stream = device.create_stream()
buffer = device.allocate(1 << 16, stream=stream)
def show(make, *arguments, **given):
    try:
        print(make(buffer, *arguments, shape=(4, 4, 128), **given))
    except CUDAError as error:
        print(type(error).__name__, error)
show(TensorMap.tiled, (1, 2, 32), data_type="float32")
show(TensorMap.tiled, (1, 2, 128), data_type="16u4_align16b")
show(TensorMap.tiled, (1, 2, 32), data_type="float32", swizzle="128b_atom_32b")
show(TensorMap.im2col_wide, 0, 0, 32, 8, data_type="float32", mode="w128")
"""
    quiet = {"CUDAMOD_EMULATOR_QUIET": "1"}
    for line in run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_80", **quiet).splitlines():
        assert line.startswith("CUDAError cuTensorMapEncode")
        assert ".0 is needed, device 0 has 8" in line
    lines = run_python(
        code,
        CUDAMOD_EMULATOR_DEVICES="sm_100",
        CUDAMOD_EMULATOR_DRIVER_VERSION="12060",
        **quiet,
    ).splitlines()
    assert lines[0].startswith("<TensorMap")
    for line, what in zip(
        lines[1:],
        ("tensor map data type 14", "tensor map swizzle 4", "cuTensorMapEncodeIm2colWide"),
        strict=True,
    ):
        assert line == (
            f"DriverTooOldError {what} needs a CUDA 12.8 driver; this one supports CUDA 12.6"
        )
    for line in run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_100", **quiet).splitlines():
        assert line.startswith("<TensorMap"), line


# Memory.


def test_a_map_keeps_a_buffers_memory(device: Device, stream: Stream, buffer: Buffer) -> None:
    address = buffer.handle
    made = tiled(buffer)
    buffer.close()
    del buffer
    gc.collect()
    again = [device.allocate(ROWS * COLUMNS * 8, stream=stream) for _ in range(4)]
    assert address not in [other.handle for other in again]
    assert made.address == address


def test_a_map_keeps_its_tensor(buffer: Buffer) -> None:
    tensor = Array(buffer.handle)
    alive = weakref.ref(tensor)
    made = TensorMap.tiled(tensor, (8, 16))
    del tensor
    gc.collect()
    assert alive() is not None
    made.replace_address(buffer)
    gc.collect()
    assert alive() is None


def test_a_map_and_its_tensor_in_a_circle(buffer: Buffer) -> None:
    tensor: Any = Array(buffer.handle)
    alive = weakref.ref(tensor)
    tensor.map = TensorMap.tiled(tensor, (8, 16))
    del tensor
    gc.collect()
    assert alive() is None


def test_a_new_address(device: Device, stream: Stream, buffer: Buffer) -> None:
    other = device.allocate(ROWS * COLUMNS * 4, stream=stream)
    made = tiled(buffer)
    before = bytes(made)
    made.replace_address(other)
    assert made.address == other.handle
    assert bytes(made) == bytes(tiled(other))
    made.replace_address(Array(buffer.handle))
    assert bytes(made) == before
    made.replace_address(buffer.handle)
    assert bytes(made) == before
    for wrong, error in (
        (buffer.handle + 8, ValueError),
        (0, ValueError),
        (None, TypeError),
        ("x", TypeError),
        (Array(0), TypeError),
    ):
        with pytest.raises(error, match=r"TensorMap\.replace_address"):
            made.replace_address(wrong)
    other.close()
    with pytest.raises(RuntimeError, match="closed"):
        made.replace_address(other)
    assert bytes(made) == before


# As an argument.


def test_a_kernel_gets_the_bytes(stored: Stored, buffer: Buffer) -> None:
    made = tiled(buffer)
    assert stored.one("bytes[128]", made) == bytes(made)
    before = bytes(made)
    made.replace_address(buffer.handle + 256)
    assert stored.one("bytes[128]", made) == bytes(made) != before


def test_a_map_among_other_arguments(stored: Stored, buffer: Buffer) -> None:
    made = tiled(buffer)
    kinds = ("u8", "bytes[128]", "u32", "bytes[128]")
    answer = stored(kinds, 7, made, 9, made)
    assert list(answer) == [b"\7", bytes(made), struct.pack("I", 9), bytes(made)]


@pytest.mark.parametrize("parameter", ["u64", "u32", "f32", "bytes[64]", "bytes[136]"])
def test_parameters_that_take_no_map(stored: Stored, buffer: Buffer, parameter: str) -> None:
    with pytest.raises(TypeError, match=r"argument 2 .* 128 bytes by value"):
        stored.one(parameter, tiled(buffer))


@pytest.fixture
def taking(device: Device) -> Kernel:
    text = (
        b".version 8.0\n.target sm_90\n.address_size 64\n"
        b".visible .entry k(.param .align 64 .b8 map[128]) { ret; }\n"
    )
    return cudamod.ObjectCode.from_ptx(text).get_kernel("k")


def test_a_launcher_takes_maps(stream: Stream, buffer: Buffer, taking: Kernel) -> None:
    launcher = taking.bind(ONE, stream)
    for box in (8, 16):
        launcher(tiled(buffer, (box, 16)))
    launch(stream, ONE, taking, tiled(buffer))
    stream.sync()


@pytest.mark.emulated
def test_a_map_arrives(stream: Stream, buffer: Buffer, taking: Kernel) -> None:
    made = tiled(buffer)
    with emulator.recording():
        taking.bind(ONE, stream)(made)
        assert emulator.launches()[-1].parameters == (bytes(made),)


@pytest.mark.emulated
def test_a_map_of_another_device(run_python: Callable[..., str]) -> None:
    code = """
from cudamod import *
first, second = Device(0), Device(1)
second.set_current()
buffer = second.allocate(1 << 16, stream=second.create_stream())
made = TensorMap.tiled(buffer, (8, 16), shape=(64, 64), data_type="float32")
print(made.device)
first.set_current()
text = b".version 8.0\\n.target sm_90\\n.address_size 64\\n"
text += b".visible .entry k(.param .align 64 .b8 map[128]) { ret; }"
kernel = ObjectCode.from_ptx(text).get_kernel("k")
stream = first.create_stream()
near = first.allocate(1 << 16, stream=stream)
for call in (
    lambda: launch(stream, LaunchConfig(grid=1, block=1), kernel, made),
    lambda: made.replace_address(near),
):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    assert run_python(
        code, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_90", CUDAMOD_EMULATOR_QUIET="1"
    ).splitlines() == [
        "<Device 1>",
        "kernel 'k', argument 0: the memory of the TensorMap lies on device 1, "
        "but the launch is on device 0",
        "TensorMap.replace_address: the tensor lies on device 0, "
        "but the map describes memory of device 1",
    ]


LOADS = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y) {
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 barrier;
.reg .pred %done; .reg .b32 %tile, %barrier, %x, %y, %i, %v; .reg .b64 %map, %out, %state;
mov.u32 %tile, tile;
mov.u32 %barrier, barrier;
ld.param.u64 %out, [out];
ld.param.u32 %x, [x];
ld.param.u32 %y, [y];
mov.b64 %map, map;
cvta.param.u64 %map, %map;
mbarrier.init.shared.b64 [%barrier], 1;
fence.proxy.async;
mbarrier.arrive.expect_tx.shared.b64 %state, [%barrier], 512;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%tile], [%map, {%x, %y}], [%barrier];
WAIT:
mbarrier.try_wait.parity.shared.b64 %done, [%barrier], 0;
@!%done bra WAIT;
mov.u32 %i, 0;
COPY:
ld.shared.u32 %v, [%tile];
st.global.u32 [%out], %v;
add.u32 %tile, %tile, 4;
add.u64 %out, %out, 4;
add.u32 %i, %i, 1;
setp.lt.u32 %done, %i, 128;
@%done bra COPY;
ret;
}
"""


def test_a_kernel_copies_by_the_map(device: Device, stream: Stream, buffer: Buffer) -> None:
    values = range(ROWS * COLUMNS * 2)
    buffer.copy_from(struct.pack(f"{len(values)}I", *values), stream=stream)
    out = device.allocate(512, stream=stream)
    out.fill(0, stream=stream)
    made = tiled(buffer, (8, 16), data_type="uint32")
    try:
        kernel = cudamod.ObjectCode.from_ptx(LOADS).get_kernel("k")
        launch(stream, ONE, kernel, made, out, 32, 24)
    except CUDAError as error:
        if "one that is not supported: 'mbarrier'" not in str(error):
            raise
        pytest.skip("this driver does not execute tensor copies")
    copied = struct.unpack("128I", out.copy_to(bytearray(512), stream=stream))
    assert copied == tuple((24 + row) * COLUMNS + 32 + c for row in range(8) for c in range(16))
    made.replace_address(buffer.handle + ROWS * COLUMNS * 4)
    launch(stream, ONE, kernel, made, out, 0, 0)
    copied = struct.unpack("128I", out.copy_to(bytearray(512), stream=stream))
    first = ROWS * COLUMNS
    assert copied == tuple(first + row * COLUMNS + c for row in range(8) for c in range(16))


# The object.


def test_no_half_built_object_exists() -> None:
    for call in (TensorMap, lambda: TensorMap.__new__(TensorMap)):
        with pytest.raises(RuntimeError, match=r"TensorMap\.tiled, TensorMap\.im2col"):
            call()


def test_it_belongs_to_this_process(buffer: Buffer) -> None:
    made = tiled(buffer)
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle 'TensorMap' object"):
            call(made)
    for name in ("address", "device", "other"):
        with pytest.raises(AttributeError):
            setattr(made, name, 1)


def test_threads_never_see_half_of_it(stored: Stored, buffer: Buffer) -> None:
    import threading

    made = tiled(buffer)
    images = {bytes(tiled(buffer.handle)), bytes(tiled(buffer.handle + 4096))}
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            for offset in (0, 4096):
                made.replace_address(buffer.handle + offset)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(200):
            assert bytes(made) in images
    finally:
        stop.set()
        thread.join()
