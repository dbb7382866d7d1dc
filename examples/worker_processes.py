"""Code compiled once, run by worker processes: what travels is the image and the kernel's name."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from cudamod import Device, Kernel, LaunchConfig, ObjectCode, launch

SQUARE = b"""
.version 8.1
.target sm_75
.address_size 64
.visible .entry square(.param .u64 p)
{
    .reg .b64 %p; .reg .b32 %x;
    ld.param.u64 %p, [p];
    ld.global.u32 %x, [%p];
    mul.lo.u32 %x, %x, %x;
    st.global.u32 [%p], %x;
    ret;
}
"""


def run(kernel: Kernel, number: int) -> int:
    """Square a number on the worker's device; the kernel is loaded there when it comes."""
    device = Device(0)
    stream = device.create_stream()
    memory = device.allocate(4, stream=stream)
    memory.copy_from(number.to_bytes(4, "little"), stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, memory)
    result = memory.copy_to(bytearray(4), stream=stream)
    stream.sync()
    return int.from_bytes(result, "little")


def main() -> None:
    """Send a kernel to two processes."""
    kernel = ObjectCode.from_ptx(SQUARE).get_kernel("square")
    # Spawned: a driver does not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(*pool.map(run, [kernel] * 8, range(8)))


if __name__ == "__main__":
    main()
