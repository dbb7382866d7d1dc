"""Clusters: what the grid counts, which sizes fit, and clusters that the device may prefer."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
from ptx import CLUSTER_HEADER, ONE, empty, read

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

REQUIRED = (
    CLUSTER_HEADER + ".visible .entry k(.param .u64 out) .reqnctapercluster 4, 1, 1 {\n"
    ".reg .b64 %out; .reg .b32 %v;\nld.param.u64 %out, [out];\n"
    "mov.u32 %v, %nctaid.x;\nst.global.u32 [%out], %v;\n"
    "mov.u32 %v, %cluster_nctaid.x;\nst.global.u32 [%out+4], %v;\nret;\n}"
).encode()


@pytest.fixture
def cluster_kernel(device: Device) -> Kernel:
    if device.compute_capability.major < 9:
        pytest.skip("needs thread block clusters")
    return ObjectCode.from_ptx(empty("k", header=CLUSTER_HEADER)).get_kernel("k")


@pytest.fixture
def required(device: Device) -> Kernel:
    if device.compute_capability.major < 9:
        pytest.skip("needs thread block clusters")
    return ObjectCode.from_ptx(REQUIRED).get_kernel("k")


def test_a_grid_counts_blocks_with_compile_time_clusters(stream: Stream, required: Kernel) -> None:
    out = stream.device.allocate(8, stream=stream)
    launch(stream, LaunchConfig(grid=8, block=1), required, out)
    assert struct.unpack("II", read(out, stream)) == (8, 4)
    launch(stream, LaunchConfig(grid=2, cluster=4, block=1), required, out)
    assert struct.unpack("II", read(out, stream)) == (8, 4)


@pytest.mark.parametrize("grid", [1, 6, (9, 2)])
def test_a_grid_that_is_no_multiple(stream: Stream, required: Kernel, grid: Any) -> None:
    out = stream.device.allocate(8, stream=stream)
    made = LaunchConfig(grid=grid, block=1)
    for call in (
        lambda: launch(stream, made, required, out),
        lambda: required.bind(made, stream)(out),
    ):
        with pytest.raises(CUDAError) as caught:
            call()
        said = str(caught.value)
        blocks = ", ".join(map(str, made.grid))
        assert f"compiled for clusters of (4, 1, 1), of which the grid of ({blocks}) blocks" in said


def test_a_cluster_launch_runs_in_its_stream(
    device: Device, stream: Stream, cluster_kernel: Kernel
) -> None:
    gate = threading.Event()
    stream.add_callback(lambda: gate.wait(60))
    try:
        launch(stream, LaunchConfig(grid=2, cluster=2, block=1), cluster_kernel)
        event = stream.record()
        device.default_stream.sync()
        assert not event.is_done
    finally:
        gate.set()
    event.sync()


def test_another_cluster_than_the_compiled_one(stream: Stream, required: Kernel) -> None:
    out = stream.device.allocate(8, stream=stream)
    with pytest.raises(CUDAError, match=r"compiled for clusters of \(4, 1, 1\), not \(2, 1, 1\)"):
        launch(stream, LaunchConfig(grid=4, cluster=2, block=1), required, out)


@pytest.mark.emulated
def test_a_kernel_that_must_be_given_a_cluster(stream: Stream, device: Device) -> None:
    text = CLUSTER_HEADER + ".visible .entry k() .explicitcluster { ret; }"
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    assert kernel.attributes.cluster_size_must_be_set
    with pytest.raises(CUDAError, match=r"whose size the launch gives: LaunchConfig\.cluster"):
        launch(stream, ONE, kernel)
    launch(stream, LaunchConfig(grid=1, cluster=2, block=1), kernel)


def test_a_preferred_cluster_must_fit() -> None:
    made = LaunchConfig(grid=4, cluster=(2, 1), block=1, preferred_cluster=(4, 1))
    assert made.preferred_cluster == (4, 1, 1)
    for preferred in (3, (2, 1, 2), 1):
        with pytest.raises(ValueError, match=r"must be a multiple of the cluster \(2, 1, 1\)"):
            LaunchConfig(grid=8, cluster=2, block=1, preferred_cluster=preferred)
    with pytest.raises(ValueError, match=r"\(6, 1, 1\) blocks are no multiple of .* \(4, 1, 1\)"):
        LaunchConfig(grid=3, cluster=2, block=1, preferred_cluster=4)


def test_a_preferred_cluster_is_checked_per_call(stream: Stream, cluster_kernel: Kernel) -> None:
    made = LaunchConfig(grid=4, cluster=2, block=1, preferred_cluster=4)
    launcher = cluster_kernel.bind(made, stream)
    with pytest.raises(ValueError, match="no multiple of the preferred cluster"):
        launcher(grid=3)


@pytest.mark.emulated
def test_a_preferred_cluster_arrives(stream: Stream, cluster_kernel: Kernel) -> None:
    made = LaunchConfig(grid=(4, 2), cluster=(2, 1), block=1, preferred_cluster=(4, 2))
    with emulator.recording():
        launch(stream, made, cluster_kernel)
        seen = emulator.launches()[-1]
    assert seen.attributes == {
        4: struct.pack("III", 2, 1, 1).ljust(64, b"\0"),
        11: struct.pack("III", 4, 2, 1).ljust(64, b"\0"),
    }
    assert seen.grid == (8, 2, 1)


def test_clusters_beyond_the_portable_size(stream: Stream, cluster_kernel: Kernel) -> None:
    driver.cuKernelSetAttribute(14, 1, driver.ffi.cast("CUkernel", cluster_kernel.handle), 0)
    assert cluster_kernel.attributes.non_portable_cluster_size_allowed
    launch(stream, LaunchConfig(grid=1, cluster=16, block=32), cluster_kernel)
    stream.sync()
    for cluster in (32, (4, 4, 4), (16, 16, 16)):
        with pytest.raises(CUDAError, match=r"cluster of \d+ blocks exceeds the 16 that fit"):
            launch(stream, LaunchConfig(grid=1, cluster=cluster, block=32), cluster_kernel)


def test_products_of_dimensions_do_not_wrap(stream: Stream, cluster_kernel: Kernel) -> None:
    # 2**96 blocks are 0 in 64 bits.
    huge = LaunchConfig(grid=1, cluster=(2**32 - 1, 2**32 - 1, 2**32 - 1), block=1)
    with pytest.raises(CUDAError):
        launch(stream, huge, cluster_kernel)
    wraps = LaunchConfig(grid=1, cluster=(2**31, 2**31, 4), block=1)
    with pytest.raises(CUDAError, match=r"cluster|exceeds"):
        launch(stream, wraps, cluster_kernel)
    block = LaunchConfig(grid=1, block=(2**31, 2**31, 4))
    with pytest.raises(CUDAError, match="exceeds"):
        launch(stream, block, cluster_kernel)
    grid = LaunchConfig(grid=(2**31 - 1, 2**16 - 1, 2**16 - 1), block=1, is_cooperative=True)
    with pytest.raises(ValueError, match="exceeds the limit"):
        launch(stream, grid, cluster_kernel)


def test_a_cooperative_grid_of_too_many_clusters(stream: Stream, cluster_kernel: Kernel) -> None:
    made = LaunchConfig(grid=100_000, cluster=2, block=128, is_cooperative=True)
    with pytest.raises(CUDAError, match=r"200000 blocks exceed the \d+ that can run at once"):
        launch(stream, made, cluster_kernel)
    fits = LaunchConfig(grid=4, cluster=2, block=128, is_cooperative=True)
    launch(stream, fits, cluster_kernel)
    stream.sync()
