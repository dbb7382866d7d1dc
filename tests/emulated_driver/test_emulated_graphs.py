"""Graphs: nodes and edges, executables, updates, memory nodes, user objects, what is refused."""

from __future__ import annotations

import ctypes
import struct
import threading
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, run_script
from graph_api import (
    ALLOC,
    EMPTY,
    FREE,
    GRAPH,
    HOST,
    INVALID_HANDLE,
    INVALID_VALUE,
    KERNEL,
    MEMCPY,
    MEMSET,
    NOT_PERMITTED,
    NOT_SUPPORTED,
    RECORD,
    SIZE,
    UPDATE_FAILURE,
    WAIT,
    AllocNode,
    Graphs,
    HostNode,
    InstantiateParams,
    KernelNode,
    Memcpy,
    Memset,
    UpdateInfo,
    alloc_params,
    device_copy,
)
from test_emulated_launches import ADD

HOST_FUNCTION = ctypes.CFUNCTYPE(None, Pointer)


@pytest.fixture
def graphs(current: EmulatedDriver) -> Graphs:
    return Graphs(current)


@pytest.fixture
def add(current: EmulatedDriver) -> Pointer:
    return current.kernel(current.load(ADD), b"add")


def values(memory: Pointer, addend: int) -> list[ctypes.c_uint64 | ctypes.c_uint32]:
    return [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(addend)]


def test_a_graph_of_every_kind_of_node(
    current: EmulatedDriver, graphs: Graphs, add: Pointer
) -> None:
    memory, target = current.allocate(16), current.allocate(16)
    event = current.pointer("cuEventCreate", 2)
    seen: list[int | None] = []
    function = HOST_FUNCTION(seen.append)
    graph, child = graphs.create(), graphs.create()
    graphs.add_kernel(child, [], graphs.kernel_params(add, values(memory, 30), block=4))
    fill = graphs.add_memset(graph, [], memory, 1, 4)
    kernel = graphs.add_kernel(
        graph, [fill], graphs.kernel_params(add, values(memory, 10), block=4)
    )
    nested = graphs.add("cuGraphAddChildGraphNode", graph, [kernel], child)
    copy = graphs.add(
        "cuGraphAddMemcpyNode", graph, [nested], ctypes.byref(device_copy(target, memory, 16)), None
    )
    record = graphs.add("cuGraphAddEventRecordNode", graph, [copy], event)
    wait = graphs.add("cuGraphAddEventWaitNode", graph, [record], event)
    empty = graphs.add("cuGraphAddEmptyNode", graph, [wait])
    node = HostNode(ctypes.cast(function, Pointer), Pointer(7))
    graphs.add("cuGraphAddHostNode", graph, [empty], ctypes.byref(node))
    assert graphs.types(graph) == [MEMSET, KERNEL, GRAPH, MEMCPY, RECORD, WAIT, EMPTY, HOST]
    assert graphs.nodes(graph, "cuGraphGetRootNodes") == [fill.value]
    current.call("cuGraphDestroy", child)  # the node has its own copy
    executable = graphs.instantiate(graph)
    current.call("cuGraphUpload", executable, None)
    graphs.launch(executable)
    assert graphs.words(target, 4) == (41,) * 4
    assert seen == [7]
    graphs.destroy(graph)
    graphs.launch(executable)  # needs its graph no more
    assert graphs.words(target, 4) == (41,) * 4
    assert seen == [7, 7]
    current.call("cuGraphExecDestroy", executable)


def test_parameters_come_back(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    memory, event = current.allocate(16), current.pointer("cuEventCreate", 2)
    graph, child = graphs.create(), graphs.create()
    node = graphs.add_kernel(graph, [], graphs.kernel_params(add, values(memory, 5), 3, 2))
    got = KernelNode()
    current.call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(got))
    assert (got.kern, got.func, list(got.grid), list(got.block)) == (
        add.value,
        None,
        [3, 1, 1],
        [2, 1, 1],
    )
    address = ctypes.cast(got.parameters[0] or 0, ctypes.POINTER(ctypes.c_uint64))
    addend = ctypes.cast(got.parameters[1] or 0, ctypes.POINTER(ctypes.c_uint32))
    assert (address[0], addend[0]) == (memory.value, 5)
    other = graphs.kernel_params(add, values(memory, 6), 1, 4)
    current.call("cuGraphKernelNodeSetParams_v2", node, ctypes.byref(other))
    current.call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(got))
    assert list(got.block) == [4, 1, 1]

    fill, got_fill = graphs.add_memset(graph, [], memory, 9, 4), Memset()
    current.call("cuGraphMemsetNodeGetParams", fill, ctypes.byref(got_fill))
    assert (got_fill.address, got_fill.value, got_fill.width) == (memory.value, 9, 4)
    copy = device_copy(memory, memory, 4)
    copied, got_copy = (
        graphs.add("cuGraphAddMemcpyNode", graph, [], ctypes.byref(copy), None),
        Memcpy(),
    )
    current.call("cuGraphMemcpyNodeGetParams", copied, ctypes.byref(got_copy))
    assert (got_copy.to_device, got_copy.width) == (memory.value, 4)
    recorded, got_event = graphs.add("cuGraphAddEventRecordNode", graph, [], event), Pointer()
    current.call("cuGraphEventRecordNodeGetEvent", recorded, ctypes.byref(got_event))
    assert got_event.value == event.value
    nested, got_graph = graphs.add("cuGraphAddChildGraphNode", graph, [], child), Pointer()
    current.call("cuGraphChildGraphNodeGetGraph", nested, ctypes.byref(got_graph))
    assert got_graph.value not in (None, child.value)
    assert current.status("cuGraphDestroy", got_graph) == INVALID_VALUE
    for name in ("cuGraphKernelNodeGetParams_v2", "cuGraphHostNodeGetParams"):
        assert current.status(name, fill, ctypes.byref(got)) == INVALID_VALUE
    graphs.destroy(graph, child)
    assert current.status("cuGraphGetNodes", got_graph, None, ctypes.byref(SIZE())) == INVALID_VALUE
    assert current.status("cuGraphNodeGetType", node, ctypes.byref(ctypes.c_int())) == INVALID_VALUE


def test_edges(current: EmulatedDriver, graphs: Graphs) -> None:
    graph, other = graphs.create(), graphs.create()
    first, second, third = (graphs.add("cuGraphAddEmptyNode", graph, []) for _ in range(3))
    foreign = graphs.add("cuGraphAddEmptyNode", other, [])

    def edges(name: str, *pairs: tuple[Pointer, Pointer]) -> int:
        sources = (Pointer * 3)(*(pair[0].value for pair in pairs))
        targets = (Pointer * 3)(*(pair[1].value for pair in pairs))
        return current.status(name, graph, sources, targets, SIZE(len(pairs)))

    add, remove = "cuGraphAddDependencies", "cuGraphRemoveDependencies"
    assert edges(add, (first, second), (second, third)) == 0
    assert graphs.edges(graph) == {(first.value, second.value), (second.value, third.value)}
    assert graphs.nodes(second, "cuGraphNodeGetDependencies") == [first.value]
    assert graphs.nodes(second, "cuGraphNodeGetDependentNodes") == [third.value]
    for pair in ((first, second), (first, first), (first, foreign), (foreign, first)):
        assert edges(add, pair) == INVALID_VALUE
    assert edges(add, (first, third), (first, third)) == INVALID_VALUE
    assert edges(remove, (first, third)) == INVALID_VALUE
    assert len(graphs.edges(graph)) == 2
    assert edges(add, (third, first)) == 0  # a cycle, which instantiation finds
    params = InstantiateParams()
    assert (
        current.status(
            "cuGraphInstantiateWithParams", ctypes.byref(Pointer()), graph, ctypes.byref(params)
        )
        == INVALID_VALUE
    )
    assert params.result == 2
    assert params.node in (first.value, second.value, third.value)
    assert edges(remove, (third, first)) == 0
    current.call("cuGraphDestroyNode", second)
    assert graphs.edges(graph) == set()
    assert len(graphs.nodes(graph)) == 2
    executable = Pointer()
    current.call(
        "cuGraphInstantiateWithParams", ctypes.byref(executable), graph, ctypes.byref(params)
    )
    assert params.result == 0
    current.call("cuGraphExecDestroy", executable)
    dependencies = (Pointer * 2)(first.value, first.value)
    node = ctypes.byref(Pointer())
    assert (
        current.status("cuGraphAddEmptyNode", node, graph, dependencies, SIZE(2)) == INVALID_VALUE
    )
    graphs.destroy(graph, other)


def test_edges_with_data(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    memory, graph = current.allocate(16), graphs.create()
    nodes = [
        graphs.add_kernel(graph, [], graphs.kernel_params(add, values(memory, 1))) for _ in range(2)
    ]
    fill = graphs.add_memset(graph, [], memory, 0, 4)
    sources, targets = (Pointer * 1)(nodes[0].value), (Pointer * 1)(nodes[1].value)
    programmatic = (ctypes.c_ubyte * 8)(1, 0, 1)
    name = "cuGraphAddDependencies_v2"
    assert (
        current.status(name, graph, sources, (Pointer * 1)(fill.value), programmatic, SIZE(1))
        == INVALID_VALUE
    )
    for bad in (bytes([0, 1]), bytes([0, 0, 2]), bytes([0, 0, 0, 1])):
        data = (ctypes.c_ubyte * 8)(*bad)
        assert current.status(name, graph, sources, targets, data, SIZE(1)) == INVALID_VALUE
    current.call(name, graph, sources, targets, programmatic, SIZE(1))
    got, data, count = (Pointer * 1)(), (ctypes.c_ubyte * 8)(), SIZE(1)
    lossy = current.status("cuGraphNodeGetDependencies", nodes[1], got, ctypes.byref(count))
    assert lossy == 402
    current.call("cuGraphNodeGetDependencies_v2", nodes[1], got, data, ctypes.byref(count))
    assert list(data)[:3] == [1, 0, 1]
    assert got[0] == nodes[0].value
    graphs.destroy(graph)


def test_clones(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    memory = current.allocate(16)
    graph = graphs.create()
    fill = graphs.add_memset(graph, [], memory, 1, 4)
    kernel = graphs.add_kernel(graph, [fill], graphs.kernel_params(add, values(memory, 1), block=4))
    clone = current.pointer("cuGraphClone", graph)
    twin = current.pointer("cuGraphNodeFindInClone", kernel, clone)
    assert [twin.value] == graphs.nodes(clone)[1:]
    assert len(graphs.edges(clone)) == 1
    current.call("cuGraphDestroyNode", kernel)
    executable = graphs.instantiate(clone)
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (2,) * 4
    assert (
        current.status("cuGraphNodeFindInClone", ctypes.byref(Pointer()), fill, graph)
        == INVALID_VALUE
    )
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph, clone)


def test_an_executable_is_patched(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    memory, graph = current.allocate(16), graphs.create()
    fill = graphs.add_memset(graph, [], memory, 0, 4)
    params = graphs.kernel_params(add, values(memory, 1), block=4)
    kernel = graphs.add_kernel(graph, [fill], params)
    executable = graphs.instantiate(graph)
    changed = graphs.kernel_params(add, values(memory, 5), block=2)
    current.call("cuGraphExecKernelNodeSetParams_v2", executable, kernel, ctypes.byref(changed))
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (5, 5, 0, 0)
    current.call(
        "cuGraphExecMemsetNodeSetParams",
        executable,
        fill,
        ctypes.byref(Memset(memory.value, 0, 3, 4, 4, 1)),
        None,
    )
    enabled = ctypes.c_uint(9)
    current.call("cuGraphNodeSetEnabled", executable, kernel, 0)
    current.call("cuGraphNodeGetEnabled", executable, kernel, ctypes.byref(enabled))
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (3,) * 4
    assert enabled.value == 0
    current.call("cuGraphNodeSetEnabled", executable, kernel, 1)
    # The graph itself is as it was.
    again = graphs.instantiate(graph)
    graphs.launch(again)
    assert graphs.words(memory, 4) == (1,) * 4

    bad = graphs.kernel_params(add, values(memory, 5), block=2048)
    other = graphs.create()
    foreign = graphs.add_kernel(other, [], params)
    for executable_, node, wrong in (
        (executable, kernel, bad),
        (executable, fill, params),
        (executable, foreign, params),
        (Pointer(0x1234), kernel, params),
    ):
        assert (
            current.status(
                "cuGraphExecKernelNodeSetParams_v2", executable_, node, ctypes.byref(wrong)
            )
            == INVALID_VALUE
        )
    empty = graphs.add("cuGraphAddEmptyNode", graph, [])
    assert current.status("cuGraphNodeSetEnabled", executable, empty, 0) == INVALID_VALUE
    for one in (executable, again):
        current.call("cuGraphExecDestroy", one)
        assert current.status("cuGraphLaunch", one, None) == INVALID_VALUE
    graphs.destroy(graph, other)


def test_a_whole_executable_is_updated(
    current: EmulatedDriver, graphs: Graphs, add: Pointer
) -> None:
    memory = current.allocate(16)

    def make(addend: int, kinds: str = "fk") -> Pointer:
        graph = graphs.create()
        after: list[Pointer] = []
        for kind in kinds:
            if kind == "f":
                after = [graphs.add_memset(graph, after, memory, 0, 4)]
            else:
                params = graphs.kernel_params(add, values(memory, addend), block=4)
                after = [graphs.add_kernel(graph, after, params)]
        return graph

    executable, info = graphs.instantiate(make(1)), UpdateInfo()
    current.call("cuGraphExecUpdate_v2", executable, make(8), ctypes.byref(info))
    assert info.result == 0
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (8,) * 4
    for kinds, result in (("fkk", 2), ("kf", 3), ("f", 2)):
        other = make(3, kinds)
        status = current.status("cuGraphExecUpdate_v2", executable, other, ctypes.byref(info))
        assert (status, info.result) == (UPDATE_FAILURE, result)
    unconnected = graphs.create()
    graphs.add_memset(unconnected, [], memory, 0, 4)
    params = graphs.kernel_params(add, values(memory, 1), block=4)
    node = graphs.add_kernel(unconnected, [], params)
    status = current.status("cuGraphExecUpdate_v2", executable, unconnected, ctypes.byref(info))
    assert (status, info.result, info.node) == (UPDATE_FAILURE, 2, node.value)
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (8,) * 4


def test_an_executable_does_not_overlap_itself(current: EmulatedDriver, graphs: Graphs) -> None:
    graph, running, most = graphs.create(), [0], [0]

    def work(_: int | None) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        threading.Event().wait(0.05)
        running[0] -= 1

    function = HOST_FUNCTION(work)
    node = HostNode(ctypes.cast(function, Pointer), None)
    graphs.add("cuGraphAddHostNode", graph, [], ctypes.byref(node))
    executable = graphs.instantiate(graph)

    def launch() -> None:
        current.make_current()
        stream = current.pointer("cuStreamCreate", 1)
        current.call("cuGraphLaunch", executable, stream)
        current.call("cuStreamSynchronize", stream)
        current.call("cuStreamDestroy", stream)
        current.call("cuDevicePrimaryCtxRelease", 0)

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (running[0], most[0]) == (0, 1)
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)


def test_host_nodes_may_not_call_the_driver(current: EmulatedDriver, graphs: Graphs) -> None:
    graph, statuses = graphs.create(), []
    function = HOST_FUNCTION(lambda _: statuses.append(current.status("cuCtxSynchronize")))
    node = HostNode(ctypes.cast(function, Pointer), None)
    graphs.add("cuGraphAddHostNode", graph, [], ctypes.byref(node))
    assert (
        current.status(
            "cuGraphAddHostNode",
            ctypes.byref(Pointer()),
            graph,
            None,
            SIZE(0),
            ctypes.byref(HostNode()),
        )
        == INVALID_VALUE
    )
    graphs.launch(graphs.instantiate(graph))
    assert statuses == [NOT_PERMITTED]


def test_memory_nodes(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    target, graph = current.allocate(16), graphs.create()
    params = alloc_params(16)
    allocation = graphs.add("cuGraphAddMemAllocNode", graph, [], ctypes.byref(params))
    memory = Pointer(params.address)
    assert current.status("cuMemcpyDtoH_v2", ctypes.create_string_buffer(16), memory, SIZE(16)) == 1
    fill = graphs.add_memset(graph, [allocation], memory, 6, 4)
    kernel = graphs.add_kernel(graph, [fill], graphs.kernel_params(add, values(memory, 4), block=4))
    copy = graphs.add(
        "cuGraphAddMemcpyNode", graph, [kernel], ctypes.byref(device_copy(target, memory, 16)), None
    )
    end = graphs.add("cuGraphAddMemFreeNode", graph, [copy], memory)
    assert graphs.types(graph) == [ALLOC, MEMSET, KERNEL, MEMCPY, FREE]
    got, address = AllocNode(), ctypes.c_uint64()
    current.call("cuGraphMemAllocNodeGetParams", allocation, ctypes.byref(got))
    current.call("cuGraphMemFreeNodeGetParams", end, ctypes.byref(address))
    assert (got.size, got.address, address.value) == (16, memory.value, memory.value)
    executable = graphs.instantiate(graph)
    assert (
        current.status(
            "cuGraphInstantiateWithFlags", ctypes.byref(Pointer()), graph, ctypes.c_ulonglong(0)
        )
        == NOT_SUPPORTED
    )
    for _ in range(3):
        graphs.launch(executable)
        assert graphs.words(target, 4) == (10,) * 4
        assert current.status("cuMemFree", memory) == INVALID_VALUE
    for name, arguments in (
        ("cuGraphClone", (ctypes.byref(Pointer()), graph)),
        ("cuGraphDestroyNode", (fill,)),
    ):
        assert current.status(name, *arguments) == NOT_SUPPORTED
    current.call("cuGraphExecDestroy", executable)
    current.call("cuGraphExecDestroy", graphs.instantiate(graph))
    graphs.destroy(graph)


@pytest.mark.parametrize("automatic", [False, True])
def test_memory_that_outlives_the_launch(
    current: EmulatedDriver, graphs: Graphs, automatic: bool
) -> None:
    graph, params = graphs.create(), alloc_params(16)
    allocation = graphs.add("cuGraphAddMemAllocNode", graph, [], ctypes.byref(params))
    memory = Pointer(params.address)
    graphs.add_memset(graph, [allocation], memory, 6, 4)
    executable = graphs.instantiate(graph, flags=1 if automatic else 0)
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (6,) * 4
    used = ctypes.c_uint64()
    current.call("cuDeviceGetGraphMemAttribute", 0, 0, ctypes.byref(used))
    assert used.value == 16
    assert current.status("cuGraphLaunch", executable, None) == (0 if automatic else INVALID_VALUE)
    current.call("cuMemFreeAsync", memory, None)
    current.call("cuCtxSynchronize")
    current.call("cuDeviceGetGraphMemAttribute", 0, 0, ctypes.byref(used))
    assert used.value == 0
    graphs.launch(executable)
    current.call("cuGraphExecDestroy", executable)
    graphs.destroy(graph)
    assert graphs.words(memory, 4) == (6,) * 4  # still allocated
    current.call("cuMemFree", memory)
    assert current.status("cuMemFree", memory) == INVALID_VALUE


def test_captured_allocations(current: EmulatedDriver, graphs: Graphs) -> None:
    stream, target = current.pointer("cuStreamCreate", 1), current.allocate(16)
    with graphs.capture(stream) as captured:
        memory = current.pointer("cuMemAllocAsync", SIZE(16), stream)
        current.call("cuMemsetD32Async", memory, 9, SIZE(4), stream)
        current.call("cuMemcpyDtoDAsync_v2", target, memory, SIZE(16), stream)
        current.call("cuMemFreeAsync", memory, stream)
        assert current.status("cuMemFreeAsync", target, stream) == INVALID_VALUE
    (graph,) = captured
    assert graphs.types(graph) == [ALLOC, MEMSET, MEMCPY, FREE]
    executable = graphs.instantiate(graph)
    graphs.launch(executable, stream)
    assert graphs.words(target, 4) == (9,) * 4


def test_memory_that_is_gone_faults(current: EmulatedDriver, graphs: Graphs) -> None:
    memory, graph = current.allocate(16), graphs.create()
    graphs.add_memset(graph, [], memory, 6, 4)
    executable = graphs.instantiate(graph)
    current.call("cuMemFree", memory)
    current.call("cuGraphLaunch", executable, None)
    assert current.status("cuCtxSynchronize") == 700


def test_user_objects_live_as_long_as_graphs(current: EmulatedDriver, graphs: Graphs) -> None:
    ended: list[int | None] = []
    destroy = HOST_FUNCTION(ended.append)

    def object_(value: int) -> Pointer:
        return current.pointer("cuUserObjectCreate", Pointer(value), destroy, 1, 1)

    graph = graphs.create()
    current.call("cuGraphRetainUserObject", graph, object_(1), 1, 1)
    kept = object_(2)
    current.call("cuGraphRetainUserObject", graph, kept, 1, 0)
    current.call("cuUserObjectRelease", kept, 1)
    clone, executable = current.pointer("cuGraphClone", graph), graphs.instantiate(graph)
    assert current.status("cuGraphReleaseUserObject", graph, kept, 2) == INVALID_VALUE
    current.call("cuGraphReleaseUserObject", graph, kept, 1)
    graphs.destroy(graph)
    graphs.destroy(clone)
    assert ended == []
    current.call("cuGraphExecDestroy", executable)
    assert set(ended) == {1, 2}


def test_an_unloaded_library(current: EmulatedDriver, graphs: Graphs) -> None:
    library, memory = current.load(ADD), current.upload(bytes(4))
    graph = graphs.create()
    kernel = current.kernel(library, b"add")
    graphs.add_kernel(graph, [], graphs.kernel_params(kernel, values(memory, 5)))
    executable = graphs.instantiate(graph)
    current.call("cuLibraryUnload", library)
    assert current.status("cuGraphLaunch", executable, None) == INVALID_HANDLE
    assert graphs.words(memory, 1) == (0,)


FAITHFUL = """
from graph_api import *
from test_emulated_launches import ADD
driver.make_current()
graphs = Graphs(driver)
library, memory = driver.load(ADD), driver.upload(bytes(4))
graph = graphs.create()
values = [ctypes.c_uint64(memory.value), ctypes.c_uint32(5)]
graphs.add_kernel(graph, [], graphs.kernel_params(driver.kernel(library, b"add"), values))
executable = graphs.instantiate(graph)
graphs.launch(executable)
driver.call("cuLibraryUnload", library)
graphs.launch(executable)
print(graphs.words(memory, 1))
driver.call("cuStreamBeginCapture_v2", driver.pointer("cuStreamCreate", 1), 0)
"""


def test_faithfully_an_unloaded_library_goes_unnoticed(shared_driver: EmulatedDriver) -> None:
    ran = run_script(
        shared_driver.path,
        FAITHFUL,
        CUDAMOD_EMULATOR_MANNER="faithful",
        CUDAMOD_EMULATOR_LEAKS="1",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "(5,)\n"  # the second launch said 0 and computed nothing of the kind
    assert "2 graph, 1 graph_exec" in ran.stderr


def test_dot(current: EmulatedDriver, graphs: Graphs, add: Pointer, tmp_path: Path) -> None:
    graph = graphs.create()
    fill = graphs.add_memset(graph, [], current.allocate(16), 6, 4)
    graphs.add_kernel(graph, [fill], graphs.kernel_params(add, values(current.allocate(4), 1)))
    path = tmp_path / "graph.dot"
    current.call("cuGraphDebugDotPrint", graph, str(path).encode(), 0)
    text = path.read_text()
    assert text.startswith("digraph")
    assert text.count("->") == 1
    assert "add" in text
    assert current.status("cuGraphDebugDotPrint", graph, b"/no/such/folder/g", 0) == 304
    graphs.destroy(graph)


def test_generic_nodes(current: EmulatedDriver, graphs: Graphs, add: Pointer) -> None:
    memory, graph = current.allocate(16), graphs.create()
    room = ctypes.create_string_buffer(16 + 29 * 8)

    def describe(kind: int, params: ctypes.Structure) -> ctypes.Array[ctypes.c_char]:
        room.raw = struct.pack("iiii", kind, 0, 0, 0) + bytes(params).ljust(29 * 8, b"\0")
        return room

    fill = Memset(memory.value, 0, 2, 4, 4, 1)
    first = graphs.add("cuGraphAddNode", graph, [], describe(MEMSET, fill))
    kernel = graphs.kernel_params(add, values(memory, 3), block=4)
    dependencies = (Pointer * 1)(first.value)
    second = current.pointer(
        "cuGraphAddNode_v2", graph, dependencies, None, SIZE(1), describe(KERNEL, kernel)
    )
    executable = graphs.instantiate(graph)
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (5,) * 4
    kernel = graphs.kernel_params(add, values(memory, 30), block=4)
    current.call("cuGraphExecNodeSetParams", executable, second, describe(KERNEL, kernel))
    graphs.launch(executable)
    assert graphs.words(memory, 4) == (32,) * 4
    assert current.status("cuGraphNodeSetParams", first, describe(KERNEL, kernel)) == INVALID_VALUE
    node = ctypes.byref(Pointer())
    for kind, status in ((13, NOT_SUPPORTED), (99, INVALID_VALUE)):
        assert (
            current.status("cuGraphAddNode", node, graph, None, SIZE(0), describe(kind, fill))
            == status
        )
    graphs.destroy(graph)
