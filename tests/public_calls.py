"""What the public API can be called for: one call of each method, one object of each class.

The tables are for tests of what holds for every public operation. A method that ``CALLS`` lacks, or
a class that ``SAMPLES`` lacks, fails ``test_current_context.py``.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from ptx import ONE, empty

import cudamod
from cudamod import (
    Buffer,
    CompileCache,
    Device,
    DeviceMemoryResource,
    Event,
    EventOptions,
    Graph,
    Kernel,
    LaunchConfig,
    Launcher,
    LaunchSequence,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    ManagedMemoryResource,
    MemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    Stream,
    TensorMap,
    driver,
    handles,
    launch,
)
from cudamod.options import Options

IMAGE = empty("k", parameters=["u32"]) + b".visible .global .align 4 .u32 v;"
FATBIN = Path(__file__).parent / "data" / "names" / "names.zstd.fatbin"
CLUSTER = LaunchConfig(grid=1, block=1, cluster=1)
#: The status of the failures that tests inject, which no call answers by itself.
INJECTED = 999


@dataclass
class Scene:
    device: Device
    stream: Stream
    event: Event
    buffer: Buffer
    other: Buffer
    code: ObjectCode
    kernel: Kernel
    launcher: Launcher
    folder: str

    def unloaded(self) -> ObjectCode:
        """The same code, not loaded."""
        return copy.copy(self.code)


def in_a_context(call: Callable[[], object]) -> object:
    """What needs a current context raises without one."""
    if current():
        return call()
    with pytest.raises(cudamod.CUDAError) as caught:
        call()
    if caught.value.status == INJECTED:
        raise caught.value
    return None


def with_context(scene: Scene, call: Callable[[], object]) -> object:
    """A launch where none is current leaves the stream's current, as the driver does."""
    none = current() == 0
    try:
        return call()
    finally:
        if none:
            assert current() in (0, scene.device.context.handle)
            driver.cuCtxSetCurrent(None)


def with_clusters(scene: Scene, call: Callable[[], object]) -> object:
    return call() if scene.device.compute_capability >= (9, 0) else None


def suppressing(call: Callable[[], object]) -> object:
    """What needs what is not everywhere; a failure that a test injected is no such lack."""
    try:
        return call()
    except cudamod.CUDAError as error:
        if error.status == INJECTED:
            raise
    except Exception:
        pass
    return None


def a_program() -> Program:
    return Program(IMAGE.decode(), "ptx", ProgramOptions(arch="sm_90"))


def a_linker(scene: Scene) -> Linker:
    return Linker(scene.code, options=LinkerOptions(arch="sm_90"))


def a_map(scene: Scene) -> object:
    memory = scene.device.allocate(256, stream=scene.stream)
    return with_clusters(scene, lambda: TensorMap.tiled(memory, 16, shape=64, data_type="float32"))


def a_pool() -> DeviceMemoryResource:
    return DeviceMemoryResource(0, {})


def a_shared_pool() -> object:
    """A pool of this process, imported again."""

    def import_it() -> object:
        pool = DeviceMemoryResource(0, {"ipc_enabled": True})
        return DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle)

    return suppressing(import_it)


def a_sequence(scene: Scene) -> LaunchSequence:
    return LaunchSequence([scene.launcher.prepare(1), scene.launcher.prepare(2)])


def a_graph(scene: Scene) -> Graph:
    scene.stream.begin_capture()
    with_context(scene, lambda: scene.launcher(1))
    return scene.stream.end_capture()


def instantiated(graph: Graph) -> Graph:
    graph.instantiate()
    return graph


CALLS: dict[str, Callable[[Scene], object]] = {
    "Device()": lambda s: Device(),
    "Device(0)": lambda s: Device(0),
    "Device.count": lambda s: Device.count(),
    "Device.get_all_devices": lambda s: Device.get_all_devices(),
    "Device.name": lambda s: s.device.name,
    "Device.uuid": lambda s: s.device.uuid,
    "Device.pci_bus_id": lambda s: s.device.pci_bus_id,
    "Device.compute_capability": lambda s: s.device.compute_capability,
    "Device.arch": lambda s: s.device.arch,
    "Device.properties": lambda s: s.device.properties.warp_size,
    "Device.context": lambda s: (s.device.context.handle, s.device.context.device),
    "Device.default_stream": lambda s: s.device.default_stream,
    "Device.create_stream": lambda s: s.device.create_stream(),
    "Device.create_stream, priority": lambda s: s.device.create_stream(options={"priority": 0}),
    "Device.create_stream, foreign": lambda s: s.device.create_stream(s.stream),
    "Device.create_event": lambda s: s.device.create_event(),
    "Device.allocate": lambda s: s.device.allocate(8, stream=s.stream),
    "Device.allocate, default": lambda s: s.device.allocate(8),
    "Device.allocate, nothing": lambda s: s.device.allocate(0),
    "Device.sync": lambda s: s.device.sync(),
    "Device.can_access_peer": lambda s: s.device.can_access_peer(0),
    "Device.set_current": lambda s: s.device.set_current,  # what it is for: tested below
    "Device.__int__": lambda s: int(s.device),
    "ObjectCode.from_cubin": lambda s: ObjectCode.from_cubin(IMAGE).load(),
    "ObjectCode.from_ptx": lambda s: ObjectCode.from_ptx(IMAGE, debug=True).load(),
    "ObjectCode.from_fatbin": lambda s: ObjectCode.from_fatbin(IMAGE).load(),
    "ObjectCode.from_ltoir": lambda s: ObjectCode.from_ltoir(IMAGE),
    "ObjectCode.from_object": lambda s: ObjectCode.from_object(IMAGE),
    "ObjectCode.from_library": lambda s: ObjectCode.from_library(IMAGE),
    "ObjectCode.load": lambda s: s.unloaded().load(),
    "ObjectCode.handle, loading": lambda s: s.unloaded().handle,
    "ObjectCode.log, loading": lambda s: s.unloaded().log,
    "ObjectCode.get_kernel": lambda s: s.unloaded().get_kernel("k"),
    "ObjectCode.kernels": lambda s: s.unloaded().kernels(),
    "ObjectCode.images": lambda s: s.unloaded().images(),
    "ObjectCode.fatbins": lambda s: ObjectCode.from_fatbin(FATBIN).fatbins(),
    "ObjectCode.get_global": lambda s: in_a_context(lambda: s.code.get_global("v")),
    "ObjectCode.get_module": lambda s: in_a_context(s.code.get_module),
    "Kernel.from_handle": lambda s: Kernel.from_handle(s.kernel.handle, s.code),
    "Kernel.bind": lambda s: s.kernel.bind(ONE, s.stream),
    "Kernel.bind, shared memory": lambda s: s.kernel.bind(
        LaunchConfig(grid=1, block=1, shmem_size=60_000), s.stream
    ),
    "Kernel.load": lambda s: s.kernel.load(),
    "Kernel.load, device": lambda s: s.kernel.load(s.device),
    "Kernel.load, stream": lambda s: s.kernel.load(s.stream),
    "Kernel, pickled": lambda s: pickle.loads(pickle.dumps(s.kernel)),
    "KernelAttributes.__getitem__": lambda s: s.kernel.attributes[s.device].num_regs,
    "KernelAttributes, set": lambda s: setattr(
        s.kernel.attributes[0], "preferred_shared_memory_carveout", 50
    ),
    "KernelOccupancy.max_active_blocks_per_multiprocessor": lambda s: in_a_context(
        lambda: s.kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0)
    ),
    "KernelOccupancy.max_potential_block_size": lambda s: in_a_context(
        lambda: s.kernel.occupancy.max_potential_block_size(0, 0)
    ),
    "KernelOccupancy.available_dynamic_shared_memory_per_block": lambda s: in_a_context(
        lambda: s.kernel.occupancy.available_dynamic_shared_memory_per_block(1, 32)
    ),
    "KernelOccupancy.max_potential_cluster_size": lambda s: with_clusters(
        s, lambda: s.kernel.occupancy.max_potential_cluster_size(CLUSTER, stream=s.stream)
    ),
    "KernelOccupancy.max_active_clusters": lambda s: with_clusters(
        s, lambda: s.kernel.occupancy.max_active_clusters(CLUSTER, stream=s.stream)
    ),
    "LaunchConfig()": lambda s: LaunchConfig(grid=1, block=1, is_cooperative=True),
    "Launcher.on": lambda s: s.launcher.on(s.device.default_stream),
    "Launcher.__call__": lambda s: with_context(s, lambda: s.launcher(1)),
    "Launcher.__call__, keywords": lambda s: with_context(
        s, lambda: s.launcher(1, grid=2, stream=s.device.default_stream)
    ),
    "launch": lambda s: with_context(s, lambda: launch(s.stream, ONE, s.kernel, 1)),
    "Stream.close": lambda s: s.stream.close(),
    "Stream.__cuda_stream__": lambda s: s.stream.__cuda_stream__(),
    "Buffer.__dlpack_device__": lambda s: s.buffer.__dlpack_device__(),
    "Buffer.__enter__": lambda s: s.other.__enter__(),
    "Buffer.__exit__": lambda s: s.other.__exit__(None, None, None),
    "Event.__sub__": lambda s: s.event.__sub__(s.event),
    "Stream.from_handle": lambda s: Stream.from_handle(s.stream.handle),
    "Stream.sync": lambda s: s.stream.sync(),
    "Stream.sync, default": lambda s: s.device.default_stream.sync(),
    "Stream.record": lambda s: s.stream.record(),
    "Stream.record, event": lambda s: s.stream.record(s.event),
    "Stream.record, default": lambda s: s.device.default_stream.record(options=EventOptions(True)),
    "Stream.wait": lambda s: s.stream.wait(s.event),
    "Stream.wait, stream": lambda s: s.stream.wait(s.device.default_stream),
    "Stream.priority": lambda s: s.stream.priority,
    "Stream.is_nonblocking": lambda s: s.stream.is_nonblocking,
    "Stream.device": lambda s: (s.stream.device, s.stream.context, s.stream.handle),
    "Event.sync": lambda s: s.event.sync(),
    "Event.is_done": lambda s: s.event.is_done,
    "Event - Event": lambda s: s.event - s.event,
    "Event.device": lambda s: (s.event.device, s.event.context),
    "Buffer.copy_to": lambda s: s.buffer.copy_to(bytearray(8), stream=s.stream),
    "Buffer.copy_to, default": lambda s: s.buffer.copy_to(
        bytearray(8), stream=s.device.default_stream
    ),
    "Buffer.copy_to, new": lambda s: s.buffer.copy_to(stream=s.stream),
    "Buffer.copy_from": lambda s: s.buffer.copy_from(bytes(8), stream=s.stream),
    "Buffer.copy_from, buffer": lambda s: s.buffer.copy_from(s.other, stream=s.stream),
    "Buffer.fill": lambda s: s.buffer.fill(1, stream=s.stream),
    "Buffer.fill, default": lambda s: (
        s.buffer.fill(b"ab", stream=s.device.default_stream),
        s.device.default_stream.sync(),  # the buffer is freed in another stream's order
    ),
    "Buffer.close": lambda s: s.other.close(),
    "Buffer.close, default": lambda s: s.other.close(s.device.default_stream),
    "Buffer.from_handle": lambda s: Buffer.from_handle(s.buffer.handle, 8),
    "Buffer.__dlpack__": lambda s: s.buffer.__dlpack__(),
    "Buffer.__dlpack__, other": lambda s: s.buffer.__dlpack__(
        stream=s.device.default_stream.handle
    ),
    "Buffer interface": lambda s: s.buffer.__cuda_array_interface__,
    "Event.close": lambda s: s.event.close(),
    "Buffer.set_deallocation_stream": lambda s: s.other.set_deallocation_stream(s.stream),
    "Event.from_ipc_descriptor": lambda s: suppressing(
        lambda: Event.from_ipc_descriptor(
            s.device.create_event({"ipc_enabled": True}).ipc_descriptor
        )
    ),
    "Buffer.from_ipc_descriptor": lambda s: suppressing(
        lambda: Buffer.from_ipc_descriptor(cast(Any, a_shared_pool()), b"", stream=s.stream)
    ),
    "Device.memory_resource": lambda s: setattr(
        s.device, "memory_resource", s.device.memory_resource
    ),
    "DeviceMemoryResource()": lambda s: DeviceMemoryResource(0, {}),
    "DeviceMemoryResource.allocate": lambda s: a_pool().allocate(8, stream=s.stream),
    "DeviceMemoryResource.deallocate": lambda s: a_pool().deallocate(0, 0, stream=s.stream),
    "DeviceMemoryResource.close": lambda s: a_pool().close(),
    "DeviceMemoryResource.from_allocation_handle": lambda s: a_shared_pool(),
    "DeviceMemoryResource.from_registry": lambda s: suppressing(
        lambda: DeviceMemoryResource.from_registry(cast(Any, a_shared_pool()).uuid)
    ),
    "DeviceMemoryResource.register": lambda s: suppressing(
        lambda: a_pool().register(cast(Any, a_shared_pool()).uuid)
    ),
    "Kernel.__getitem__": lambda s: with_context(s, lambda: s.kernel[1, 1, s.stream](1)),
    "Launcher.prepare": lambda s: s.launcher.prepare(1),
    "Prepared.__call__": lambda s: with_context(s, s.launcher.prepare(1)),
    "Prepared.set_arg": lambda s: s.launcher.prepare(1).set_arg(0, 2),
    "LaunchSequence()": lambda s: a_sequence(s),
    "LaunchSequence.__call__": lambda s: with_context(s, a_sequence(s)),
    "Stream.begin_capture": lambda s: a_graph(s),
    "Stream.end_capture": lambda s: a_graph(s),
    "Stream.add_callback": lambda s: (s.stream.add_callback(lambda: None), s.stream.sync()),
    "Graph.instantiate": lambda s: a_graph(s).instantiate(),
    "Graph.upload": lambda s: a_graph(s).upload(s.stream),
    "Graph.launch": lambda s: (a_graph(s).launch(s.stream), s.stream.sync()),
    "Graph.update": lambda s: a_graph(s).update(a_graph(s)),
    "Graph.debug_dot_print": lambda s: a_graph(s).debug_dot_print(f"{s.folder}/graph.dot"),
    "Graph.close": lambda s: a_graph(s).close(),
    "handles.reclaim": lambda s: handles.reclaim(),
    "Program.compile": lambda s: suppressing(lambda: a_program().compile("cubin", cache=False)),
    "Program.close": lambda s: suppressing(lambda: a_program().close()),
    "Linker.which_backend": lambda s: suppressing(Linker.which_backend),
    "Linker.link": lambda s: suppressing(lambda: a_linker(s).link("cubin")),
    "Linker.get_info_log": lambda s: suppressing(lambda: a_linker(s).get_info_log()),
    "Linker.get_error_log": lambda s: suppressing(lambda: a_linker(s).get_error_log()),
    "Linker.close": lambda s: suppressing(lambda: a_linker(s).close()),
    "CompileCache.get": lambda s: CompileCache(s.folder).get("0" * 64),
    "CompileCache.put": lambda s: CompileCache(s.folder).put("0" * 64, b"x"),
    "CompileCache.content": lambda s: CompileCache(s.folder).content(),
    "CompileCache.clear": lambda s: CompileCache(s.folder).clear(),
    "TensorMap.tiled": lambda s: a_map(s),
    "TensorMap.im2col": lambda s: with_clusters(
        s,
        lambda: TensorMap.im2col(
            s.device.allocate(4096, stream=s.stream),
            (-1, -2),
            (1, 2),
            32,
            16,
            shape=(1, 8, 8, 64),
            data_type="uint8",
        ),
    ),
    "TensorMap.im2col_wide": lambda s: suppressing(
        lambda: TensorMap.im2col_wide(
            s.device.allocate(1 << 14, stream=s.stream),
            0,
            0,
            32,
            8,
            shape=(2, 8, 8, 32),
            data_type="float32",
        )
    ),
    "TensorMap.replace_address": lambda s: with_clusters(
        s, lambda: cast(Any, a_map(s)).replace_address(s.device.allocate(256, stream=s.stream))
    ),
    "TensorMap.__bytes__": lambda s: with_clusters(s, lambda: bytes(cast(Any, a_map(s)))),
    "handles.retired": lambda s: (handles.retired(), handles.retirement_limits()),
    "error in ObjectCode.load": lambda s: ObjectCode.from_ptx(b"bad").load(),
    "error in ObjectCode.get_kernel": lambda s: s.code.get_kernel("gone"),
    "error in ObjectCode.get_global": lambda s: s.code.get_global("gone"),
    "error in Kernel.bind": lambda s: s.kernel.bind(
        LaunchConfig(grid=1, block=1, shmem_size=1 << 30), s.stream
    ),
    "error in KernelAttributes, set": lambda s: setattr(
        s.kernel.attributes, "preferred_shared_memory_carveout", 101
    ),
    "error in launch": lambda s: with_context(
        s, lambda: launch(s.stream, LaunchConfig(grid=1, block=2048), s.kernel, 1)
    ),
    "error in Device.allocate": lambda s: s.device.allocate(1 << 62, stream=s.stream),
    "error in Device.create_stream": lambda s: s.device.create_stream(options={"priority": 99}),
    "error in Event - Event": lambda s: s.event - s.stream.record(),
    "error in Event - fresh": lambda s: s.event - s.device.create_event({"timing_enabled": True}),
    "error in Buffer.from_handle": lambda s: Buffer.from_handle(24, 8),
    "error in Buffer.copy_from": lambda s: s.buffer.copy_from(bytes(9), stream=s.stream),
    "error in Buffer.__dlpack__": lambda s: s.buffer.__dlpack__(stream=0),
}


def current() -> int:
    return int(driver.ffi.cast("uintptr_t", driver.cuCtxGetCurrent()))


def a_scene(device: Device, folder: str) -> Scene:
    stream = device.create_stream()
    code = ObjectCode.from_ptx(IMAGE)
    kernel = code.get_kernel("k")
    scene = Scene(
        device,
        stream,
        stream.record(options=EventOptions(True)),
        device.allocate(8, stream=stream),
        device.allocate(8, stream=stream),
        code,
        kernel,
        kernel.bind(ONE, stream),
        folder,
    )
    stream.sync()
    return scene


#: An object of each public class. Exceptions and options are values, which open no driver.
SAMPLES: dict[str, Callable[[Scene], Any]] = {
    "Buffer": lambda s: s.buffer,
    "Context": lambda s: s.device.context,
    "Device": lambda s: s.device,
    "Event": lambda s: s.event,
    "Kernel": lambda s: s.kernel,
    "KernelAttributes": lambda s: s.kernel.attributes,
    "KernelOccupancy": lambda s: s.kernel.occupancy,
    "LaunchConfig": lambda s: ONE,
    "Launcher": lambda s: s.launcher,
    "ObjectCode": lambda s: s.code,
    "Stream": lambda s: s.stream,
    "TensorMap": a_map,
    "Program": lambda s: suppressing(a_program),
    "Linker": lambda s: suppressing(lambda: a_linker(s)),
    "CompileCache": lambda s: CompileCache(s.folder),
    "DeviceMemoryResource": lambda s: a_pool(),
    "Graph": a_graph,
    "LaunchSequence": a_sequence,
    "LegacyPinnedMemoryResource": lambda s: LegacyPinnedMemoryResource(),
    "ManagedMemoryResource": lambda s: suppressing(ManagedMemoryResource),
    "MemoryPoolAttributes": lambda s: a_pool().attributes,
    "MemoryResource": lambda s: MemoryResource(),
    "PinnedMemoryResource": lambda s: suppressing(PinnedMemoryResource),
    "Prepared": lambda s: s.launcher.prepare(1),
}
VALUES = (BaseException, Options, LinkerOptions, ProgramOptions)
#: What every object has, called for each.
COMMON: dict[str, Callable[[Any], object]] = {
    "__repr__": repr,
    "__str__": str,
    "__hash__": hash,
    "__eq__": lambda o: (o == o, o != o, o == 5),
    "__bool__": bool,
    "__len__": len,
    "__copy__": copy.copy,
    "__deepcopy__": copy.deepcopy,
    "__reduce__": pickle.dumps,
}
#: Made by the class, not by calls on an object.
MAKERS = {"__new__", "__init__", "__init_subclass__", "__doc__", "__module__", "__slots__"}
MAKERS |= {"__weakref__", "__dict__", "__annotations__", "__static_attributes__"}
MAKERS |= {"__firstlineno__", "__match_args__"}


def public_classes() -> dict[str, type]:
    found = {name: getattr(cudamod, name) for name in cudamod.__all__}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type) and not issubclass(value, VALUES)
    }


def is_property(member: object) -> bool:
    return (
        hasattr(member, "__get__")
        and not callable(member)
        and not isinstance(member, (staticmethod, classmethod))
    )


def members(kind: type) -> dict[str, object]:
    """What the class itself or a base of ours defines, without what is private."""
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("cudamod"):
            found.update(vars(base))
    return {
        name: member
        for name, member in found.items()
        if name not in MAKERS and (not name.startswith("_") or name.startswith("__"))
    }
