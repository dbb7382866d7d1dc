"""What programs do beside launching: look kernels up, ask them, configure, load, wait."""

from __future__ import annotations

import ctypes

import pytest
from floors import call_floor, library_floor, pair_floor
from interleaved import Interleaved
from workloads import Bench, Loop, empty_kernel, loop_over

import cudamod
from cudamod import LaunchConfig, ObjectCode, driver, handles

FOUR = 4


def cuda_core_kernel() -> tuple[object, object]:
    """cuda.core's code and kernel of the same image, with its device current."""
    core = pytest.importorskip("cuda.core")
    core.Device(0).set_current()
    code = core.ObjectCode.from_ptx(empty_kernel(FOUR))
    return code, code.get_kernel("empty")


def peers_of(make: str) -> dict[str, Loop]:
    """cuda.core's way, where it is installed."""
    try:
        from cuda import core
    except ImportError:
        return {}
    code, kernel = cuda_core_kernel()
    name = f"cuda.core {core.__version__}"
    if make == "get_kernel":
        return {name: loop_over(code.get_kernel, "empty")}  # type: ignore[attr-defined]
    if make == "attributes":
        return {name: _read_registers(kernel)}
    if make == "occupancy":
        active = kernel.occupancy.max_active_blocks_per_multiprocessor  # type: ignore[attr-defined]
        return {name: loop_over(active, 256, 0)}
    if make == "config":
        return {name: _configs(core.LaunchConfig)}
    assert make == "library"
    image = empty_kernel(FOUR)

    def load(times: int) -> None:
        for _ in range(times):
            core.ObjectCode.from_ptx(image).get_kernel("empty")

    return {f"{name}, never unloaded": load}


def _read_registers(kernel: object) -> Loop:
    def loop(times: int) -> None:
        for _ in range(times):
            kernel.attributes.num_regs  # type: ignore[attr-defined]  # noqa: B018

    return loop


def _configs(kind: type) -> Loop:
    def loop(times: int) -> None:
        for _ in range(times):
            kind(grid=(64, 1, 1), block=(256, 1, 1), shmem_size=1024)

    return loop


def test_get_kernel_again(interleaved: Interleaved, bench: Bench) -> None:
    code = bench.codes[FOUR]
    kernel = ctypes.c_void_p()
    name = ctypes.c_char_p(b"empty")
    floor = call_floor(
        "cuLibraryGetKernel",
        ctypes.addressof(kernel),
        code.handle,
        ctypes.cast(name, ctypes.c_void_p).value or 0,
    )
    interleaved(loop_over(code.get_kernel, "empty"), floor=floor, peers=peers_of("get_kernel"))


def test_attribute_again(interleaved: Interleaved, bench: Bench) -> None:
    kernel = bench.kernel(FOUR)
    value = ctypes.c_int()
    attribute = int(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS)
    floor = call_floor("cuKernelGetAttribute", ctypes.addressof(value), attribute, kernel.handle, 0)
    interleaved(_read_registers(kernel), floor=floor, peers=peers_of("attributes"))


def test_occupancy(interleaved: Interleaved, bench: Bench) -> None:
    kernel = bench.kernel(FOUR)
    blocks = ctypes.c_int()
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    floor = call_floor(name, ctypes.addressof(blocks), kernel.handle, 256, 0)
    active = kernel.occupancy.max_active_blocks_per_multiprocessor
    interleaved(loop_over(active, 256, 0), floor=floor, peers=peers_of("occupancy"))


def test_launch_config(interleaved: Interleaved) -> None:
    interleaved(_configs(LaunchConfig), peers=peers_of("config"))


def test_bind(interleaved: Interleaved, bench: Bench) -> None:
    interleaved(loop_over(bench.kernel(FOUR).bind, bench.config, bench.stream))


def test_load_and_drop(interleaved: Interleaved, bench: Bench) -> None:
    """Load, get a kernel, drop: ours is unloaded too, at once or in batches of 64."""
    image = empty_kernel(FOUR)

    def loop(times: int) -> None:
        for _ in range(times):
            ObjectCode.from_ptx(image).get_kernel("empty")

    interleaved(
        loop, floor=library_floor(image, b"empty"), peers=peers_of("library"), calls=64, rounds=10
    )
    handles.reclaim()


def test_launch_and_wait(interleaved: Interleaved, bench: Bench) -> None:
    """Latency: one launch and the wait for it."""
    launcher = bench.kernel(0).bind(bench.config, bench.stream)
    stream = bench.stream

    def loop(times: int) -> None:
        for _ in range(times):
            launcher()
            stream.sync()

    shape = (1, 1, 1, 1, 1, 1)  # grid and block
    launch = (bench.kernel(0).handle, *shape, 0, stream.handle)
    floor = pair_floor("cuLaunchKernel", launch, "cuStreamSynchronize", (stream.handle,))
    interleaved(loop, floor=floor)


def test_event(interleaved: Interleaved, bench: Bench) -> None:
    """An event recorded again."""
    event, stream = bench.device.create_event(), bench.stream
    floor = call_floor("cuEventRecord", event.handle, stream.handle)
    interleaved(loop_over(stream.record, event), floor=floor)


@pytest.mark.parametrize("size", [30 << 10, 1 << 20, 10 << 20, 100 << 20], ids="{:,}".format)
def test_image_size(interleaved: Interleaved, size: int) -> None:
    """Load an image of so many bytes, and drop it: PTX of one kernel and comments."""
    kernel = empty_kernel(FOUR)
    line = b"// " + b"x" * 60 + b"\n"
    image = kernel + line * ((size - len(kernel)) // len(line))

    def loop(times: int) -> None:
        for _ in range(times):
            ObjectCode.from_ptx(image).get_kernel("empty")
        handles.reclaim()

    interleaved(loop, floor=library_floor(image, b"empty"), calls=1, rounds=5, bytes=len(image))


@pytest.mark.parametrize("count", [1, 10, 100, 1000, 10_000])
def test_libraries_loaded(interleaved: Interleaved, bench: Bench, count: int) -> None:
    """Growth: a launch while so many libraries are loaded."""
    image = empty_kernel(FOUR)
    loaded = [ObjectCode.from_ptx(image).load() for _ in range(count)]
    launcher = loaded[0].get_kernel("empty").bind(bench.config, bench.stream)
    arguments = bench.arguments(FOUR)
    interleaved(
        loop_over(launcher, *arguments),
        floor=lambda times: cudamod._core.time_driver_call(launcher, times, *arguments),
        rounds=20,
        libraries=count,
    )
    del loaded
    handles.reclaim()


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_kernels_in_a_library(interleaved: Interleaved, bench: Bench, count: int) -> None:
    """Growth: looking up one kernel of so many."""
    header, entry = empty_kernel(FOUR).split(b".visible", 1)
    entries = [b".visible" + entry.replace(b" empty(", b" empty%d(" % i) for i in range(count)]
    code = ObjectCode.from_ptx(header + b"".join(entries))
    name = f"empty{count - 1}"
    kernel, text = ctypes.c_void_p(), ctypes.create_string_buffer(name.encode())
    floor = call_floor(
        "cuLibraryGetKernel", ctypes.addressof(kernel), code.handle, ctypes.addressof(text)
    )
    interleaved(loop_over(code.get_kernel, name), floor=floor, rounds=20, kernels=count)
