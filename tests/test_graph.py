"""Captures into graphs, and what is done with them."""

from __future__ import annotations

import gc
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE, stepping

import cudamod
from cudamod import Buffer, Device, Graph, Kernel, ObjectCode, Stream, launch

MODES: list[Any] = ["global", "thread_local", "relaxed"]


@pytest.fixture
def step(device: Device) -> Kernel:
    kernel = ObjectCode.from_ptx(stepping()).get_kernel("step")
    kernel.load()
    return kernel


@pytest.fixture
def counter(device: Device, stream: Stream) -> Buffer:
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    stream.sync()
    return buffer


def word(buffer: Buffer, stream: Stream) -> int:
    return int(struct.unpack("I", buffer.copy_to(bytearray(4), stream=stream))[0])


def is_capturing(stream: Stream) -> bool:
    return stream.is_capturing  # a call, since a checker takes a property for constant


def captured(stream: Stream, step: Kernel, counter: Buffer, factor: int, addend: int) -> Graph:
    stream.begin_capture()
    launch(stream, ONE, step, counter, factor, addend)
    return stream.end_capture()


@pytest.mark.parametrize("mode", MODES)
def test_a_capture_is_launched_again_and_again(
    step: Kernel, stream: Stream, counter: Buffer, mode: Any
) -> None:
    assert not is_capturing(stream)
    stream.begin_capture(mode)
    assert is_capturing(stream)
    launcher = step.bind(ONE, stream)
    launcher(counter, 1, 3)
    launcher.prepare(counter, 10, 4)()
    graph = stream.end_capture()
    assert not is_capturing(stream)
    assert graph.num_nodes == 2
    assert "instantiated" not in repr(graph)
    assert word(counter, stream) == 0  # captured, not run
    graph.launch(stream)
    assert graph.is_instantiated
    assert word(counter, stream) == 34
    graph.instantiate()
    graph.upload(stream)
    graph.launch(stream)
    assert word(counter, stream) == 374


def test_streams_take_part(device: Device, step: Kernel, stream: Stream, counter: Buffer) -> None:
    side = device.create_stream()
    stream.begin_capture()
    launch(stream, ONE, step, counter, 1, 1)
    side.wait(stream)
    assert is_capturing(side)
    launch(side, ONE, step, counter, 10, 2)
    stream.wait(side)
    launch(stream, ONE, step, counter, 10, 3)
    graph = stream.end_capture()
    assert not is_capturing(side)
    graph.launch(side)
    assert word(counter, side) == 123


def test_launches_on_several_streams_do_not_overlap(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    graph = captured(stream, step, counter, 1, 1)
    graph.instantiate()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            own = device.create_stream()
            for _ in range(50):
                graph.launch(own)
            own.sync()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    graph.launch(device.default_stream)
    device.sync()
    assert word(counter, stream) == 201


def test_update(step: Kernel, stream: Stream, counter: Buffer) -> None:
    graph = captured(stream, step, counter, 1, 3)
    other = captured(stream, step, counter, 1, 50)
    graph.launch(stream)
    graph.update(other)
    graph.launch(stream)
    assert word(counter, stream) == 53
    stream.begin_capture()
    counter.fill(0, stream=stream)
    different = stream.end_capture()
    with pytest.raises(cudamod.CUDAError, match=r"cuGraphExecUpdate: .*a node is of another type"):
        graph.update(different)
    graph.launch(stream)
    assert word(counter, stream) == 103
    with pytest.raises(TypeError):
        graph.update(stream)  # type: ignore[arg-type]


def test_dot(step: Kernel, stream: Stream, counter: Buffer, tmp_path: Path) -> None:
    graph = captured(stream, step, counter, 1, 3)
    paths: list[Any] = [tmp_path / "0", str(tmp_path / "1"), os.fsencode(tmp_path / "2")]
    for number, path in enumerate(paths):
        graph.debug_dot_print(path)
        assert "digraph" in (tmp_path / str(number)).read_text()
    bad: Any
    for bad, error in ((None, TypeError), ("a\0b", ValueError)):
        with pytest.raises(error):
            graph.debug_dot_print(bad)
    with pytest.raises(cudamod.CUDAError, match="no/such/folder"):
        graph.debug_dot_print("/no/such/folder/graph.dot")


def test_wrong_captures(device: Device, stream: Stream) -> None:
    bad: Any
    for bad in ("Global", None, 1):
        with pytest.raises(ValueError, match="mode must be"):
            stream.begin_capture(bad)
    with pytest.raises(cudamod.CUDAError, match=f"cuStreamEndCapture: .*{stream.handle:#x}"):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(cudamod.CUDAError, match="cuStreamBeginCapture"):
        stream.begin_capture()
    stream.end_capture()
    with pytest.raises(cudamod.CUDAError, match="CAPTURE_UNSUPPORTED"):
        device.default_stream.begin_capture()
    assert not is_capturing(device.default_stream)
    stream.close()
    for call in (stream.begin_capture, stream.end_capture, lambda: is_capturing(stream)):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            call()


def test_an_invalidated_capture_ends_in_an_error(stream: Stream) -> None:
    stream.begin_capture("thread_local")
    with pytest.raises(cudamod.CUDAError, match="CAPTURE"):
        stream.sync()
    assert is_capturing(stream)
    with pytest.raises(cudamod.CUDAError, match="CAPTURE_INVALIDATED"):
        stream.end_capture()
    assert not is_capturing(stream)
    stream.sync()


def test_work_that_is_not_joined(device: Device, stream: Stream, counter: Buffer) -> None:
    side = device.create_stream()
    stream.begin_capture()
    side.wait(stream)
    counter.fill(1, stream=side)
    with pytest.raises(cudamod.CUDAError, match="CAPTURE_UNJOINED"):
        stream.end_capture()
    assert not is_capturing(stream)
    assert not is_capturing(side)


def test_closed_graphs(step: Kernel, stream: Stream, counter: Buffer) -> None:
    graph = captured(stream, step, counter, 1, 3)
    other = captured(stream, step, counter, 1, 3)
    for _ in range(5):
        graph.launch(stream)
    graph.close()
    graph.close()
    assert graph.is_closed
    assert graph.handle == 0
    assert "closed" in repr(graph)
    calls: list[Callable[[], object]] = [
        graph.instantiate,
        lambda: graph.launch(stream),
        lambda: graph.upload(stream),
        lambda: graph.update(other),
        lambda: other.update(graph),
        lambda: graph.debug_dot_print("x"),
        lambda: graph.num_nodes,
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="Graph has been closed"):
            call()
    assert word(counter, stream) == 15
    assert graph != other
    assert {graph: 1}[graph] == 1


def test_streams_of_launches(device: Device, step: Kernel, stream: Stream, counter: Buffer) -> None:
    graph = captured(stream, step, counter, 1, 3)
    bad: Any
    for bad in (None, 5):
        with pytest.raises(TypeError):
            graph.launch(bad)
    closed = device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        graph.launch(closed)

    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.handle

    graph.launch(Foreign())
    assert word(counter, stream) == 3


def test_libraries_are_kept(device: Device, stream: Stream, counter: Buffer) -> None:
    kernel = ObjectCode.from_ptx(stepping()).get_kernel("step")
    kernel.load()
    graph = captured(stream, kernel, counter, 1, 3)
    graph.instantiate()
    del kernel
    gc.collect()
    cudamod.handles.reclaim()
    graph.launch(stream)
    assert word(counter, stream) == 3
    graph.close()
    stream.sync()
    cudamod.handles.reclaim()


def test_live_graphs_are_listed(step: Kernel, stream: Stream, counter: Buffer) -> None:
    graph = captured(stream, step, counter, 1, 3)
    graph.instantiate()

    def kinds() -> list[str]:
        return [handle.kind for handle in cudamod.handles.live() if "graph" in handle.kind]

    assert {"graph", "executable graph"} <= set(kinds())
    before = len(kinds())
    graph.close()
    assert len(kinds()) == before - 2


def test_the_process_ends_in_a_capture(run_python: Callable[..., str]) -> None:
    run_python(
        "from cudamod import Device\n"
        "device = Device(0); device.set_current()\n"
        "stream, other = device.create_stream(), device.create_stream()\n"
        "other.begin_capture(); graph = other.end_capture(); graph.launch(stream)\n"
        "stream.begin_capture('global')\n"
    )
