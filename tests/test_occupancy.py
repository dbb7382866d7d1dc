"""KernelOccupancy: five queries, and what stands for the dynamic shared memory of a block size."""

from __future__ import annotations

import ctypes
import gc
import json
import pickle
from pathlib import Path
from typing import Any

import cffi
import pytest
from ptx import empty

from cudamod import (
    CUDAError,
    Device,
    Kernel,
    KernelOccupancy,
    LaunchConfig,
    ObjectCode,
    Stream,
    driver,
    emulator,
)

DATA = Path(__file__).parent / "data" / "h200"
FACTS: dict[str, Any] = json.loads((DATA / "driver.json").read_text())["images"]
CUBINS = sorted(name for name in FACTS if name.endswith(".sm90.cubin"))


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


@pytest.fixture
def occupancy(kernel: Kernel) -> KernelOccupancy:
    return kernel.occupancy


@pytest.mark.parametrize("image", CUBINS)
def test_answers_are_those_of_the_card(device: Device, image: str) -> None:
    if (device.arch, device.properties.multiprocessor_count) != ("90", 132):
        pytest.skip("the figures are an H200's")
    code = ObjectCode.from_cubin(DATA / image)
    for name, facts in FACTS[image]["kernels"].items():
        occupancy = code.get_kernel(name).occupancy
        for asked, blocks in facts["occ"].items():
            threads, dynamic = map(int, asked.split(","))
            assert occupancy.max_active_blocks_per_multiprocessor(threads, dynamic) == blocks, (
                name,
                asked,
            )
        for blocks, size in facts["avail_dyn"].items():
            assert occupancy.available_dynamic_shared_memory_per_block(int(blocks), 128) == size
        answer = occupancy.max_potential_block_size(0, 0)
        assert list(answer) == facts["potential"]
        assert [answer.min_grid_size, answer.max_block_size] == facts["potential"]


def test_arguments_by_name(occupancy: KernelOccupancy) -> None:
    by_name = occupancy.max_active_blocks_per_multiprocessor(
        block_size=128, dynamic_shared_memory_size=0
    )
    assert by_name == occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0
    assert (
        occupancy.available_dynamic_shared_memory_per_block(
            num_blocks_per_multiprocessor=1, block_size=128
        )
        > 0
    )
    limited = occupancy.max_potential_block_size(
        dynamic_shared_memory_needed=0, block_size_limit=64
    )
    assert 0 < limited.max_block_size <= 64


def test_more_than_the_kernel_may_have_is_no_block(occupancy: KernelOccupancy) -> None:
    assert occupancy.max_active_blocks_per_multiprocessor(128, 49_153) == 0


def test_numpy_integers(occupancy: KernelOccupancy) -> None:
    numpy = pytest.importorskip("numpy")
    assert occupancy.max_active_blocks_per_multiprocessor(
        numpy.int16(128), numpy.uint8(0)
    ) == occupancy.max_active_blocks_per_multiprocessor(128, 0)
    assert occupancy.max_potential_block_size(
        numpy.int64(0), numpy.int32(0)
    ) == occupancy.max_potential_block_size(0, 0)


@pytest.mark.parametrize("bad", ["1", 1.0, None, b"1", True, [1]], ids=repr)
def test_integers_only(occupancy: KernelOccupancy, bad: Any) -> None:
    for call in (
        lambda: occupancy.max_active_blocks_per_multiprocessor(bad, 0),
        lambda: occupancy.max_active_blocks_per_multiprocessor(1, bad),
        lambda: occupancy.available_dynamic_shared_memory_per_block(bad, 1),
        lambda: occupancy.available_dynamic_shared_memory_per_block(1, bad),
        lambda: occupancy.max_potential_block_size(0, bad),
        lambda: occupancy.max_potential_block_size(bad, 0),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("big", [2**31, 2**64, 2**70, -(2**31) - 1, -(2**70)])
def test_sizes_that_no_int_of_c_holds(occupancy: KernelOccupancy, big: int) -> None:
    for call in (
        lambda: occupancy.max_active_blocks_per_multiprocessor(big, 0),
        lambda: occupancy.available_dynamic_shared_memory_per_block(big, 1),
        lambda: occupancy.available_dynamic_shared_memory_per_block(1, big),
        lambda: occupancy.max_potential_block_size(0, big),
    ):
        with pytest.raises(ValueError, match=str(big)):
            call()


@pytest.mark.parametrize("bad", [-1, -(2**70), 2**64, 2**70])
def test_sizes_that_are_none(occupancy: KernelOccupancy, bad: int) -> None:
    error = ValueError if bad < 0 else OverflowError
    with pytest.raises(error, match="dynamic_shared_memory_size"):
        occupancy.max_active_blocks_per_multiprocessor(128, bad)
    with pytest.raises(error, match="dynamic_shared_memory_needed"):
        occupancy.max_potential_block_size(bad, 0)


@pytest.mark.parametrize("block", [0, -1])
def test_the_driver_refuses(occupancy: KernelOccupancy, block: int) -> None:
    with pytest.raises(CUDAError, match="kernel 'k'") as caught:
        occupancy.max_active_blocks_per_multiprocessor(block, 0)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"


def test_without_a_current_context(occupancy: KernelOccupancy, stream: Stream) -> None:
    driver.cuCtxSetCurrent(None)
    for call in (
        lambda: occupancy.max_active_blocks_per_multiprocessor(128, 0),
        lambda: occupancy.available_dynamic_shared_memory_per_block(1, 128),
        lambda: occupancy.max_potential_block_size(0, 0),
    ):
        with pytest.raises(CUDAError, match=r"Device.set_current\(\)") as caught:
            call()
        assert caught.value.name == "CUDA_ERROR_INVALID_CONTEXT"


# The dynamic shared memory as a function of the block size.

Function = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)


def expected(occupancy: KernelOccupancy, bytes_per_thread: int) -> int:
    """The largest block with the highest occupancy, by trying all."""
    best, found = 0, 0
    for block in range(1024, 0, -32):
        dynamic = bytes_per_thread * block
        threads = block * occupancy.max_active_blocks_per_multiprocessor(block, dynamic)
        if threads > best:
            best, found = threads, block
    return found


@pytest.mark.parametrize("bytes_per_thread", [0, 16, 40, 100])
def test_functions_of_the_block_size(occupancy: KernelOccupancy, bytes_per_thread: int) -> None:
    asked: list[int] = []

    def needed(block: int) -> int:
        asked.append(block)
        return bytes_per_thread * block

    answer = occupancy.max_potential_block_size(needed, 0)
    assert answer.max_block_size == expected(occupancy, bytes_per_thread)
    assert asked
    assert all(type(block) is int and 0 < block <= 1024 for block in asked)
    assert occupancy.max_potential_block_size(Function(needed), 0) == answer
    ffi = cffi.FFI()
    assert occupancy.max_potential_block_size(ffi.callback("size_t(int)", needed), 0) == answer
    if bytes_per_thread == 0:
        assert occupancy.max_potential_block_size(0, 0) == answer


def test_a_callable_may_answer_any_integer(occupancy: KernelOccupancy) -> None:
    numpy = pytest.importorskip("numpy")
    answer = occupancy.max_potential_block_size(lambda block: 16 * block, 0)
    assert occupancy.max_potential_block_size(lambda block: numpy.int64(16 * block), 0) == answer


@pytest.mark.parametrize("answer", [-1, 2**64, -(2**70)])
def test_a_callable_that_answers_no_size(occupancy: KernelOccupancy, answer: int) -> None:
    with pytest.raises(
        ValueError, match=rf"the callable answered {answer} bytes for a block of \d+"
    ):
        occupancy.max_potential_block_size(lambda _: answer, 0)


def test_a_size_that_no_block_can_have(occupancy: KernelOccupancy) -> None:
    for size in (1 << 40, 2**64 - 1):
        for needed in (size, lambda _, size=size: size):
            answer = occupancy.max_potential_block_size(needed, 0)
            assert answer.min_grid_size == 0


def test_exceptions_of_a_callable_come_out(occupancy: KernelOccupancy) -> None:
    calls: list[int] = []

    def broken(block: int) -> int:
        calls.append(block)
        raise LookupError(f"block {block}")

    with pytest.raises(LookupError, match=r"block \d+"):
        occupancy.max_potential_block_size(broken, 0)
    assert len(calls) == 1  # it is not asked on
    for needed in (lambda _: "x", lambda _: None, lambda _: 1.5, lambda: 0, lambda a, b: 0):
        with pytest.raises(TypeError):
            occupancy.max_potential_block_size(needed, 0)
    with pytest.raises(KeyboardInterrupt):
        occupancy.max_potential_block_size(raising(KeyboardInterrupt), 0)
    assert occupancy.max_potential_block_size(0, 0).max_block_size > 0


def raising(error: type[BaseException]) -> Any:
    def needed(_: int) -> int:
        raise error

    return needed


def test_a_callable_may_ask_itself(occupancy: KernelOccupancy) -> None:
    def outer(block: int) -> int:
        inner = occupancy.max_potential_block_size(lambda b: 8 * b, 0)
        assert inner.max_block_size > 0
        with pytest.raises(LookupError):
            occupancy.max_potential_block_size(raising(LookupError), 0)
        return 16 * block

    assert occupancy.max_potential_block_size(outer, 0) == occupancy.max_potential_block_size(
        lambda b: 16 * b, 0
    )


# Clusters.


def needs_clusters(device: Device) -> None:
    if device.compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")


@pytest.mark.parametrize("query", ["max_active_clusters", "max_potential_cluster_size"])
def test_cluster_queries_need_a_stream(
    occupancy: KernelOccupancy, stream: Stream, query: str
) -> None:
    ask = getattr(occupancy, query)
    config = LaunchConfig(grid=4, cluster=2, block=64)
    for call in (lambda: ask(config), lambda: ask(config, stream), lambda: ask(stream=stream)):
        with pytest.raises(TypeError):
            call()
    for bad in (None, 1, "x", object(), 1.5):
        with pytest.raises(TypeError, match=r"[sS]tream"):
            ask(config, stream=bad)
    for bad in (None, 1, {"grid": 1}):
        with pytest.raises(TypeError):
            ask(bad, stream=stream)
    stream.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        ask(config, stream=stream)


def test_clusters(occupancy: KernelOccupancy, device: Device, stream: Stream) -> None:
    needs_clusters(device)
    plain = LaunchConfig(grid=64, block=128)
    assert occupancy.max_potential_cluster_size(plain, stream=stream) == 8
    answers = [
        occupancy.max_active_clusters(LaunchConfig(grid=64, cluster=c, block=128), stream=stream)
        for c in (1, 2, 4, 8)
    ]
    assert answers == sorted(answers, reverse=True)
    assert answers[-1] > 0


def test_cluster_queries_see_no_garbage(
    occupancy: KernelOccupancy, device: Device, stream: Stream
) -> None:
    # The driver reads the whole structure: bytes that somebody left on the stack made it crash.
    needs_clusters(device)
    config = LaunchConfig(grid=8, cluster=2, block=64, shmem_size=1000)
    first = (
        occupancy.max_active_clusters(config, stream=stream),
        occupancy.max_potential_cluster_size(config, stream=stream),
    )
    for i in range(50):
        occupancy.max_potential_block_size(lambda b, i=i: i * b, 0)
        json.dumps([[i] * 200] * 20)
        for on in (stream, device.default_stream):
            assert (
                occupancy.max_active_clusters(config, stream=on),
                occupancy.max_potential_cluster_size(config, stream=on),
            ) == first


@pytest.mark.emulated
def test_cluster_queries_pass_the_stream(occupancy: KernelOccupancy, stream: Stream) -> None:
    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.handle

    for on in (stream, Foreign()):
        with emulator.recording():
            occupancy.max_active_clusters(LaunchConfig(grid=4, cluster=2, block=64), stream=on)
        assert [
            c.status for c in emulator.journal() if c.name == "cuOccupancyMaxActiveClusters"
        ] == [0]


def test_the_view(kernel: Kernel) -> None:
    assert kernel.occupancy is kernel.occupancy
    assert repr(kernel.occupancy) == "<KernelOccupancy kernel='k'>"
    for make in (KernelOccupancy, lambda: KernelOccupancy.__new__(KernelOccupancy)):
        with pytest.raises(RuntimeError, match="cannot be instantiated directly"):
            make()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="KernelOccupancy"):
            pickle.dumps(kernel.occupancy, protocol)


def test_the_view_outlives_kernel_and_code(device: Device) -> None:
    occupancy = ObjectCode.from_ptx(empty("k")).get_kernel("k").occupancy
    gc.collect()
    assert occupancy.max_active_blocks_per_multiprocessor(128, 0) > 0
