"""Launches with arguments of each kind, each beside the driver call alone."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from interleaved import Interleaved
from peers import NEED_A_CARD, PEERS
from workloads import Bench, Loop, empty_kernel, loop_over

import cudamod
from cudamod import Kernel, LaunchConfig, ObjectCode, _core

COUNTS = (0, 1, 4, 8, 16, 32)
# What is passed, and the parameters that take it.
KINDS = {
    "mixed": ("u64", "u64", "u32", "f32"),
    "buffers": ("u64",),
    "ints": ("u32",),
    "floats": ("f32",),
    "numpy": ("u32", "f32"),
}


def kernel_of(count: int, kind: str) -> Kernel:
    return ObjectCode.from_ptx(empty_kernel(count, KINDS[kind])).get_kernel("empty")


def arguments_of(bench: Bench, count: int, kind: str) -> list[object]:
    import numpy as np

    values: dict[str, list[object]] = {
        "mixed": [bench.buffer, bench.buffer, 100, 1.5],
        "buffers": [bench.buffer],
        "ints": [100],
        "floats": [1.5],
        "numpy": [np.int32(100), np.float32(1.5)],
    }
    kinds = values[kind]
    return [kinds[i % len(kinds)] for i in range(count)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_arguments(interleaved: Interleaved, bench: Bench, kind: str, count: int) -> None:
    kernel, arguments = kernel_of(count, kind), arguments_of(bench, count, kind)
    launcher = kernel.bind(bench.config, bench.stream)
    others: dict[str, Loop] = {
        f"cudamod, GIL {gil}": loop_over(
            kernel.bind(bench.config, bench.stream, gil=gil), *arguments
        )
        for gil in ("hold", "auto")
    }
    plain = (bench.stream, bench.config, kernel, *arguments)
    others["cudamod, launch()"] = loop_over(cudamod.launch, *plain)
    interleaved(
        loop_over(launcher, *arguments),
        floor=lambda times: _core.time_driver_call(launcher, times, *arguments),
        peers=others,
        arguments=count,
    )


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("count", [0, 4, 8, 16])
@pytest.mark.parametrize("name", PEERS)
def test_peer(
    interleaved: Interleaved,
    bench: Bench,
    name: str,
    count: int,
    request: pytest.FixtureRequest,
) -> None:
    """A peer's launch, and ours with the same objects where ours takes them."""
    if name in NEED_A_CARD and request.config.getoption("--driver") == "emulated":
        pytest.skip(f"{name} needs a card")
    try:
        peer = PEERS[name](count)
    except ImportError as error:
        pytest.skip(f"{name} is not installed: {error}")
    launcher = bench.kernel(count).bind(bench.config, bench.stream)
    floor_arguments = bench.arguments(count)
    # cuda.core takes only its own Buffers, the others addresses: ours stand for them.
    stand_ins = {
        "cuda.core": bench.numpy_arguments(count),
        "cuda.bindings": floor_arguments,
        "PyCUDA": bench.numpy_arguments(count),
    }
    same = stand_ins.get(name, peer.arguments)
    interleaved(
        loop_over(launcher, *same),
        floor=lambda times: _core.time_driver_call(launcher, times, *floor_arguments),
        peers=peer.loops,
        arguments=count,
        peer=name,
    )
    bench.device.set_current()


@pytest.mark.parametrize("what", ["stream", "grid", "stream and grid", "LaunchConfig"])
def test_per_call(interleaved: Interleaved, bench: Bench, what: str) -> None:
    """Another stream and grid at each call, without and with a configuration built for it."""
    kernel, arguments = bench.kernel(4), bench.arguments(4)
    launcher = kernel.bind(bench.config, bench.stream)
    streams = [bench.device.create_stream() for _ in range(2)]

    def loop(times: int) -> None:
        a, b, c, d = arguments
        for i in range(times):
            if what == "stream":
                launcher(a, b, c, d, stream=streams[i & 1])
            elif what == "grid":
                launcher(a, b, c, d, grid=1 + (i & 1))
            elif what == "stream and grid":
                launcher(a, b, c, d, stream=streams[i & 1], grid=1 + (i & 1))
            else:
                config = LaunchConfig(grid=1 + (i & 1), block=1)
                cudamod.launch(streams[i & 1], config, kernel, a, b, c, d)

    interleaved(
        loop, floor=lambda times: _core.time_driver_call(launcher, times, *arguments), arguments=4
    )


@pytest.mark.card
@pytest.mark.parametrize("count", [4, 16])
def test_torch_tensors(interleaved: Interleaved, bench: Bench, count: int) -> None:
    """All arguments torch tensors, beside own Buffers."""
    torch = pytest.importorskip("torch")
    tensors = [torch.zeros(16, device="cuda") for _ in range(count)]
    kernel = ObjectCode.from_ptx(empty_kernel(count, ("u64",))).get_kernel("empty")
    launcher = kernel.bind(bench.config, bench.stream)
    buffers = [bench.buffer] * count
    interleaved(
        loop_over(launcher, *tensors),
        floor=lambda times: _core.time_driver_call(launcher, times, *buffers),
        peers={"cudamod, own Buffers": loop_over(launcher, *buffers)},
        arguments=count,
    )


def test_cold_caches(interleaved: Interleaved, bench: Bench) -> None:
    """200 kernels in turn with about 20 us of Python between, which is not counted."""
    images = [empty_kernel(4) for _ in range(200)]
    kernels = [ObjectCode.from_ptx(image).get_kernel("empty") for image in images]
    arguments = bench.arguments(4)
    launchers = [kernel.bind(bench.config, bench.stream) for kernel in kernels]
    held = [kernel.bind(bench.config, bench.stream, gil="hold") for kernel in kernels]
    peers = {
        "cudamod, GIL held": _with_python_between([(launcher, *arguments) for launcher in held])
    }
    with contextlib.suppress(ImportError):
        peers["cuda.core"] = _with_python_between(_cuda_core_calls(images))

    def floor(times: int) -> float:
        spent = 0.0
        for launcher in launchers:
            _something_else()
            spent += _core.time_driver_call(launcher, 1, *arguments)
        return spent / len(launchers)

    interleaved(
        _with_python_between([(launcher, *arguments) for launcher in launchers]),
        floor=floor,
        peers=peers,
        calls=1,
        rounds=20,
    )
    bench.device.set_current()


def _something_else() -> None:
    """About 20 us of Python."""
    sum({str(i): i for i in range(60)}.values())


def _with_python_between(calls: list[tuple[Any, ...]]) -> Loop:
    """A loop that answers the mean of the calls alone, in nanoseconds."""
    clock = time.perf_counter_ns

    def loop(times: int) -> float:
        spent = 0
        for call, *values in calls:
            _something_else()
            begin = clock()
            call(*values)
            spent += clock() - begin
        return spent / len(calls)

    return loop


def _cuda_core_calls(images: list[bytes]) -> list[tuple[Any, ...]]:
    import numpy as np
    from cuda import core

    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    config = core.LaunchConfig(grid=1, block=1)
    kernels = [core.ObjectCode.from_ptx(image).get_kernel("empty") for image in images]
    values = (buffer, buffer, np.int32(100), np.float32(1.5))
    return [(core.launch, stream, config, kernel, *values) for kernel in kernels]
