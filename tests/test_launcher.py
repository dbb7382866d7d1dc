"""Launcher: a kernel bound to a configuration and a stream."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import pytest
from ptx import ONE, Stored, empty, read

from cudamod import (
    Buffer,
    CUDAError,
    Device,
    Kernel,
    LaunchConfig,
    Launcher,
    ObjectCode,
    Stream,
    emulator,
    launch,
)


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k", parameters=["u32"])).get_kernel("k")


def test_what_it_has(kernel: Kernel, stream: Stream) -> None:
    config = LaunchConfig(grid=2, block=3)
    launcher = kernel.bind(config, stream)
    assert launcher.kernel == kernel
    assert launcher.config is config
    assert launcher.stream is stream
    assert (launcher.gil, launcher.signature) == ("release", "b32")
    assert "kernel='k'" in repr(launcher)
    assert repr(config) in repr(launcher)
    assert launcher(1) is None
    for name in ("kernel", "config", "stream", "gil", "other"):
        with pytest.raises(AttributeError):
            setattr(launcher, name, 1)


def test_no_other_way_to_one(kernel: Kernel, stream: Stream) -> None:
    for make in (Launcher, lambda: Launcher.__new__(Launcher)):
        with pytest.raises(RuntimeError, match=r"Use Kernel\.bind"):
            make()
    launcher = kernel.bind(ONE, stream)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="Launcher"):
            pickle.dumps(launcher, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="Launcher"):
            duplicate(launcher)
    reference = weakref.ref(launcher)
    del launcher
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("config", [None, 1, (1, 1), {"grid": 1, "block": 1}, "x"], ids=repr)
def test_bind_needs_a_configuration(kernel: Kernel, stream: Stream, config: Any) -> None:
    with pytest.raises(TypeError, match=f"LaunchConfig, not {type(config).__name__}"):
        kernel.bind(config, stream)
    for call in (
        lambda: kernel.bind(),
        lambda: kernel.bind(ONE),
        lambda: kernel.bind(stream=stream),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("gil", ["release", "hold", "auto"])
def test_gil(stored: Stored, stream: Stream, gil: Any) -> None:
    out = stream.device.allocate(4, stream=stream)
    launcher = stored.kernel("u32").bind(ONE, stream, gil=gil)
    assert launcher.gil == gil
    assert launcher.on(stream).gil == gil
    launcher(out, 0x04030201)
    assert read(out, stream) == b"\x01\x02\x03\x04"


@pytest.mark.parametrize("gil", ["", "Release", "none", 1, True, b"hold"], ids=repr)
def test_an_unknown_gil(kernel: Kernel, stream: Stream, gil: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="gil"):
        kernel.bind(ONE, stream, gil=gil)


def test_the_process_chooses_the_gil(run_python: Any) -> None:
    code = f"""
from cudamod import Device, LaunchConfig, ObjectCode
device = Device(0); device.set_current()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
print(kernel.bind(LaunchConfig(grid=1, block=1), device.create_stream()).gil)
"""
    for manner in ("hold", "auto", "release"):
        assert run_python(code, CUDAMOD_GIL=manner).strip() == manner
    assert run_python(code, CUDAMOD_GIL=None).strip() == "release"


@pytest.mark.emulated
def test_keywords_override_for_one_call(kernel: Kernel, stream: Stream, device: Device) -> None:
    other = device.create_stream()
    launcher = kernel.bind(LaunchConfig(grid=2, block=32, shmem_size=8), stream)
    with emulator.recording():
        launcher(1)
        launcher(1, grid=(3, 4))
        launcher(1, block=(5, 1, 2))
        launcher(1, shmem_size=60_000)
        launcher(1, stream=other)
        launcher(1, stream=other, grid=7, block=8, shmem_size=None)
        launcher(1)
    stream.sync()
    other.sync()
    assert [(s.grid, s.block, s.dynamic_shared, s.stream) for s in emulator.launches()] == [
        ((2, 1, 1), (32, 1, 1), 8, stream.handle),
        ((3, 4, 1), (32, 1, 1), 8, stream.handle),
        ((2, 1, 1), (5, 1, 2), 8, stream.handle),
        ((2, 1, 1), (32, 1, 1), 60_000, stream.handle),
        ((2, 1, 1), (32, 1, 1), 8, other.handle),
        ((7, 1, 1), (8, 1, 1), 0, other.handle),
        ((2, 1, 1), (32, 1, 1), 8, stream.handle),
    ]
    assert launcher.config == LaunchConfig(grid=2, block=32, shmem_size=8)


def test_bad_keywords(kernel: Kernel, stream: Stream) -> None:
    launcher = kernel.bind(ONE, stream)
    for name in ("cluster", "gil", "streams", "config", "Grid"):
        with pytest.raises(TypeError, match=f"'k': unexpected keyword argument '{name}'"):
            launcher(1, **{name: 1})
    for given, error in (
        ({"grid": 0}, ValueError),
        ({"grid": None}, ValueError),
        ({"block": -1}, ValueError),
        ({"block": 2**40}, OverflowError),
        ({"shmem_size": -1}, ValueError),
        ({"shmem_size": "1"}, TypeError),
        ({"stream": None}, TypeError),
        ({"stream": 0}, TypeError),
        ({"stream": "x"}, TypeError),
    ):
        with pytest.raises(error):
            launcher(1, **given)
    with pytest.raises(TypeError, match="takes 1 argument, got 0"):
        launcher(grid=1)
    with pytest.raises(CUDAError, match=r"block x = 1025 exceeds"):
        launcher(1, block=1025)
    launcher(1)
    stream.sync()


def test_on_another_stream(stored: Stored, stream: Stream, device: Device) -> None:
    other = device.create_stream()
    launcher = stored.kernel("u32").bind(ONE, stream, signature="ptr, i32")
    moved = launcher.on(other)
    assert (moved.stream, launcher.stream) == (other, stream)
    assert (moved.config, moved.kernel, moved.signature) == (ONE, launcher.kernel, "ptr, i32")
    out = device.allocate(4, stream=other)
    moved(out, -2)
    assert read(out, other) == b"\xfe\xff\xff\xff"

    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, other.handle

    assert launcher.on(Foreign()).stream.handle == other.handle
    for bad in (None, 1, "x", object()):
        with pytest.raises(TypeError):
            launcher.on(bad)
    for call in (lambda: launcher.on(), lambda: launcher.on(stream, stream)):
        with pytest.raises(TypeError):
            call()


def test_a_closed_stream(kernel: Kernel, stream: Stream, device: Device) -> None:
    launcher = kernel.bind(ONE, stream)
    launcher(1)
    stream.sync()
    stream.close()
    for call in (lambda: launcher(1), lambda: launcher(1, grid=1), lambda: launcher.on(stream)):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            call()
    other = device.create_stream()
    launcher(1, stream=other)
    launcher.on(other)(1)
    other.sync()


def test_it_keeps_stream_and_kernel(stored: Stored, device: Device) -> None:
    stream = device.create_stream()
    launcher = stored.kernel("u32").bind(ONE, stream)
    stored._kernels.clear()
    reference = weakref.ref(stream)
    del stream
    gc.collect()
    assert reference() is launcher.stream
    out = device.allocate(4, stream=launcher.stream)
    launcher(out, 9)
    assert read(out, launcher.stream)[0] == 9


def test_a_cycle_is_collected(kernel: Kernel, stream: Stream, device: Device) -> None:
    class Config(LaunchConfig):
        launcher: Launcher

    class Metadata:
        launcher: Launcher

    config, metadata = Config(grid=1, block=1), Metadata()
    config.launcher = kernel.bind(config, stream)
    metadata.launcher = kernel.bind(ONE, stream, metadata=metadata)
    assert metadata.launcher.metadata is metadata
    assert metadata.launcher.on(stream).metadata is metadata
    assert config.launcher.metadata is None
    references = [weakref.ref(thing) for thing in (config, metadata)]
    references += [weakref.ref(thing.launcher) for thing in (config, metadata)]
    gc.collect()
    assert all(reference() is not None for reference in references)
    del config, metadata
    gc.collect()
    assert [reference() for reference in references] == [None] * 4


def test_a_launcher_that_was_taken_apart_is_no_crash(kernel: Kernel, stream: Stream) -> None:
    """An end that the collector brings about may come back to a launcher of the same cycle."""
    said: list[str] = []

    class Late:
        def __init__(self, launcher: Launcher) -> None:
            self.launcher = launcher

        def __del__(self) -> None:
            launcher = self.launcher
            uses: list[Any] = [lambda: launcher(1), lambda: launcher(1, grid=1)]
            uses += [lambda: launcher.config, lambda: launcher.on(stream), lambda: repr(launcher)]
            for use in uses:
                try:
                    use()
                    said.append("works")
                except RuntimeError as error:
                    said.append(str(error))

    class Metadata:
        pass

    for _ in range(20):
        metadata: Any = Metadata()
        metadata.launcher = kernel.bind(ONE, stream, metadata=metadata)
        metadata.late = Late(metadata.launcher)
        metadata.itself = [metadata]
        del metadata
        gc.collect()
    assert len(said) == 100
    assert set(said) <= {"works", "the Launcher has been garbage collected"}
    stream.sync()


# Re-entrancy: converting an argument may run any Python code.


def word(buffer: Buffer, stream: Stream) -> int:
    return int.from_bytes(read(buffer, stream), "little")


def test_an_argument_may_launch_the_same_launcher(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32", "u32", "u32").bind(ONE, stream)
    outer, inner = (stream.device.allocate(12, stream=stream) for _ in range(2))

    class Launches:
        def __index__(self) -> int:
            launcher(inner, 4, 5, 6)
            launcher(inner, 7, 8, 9, grid=2)
            gc.collect()
            return 2

    launcher(outer, 1, Launches(), 3)
    assert read(outer, stream) == b"\1\0\0\0\2\0\0\0\3\0\0\0"
    assert read(inner, stream) == b"\7\0\0\0\x08\0\0\0\x09\0\0\0"


def test_an_argument_may_drop_the_launcher(stored: Stored, stream: Stream) -> None:
    holder = [stored.kernel("u32", "u32").bind(ONE, stream)]
    stored._kernels.clear()
    out = stream.device.allocate(8, stream=stream)

    class Drops:
        def __index__(self) -> int:
            holder.clear()
            gc.collect()
            return 1

    holder[0](out, Drops(), 2)
    assert read(out, stream) == b"\1\0\0\0\2\0\0\0"


def test_an_argument_that_fails_launches_nothing(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    out.fill(0, stream=stream)

    class Broken:
        def __index__(self) -> int:
            raise LookupError("broken")

    with pytest.raises(LookupError):
        launcher(out, Broken())
    assert word(out, stream) == 0


@pytest.mark.parametrize("gil", ["release", "hold", "auto"])
@pytest.mark.parametrize("large", [False, True])
def test_threads_share_a_launcher(stored: Stored, stream: Stream, gil: Any, large: bool) -> None:
    more = ["bytes[5000]"] if large else []
    launcher = stored.kernel("u32", "u64", *more).bind(ONE, stream, gil=gil)
    threads, rounds = 8, 40
    outs = [stream.device.allocate(12 + 5000 * large, stream=stream) for _ in range(threads)]
    stream.sync()
    wrong: list[Any] = []
    barrier = threading.Barrier(threads)

    def use(number: int) -> None:
        own = stream.device.create_stream()
        data = [bytes([number]) * 5000] if large else []
        expected = number.to_bytes(4, "little") + (number << 40).to_bytes(8, "little")
        expected += b"".join(data)
        barrier.wait()
        try:
            for _ in range(rounds):
                launcher(outs[number], number, number << 40, *data, stream=own)
                if read(outs[number], own) != expected:
                    wrong.append(number)
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=use, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_threads_launch_different_kernels_for_the_first_time(device: Device) -> None:
    code = ObjectCode.from_ptx(empty(*[f"k{i}" for i in range(8)], parameters=["u32"]))
    barrier = threading.Barrier(8)
    failed: list[BaseException] = []

    def use(number: int) -> None:
        stream = device.create_stream()
        barrier.wait()
        try:
            for _ in range(20):
                code.get_kernel(f"k{number}").bind(ONE, stream)(number)
                code.get_kernel(f"k{(number + 1) % 8}").bind(ONE, stream)(number)
            stream.sync()
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []


@pytest.mark.parametrize("what", ["buffer", "stream"])
@pytest.mark.parametrize("how", ["launch", "launcher", "keyword"])
def test_what_a_conversion_closes_is_refused(stream: Stream, what: str, how: str) -> None:
    kernel = ObjectCode.from_ptx(empty("k", parameters=["u64", "u32"])).get_kernel("k")
    buffer = stream.device.allocate(8, stream=stream)
    launcher = kernel.bind(ONE, stream)

    class Closes:
        def __index__(self) -> int:
            (buffer if what == "buffer" else stream).close()
            return 0

    calls = {
        "launch": lambda: launch(stream, ONE, kernel, buffer, Closes()),
        "launcher": lambda: launcher(buffer, Closes()),
        "keyword": lambda: launcher(buffer, Closes(), grid=1),
    }
    with pytest.raises(RuntimeError, match=f"(?i){what} has been closed while"):
        calls[how]()
