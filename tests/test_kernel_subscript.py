"""kernel[grid, block, stream, shmem_size]: launchers by their key."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from ptx import ONE, Stored, empty, read

from cudamod import CURRENT, CUDAError, Device, Kernel, LaunchConfig, ObjectCode, Stream, handles


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k", parameters=["u32"])).get_kernel("k")


def test_what_it_makes(kernel: Kernel, stream: Stream, device: Device) -> None:
    launcher = kernel[2, (3, 4), stream, 16]
    assert launcher.config == LaunchConfig(grid=2, block=(3, 4), shmem_size=16)
    assert (launcher.stream, launcher.kernel) == (stream, kernel)
    assert launcher.gil == "release"
    launcher(1)
    assert kernel[(1, 2, 3), (4,), stream].config == LaunchConfig(grid=(1, 2, 3), block=4)
    assert kernel[1, 1].stream is CURRENT
    assert kernel[1, 1, device.default_stream, None].config.shmem_size == 0


def test_the_same_key_is_the_same_launcher(kernel: Kernel, device: Device) -> None:
    default = device.default_stream
    assert kernel[1, 2] is kernel[1, 2]
    assert kernel[1, 2] is kernel[(1, 1), (2, 1, 1), CURRENT, 0]
    assert kernel[1, 2, default] is kernel[1, 2, default]
    assert kernel[1, 2] is not kernel[2, 1]
    assert kernel[1, 2] is not kernel[1, 2, default]
    assert kernel[1, 2, default, 4] is not kernel[1, 2, default, 8]
    assert kernel[1, 2, default].config is kernel[1, 2, default].config


def test_an_own_stream_lives_no_longer_than_its_users(kernel: Kernel, device: Device) -> None:
    stream = device.create_stream()
    kernel[1, 1, stream](1)
    stream.sync()
    handle, reference = stream.handle, weakref.ref(stream)
    del stream
    gc.collect()
    assert reference() is None
    assert handle not in [live.value for live in handles.live() if live.kind == "stream"]


def test_a_launcher_keeps_its_stream(kernel: Kernel, device: Device) -> None:
    launcher = kernel[1, 1, device.create_stream()]
    gc.collect()
    launcher(1)
    launcher.stream.sync()


def test_a_foreign_stream(kernel: Kernel, stream: Stream) -> None:
    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.handle

    launcher = kernel[1, 1, Foreign()]
    assert launcher.stream == stream
    launcher(1)


@pytest.mark.parametrize("key", [1, (), (1,), (1, 2, 3, 4, 5), "ab", None, slice(1, 2)], ids=repr)
def test_what_is_no_key(kernel: Kernel, key: Any) -> None:
    with pytest.raises(TypeError, match=r"'k': kernel\[grid, block, stream, shmem_size\]"):
        kernel[key]


def test_bad_parts(kernel: Kernel, stream: Stream) -> None:
    for key, error in (
        ((0, 1, stream), ValueError),
        ((1, -1, stream), ValueError),
        ((1, 2**32, stream), OverflowError),
        ((1, 2**70, stream), OverflowError),
        ((1.5, 1, stream), ValueError),
        (((1, 1, 1, 1), 1, stream), ValueError),
        (((1, 0), 1, stream), ValueError),
        ((1, 1, None), TypeError),
        ((1, 1, 0), TypeError),
        ((1, 1, stream, -1), ValueError),
        ((1, 1, stream, "8"), TypeError),
        ((1, 1, stream, 10_000_000), ValueError),
    ):
        with pytest.raises(error):
            kernel[key]  # type: ignore[index]
    with pytest.raises(CUDAError, match="block x = 1025"):
        kernel[1, 1025, stream](1)
    stream.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        kernel[1, 1, stream]


def test_a_key_may_run_python_that_looks_up_another(kernel: Kernel, stream: Stream) -> None:
    class Looks:
        def __index__(self) -> int:
            for size in range(1, 200):
                kernel[size, 1]
            return 3

    assert kernel[Looks(), Looks(), stream].config == LaunchConfig(grid=3, block=3)


def test_more_keys_than_are_remembered(stored: Stored, stream: Stream) -> None:
    kernel = stored.kernel("u32")
    out = stream.device.allocate(4, stream=stream)
    first = weakref.ref(kernel[1, 1])
    for number in range(1, 1000):
        kernel[number, 1]
        kernel[1, 1 + number % 64, stream](out, number)
        assert kernel[number, 1].config.grid == (number, 1, 1)
    assert read(out, stream) == (999).to_bytes(4, "little")
    gc.collect()
    assert first() is None


def test_the_kernel_ends_with_its_launchers(device: Device) -> None:
    kernel = ObjectCode.from_ptx(empty("k", parameters=["u32"])).get_kernel("k")
    references = [weakref.ref(kernel), weakref.ref(kernel[1, 1])]
    del kernel
    assert [reference() for reference in references] == [None, None]


def test_threads_look_up_at_once(stored: Stored, device: Device) -> None:
    kernel = stored.kernel("u32", "u64")
    kernel.bind(ONE, device.default_stream)
    barrier = threading.Barrier(8)
    wrong: list[Any] = []

    def use(number: int) -> None:
        try:
            stream = device.create_stream()
            out = device.allocate(12, stream=stream)
            barrier.wait()
            for turn in range(60):
                kernel[1, 1 + turn % 7, stream, 8 * (turn % 3)](out, number, turn << 40)
                kernel[1 + (turn * number) % 90, 1]
                expected = number.to_bytes(4, "little") + (turn << 40).to_bytes(8, "little")
                if read(out, stream) != expected:
                    wrong.append((number, turn))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
