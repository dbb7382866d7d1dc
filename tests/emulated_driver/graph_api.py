"""Captures and graphs through the emulated driver's C functions: structures and shorthands."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from emulated_driver_api import EmulatedDriver, Pointer

SIZE = ctypes.c_size_t
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALIDATED = 0, 1, 2
INVALID_VALUE, INVALID_HANDLE, ILLEGAL_STATE, NOT_PERMITTED, NOT_SUPPORTED = 1, 400, 401, 800, 801
CAPTURE_UNSUPPORTED, CAPTURE_INVALIDATED, CAPTURE_MERGE, CAPTURE_UNMATCHED = 900, 901, 902, 903
CAPTURE_UNJOINED, CAPTURE_ISOLATION, CAPTURE_IMPLICIT, CAPTURED_EVENT = 904, 905, 906, 907
WRONG_THREAD, UPDATE_FAILURE = 908, 910
KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT, RECORD, ALLOC, FREE = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    10,
    11,
)


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("func", Pointer),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.POINTER(Pointer)),
        ("extra", Pointer),
        ("kern", Pointer),
        ("context", Pointer),
    ]


class Memset(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("pitch", SIZE),
        ("value", ctypes.c_uint),
        ("element", ctypes.c_uint),
        ("width", SIZE),
        ("height", SIZE),
    ]


class Memcpy(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        field
        for side in ("from", "to")
        for field in (
            (f"{side}_x", SIZE),
            (f"{side}_y", SIZE),
            (f"{side}_z", SIZE),
            (f"{side}_lod", SIZE),
            (f"{side}_type", ctypes.c_uint),
            (f"{side}_host", Pointer),
            (f"{side}_device", ctypes.c_uint64),
            (f"{side}_array", Pointer),
            (f"{side}_reserved", Pointer),
            (f"{side}_pitch", SIZE),
            (f"{side}_height", SIZE),
        )
    ] + [("width", SIZE), ("height", SIZE), ("depth", SIZE)]


class HostNode(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = [("function", Pointer), ("data", Pointer)]


class AllocNode(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = [
        ("kind", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", ctypes.c_int),
        ("device", ctypes.c_int),
        ("security", Pointer),
        ("most", SIZE),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
        ("access", Pointer),
        ("access_count", SIZE),
        ("size", SIZE),
        ("address", ctypes.c_uint64),
    ]


class UpdateInfo(ctypes.Structure):
    """CUgraphExecUpdateResultInfo."""

    _fields_ = [("result", ctypes.c_int), ("node", Pointer), ("from_node", Pointer)]


class InstantiateParams(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("stream", Pointer),
        ("node", Pointer),
        ("result", ctypes.c_int),
    ]


def alloc_params(size: int, device: int = 0) -> AllocNode:
    return AllocNode(kind=1, location=1, device=device, size=size)


def device_copy(to: Pointer, source: Pointer, size: int) -> Memcpy:
    return Memcpy(
        from_type=2,
        from_device=source.value,
        to_type=2,
        to_device=to.value,
        width=size,
        height=1,
        depth=1,
    )


class Graphs:
    """The driver's graph functions with their counts and out-parameters taken care of."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver = driver
        self.kept: list[Any] = []  # what a node's description points to

    def begin(self, stream: Pointer, mode: int = GLOBAL) -> None:
        self.driver.call("cuStreamBeginCapture_v2", stream, mode)

    def end(self, stream: Pointer) -> Pointer:
        graph = Pointer()
        self.driver.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        return graph

    def end_status(self, stream: Pointer) -> int:
        return self.driver.status("cuStreamEndCapture", stream, ctypes.byref(Pointer()))

    @contextmanager
    def capture(self, stream: Pointer, mode: int = GLOBAL) -> Iterator[list[Pointer]]:
        graph: list[Pointer] = []
        self.begin(stream, mode)
        yield graph
        graph.append(self.end(stream))

    def capturing(self, stream: Pointer) -> int:
        status = ctypes.c_int(-1)
        self.driver.call("cuStreamIsCapturing", stream, ctypes.byref(status))
        return status.value

    def create(self) -> Pointer:
        return self.driver.pointer("cuGraphCreate", 0)

    def add(self, name: str, graph: Pointer, after: list[Pointer], *arguments: Any) -> Pointer:
        dependencies = (Pointer * max(len(after), 1))(*(node.value for node in after))
        return self.driver.pointer(name, graph, dependencies, SIZE(len(after)), *arguments)

    def kernel_params(
        self, kernel: Pointer, values: list[Any], grid: int = 1, block: int = 1
    ) -> KernelNode:
        pointers = (Pointer * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        self.kept += [pointers, values]
        return KernelNode(
            kern=kernel,
            grid=(grid, 1, 1),
            block=(block, 1, 1),
            parameters=ctypes.cast(pointers, ctypes.POINTER(Pointer)),
        )

    def add_kernel(self, graph: Pointer, after: list[Pointer], params: KernelNode) -> Pointer:
        return self.add("cuGraphAddKernelNode_v2", graph, after, ctypes.byref(params))

    def add_memset(
        self, graph: Pointer, after: list[Pointer], memory: Pointer, value: int, count: int
    ) -> Pointer:
        params = Memset(memory.value, 0, value, 4, count, 1)
        return self.add("cuGraphAddMemsetNode", graph, after, ctypes.byref(params), None)

    def nodes(self, graph: Pointer, name: str = "cuGraphGetNodes") -> list[int]:
        count = SIZE()
        self.driver.call(name, graph, None, ctypes.byref(count))
        nodes = (Pointer * (count.value + 2))()
        count.value += 2
        self.driver.call(name, graph, nodes, ctypes.byref(count))
        assert nodes[count.value] is None
        assert nodes[count.value + 1] is None
        return [nodes[index] or 0 for index in range(count.value)]

    def edges(self, graph: Pointer) -> set[tuple[int, int]]:
        count = SIZE()
        self.driver.call("cuGraphGetEdges", graph, None, None, ctypes.byref(count))
        sources, targets = (Pointer * (count.value + 1))(), (Pointer * (count.value + 1))()
        self.driver.call("cuGraphGetEdges", graph, sources, targets, ctypes.byref(count))
        return {(sources[index] or 0, targets[index] or 0) for index in range(count.value)}

    def types(self, graph: Pointer) -> list[int]:
        return [self.driver_type(Pointer(node)) for node in self.nodes(graph)]

    def driver_type(self, node: Pointer) -> int:
        kind = ctypes.c_int(-1)
        self.driver.call("cuGraphNodeGetType", node, ctypes.byref(kind))
        return kind.value

    def instantiate(self, graph: Pointer, flags: int = 0) -> Pointer:
        return self.driver.pointer("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(flags))

    def launch(self, executable: Pointer, stream: Pointer | None = None) -> None:
        self.driver.call("cuGraphLaunch", executable, stream)
        self.driver.call("cuStreamSynchronize", stream)

    def words(self, memory: Pointer, count: int) -> tuple[int, ...]:
        return struct.unpack(f"{count}I", self.driver.download(memory, 4 * count))

    def destroy(self, *graphs: Pointer) -> None:
        for graph in graphs:
            self.driver.call("cuGraphDestroy", graph)
