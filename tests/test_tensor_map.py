"""TensorMap: what it encodes, what it refuses, and that kernels are given it."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import weakref
from typing import Any

import pytest
from exchange import exchangeable
from ptx import Stored
from tensors import COLUMNS, ROWS, Array, tiled

from cudamod import (
    Buffer,
    Device,
    Stream,
    TensorMap,
    driver,
)

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
