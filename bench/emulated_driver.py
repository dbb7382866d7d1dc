"""How fast the emulated driver is: ``python bench/emulated_driver.py``.

Prints the time of a null launch (a C loop), the thread-instructions a second of one core on
kernels that calculate, the time of a saxpy of a million elements, plain and under each check, and
what a launch costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from floors import proc_floor

from cudamod import Device, Kernel, LaunchConfig, ObjectCode, driver, emulator, launch

CHECKS = ("", "uninitialized", "races", "barriers", "streams", "all")

STEPS, BODY = 500, 32
LOOP = """
.visible .entry {name}(.param .u64 out)
{{
    .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d;
    ld.param.u64 %d, [out];
    mov.u32 %r0, 0;
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f3F800001;
AGAIN:
    {body}
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p, %r0, {steps};
    @%p bra AGAIN;
    st.global.u32 [%d], %r1;
    st.global.f32 [%d+4], %f1;
    ret;
}}
"""
BODIES = {
    "single precision": "fma.rn.f32 %f1, %f1, %f2, %f2;",
    "integers": "mad.lo.s32 %r1, %r1, %r1, 12345;",
    "logic": "xor.b32 %r1, %r1, 0x5555;\nshl.b32 %r2, %r1, 1;",
}
SAXPY = """
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b64 %d<3>; .reg .b32 %i<4>; .reg .f32 %f<3>; .reg .pred %p;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [y];
    ld.param.u32 %i3, [n];
    mov.u32 %i0, %tid.x;
    mov.u32 %i1, %ctaid.x;
    mov.u32 %i2, %ntid.x;
    mad.lo.u32 %i0, %i1, %i2, %i0;
    setp.ge.u32 %p, %i0, %i3;
    @%p ret;
    mad.wide.u32 %d1, %i0, 4, %d1;
    mad.wide.u32 %d2, %i0, 4, %d2;
    ld.global.f32 %f1, [%d1];
    ld.global.f32 %f2, [%d2];
    fma.rn.f32 %f2, %f1, 0f40000000, %f2;
    st.global.f32 [%d2], %f2;
    ret;
}
"""
HEAD = ".version 8.0\n.target sm_50\n.address_size 64\n"


def best(call: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of several calls."""
    durations = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        durations.append(time.perf_counter() - begin)
    return min(durations)


def null_launch() -> None:
    """In a process of its own: the mode's entry points do nothing else."""
    driver.use("emulated")
    driver.cuInit(0)
    floor = proc_floor("cuLaunchKernel", 1, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)
    print(f"null launch: {min(floor(1_000_000) for _ in range(9)):.1f} ns")


def main() -> None:
    """Measure and print."""
    environment = {**os.environ, "CUDAMOD_EMULATOR_QUIET": "1"}
    null = {**environment, "CUDAMOD_EMULATOR_NULL_LAUNCH": "1"}
    subprocess.run([sys.executable, __file__, "null"], env=null, check=True)
    driver.use("emulated")
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    out = device.allocate(8, stream=stream)
    text = HEAD + SAXPY
    for number, body in enumerate(BODIES.values()):
        lines = (body.splitlines() * BODY)[:BODY]
        text += LOOP.format(name=f"loop{number}", body="\n    ".join(lines), steps=STEPS)
    code = ObjectCode.from_ptx(text.encode())

    def run(kernel: Kernel, grid: int, block: int, *arguments: object) -> None:
        launch(stream, LaunchConfig(grid=grid, block=block), kernel, *arguments)
        stream.sync()

    for number, name in enumerate(BODIES):
        kernel = code.get_kernel(f"loop{number}")
        seconds = best(lambda kernel=kernel: run(kernel, 4, 256, out))  # type: ignore[misc]
        count = 4 * 256 * STEPS * (BODY + 3)
        print(f"{name}: {count / seconds / 1e6:.0f} million thread-instructions a second")

    kernel, count = code.get_kernel("saxpy"), 1 << 20
    for check in CHECKS:
        emulator.checks(*([check] if check else []))
        x, y = (device.allocate(4 * count, stream=stream) for _ in range(2))
        for buffer in (x, y):
            buffer.fill(0, stream=stream)
        seconds = best(lambda x=x, y=y: run(kernel, count // 256, 256, x, y, count))  # type: ignore[misc]
        small = best(lambda x=x, y=y: [run(kernel, 1, 1, x, y, 1) for _ in range(200)]) / 200  # type: ignore[misc]
        print(
            f"saxpy of {count:,} elements{check and f', {check} checked'}: {seconds * 1e3:.0f} ms; "
            f"one launch and its end: {small * 1e6:.0f} us"
        )


if __name__ == "__main__":
    null_launch() if sys.argv[1:] == ["null"] else main()
