"""What the tests of compiling and linking share: which compilers are here, sources, a launch."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pytest

from cudamod._compiler_library import NVJITLINK, NVRTC, NVVM, CompilerLibrary

if TYPE_CHECKING:
    from cudamod import Kernel, Stream

ARCH = "sm_90"


def _needs(library: CompilerLibrary) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not library.is_available(), reason=f"{library.title} is not installed (extra compile)"
    )


needs_nvrtc = _needs(NVRTC)
needs_nvjitlink = _needs(NVJITLINK)
needs_nvvm = _needs(NVVM)

SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""

SCALE = """
namespace shapes { template <class T, int N> struct Vector { T values[N]; }; }
template <class T, int N> __global__ void scale(T* x, T a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= a * N;
}
"""

# Two halves of saxpy, for linking.
CALLER = """
extern __device__ float product(float, float);
extern __device__ float share;
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = product(a, x[i]) + share * y[i];
}
"""
CALLEE = """
__device__ float share = 1.0f;
__device__ float product(float a, float b) { return a * b; }
"""

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry nothing(.param .u64 p) { ret; }
"""

NVVM_IR = """target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
define void @fill(float* %p) {
  store float 2.0, float* %p
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void (float*)* @fill, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
"""


def skip_unless_loadable(ptx: bytes) -> None:
    """Skip where the compiler's PTX is newer than the driver that is to run it."""
    from cudamod import driver

    version = driver.version()
    newest = 80 + version % 1000 // 10 if version < 13000 else 90 + version % 1000 // 10
    words = ptx.decode().split()
    found = words[words.index(".version") + 1]
    if float(found) * 10 > newest:
        pytest.skip(f"the compiler writes PTX {found}, newer than the driver")


def check_saxpy(kernel: Kernel, stream: Stream, n: int = 100) -> None:
    """Launch it and compare."""
    from cudamod import LaunchConfig

    x, y = array("f", range(n)), array("f", [1.0] * n)
    x_buffer, y_buffer = (stream.device.allocate(4 * n, stream=stream) for _ in range(2))
    x_buffer.copy_from(x, stream=stream)
    y_buffer.copy_from(y, stream=stream)
    # With a signature: what a driver has linked tells the sizes of parameters alone.
    config = LaunchConfig(grid=(n + 31) // 32, block=32)
    kernel.bind(config, stream, signature="i32, f32, ptr, ptr")(n, 3.0, x_buffer, y_buffer)
    y_buffer.copy_to(y, stream=stream)
    stream.sync()
    assert list(y) == [3.0 * i + 1.0 for i in range(n)]
