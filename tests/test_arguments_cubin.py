"""The argument contract where images tell sizes only: cubins without mangled names."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE

from cudamod import Device, Kernel, Launcher, ObjectCode, Stream, emulator

DATA = Path(__file__).parent / "data" / "h200"
pytestmark = pytest.mark.emulated  # a launch is swallowed; values would be addresses on a card


@pytest.fixture(autouse=True)
def swallowed(device: Device) -> Iterator[None]:
    if device.arch != "90":
        pytest.skip("images for sm_90")
    emulator.null_launch(True)
    yield
    emulator.null_launch(False)


def kernel_with_first_parameter_of(size: int) -> Kernel:
    """A kernel whose first parameter has 40 bytes, with another size written into the image."""
    image = bytearray((DATA / "struct_byval.sm90.cubin").read_bytes())
    # A parameter's record: ordinal 0, offset 0, and a word with its size from bit 18 on.
    record = image.index(struct.pack("<BBHI", 4, 0x17, 12, 0) + struct.pack("<HH", 0, 0))
    (word,) = struct.unpack_from("<I", image, record + 12)
    assert word >> 18 == 40
    struct.pack_into("<I", image, record + 12, word & (1 << 18) - 1 | size << 18)
    kernel = ObjectCode.from_cubin(image).get_kernel("struct_byval")
    return kernel


@pytest.fixture
def saxpy(stream: Stream) -> Launcher:
    kernel = ObjectCode.from_cubin(DATA / "saxpy.sm90.cubin").get_kernel("saxpy")
    assert kernel.signature is None
    assert [size for _, size in kernel.arguments_info] == [4, 4, 8, 8]
    return kernel.bind(ONE, stream)


def test_integers_and_pointers(saxpy: Launcher, stream: Stream) -> None:
    buffer = stream.device.allocate(64, stream=stream)
    for n in (0, -(2**31), 2**32 - 1, True):
        saxpy(n, ctypes.c_float(2.0), buffer, None)
    saxpy(1, 1, 2**64 - 1, -(2**63))
    for wrong, index in (
        ((2**32, 0, 0, 0), 0),
        ((0, 0, 2**64, 0), 2),
        ((0, 0, 0, -(2**63) - 1), 3),
    ):
        with pytest.raises(OverflowError, match=rf"'saxpy', argument {index} \(\d bytes\): "):
            saxpy(*wrong)


def test_a_float_needs_a_type_in_four_bytes(saxpy: Launcher) -> None:
    with pytest.raises(
        TypeError, match=r"'saxpy', argument 1 \(4 bytes\).*numpy\.float32.*signature"
    ):
        saxpy(1, 2.0, None, None)
    saxpy(1, 2, 1.5, 2.5)  # 8 bytes: a double
    numpy = pytest.importorskip("numpy")
    saxpy(1, numpy.float32(2), None, None)
    with pytest.raises(TypeError, match=r"argument 1 \(4 bytes\)"):
        saxpy(1, numpy.float64(2), None, None)


def test_a_signature_tells_the_types(saxpy: Launcher, stream: Stream) -> None:
    typed = saxpy.kernel.bind(ONE, stream, signature="i32, f32, ptr, ptr")
    typed(1, 2.0, None, None)
    with pytest.raises(OverflowError, match=r"argument 0 \(i32\)"):
        typed(2**31, 2.0, None, None)
    for signature in ("i32, f32, ptr", "i64, f32, ptr, ptr", "i32, f64, ptr, ptr"):
        with pytest.raises(ValueError, match="'saxpy'"):
            saxpy.kernel.bind(ONE, stream, signature=signature)


class Sixteen(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint32 * 4),)


def test_sixteen_bytes(stream: Stream) -> None:
    launcher = kernel_with_first_parameter_of(16).bind(ONE, stream)
    numpy = pytest.importorskip("numpy")
    accepted: list[Any] = [
        1j,
        complex(1e300, 0),
        numpy.complex128(1),
        Sixteen(),
        numpy.void(bytes(16)),
    ]
    for value in accepted:
        launcher(value, None, 0)
    refused: list[Any] = [
        1,
        True,
        1.0,
        None,
        bytes(16),
        bytearray(16),
        memoryview(bytes(16)),
        numpy.complex64(1),
        numpy.float64(1),
        numpy.longdouble(1),
        (ctypes.c_double * 2)(),
        numpy.void(bytes(8)),
    ]
    for value in refused:
        with pytest.raises(TypeError, match=r"'struct_byval', argument 0 \(16 bytes\)"):
            launcher(value, None, 0)


@pytest.mark.parametrize("size", [3, 5, 12, 24, 40])
def test_sizes_that_are_no_scalars(stream: Stream, size: int) -> None:
    launcher = kernel_with_first_parameter_of(size).bind(ONE, stream)
    buffer = stream.device.allocate(64, stream=stream)

    class Struct(ctypes.Structure):
        _fields_ = (("bytes", ctypes.c_uint8 * size),)

    data = bytes(size)
    for value in (data, bytearray(data), memoryview(data), Struct(), (ctypes.c_uint8 * size)()):
        launcher(value, buffer, 0)
    for value in (1, 1.0, True, None, buffer, 1j, bytes(size + 1), bytes(size - 1), ctypes.c_int()):
        with pytest.raises(TypeError, match=rf"'struct_byval', argument 0 \({size} bytes\)"):
            launcher(value, buffer, 0)
