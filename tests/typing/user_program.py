"""A small typed program, as a user would write it. mypy --strict must find it clean."""

from __future__ import annotations

import cudamod
from cudamod import driver


def device_names() -> list[str]:
    """The names of all devices."""
    names = []
    for ordinal in range(driver.cuDeviceGetCount()):
        name = bytearray(256)
        driver.cuDeviceGetName(name, len(name), driver.cuDeviceGet(ordinal))
        names.append(name.rstrip(b"\0").decode())
    return names


def describe(error: cudamod.CUDAError) -> str:
    """What a program may ask of an error."""
    status: int = error.status
    return f"{error.call}: {error.name} ({status}) {error.subject} {error.log}"


def warp_size(ordinal: int) -> int:
    """An attribute by its enum."""
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
    return driver.cuDeviceGetAttribute(attribute, ordinal)


def is_capturing(stream: driver.CData) -> bool:
    """An output that is an enum."""
    active = driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    return driver.cuStreamIsCapturing(stream) is active


def fill(ordinal: int, size: int) -> float:
    """Objects and how they are made."""
    device = cudamod.Device(ordinal)
    stream = device.create_stream(options=cudamod.StreamOptions(priority=0))
    start = stream.record(options=cudamod.EventOptions(timing_enabled=True))
    with device.allocate(size, stream=stream) as buffer:
        buffer.fill(device.properties.warp_size, stream=stream)
    end = stream.record(options={"timing_enabled": True})
    end.sync()
    config = cudamod.LaunchConfig(grid=(1, 2), block=device.compute_capability.major)
    assert config.grid == (1, 2, 1)
    ahead = cudamod.LaunchConfig(
        grid=1,
        block=32,
        programmatic_event=cudamod.ProgrammaticEvent(device.create_event()),
        access_policy_window=cudamod.AccessPolicyWindow(0, 4096, hit_prop="streaming"),
        mem_sync_domain="remote",
        attributes={20: b"1"},
    )
    assert ahead.access_policy_window is None or ahead.access_policy_window.hit_ratio == 1.0
    tensor_map = cudamod.TensorMap.tiled(
        device.allocate(size, stream=stream), (8, 16), shape=(64, 64), data_type="float32"
    )
    tensor_map.replace_address(tensor_map.address)
    return end - start


def inspect(path: str) -> list[str]:
    """Object code, its kernels and variables."""
    code = cudamod.ObjectCode.from_fatbin(path, symbol_mapping={b"f": "g"}, optimization_level=3)
    also = cudamod.ObjectCode.from_ptx(b"", name="n", cache_mode="ca", debug=None)
    assert code != also
    kernel: cudamod.Kernel = code.load().get_kernel(b"ns::axpy<float>")
    kernel.attributes.max_dynamic_shared_size_bytes = 60_000
    kernel.attributes[0].non_portable_cluster_size_allowed = True
    registers: int = kernel.attributes.num_regs
    variable: cudamod.Buffer = code.get_global("table")
    module: int = code.get_module()
    again: cudamod.Kernel = cudamod.Kernel.from_handle(kernel.handle, code)
    print(registers, variable.size, module, again.arguments_info[0].offset)
    names: list[str] = []
    for image in code.images():
        names += image.kernels or (image.kind, image.arch or "")
    return names


class MyStream(cudamod.Stream):
    """A subclass keeps its class."""


def mine(stream: cudamod.Stream) -> MyStream:
    """A class method answers its class."""
    return MyStream.from_handle(stream.handle)


def replay(kernel: cudamod.Kernel, stream: cudamod.Stream, address: int) -> int:
    """Prepared launches, sequences and graphs."""
    prepared = kernel.bind(cudamod.LaunchConfig(grid=1, block=1), stream).prepare(address, 2.5)
    prepared.set_arg(1, 3)
    prepared()
    sequence = cudamod.LaunchSequence([prepared, prepared], after={1: [0]}, stream=stream)
    sequence()
    sequence(stream=stream)
    stream.begin_capture("global")
    stream.add_callback(lambda: print(sequence.mode))
    graph: cudamod.Graph = stream.end_capture()
    graph.launch(stream)
    graph.debug_dot_print(b"graph.dot", flags=1)
    return len(sequence) + graph.num_nodes


def compile_and_link(source: str) -> cudamod.Kernel:
    """Options as an object and as a dictionary."""
    options = cudamod.ProgramOptions(arch="sm_90", define_macro=[("N", "4"), "FAST"], ftz=True)
    program = cudamod.Program(source, "c++", options)
    with open("log") as log:
        part = program.compile("ltoir", ["f<int>", b"g"], log, cache=False, extra_digest="1")
    code = cudamod.Linker(part, options={"arch": options.arch}).link("cubin")
    try:
        again = cudamod.Linker(part, code, options=cudamod.LinkerOptions(kernels_used="f")).link(
            "ptx"
        )
    except cudamod.CompileError as error:
        flags: tuple[str, ...] = error.options
        raise SystemExit(f"{error.log} {flags}") from error
    cache = cudamod.CompileCache("folder", max_bytes=1 << 20)
    count: int = cache.content().entries
    return program.compile("cubin", cache=cache).get_kernel("f<int>" if count else again.name)


def pooled(device: cudamod.Device, stream: cudamod.Stream) -> int:
    """Memory resources, their options and attributes."""
    options = cudamod.DeviceMemoryResourceOptions(ipc_enabled=True, max_size=1 << 20)
    pool = cudamod.DeviceMemoryResource(device, options)
    resources: list[cudamod.MemoryResource] = [
        pool,
        device.memory_resource,
        cudamod.PinnedMemoryResource({"numa_id": 0}),
        cudamod.ManagedMemoryResource(cudamod.ManagedMemoryResourceOptions(0, "device")),
        cudamod.LegacyPinnedMemoryResource(),
    ]
    device.memory_resource = pool
    pool.peer_accessible_by = {1, device}
    pool.peer_accessible_by.update([2])
    pool.attributes.reuse_allow_opportunistic = False
    pool.attributes.release_threshold = 1 << 20
    buffers = [resource.allocate(8, stream=stream) for resource in resources]
    again: cudamod.MemoryResource | None = buffers[0].memory_resource
    handle = int(pool.allocation_handle)
    mapped = cudamod.DeviceMemoryResource.from_allocation_handle(device, handle)
    descriptor = buffers[0].ipc_descriptor
    cudamod.Buffer.from_ipc_descriptor(mapped, descriptor, stream=stream).close(stream)
    assert again is pool
    return pool.attributes.used_mem_current


class Mine(cudamod.MemoryResource):
    """A resource of Python."""

    def allocate(self, size: int, *, stream: object) -> cudamod.Buffer:
        return cudamod.Buffer.from_handle(4096, size, mr=self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: object) -> None:
        print(ptr, size, stream)

    @property
    def device_id(self) -> int:
        return 0


def main() -> None:
    """Say which driver this is."""
    try:
        free, total = driver.cuMemGetInfo()
    except cudamod.DriverNotFoundError as missing:
        for place, reason in missing.searched:
            print(place, reason)
    except MemoryError:
        print("no memory")
    except cudamod.CUDAError as error:
        print(describe(error))
    else:
        share: float = free / total
        print(driver.describe(), driver.version(), share, driver.CUDA_VERSION)
    if driver.has("cuLogsCurrent"):
        print(driver.needed_version("cuLogsCurrent"))
