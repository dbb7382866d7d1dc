"""The driver's encoders by themselves: the documented rules, with nothing of ours before them."""

from __future__ import annotations

from typing import Any

import pytest

from cudamod import Buffer, CUDAError, Device, Stream, driver

INVALID_VALUE = 1


@pytest.fixture
def buffer(device: Device, stream: Stream) -> Buffer:
    if device.compute_capability.major < 9:
        pytest.skip("needs tensor maps")
    return device.allocate(1 << 16, stream=stream)


def encode_tiled(address: int, **changed: Any) -> bytes:
    """float32 of 4 x 8 x 64, innermost first, in boxes of 1 x 2 x 16, but for what is changed."""
    values = {
        "type": 7,
        "rank": 3,
        "address": address,
        "dimensions": [64, 8, 4],
        "strides": [256, 2048],
        "box": [16, 2, 1],
        "element_strides": [1, 1, 1],
        "interleave": 0,
        "swizzle": 0,
        "l2_promotion": 0,
        "oob_fill": 0,
        **changed,
    }
    ffi = driver.ffi
    made = driver.cuTensorMapEncodeTiled(
        values["type"],
        values["rank"],
        ffi.cast("void*", values["address"]),
        ffi.new("cuuint64_t[]", values["dimensions"]),
        ffi.new("cuuint64_t[]", values["strides"]),
        ffi.new("cuuint32_t[]", values["box"]),
        ffi.new("cuuint32_t[]", values["element_strides"]),
        values["interleave"],
        values["swizzle"],
        values["l2_promotion"],
        values["oob_fill"],
    )
    assert int(ffi.cast("uintptr_t", made)) % 64 == 0
    return bytes(ffi.buffer(made, 128))


def test_it_encodes(buffer: Buffer) -> None:
    encoded = encode_tiled(buffer.handle)
    assert len(encoded) == 128
    assert encoded == encode_tiled(buffer.handle)
    for changed in (
        {"box": [32, 2, 1]},
        {"dimensions": [64, 8, 3]},
        {"strides": [256, 4096]},
        {"swizzle": 2},
        {"l2_promotion": 1},
        {"address": buffer.handle + 16},
        {"element_strides": [1, 2, 1]},
    ):
        assert encode_tiled(**{"address": buffer.handle, **changed}) != encoded


@pytest.mark.parametrize(
    "changed",
    [
        {"type": 99},
        {"rank": 0},
        {"rank": 6, "dimensions": [1] * 6, "strides": [16] * 5, "box": [16] * 6},
        {"offset": 8},
        {"dimensions": [64, 0, 4]},
        {"dimensions": [2**32 + 1, 8, 4]},
        {"strides": [260, 2048]},
        {"strides": [256, 2**40]},
        {"box": [16, 0, 1]},
        {"box": [16, 257, 1]},
        {"box": [3, 2, 1]},
        {"box": [16, 2, 1], "swizzle": 1},
        {"element_strides": [1, 0, 1]},
        {"element_strides": [1, 9, 1]},
        {"interleave": 3},
        {"interleave": 1, "rank": 2},
        {"interleave": 2},
        {"interleave": 2, "swizzle": 1, "offset": 16},
        {"swizzle": 99},
        {"l2_promotion": 4},
        {"oob_fill": 2},
        {"oob_fill": 1, "type": 3},
    ],
    ids=str,
)
def test_rules(buffer: Buffer, changed: dict[str, Any]) -> None:
    if changed.get("rank") == 6:
        changed = {**changed, "element_strides": [1] * 6}
    address = buffer.handle + changed.get("offset", 0)
    with pytest.raises(CUDAError) as caught:
        encode_tiled(address, **{k: v for k, v in changed.items() if k != "offset"})
    assert caught.value.status == INVALID_VALUE


def test_replacing_an_address(buffer: Buffer) -> None:
    ffi = driver.ffi
    space = ffi.new("char[]", 512)
    start = -int(ffi.cast("uintptr_t", space)) % 128
    map_ = ffi.cast("CUtensorMap*", space + start)
    ffi.memmove(map_, encode_tiled(buffer.handle), 128)
    driver.cuTensorMapReplaceAddress(map_, ffi.cast("void*", buffer.handle + 64))
    assert bytes(ffi.buffer(map_, 128)) == encode_tiled(buffer.handle + 64)
    with pytest.raises(CUDAError) as caught:
        driver.cuTensorMapReplaceAddress(map_, ffi.cast("void*", buffer.handle + 8))
    assert caught.value.status == INVALID_VALUE
