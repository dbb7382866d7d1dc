"""TensorMap: the rules of the encoders, each told by name before the driver is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tensors import COLUMNS, ROWS, tiled

from cudamod import (
    Buffer,
    CUDAError,
    Device,
    DriverTooOldError,
    Stream,
    TensorMap,
    driver,
)


@pytest.fixture
def buffer(device: Device, stream: Stream) -> Buffer:
    if device.compute_capability.major < 9:
        pytest.skip("needs tensor maps")
    return device.allocate(ROWS * COLUMNS * 8, stream=stream)


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
