"""A program that knows cuda.bindings alone; it says ``NAME: right`` for each part that works."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver

PTX = b""".version 8.0
.target sm_75
.address_size 64
.global .align 4 .u32 calls;
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 n)
{
    .reg .b64 %d<2>; .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .pred %p;
    ld.param.u64 %d1, [data];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r3, [n];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    setp.ge.u32 %p, %r0, %r3;
    @%p ret;
    red.global.add.u32 [calls], 1;
    mad.wide.u32 %d1, %r0, 4, %d1;
    ld.global.f32 %f2, [%d1];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%d1], %f2;
    ret;
}
"""
COUNT = 1000
TYPES = (None, ctypes.c_float, ctypes.c_uint32)
PARTS: list[Callable[[], None]] = []


def part(function: Callable[[], None]) -> Callable[[], None]:
    PARTS.append(function)
    return function


def call(answer: tuple[Any, ...]) -> Any:
    """What a call answers beside its status, which must be success."""
    status, *values = answer
    assert status == driver.CUresult.CUDA_SUCCESS, status
    return values[0] if len(values) == 1 else tuple(values) or None


call(driver.cuInit(0))
device = call(driver.cuDeviceGet(0))
context = call(driver.cuDevicePrimaryCtxRetain(device))
call(driver.cuCtxSetCurrent(context))
stream = call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
library = call(driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0))
kernel = call(driver.cuLibraryGetKernel(library, b"scale"))


class Data:
    """Numbers on the device."""

    def __init__(self) -> None:
        self.host = np.arange(COUNT, dtype=np.float32)
        self.memory = call(driver.cuMemAllocAsync(self.host.nbytes, stream))
        copied = driver.cuMemcpyHtoDAsync(self.memory, self.host.ctypes.data, 4 * COUNT, stream)
        call(copied)

    def arguments(self, factor: float) -> tuple[Any, Any]:
        return (self.memory, factor, COUNT), (None, *TYPES[1:])

    def check(self, factor: float) -> None:
        found = np.empty_like(self.host)
        call(driver.cuMemcpyDtoHAsync(found.ctypes.data, self.memory, found.nbytes, stream))
        call(driver.cuStreamSynchronize(stream))
        np.testing.assert_array_equal(found, self.host * np.float32(factor))
        call(driver.cuMemFreeAsync(self.memory, stream))


def launch(data: Data, factor: float, function: Any = kernel) -> None:
    packed = data.arguments(factor)
    call(driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, stream, packed, 0))


@part
def versions_and_devices() -> None:
    assert call(driver.cuDriverGetVersion()) == 13050
    assert call(driver.cuDeviceGetCount()) == 1
    assert b"emulated" in call(driver.cuDeviceGetName(200, device))
    major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert call(driver.cuDeviceGetAttribute(major, device)) == 9


@part
def launches() -> None:
    data = Data()
    launch(data, 3)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.blockDimX = 4, 256
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1
    config.hStream = stream
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x, attribute.value.clusterDim.y = 2, 1
    attribute.value.clusterDim.z = 1
    config.attrs, config.numAttrs = [attribute], 1
    call(driver.cuLaunchKernelEx(config, kernel, data.arguments(2), 0))
    cooperative = driver.cuLaunchCooperativeKernel(
        kernel, 4, 1, 1, 256, 1, 1, 0, stream, data.arguments(0.5)
    )
    call(cooperative)
    data.check(3)


@part
def modules_and_variables() -> None:
    module = call(driver.cuModuleLoadData(PTX))
    data = Data()
    launch(data, 7, call(driver.cuModuleGetFunction(module, b"scale")))
    data.check(7)
    address, size = call(driver.cuModuleGetGlobal(module, b"calls"))
    calls = np.zeros(1, np.uint32)
    call(driver.cuMemcpyDtoH(calls.ctypes.data, address, size))
    assert (calls[0], size) == (COUNT, 4)
    call(driver.cuModuleUnload(module))


@part
def attributes_and_occupancy() -> None:
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    assert call(driver.cuKernelGetAttribute(most, kernel, device)) == 1024
    assert call(driver.cuKernelGetParamInfo(kernel, 1)) == (8, 4)
    function = call(driver.cuKernelGetFunction(kernel))
    assert call(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 256, 0)) == 8


@part
def events() -> None:
    flags = driver.CUevent_flags.CU_EVENT_DEFAULT
    start, end = (call(driver.cuEventCreate(flags)) for _ in range(2))
    data = Data()
    call(driver.cuEventRecord(start, stream))
    launch(data, 2)
    call(driver.cuEventRecord(end, stream))
    call(driver.cuEventSynchronize(end))
    assert call(driver.cuEventElapsedTime(start, end)) >= 0
    data.check(2)


@part
def graphs() -> None:
    data = Data()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    call(driver.cuStreamBeginCapture(stream, mode))
    launch(data, 2)
    launch(data, 5)
    graph = call(driver.cuStreamEndCapture(stream))
    executable = call(driver.cuGraphInstantiate(graph, 0))
    call(driver.cuGraphLaunch(executable, stream))
    call(driver.cuGraphLaunch(executable, stream))
    data.check(100)
    call(driver.cuGraphExecDestroy(executable))
    call(driver.cuGraphDestroy(graph))


@part
def what_goes_wrong() -> None:
    status, *_ = driver.cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, stream, 0, 0)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    status, name = driver.cuGetErrorName(status)
    assert name == b"CUDA_ERROR_INVALID_VALUE"
    status, *_ = driver.cuLibraryGetKernel(library, b"nothing")
    assert status == driver.CUresult.CUDA_ERROR_NOT_FOUND


def main() -> None:
    for function in PARTS:
        try:
            function()
            print(f"{function.__name__}: right", flush=True)
        except Exception:
            print(f"{function.__name__}: wrong", flush=True)
            traceback.print_exc()


main()
