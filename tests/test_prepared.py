"""Prepared launches: arguments converted once, changed one by one, kept alive."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
import weakref
from typing import Any

import pytest
from ptx import ONE, empty, stepping, storing

import cudamod
from cudamod import Buffer, Device, Kernel, Launcher, ObjectCode, Prepared, Stream


@pytest.fixture
def step(device: Device) -> Kernel:
    return ObjectCode.from_ptx(stepping()).get_kernel("step")


def word(buffer: Buffer, stream: Stream) -> int:
    return int(struct.unpack("I", buffer.copy_to(bytearray(4), stream=stream))[0])


@pytest.fixture
def counter(device: Device, stream: Stream) -> Buffer:
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    return buffer


@pytest.mark.parametrize("gil", ["release", "auto", "hold"])
def test_a_prepared_launch_repeats(step: Kernel, stream: Stream, counter: Buffer, gil: Any) -> None:
    prepared = step.bind(ONE, stream, gil=gil).prepare(counter, 1, 5)
    for _ in range(3):
        prepared()
    assert word(counter, stream) == 15
    assert prepared.arguments == (counter, 1, 5)
    assert (prepared.kernel, prepared.config, prepared.stream) == (step, ONE, stream)
    assert prepared.gil == gil
    assert "step" in repr(prepared)


def test_set_arg_changes_later_calls(step: Kernel, stream: Stream, counter: Buffer) -> None:
    prepared = step.bind(ONE, stream).prepare(counter, 1, 5)
    prepared()
    prepared.set_arg(2, 100)
    prepared()
    prepared.set_arg(1, 10)
    prepared()
    assert word(counter, stream) == 1150
    assert prepared.arguments == (counter, 10, 100)


def test_each_kind_of_argument(device: Device, stream: Stream) -> None:
    kinds = ("u8", "f32", "f64", "bytes[40]", "u64")
    kernel = ObjectCode.from_ptx(storing(kinds)).get_kernel("store")
    out = device.allocate(61, stream=stream)
    prepared = kernel.bind(ONE, stream).prepare(out, 1, 2.5, 3.5, bytes(range(40)), out)
    prepared()

    def stored() -> tuple[Any, ...]:
        return struct.unpack("<Bfd40sQ", out.copy_to(bytearray(61), stream=stream))

    assert stored() == (1, 2.5, 3.5, bytes(range(40)), out.handle)
    for index, value in enumerate((7, -1.5, ctypes.c_double(8), b"x" * 40, None), start=1):
        prepared.set_arg(index, value)
    prepared()
    assert stored() == (7, -1.5, 8.0, b"x" * 40, 0)


def test_no_arguments(device: Device, stream: Stream) -> None:
    kernel = ObjectCode.from_ptx(empty("nothing")).get_kernel("nothing")
    prepared = kernel.bind(ONE, stream).prepare()
    prepared()
    assert prepared.arguments == ()
    with pytest.raises(IndexError, match="'nothing' has 0 arguments, there is no argument 0"):
        prepared.set_arg(0, 1)


def test_wrong_preparations(step: Kernel, stream: Stream, counter: Buffer) -> None:
    launcher = step.bind(ONE, stream)
    with pytest.raises(TypeError, match="'step' takes 3 arguments, got 2"):
        launcher.prepare(counter, 1)
    with pytest.raises(OverflowError, match="argument 1"):
        launcher.prepare(counter, 1 << 40, 1)
    with pytest.raises(TypeError, match="argument 2"):
        launcher.prepare(counter, 1, "five")
    counter.close()
    with pytest.raises(RuntimeError, match="Buffer has been closed"):
        launcher.prepare(counter, 1, 5)


def test_wrong_changes_change_nothing(step: Kernel, stream: Stream, counter: Buffer) -> None:
    prepared = step.bind(ONE, stream).prepare(counter, 1, 5)
    for index in (3, -1, 1 << 70):
        with pytest.raises(IndexError):
            prepared.set_arg(index, 1)
    bad: Any
    for bad, error in (("x", TypeError), (1 << 40, OverflowError), (None, TypeError)):
        with pytest.raises(error, match="'step', argument 2"):
            prepared.set_arg(2, bad)
    with pytest.raises(TypeError):
        prepared.set_arg("2", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="index and a value"):
        prepared.set_arg(2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes no arguments; set_arg"):
        prepared(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes no arguments"):
        prepared(stream=stream)  # type: ignore[call-arg]
    prepared()
    assert word(counter, stream) == 5


def test_a_closed_stream_is_refused(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    other = device.create_stream()
    launcher = step.bind(ONE, other)
    prepared = launcher.prepare(counter, 1, 5)
    other.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        prepared()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        launcher.prepare(counter, 1, 5)


def test_arguments_stay_alive(device: Device, step: Kernel, stream: Stream) -> None:
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    view = Buffer.from_handle(buffer.handle, 4, owner=buffer)
    seen = weakref.ref(buffer)
    prepared = step.bind(ONE, stream).prepare(view, 1, 5)
    address = buffer.handle
    view.close()
    del buffer, view
    gc.collect()
    assert seen() is not None
    prepared()
    again = Buffer.from_handle(address, 4, owner=prepared)
    assert word(again, stream) == 5
    del again
    prepared.set_arg(0, None)
    gc.collect()
    assert seen() is None


def test_memory_outlives_a_closed_buffer(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    address = counter.handle
    prepared = step.bind(ONE, stream).prepare(counter, 1, 5)
    counter.close()
    for _ in range(4):  # nothing else gets the address meanwhile
        assert device.allocate(4, stream=stream).handle != address
    prepared()
    stream.sync()
    assert word(Buffer.from_handle(address, 4, owner=prepared), stream) == 5


def test_cycles_are_collected(step: Kernel, stream: Stream) -> None:
    class Array:
        def __init__(self, buffer: Buffer) -> None:
            self.buffer = buffer
            self.prepared: Prepared | None = None
            self.__cuda_array_interface__ = {
                "shape": (1,),
                "typestr": "<u4",
                "data": (buffer.handle, False),
                "version": 3,
            }

    array = Array(stream.device.allocate(4, stream=stream))
    array.prepared = step.bind(ONE, stream).prepare(array, 1, 5)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None


class Launching:
    """An index whose conversion launches, and changes, what it is being converted for."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    def __index__(self) -> int:
        self.prepared()
        self.prepared.set_arg(2, 7)
        return 3


def test_a_conversion_may_launch_and_change(step: Kernel, stream: Stream, counter: Buffer) -> None:
    prepared = step.bind(ONE, stream).prepare(counter, 1, 5)
    prepared.set_arg(1, Launching(prepared))
    prepared()
    assert word(counter, stream) == 5 * 3 + 7


class Closing:
    """An index whose conversion closes the stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __index__(self) -> int:
        self.stream.close()
        return 1


def test_closing_while_converting(device: Device, step: Kernel, counter: Buffer) -> None:
    other = device.create_stream()
    launcher: Launcher = step.bind(ONE, other)
    prepared = launcher.prepare(counter, 1, 5)
    with pytest.raises(RuntimeError, match="while the arguments were converted"):
        prepared.set_arg(1, Closing(other))
    other = device.create_stream()
    with pytest.raises(RuntimeError, match="while the arguments were converted"):
        step.bind(ONE, other).prepare(counter, Closing(other), 5)


def test_a_default_stream(device: Device, step: Kernel, counter: Buffer, stream: Stream) -> None:
    stream.sync()
    prepared = step.bind(ONE, device.default_stream).prepare(counter, 1, 5)
    cudamod.driver.cuCtxSetCurrent(None)
    prepared()
    device.set_current()
    device.sync()
    assert word(counter, stream) == 5


def test_errors_name_the_kernel(device: Device, step: Kernel, stream: Stream) -> None:
    config = cudamod.LaunchConfig(grid=1, block=1025)
    prepared = step.bind(config, stream).prepare(None, 1, 1)
    with pytest.raises(cudamod.CUDAError, match=r"cuLaunchKernelEx: .*'step'.*1025"):
        prepared()


@pytest.mark.parametrize("gil", ["release", "auto", "hold"])
def test_threads_launch_and_change(device: Device, stream: Stream, gil: Any) -> None:
    """No launch sees half of a change: both words of the struct are always equal."""
    kernel = ObjectCode.from_ptx(storing(["bytes[64]"])).get_kernel("store")
    rounds = 300
    outs = [device.allocate(64, stream=stream) for _ in range(3)]
    stream.sync()  # other streams use the memory
    prepared = kernel.bind(ONE, stream, gil=gil).prepare(outs[0], bytes(64))
    stop, failures = threading.Event(), []

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            prepared.set_arg(1, struct.pack("<Q", number) * 8)

    def launch(out: Buffer) -> None:
        own = kernel.bind(ONE, device.create_stream(), gil=gil)
        mine = own.prepare(out, prepared.arguments[1])
        for _ in range(rounds):
            prepared()
            mine.set_arg(1, prepared.arguments[1])
            mine()
            own.stream.sync()
            words = set(struct.unpack("<8Q", out.copy_to(bytearray(64), stream=own.stream)))
            if len(words) != 1:
                failures.append(words)

    changer = threading.Thread(target=change)
    launchers = [threading.Thread(target=launch, args=(out,)) for out in outs[1:]]
    for thread in (changer, *launchers):
        thread.start()
    for thread in launchers:
        thread.join()
    stop.set()
    changer.join()
    stream.sync()
    words = struct.unpack("<8Q", outs[0].copy_to(bytearray(64), stream=stream))
    assert len(set(words)) == 1
    assert failures == []


def test_a_capture_keeps_the_library(device: Device, stream: Stream, counter: Buffer) -> None:
    kernel = ObjectCode.from_ptx(stepping()).get_kernel("step")
    prepared = kernel.bind(ONE, stream).prepare(counter, 1, 5)
    stream.sync()
    stream.begin_capture()
    prepared()
    graph = stream.end_capture()
    del kernel, prepared
    gc.collect()
    cudamod.handles.reclaim()
    graph.launch(stream)
    assert word(counter, stream) == 5


def test_a_launcher_on_current_has_no_stream_to_prepare_for(step: Kernel, counter: Buffer) -> None:
    with pytest.raises(ValueError, match=r"CURRENT: give it one with on\(\)"):
        step.bind(ONE, cudamod.CURRENT).prepare(counter, 1, 5)


def test_hooks_see_prepared_launches(step: Kernel, stream: Stream, counter: Buffer) -> None:
    seen: list[Any] = []
    prepared = step.bind(ONE, stream, metadata="mine").prepare(counter, 1, 5)
    with cudamod.launch_hooks.add(
        enter=lambda info: seen.append((info.kernel, info.arguments, info.metadata))
    ):
        prepared()
        cudamod.LaunchSequence([prepared])()  # as a graph it is no launch of its own
        stream.begin_capture()
        prepared()
        stream.end_capture()
    prepared()
    assert seen == [(step, (counter, 1, 5), "mine")] * 2
    assert word(counter, stream) == 15


def test_a_hook_may_change_a_prepared_launch(step: Kernel, stream: Stream, counter: Buffer) -> None:
    prepared = step.bind(ONE, stream).prepare(counter, 1, 5)
    with cudamod.launch_hooks.add(enter=lambda info: prepared.set_arg(2, 100)):
        prepared()  # with the arguments that the hook was told of
    prepared()
    assert word(counter, stream) == 105
