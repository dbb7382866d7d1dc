"""A program that knows cuda.core alone; it says ``NAME: right`` for each part that works."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable

import numpy as np
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    ManagedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    Stream,
    StreamOptions,
    launch,
)
from cuda.core.utils import StridedMemoryView

SOURCE = r"""
template <typename T> __global__ void saxpy(T a, const T* x, T* y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void rank(int* out) {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) out[blockIdx.x] = rank;
}
extern "C" __global__ void __launch_bounds__(128) reverse(int* data) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
"""
MAIN = 'extern __device__ int twice(int); extern "C" __global__ void m(int* p) { *p = twice(*p); }'
TWICE = "__device__ int twice(int value) { return 2 * value; }"

device = Device()
device.set_current()
ARCHITECTURE = f"sm_{device.arch}"
PARTS: list[Callable[[], None]] = []


def part(function: Callable[[], None]) -> Callable[[], None]:
    PARTS.append(function)
    return function


def compiled(source: str, kind: str, names: tuple[str, ...] = (), **options: object) -> ObjectCode:
    program = Program(source, "c++", ProgramOptions(arch=ARCHITECTURE, **options))
    return program.compile(kind, name_expressions=names)


def refusal(call: Callable[[], object]) -> str:
    """What the exception says that the call must raise."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("no exception")


@contextlib.contextmanager
def on_stream():
    stream = device.create_stream()
    yield stream
    stream.sync()
    stream.close()


def pinned(stream: Stream, values: np.ndarray) -> tuple[Buffer, np.ndarray]:
    buffer = LegacyPinnedMemoryResource().allocate(values.nbytes, stream=stream)
    array = np.from_dlpack(buffer).view(values.dtype)
    array[:] = values
    return buffer, array


def result_of(code: ObjectCode, name: str, values: np.ndarray, **config: object) -> np.ndarray:
    """What the kernel makes of the values in place."""
    with on_stream() as stream:
        buffer, array = pinned(stream, values)
        launch(stream, LaunchConfig(**config), code.get_kernel(name), buffer)
        stream.sync()
        return array.copy()


@part
def program_to_ptx() -> None:
    code = compiled(SOURCE, "ptx", ("saxpy<float>", "saxpy<double>"), std="c++17")
    for name, dtype in (("saxpy<float>", np.float32), ("saxpy<double>", np.float64)):
        with on_stream() as stream:
            x, array_x = pinned(stream, np.arange(1000, dtype=dtype))
            y, array_y = pinned(stream, np.ones(1000, dtype=dtype))
            config = LaunchConfig(grid=4, block=256)
            arguments = (dtype(2), x, y, np.uint64(1000))
            launch(stream, config, code.get_kernel(name), *arguments)
            stream.sync()
            np.testing.assert_array_equal(array_y, 2 * array_x + 1)


@part
def program_to_cubin() -> None:
    kernel = compiled(SOURCE, "cubin", ("saxpy<double>",)).get_kernel("saxpy<double>")
    assert kernel.attributes.num_regs > 0
    assert [(info.offset, info.size) for info in kernel.arguments_info] == [
        (0, 8),
        (8, 8),
        (16, 8),
        (24, 8),
    ]
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(256, 0) > 0
    with on_stream() as stream:
        arguments = (np.float64(2), 0, 0, np.uint64(0))
        config = LaunchConfig(grid=1, block=32)
        said = refusal(lambda: launch(stream, config, kernel, *arguments))
        assert "CUDA_ERROR_NOT_SUPPORTED" in said  # machine code


@part
def launches() -> None:
    code = compiled(SOURCE, "ptx")
    blocks = np.full(8, -1, np.int32)
    assert result_of(code, "rank", blocks, grid=8, block=32).tolist() == [0] * 8
    clustered = result_of(code, "rank", blocks, grid=2, cluster=4, block=32)
    assert clustered.tolist() == [0, 1, 2, 3] * 2
    values = np.arange(128, dtype=np.int32)
    for options in ({}, {"is_cooperative": True}):
        reversed_ = result_of(code, "reverse", values, grid=1, block=128, shmem_size=512, **options)
        np.testing.assert_array_equal(reversed_, values[::-1])


@part
def attributes_and_occupancy() -> None:
    kernel = compiled(SOURCE, "ptx").get_kernel("reverse")
    attributes = kernel.attributes
    assert attributes.max_threads_per_block == 128
    assert attributes.shared_size_bytes == 0
    for name in dir(attributes):
        if not name.startswith("_"):
            getattr(attributes, name)
    occupancy = kernel.occupancy
    assert occupancy.max_potential_block_size(0, 0).max_block_size == 128
    assert occupancy.max_potential_block_size(512, 64).max_block_size == 64
    assert occupancy.available_dynamic_shared_memory_per_block(2, 128) > 0
    config = LaunchConfig(grid=8, cluster=2, block=64)
    with on_stream() as stream:
        assert occupancy.max_potential_cluster_size(config, stream=stream) >= 2
        assert occupancy.max_active_clusters(config, stream=stream) > 0


@part
def linker() -> None:
    options = {"relocatable_device_code": True}
    inputs = [compiled(source, "ptx", **options) for source in (MAIN, TWICE)]
    linked = Linker(*inputs, options=LinkerOptions(arch=ARCHITECTURE)).link("cubin")
    assert linked.get_kernel("m").num_arguments == 1
    if Linker.which_backend() == "driver":  # its result has the PTX
        assert result_of(linked, "m", np.array([21], np.int32), grid=1, block=1)[0] == 42


@part
def linker_of_ltoir() -> None:
    if Linker.which_backend() == "driver":
        return
    options = {"relocatable_device_code": True, "link_time_optimization": True}
    inputs = [compiled(source, "ltoir", **options) for source in (MAIN, TWICE)]
    options = LinkerOptions(arch=ARCHITECTURE, link_time_optimization=True, ptx=True)
    linked = Linker(*inputs, options=options).link("ptx")
    assert result_of(linked, "m", np.array([21], np.int32), grid=1, block=1)[0] == 42


@part
def ptx_that_is_linked_to_a_cubin() -> None:
    ptx = compiled(SOURCE, "ptx").code.decode()
    cubin = Program(ptx, "ptx", ProgramOptions(arch=ARCHITECTURE)).compile("cubin")
    assert cubin.get_kernel("reverse").attributes.max_threads_per_block == 128


@part
def streams_and_events() -> None:
    stream = device.create_stream(options=StreamOptions(nonblocking=True, priority=-1))
    assert (stream.is_nonblocking, stream.priority) == (True, -1)
    assert stream.device == device
    timed = EventOptions(timing_enabled=True)
    start, end = stream.record(options=timed), stream.record(options=timed)
    end.sync()
    assert end.is_done
    assert end - start >= 0
    other = device.create_stream()
    other.wait(stream)
    event = device.create_event(EventOptions(blocking_sync=True))
    assert event.is_blocking_sync
    other.record(event)
    stream.wait(event)
    assert Stream.from_handle(int(stream.handle)).device == device
    for each in (stream, other):
        each.sync()
        each.close()


@part
def memory() -> None:
    with on_stream() as stream:
        host, array = pinned(stream, np.arange(256, dtype=np.uint32))
        limited = DeviceMemoryResourceOptions(max_size=1 << 24)
        for pool in (DeviceMemoryResource(device), DeviceMemoryResource(device, limited)):
            first, second = (pool.allocate(1024, stream=stream) for _ in range(2))
            assert first.is_device_accessible
            assert not first.is_host_accessible
            host.copy_to(first, stream=stream)
            second.copy_from(first, stream=stream)
            first.fill(b"\x07", stream=stream)
            second.copy_to(host, stream=stream)
            stream.sync()
            np.testing.assert_array_equal(array, np.arange(256))
            assert pool.attributes.used_mem_current >= 2048
            view = StridedMemoryView.from_buffer(second, shape=(256,), itemsize=4)
            assert (view.shape, view.is_device_accessible) == ((256,), True)
            first.close(stream)
            second.close(stream)


@part
def memory_that_the_host_sees() -> None:
    code = compiled(SOURCE, "ptx").get_kernel("reverse")
    with on_stream() as stream:
        buffers = [
            pool.allocate(512, stream=stream)
            for pool in (PinnedMemoryResource(), ManagedMemoryResource())
        ]
        stream.sync()
        pinned_array, array = (np.from_dlpack(buffer).view(np.int32) for buffer in buffers)
        pinned_array[:] = np.arange(128)
        buffers[0].copy_to(buffers[1], stream=stream)
        config = LaunchConfig(grid=1, block=128, shmem_size=512)
        launch(stream, config, code, buffers[1])
        stream.sync()
        np.testing.assert_array_equal(array, np.arange(128)[::-1])
        for buffer in buffers:
            assert buffer.is_host_accessible
            buffer.close(stream)


@part
def graphs() -> None:
    kernel = compiled(SOURCE, "ptx").get_kernel("reverse")
    config = LaunchConfig(grid=1, block=128, shmem_size=512)
    with on_stream() as stream:
        buffer, array = pinned(stream, np.arange(128, dtype=np.int32))
        builder = device.create_graph_builder().begin_building()
        for _ in range(3):
            launch(builder, config, kernel, buffer)
        graph = builder.end_building().complete()
        graph.upload(stream)
        for _ in range(3):
            graph.launch(stream)
        stream.sync()
        np.testing.assert_array_equal(array, np.arange(128)[::-1])  # nine times


@part
def properties() -> None:
    assert "emulated" in device.name
    for name in dir(device.properties):
        if not name.startswith("_"):
            getattr(device.properties, name)
    assert device.properties.warp_size == 32
    assert len(Device.get_all_devices()) == 1
    assert device.can_access_peer(device)
    assert len(device.uuid) == 36


@part
def what_needs_the_runtime_library_is_refused() -> None:
    """Device.sync and pci_bus_id go through cudart, which asks for the driver's private tables."""
    for ask in (device.sync, lambda: device.pci_bus_id):
        assert "cudaErrorSymbolNotFound" in refusal(ask)


def main() -> None:
    for function in PARTS:
        try:
            function()
            print(f"{function.__name__}: right")
        except Exception:
            traceback.print_exc()
            print(f"{function.__name__}: wrong")


if __name__ == "__main__":
    main()
