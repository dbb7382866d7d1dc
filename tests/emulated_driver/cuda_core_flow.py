"""What a program does with cuda.core: run by test_emulated_cuda_core.py on the emulated driver."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
from cuda.core import (
    Device,
    DeviceMemoryResource,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    launch,
)
from cuda.core.graph import GraphBuilder, GraphDefinition

IMAGES = Path(__file__).parents[1] / "data" / "h200"
COUNT = 1000


def inspect() -> None:
    """Attributes, arguments and occupancy of a cubin's kernel."""
    kernel = ObjectCode.from_cubin(str(IMAGES / "matmul_tiled.sm90.cubin")).get_kernel(
        "matmul_tiled"
    )
    assert kernel.attributes.num_regs == 32
    assert kernel.attributes.shared_size_bytes == 2048
    assert kernel.num_arguments == 4
    occupancy = kernel.occupancy
    assert occupancy.max_active_blocks_per_multiprocessor(256, 0) == 8
    assert occupancy.max_potential_block_size(0, 0).min_grid_size == 264
    assert occupancy.available_dynamic_shared_memory_per_block(8, 128) == 27136


def run(device: Device) -> None:
    """Allocate, copy, launch plain, cooperative and with a cluster, time, compare."""
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(str(IMAGES / "saxpy.sm90.ptx")).get_kernel("saxpy")
    pinned, memory = LegacyPinnedMemoryResource(), DeviceMemoryResource(device)
    size = 4 * COUNT
    host_x, host_y = pinned.allocate(size, stream=stream), pinned.allocate(size, stream=stream)
    x, y = memory.allocate(size, stream=stream), memory.allocate(size, stream=stream)
    array_x = np.from_dlpack(host_x).view(np.float32)
    array_y = np.from_dlpack(host_y).view(np.float32)
    array_x[:] = np.arange(COUNT)
    array_y[:] = 1
    host_x.copy_to(x, stream=stream)
    host_y.copy_to(y, stream=stream)
    timed = EventOptions(timing_enabled=True)
    start = stream.record(options=timed)
    for config in (
        LaunchConfig(grid=4, block=256),
        LaunchConfig(grid=4, block=256, is_cooperative=True),
        LaunchConfig(grid=2, cluster=2, block=256),
    ):
        launch(stream, config, kernel, np.int32(COUNT), np.float32(2), x, y)
    end = stream.record(options=timed)
    y.copy_to(host_y, stream=stream)
    stream.sync()
    assert end - start >= 0
    np.testing.assert_array_equal(array_y, 6 * array_x + 1)
    clusters = LaunchConfig(grid=4, cluster=2, block=256)
    assert kernel.occupancy.max_active_clusters(clusters, stream=stream) > 0
    assert kernel.occupancy.max_potential_cluster_size(clusters, stream=stream) == 8
    other = device.create_stream()
    other.wait(stream)
    other.record().sync()
    del array_x, array_y
    for buffer in (x, y, host_x, host_y):
        buffer.close(stream)
    memory.close()
    stream.close()
    other.close()


def graphs(device: Device) -> None:
    """Graphs by capture, with branches, a callback and an update; and by hand, with memory."""
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(str(IMAGES / "saxpy.sm90.ptx")).get_kernel("saxpy")
    config, size = LaunchConfig(grid=1, block=128), 4 * 100
    pinned, memory = LegacyPinnedMemoryResource(), DeviceMemoryResource(device)
    host = pinned.allocate(size, stream=stream)
    x, y = memory.allocate(size, stream=stream), memory.allocate(size, stream=stream)
    array = np.from_dlpack(host).view(np.float32)
    array[:] = 1
    host.copy_to(x, stream=stream)
    host.copy_to(y, stream=stream)
    stream.sync()

    def adding(builder: GraphBuilder, factor: float) -> None:
        launch(builder, config, kernel, np.int32(100), np.float32(factor), x, y)

    def total() -> float:
        y.copy_to(host, stream=stream)
        stream.sync()
        assert (array == array[0]).all()
        return float(array[0])

    calls: list[int] = []
    builder = device.create_graph_builder().begin_building("thread_local")
    adding(builder, 2)
    builder, side = builder.split(2)
    adding(side, 10)
    builder = GraphBuilder.join(builder, side)
    builder.callback(lambda: calls.append(1))
    graph = builder.end_building().complete()
    graph.upload(stream)
    for _ in range(2):
        graph.launch(stream)
    assert (total(), calls) == (25, [1, 1])

    other = device.create_graph_builder().begin_building()
    adding(other, 3)
    one = other.end_building().complete()
    one.launch(stream)
    changed = device.create_graph_builder().begin_building()
    adding(changed, 30)
    changed.end_building()
    one.update(changed)
    one.launch(stream)
    parent = device.create_graph_builder().begin_building()
    parent.embed(changed)
    parent.end_building().complete().launch(stream)
    assert total() == 88

    definition = GraphDefinition()
    allocation = definition.allocate(size)
    filled = allocation.memset(allocation.dptr, 0x3F, size)
    added = filled.launch(config, kernel, np.int32(100), np.float32(1), allocation.dptr, y)
    copied = added.memcpy(host.handle, y.handle, size)
    copied.deallocate(allocation.dptr)
    assert (len(definition.nodes()), len(definition.edges())) == (5, 4)
    executable = definition.instantiate()
    for _ in range(2):
        executable.launch(stream)
    stream.sync()
    np.testing.assert_allclose(array, 88 + 2 * np.frombuffer(b"????", np.float32)[0])
    for buffer in (x, y, host):
        buffer.close(stream)
    memory.close()


def main() -> None:
    """The whole flow on device 0."""
    device = Device()
    assert "emulated" in device.name
    device.set_current()
    assert device.properties.multiprocessor_count == 132
    inspect()
    run(device)
    graphs(device)
    gc.collect()
    print("all right")


if __name__ == "__main__":
    main()
