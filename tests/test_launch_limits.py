"""Launches that need something of the device: shared memory, room for all blocks, clusters."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from ptx import CLUSTER_HEADER, HEADER, ONE, empty, read

from cudamod import (
    CUDAError,
    Device,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Stream,
    driver,
    emulator,
    launch,
)


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


def shared(static: int) -> Kernel:
    """A kernel with so much static shared memory and some dynamic."""
    declared = f".shared .align 1 .b8 fixed[{static}];" if static else ""
    text = (
        HEADER + ".extern .shared .align 16 .b8 dynamic[];\n"
        ".visible .entry k(.param .u64 out) {\n"
        f"{declared}\n.reg .b64 %out;\n.reg .b32 %size;\n"
        + (".reg .b16 %b;\nmov.u16 %b, 1;\nst.shared.u8 [fixed], %b;\n" if static else "")
        + "ld.param.u64 %out, [out];\nmov.u32 %size, %dynamic_smem_size;\n"
        "st.global.u32 [%out], %size;\nret;\n}"
    )
    return ObjectCode.from_ptx(text.encode()).get_kernel("k")


# Dynamic shared memory.


@pytest.mark.parametrize("static", [0, 1, 1024])
@pytest.mark.parametrize("how", ["launch", "bind", "keyword"])
def test_dynamic_shared_memory_is_opted_in(stream: Stream, static: int, how: str) -> None:
    limit = stream.device.properties.max_shared_memory_per_block_optin
    out = stream.device.allocate(4, stream=stream)
    fixed = shared(static).attributes.shared_size_bytes  # a compiler may round it up
    sizes = [
        1,
        49_151 - static,
        49_152 - static,
        49_153 - static,
        49_151,
        49_152,
        49_153,
        65_536,
        limit - fixed,
    ]
    for size in sizes:
        if size > limit - fixed:
            continue
        kernel = shared(static)
        config = LaunchConfig(grid=1, block=1, shmem_size=size)
        if how == "launch":
            launch(stream, config, kernel, out)
        elif how == "bind":
            kernel.bind(config, stream)(out)
        else:
            kernel.bind(ONE, stream)(out, shmem_size=size)
        assert int.from_bytes(read(out, stream), "little") == size


@pytest.mark.parametrize("static", [0, 1, 1024])
def test_more_than_the_device_has(stream: Stream, static: int) -> None:
    limit = stream.device.properties.max_shared_memory_per_block_optin
    kernel = shared(static)
    out = stream.device.allocate(4, stream=stream)
    fixed = kernel.attributes.shared_size_bytes
    for size in (limit - fixed + 1, limit + 1, 2**31 - 1):
        config = LaunchConfig(grid=1, block=1, shmem_size=size)
        for call in (
            partial(launch, stream, config, kernel, out),
            partial(kernel.bind, config, stream),
            partial(kernel.bind(ONE, stream), out, shmem_size=size),
        ):
            with pytest.raises(
                ValueError,
                match=rf"'k': {size} bytes of dynamic .* device 0 allows {limit} .* takes {fixed}$",
            ):
                call()


def test_the_allowance_is_only_raised(stream: Stream) -> None:
    kernel = shared(0)
    out = stream.device.allocate(4, stream=stream)
    attributes = kernel.attributes
    for size, allowed in ((1000, 49_152), (60_000, 60_000), (50_000, 60_000), (60_001, 60_001)):
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=size), kernel, out)
        assert attributes.max_dynamic_shared_size_bytes == allowed
        again = Kernel.from_handle(kernel.handle)
        launch(stream, LaunchConfig(grid=1, block=1, shmem_size=10), again, out)
        assert attributes.max_dynamic_shared_size_bytes == allowed
    raw = driver.ffi.cast("CUkernel", kernel.handle)
    driver.cuKernelSetAttribute(8, 70_000, raw, 0)
    launch(stream, LaunchConfig(grid=1, block=1, shmem_size=65_000), kernel, out)
    assert attributes.max_dynamic_shared_size_bytes == 70_000
    stream.sync()


# Cooperative launches and clusters.


def test_a_cooperative_grid_must_fit(stream: Stream, kernel: Kernel) -> None:
    per_multiprocessor = kernel.occupancy.max_active_blocks_per_multiprocessor(128, 0)
    most = per_multiprocessor * stream.device.properties.multiprocessor_count
    fits = LaunchConfig(grid=most, block=128, is_cooperative=True)
    launch(stream, fits, kernel)
    kernel.bind(fits, stream)()
    for grid in (most + 1, 10 * most, (2, most, 1), (2**31 - 1, 65535, 65535)):
        config = LaunchConfig(grid=grid, block=128, is_cooperative=True)
        for call in (
            partial(launch, stream, config, kernel),
            partial(kernel.bind, config, stream),
            partial(kernel.bind(fits, stream), grid=grid),
        ):
            with pytest.raises(
                ValueError,
                match=rf"'k': the specified grid size \(.*\) exceeds the limit \({most}\)",
            ):
                call()
    stream.sync()


@pytest.mark.parametrize(
    "block", [1025, (32, 32, 2), (2**31 - 1, 1, 1), (1024, 1024, 64), (2**16, 2**16, 1)]
)
def test_a_cooperative_block_that_is_too_large(stream: Stream, kernel: Kernel, block: Any) -> None:
    with pytest.raises(CUDAError, match=r"block .* exceeds") as caught:
        launch(stream, LaunchConfig(grid=1, block=block, is_cooperative=True), kernel)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"


CLUSTER = (
    CLUSTER_HEADER
    + """.visible .entry k(.param .u64 out) {
.reg .b64 %out; .reg .b32 %v;
ld.param.u64 %out, [out];
mov.u32 %v, %nctaid.x; st.global.u32 [%out], %v;
mov.u32 %v, %nclusterid.x; st.global.u32 [%out+4], %v;
mov.u32 %v, %cluster_nctaid.x; st.global.u32 [%out+8], %v;
ret;
}"""
)


@pytest.fixture
def cluster_kernel(device: Device) -> Kernel:
    if device.compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    return ObjectCode.from_ptx(CLUSTER.encode()).get_kernel("k")


def test_with_a_cluster_the_grid_counts_clusters(stream: Stream, cluster_kernel: Kernel) -> None:
    out = stream.device.allocate(12, stream=stream)
    for cluster in (1, 2, 4, 8):
        launch(stream, LaunchConfig(grid=4, cluster=cluster, block=32), cluster_kernel, out)
        data = read(out, stream)
        assert [int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8)] == [
            4 * cluster,
            4,
            cluster,
        ]


@pytest.mark.emulated
def test_the_driver_gets_the_whole_shape(stream: Stream, cluster_kernel: Kernel) -> None:
    out = stream.device.allocate(12, stream=stream)
    plain = LaunchConfig(grid=(3, 2, 1), block=(32, 2, 1))
    clustered = LaunchConfig(grid=(3, 2, 1), cluster=(2, 1, 1), block=64, shmem_size=256)
    with emulator.recording():
        for _ in range(20):  # what one call leaves on the stack the next must not see
            launch(stream, clustered, cluster_kernel, out)
            launch(stream, plain, cluster_kernel, out)
            cluster_kernel.bind(clustered, stream)(out, grid=1)
    stream.sync()
    for seen in emulator.launches():
        assert (seen.stream, seen.cooperative, seen.device) == (stream.handle, False, 0)
        assert seen.parameters == (out.handle.to_bytes(8, "little"),)
    shapes = [(s.grid, s.block, s.cluster, s.dynamic_shared) for s in emulator.launches()]
    assert shapes == 20 * [
        ((6, 2, 1), (64, 1, 1), (2, 1, 1), 256),
        ((3, 2, 1), (32, 2, 1), (0, 0, 0), 0),
        ((2, 1, 1), (64, 1, 1), (2, 1, 1), 256),
    ]


def test_clusters_that_are_too_large(stream: Stream, cluster_kernel: Kernel) -> None:
    out = stream.device.allocate(12, stream=stream)
    with pytest.raises(CUDAError, match=r"more than 8 blocks .* non_portable_cluster_size_allowed"):
        launch(stream, LaunchConfig(grid=1, cluster=16, block=32), cluster_kernel, out)


def test_clusters_need_a_device_that_has_them(run_python: Any) -> None:
    code = f"""
import pytest
from cudamod import CUDAError, Device, LaunchConfig, ObjectCode, launch
device = Device(0)
if device.compute_capability >= (9, 0):
    raise SystemExit
device.set_current()
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
config = LaunchConfig(grid=2, cluster=2, block=32)
with pytest.raises(CUDAError, match="clusters need compute capability 9.0"):
    launch(device.create_stream(), config, kernel)
"""
    run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_80")


@pytest.mark.emulated
def test_programmatic_serialization_arrives(stream: Stream, kernel: Kernel) -> None:
    config = LaunchConfig(
        grid=1, block=1, is_cooperative=True, programmatic_stream_serialization=True
    )
    with emulator.recording():
        launch(stream, LaunchConfig(grid=1, block=1, is_cooperative=True), kernel)
        launch(
            stream, LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True), kernel
        )
    assert [seen.cooperative for seen in emulator.launches()] == [True, False]
    assert config.is_cooperative
    stream.sync()
