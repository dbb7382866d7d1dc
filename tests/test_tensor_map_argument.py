"""TensorMap as the argument of a kernel."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from ptx import ONE, Stored
from tensors import COLUMNS, ROWS, tiled

import cudamod
from cudamod import (
    Buffer,
    Device,
    Kernel,
    Stream,
    emulator,
    launch,
)


@pytest.fixture
def buffer(device: Device, stream: Stream) -> Buffer:
    if device.compute_capability.major < 9:
        pytest.skip("needs tensor maps")
    return device.allocate(ROWS * COLUMNS * 8, stream=stream)


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
    kernel = cudamod.ObjectCode.from_ptx(LOADS).get_kernel("k")
    launch(stream, ONE, kernel, made, out, 32, 24)
    copied = struct.unpack("128I", out.copy_to(bytearray(512), stream=stream))
    assert copied == tuple((24 + row) * COLUMNS + 32 + c for row in range(8) for c in range(16))
    made.replace_address(buffer.handle + ROWS * COLUMNS * 4)
    launch(stream, ONE, kernel, made, out, 0, 0)
    copied = struct.unpack("128I", out.copy_to(bytearray(512), stream=stream))
    first = ROWS * COLUMNS
    assert copied == tuple(first + row * COLUMNS + c for row in range(8) for c in range(16))
