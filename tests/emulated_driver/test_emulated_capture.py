"""Stream capture: what enters a graph, what no capture permits, and how captures end."""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from emulated_driver_api import EmulatedDriver, Pointer
from graph_api import (
    ACTIVE,
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_ISOLATION,
    CAPTURE_MERGE,
    CAPTURE_UNJOINED,
    CAPTURE_UNMATCHED,
    CAPTURE_UNSUPPORTED,
    CAPTURED_EVENT,
    GLOBAL,
    HOST,
    ILLEGAL_STATE,
    INVALID_VALUE,
    INVALIDATED,
    KERNEL,
    MEMCPY,
    MEMSET,
    NONE,
    RELAXED,
    SIZE,
    THREAD_LOCAL,
    WRONG_THREAD,
    Graphs,
)
from test_emulated_launches import ADD, EMPTY

MODES = [GLOBAL, THREAD_LOCAL, RELAXED]


@pytest.fixture
def graphs(current: EmulatedDriver) -> Graphs:
    return Graphs(current)


@pytest.fixture
def stream(current: EmulatedDriver) -> Iterator[Pointer]:
    stream = current.pointer("cuStreamCreate", 1)
    yield stream
    current.call("cuStreamDestroy", stream)


def exchange(driver: EmulatedDriver, mode: int) -> int:
    value = ctypes.c_int(mode)
    driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(value))
    return value.value


def in_thread(function: Callable[[], int]) -> int:
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    return answers[0]


def test_each_kind_of_work_becomes_a_node(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    add = current.kernel(current.load(ADD), b"add")
    memory, target = current.upload(struct.pack("4I", 1, 2, 3, 4)), current.allocate(16)
    host = ctypes.create_string_buffer(16)
    calls: list[int | None] = []
    function = ctypes.CFUNCTYPE(None, Pointer)(calls.append)
    with graphs.capture(stream) as captured:
        current.call("cuMemsetD32Async", memory, 7, SIZE(4), stream)
        values = [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(100)]
        assert current.launch(add, values, block=(4, 1, 1), stream=stream) == 0
        values[1].value = 5000  # the node has its own copy
        current.call("cuMemcpyDtoDAsync_v2", target, memory, SIZE(16), stream)
        current.call("cuMemcpyDtoHAsync_v2", host, target, SIZE(16), stream)
        current.call("cuLaunchHostFunc", stream, function, Pointer(42))
        assert graphs.capturing(stream) == ACTIVE
    (graph,) = captured
    assert graphs.capturing(stream) == NONE
    assert graphs.types(graph) == [MEMSET, KERNEL, MEMCPY, MEMCPY, HOST]
    nodes = graphs.nodes(graph)
    assert graphs.edges(graph) == set(itertools.pairwise(nodes))
    assert graphs.words(memory, 4) == (1, 2, 3, 4)
    assert not calls
    executable = graphs.instantiate(graph)
    for _ in range(2):
        graphs.launch(executable, stream)
        assert struct.unpack("4I", host.raw) == (107,) * 4
    assert calls == [42, 42]
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)


def test_fork_and_join(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    side = current.pointer("cuStreamCreate", 1)
    fork, join = current.pointer("cuEventCreate", 2), current.pointer("cuEventCreate", 2)
    memory = current.allocate(16)
    with graphs.capture(stream) as captured:
        current.call("cuMemsetD32Async", memory, 1, SIZE(1), stream)
        current.call("cuEventRecord", fork, stream)
        current.call("cuStreamWaitEvent", side, fork, 0)
        assert graphs.capturing(side) == ACTIVE
        current.call("cuMemsetD32Async", memory, 2, SIZE(1), side)
        current.call("cuMemsetD32Async", memory, 3, SIZE(1), stream)
        current.call("cuEventRecord", join, side)
        current.call("cuStreamWaitEvent", stream, join, 0)
        current.call("cuMemsetD32Async", memory, 4, SIZE(1), stream)
    (graph,) = captured
    first, on_side, on_stream, last = graphs.nodes(graph)
    assert graphs.edges(graph) == {
        (first, on_side),
        (first, on_stream),
        (on_side, last),
        (on_stream, last),
    }
    executable = graphs.instantiate(graph)
    graphs.launch(executable, stream)
    assert graphs.words(memory, 1) == (4,)
    current.call("cuStreamSynchronize", side)  # an ordinary stream again
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)


def test_ending_in_another_stream_invalidates(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    side, event = current.pointer("cuStreamCreate", 1), current.pointer("cuEventCreate", 2)
    graphs.begin(stream)
    current.call("cuEventRecord", event, stream)
    current.call("cuStreamWaitEvent", side, event, 0)
    assert graphs.end_status(side) == CAPTURE_UNMATCHED
    assert graphs.capturing(stream) == INVALIDATED
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED
    assert graphs.capturing(stream) == graphs.capturing(side) == NONE


def test_unjoined_work_is_an_error(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    side, event = current.pointer("cuStreamCreate", 1), current.pointer("cuEventCreate", 2)
    memory = current.allocate(4)
    graphs.begin(stream)
    current.call("cuEventRecord", event, stream)
    current.call("cuStreamWaitEvent", side, event, 0)
    current.call("cuMemsetD32Async", memory, 2, SIZE(1), side)
    assert graphs.end_status(stream) == CAPTURE_UNJOINED
    assert graphs.capturing(stream) == graphs.capturing(side) == NONE
    current.call("cuStreamDestroy", side)


def test_events_from_outside_and_of_captures(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    outside, inside = current.pointer("cuEventCreate", 2), current.pointer("cuEventCreate", 2)
    current.call("cuEventRecord", outside, None)
    graphs.begin(stream, RELAXED)
    assert current.status("cuStreamWaitEvent", stream, outside, 0) == CAPTURE_ISOLATION
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED
    graphs.begin(stream, RELAXED)
    current.call("cuEventRecord", inside, stream)
    assert current.status("cuEventQuery", inside) == CAPTURED_EVENT
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED
    assert current.status("cuEventSynchronize", inside) == CAPTURED_EVENT
    current.call("cuEventRecord", inside, None)
    current.call("cuEventSynchronize", inside)


def test_two_captures_do_not_merge(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    other, event = current.pointer("cuStreamCreate", 1), current.pointer("cuEventCreate", 2)
    graphs.begin(stream)
    graphs.begin(other)
    current.call("cuEventRecord", event, stream)
    assert current.status("cuStreamWaitEvent", other, event, 0) == CAPTURE_MERGE
    assert graphs.end_status(other) == graphs.end_status(stream) == CAPTURE_INVALIDATED


def test_the_legacy_stream(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    memory = current.allocate(4)
    for legacy in (None, Pointer(1)):
        assert current.status("cuStreamBeginCapture_v2", legacy, GLOBAL) == CAPTURE_UNSUPPORTED
    with graphs.capture(stream):  # a stream that the legacy one does not wait for
        current.call("cuMemsetD32Async", memory, 1, SIZE(1), None)
        assert graphs.capturing(Pointer(1)) == NONE
    blocking = current.pointer("cuStreamCreate", 0)
    graphs.begin(blocking)
    status = ctypes.c_int()
    assert current.status("cuStreamIsCapturing", None, ctypes.byref(status)) == CAPTURE_IMPLICIT
    assert graphs.capturing(blocking) == ACTIVE
    assert current.status("cuMemsetD32Async", memory, 1, SIZE(1), None) == CAPTURE_IMPLICIT
    assert graphs.end_status(blocking) == CAPTURE_INVALIDATED
    graphs.destroy(_captured_default(current, graphs))


def _captured_default(current: EmulatedDriver, graphs: Graphs) -> Pointer:
    """The per-thread default stream is an ordinary one."""
    graphs.begin(Pointer(2))
    return graphs.end(Pointer(2))


def test_states(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    assert graphs.end_status(stream) == ILLEGAL_STATE
    graphs.begin(stream)
    assert current.status("cuStreamBeginCapture_v2", stream, GLOBAL) == ILLEGAL_STATE
    assert in_thread(lambda: current.status("cuInit", 0)) == 0
    assert in_thread(lambda: graphs.end_status(stream)) == WRONG_THREAD
    graphs.destroy(graphs.end(stream))
    graphs.begin(stream, RELAXED)
    assert in_thread(lambda: graphs.end_status(stream)) == 0
    assert current.status("cuStreamBeginCapture_v2", stream, 3) == INVALID_VALUE


@pytest.mark.parametrize("call", ["cuStreamSynchronize", "cuStreamQuery"])
@pytest.mark.parametrize("mode", MODES)
def test_a_capturing_stream_is_not_waited_for(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer, call: str, mode: int
) -> None:
    graphs.begin(stream, mode)
    assert current.status(call, stream) == CAPTURE_UNSUPPORTED
    assert (
        current.status(
            "cuMemsetD8Async", current.allocate(1) if mode == RELAXED else None, 0, SIZE(1), stream
        )
        == CAPTURE_INVALIDATED
    )
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED


def test_unsafe_calls_by_mode(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    library = current.load(EMPTY)

    def unload() -> int:
        return current.status("cuLibraryUnload", library)

    for mode, here, elsewhere in (
        (GLOBAL, CAPTURE_UNSUPPORTED, CAPTURE_UNSUPPORTED),
        (THREAD_LOCAL, CAPTURE_UNSUPPORTED, 0),
        (RELAXED, 0, 0),
    ):
        for where, expected in ((lambda call: call(), here), (in_thread, elsewhere)):
            graphs.begin(stream, mode)
            assert where(unload) == expected, (mode, expected)
            if expected:
                assert graphs.end_status(stream) == CAPTURE_INVALIDATED
            else:
                graphs.destroy(graphs.end(stream))
                library = current.load(EMPTY)
    assert unload() == 0


def test_the_thread_is_asked_as_well(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    memory = current.allocate(4)
    graphs.begin(stream)
    assert exchange(current, RELAXED) == GLOBAL
    current.call("cuMemFree", memory)
    assert exchange(current, GLOBAL) == RELAXED
    assert graphs.capturing(stream) == ACTIVE
    library = current.load(EMPTY)
    current.kernel(library, b"k")  # loading is safe
    graphs.destroy(graphs.end(stream))
    current.call("cuLibraryUnload", library)


def test_the_context_is_not_waited_for(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    graphs.begin(stream, RELAXED)
    assert current.status("cuCtxSynchronize") == CAPTURE_UNSUPPORTED
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED
    current.call("cuCtxSynchronize")


def test_capture_info(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    memory = current.allocate(4)
    status, number = ctypes.c_int(-1), ctypes.c_uint64()
    graph, dependencies, edges, count = Pointer(), ctypes.POINTER(Pointer)(), Pointer(), SIZE(9)

    def ask() -> list[int]:
        current.call(
            "cuStreamGetCaptureInfo_v3",
            stream,
            *(ctypes.byref(out) for out in (status, number, graph, dependencies, edges, count)),
        )
        return [dependencies[index] or 0 for index in range(count.value)]

    graphs.begin(stream)
    assert ask() == []
    assert status.value == ACTIVE
    assert number.value
    current.call("cuMemsetD32Async", memory, 1, SIZE(1), stream)
    (first,) = ask()
    assert graphs.nodes(graph) == [first]
    current.call("cuMemsetD32Async", memory, 2, SIZE(1), stream)
    (second,) = ask()
    nodes = (Pointer * 1)(first)
    current.call("cuStreamUpdateCaptureDependencies", stream, nodes, SIZE(1), 0)
    assert ask() == [second, first]
    current.call("cuStreamUpdateCaptureDependencies", stream, nodes, SIZE(1), 1)
    assert ask() == [first]
    current.call("cuMemsetD32Async", memory, 3, SIZE(1), stream)
    (third,) = ask()
    # The second node now is a leaf that the stream does not wait for.
    assert graphs.edges(graph) == {(first, second), (first, third)}
    assert graphs.end_status(stream) == CAPTURE_UNJOINED


def test_capture_into_a_graph(current: EmulatedDriver, graphs: Graphs, stream: Pointer) -> None:
    memory, graph = current.allocate(4), graphs.create()
    first = graphs.add_memset(graph, [], memory, 1, 1)
    other = graphs.add_memset(graph, [], memory, 2, 1)
    current.call(
        "cuStreamBeginCaptureToGraph", stream, graph, ctypes.byref(first), None, SIZE(1), GLOBAL
    )
    assert current.status("cuGraphDestroy", graph) == INVALID_VALUE
    current.call("cuMemsetD32Async", memory, 3, SIZE(1), stream)
    assert graphs.end(stream).value == graph.value
    nodes = graphs.nodes(graph)
    assert nodes[:2] == [first.value, other.value]
    assert graphs.edges(graph) == {(nodes[0], nodes[2])}
    graphs.destroy(graph)


def test_streams_that_end_in_a_capture(current: EmulatedDriver, graphs: Graphs) -> None:
    first, memory = current.pointer("cuStreamCreate", 1), current.allocate(4)
    event = current.pointer("cuEventCreate", 2)

    def fork() -> Pointer:
        side = current.pointer("cuStreamCreate", 1)
        graphs.begin(first)
        current.call("cuEventRecord", event, first)
        current.call("cuStreamWaitEvent", side, event, 0)
        current.call("cuMemsetD32Async", memory, 1, SIZE(1), side)
        return side

    side = fork()
    current.call("cuEventRecord", event, side)
    current.call("cuStreamWaitEvent", first, event, 0)
    current.call("cuStreamDestroy", side)  # joined: nothing is lost
    graphs.destroy(graphs.end(first))
    current.call("cuStreamDestroy", fork())
    assert graphs.end_status(first) == CAPTURE_UNJOINED
    side = fork()
    current.call("cuStreamDestroy", first)
    assert graphs.capturing(side) == NONE
    current.call("cuMemFree", memory)  # no capture is left that would forbid it


def test_external_events_are_nodes(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    event = current.pointer("cuEventCreate", 2)
    with graphs.capture(stream) as captured:
        current.call("cuEventRecordWithFlags", event, stream, 1)
        current.call("cuStreamWaitEvent", stream, event, 1)
    (graph,) = captured
    assert graphs.types(graph) == [7, 6]
    current.call("cuEventQuery", event)
    executable = graphs.instantiate(graph)
    graphs.launch(executable, stream)
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)


def test_a_launch_of_a_graph_is_not_captured(
    current: EmulatedDriver, graphs: Graphs, stream: Pointer
) -> None:
    graph = graphs.create()
    executable = graphs.instantiate(graph)
    graphs.begin(stream)
    assert current.status("cuGraphLaunch", executable, stream) == CAPTURE_UNSUPPORTED
    assert graphs.end_status(stream) == CAPTURE_INVALIDATED
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)
