"""Mistakes that a type checker must find: each line's comment is mypy's error code for it."""

from __future__ import annotations

import cudamod
from cudamod import driver

driver.cuDeviceGetCount(1)  # call-arg
driver.cuMemAlloc("many")  # arg-type
driver.cuNoSuchFunction()  # attr-defined
driver.cuStreamCreate(0).upper  # fine: a handle is CFFI data
count: str = driver.cuDeviceGetCount()  # assignment
free: int = driver.cuMemGetInfo()  # assignment
driver.CUresult.CUDA_NO_SUCH_ERROR  # attr-defined
driver.use(None)  # arg-type
driver.version() + "x"  # operator
cudamod.NoSuchName  # attr-defined
cudamod.CUDAError.statuses  # attr-defined
cudamod.ObjectCode.from_ptx(3)  # arg-type
cudamod.ObjectCode.from_ptx(b"", debug=1)  # arg-type
cudamod.ObjectCode.from_ptx(b"", cache_mode="l1")  # arg-type
cudamod.ObjectCode.from_ptx(b"", nothing=1)  # call-arg
kernel = cudamod.ObjectCode.from_ptx(b"").get_kernel("k")
kernel.attributes.num_regs = 1  # misc
kernel.attributes.max_dynamic_shared_size_bytes = "1"  # assignment
cudamod.ProgramOptions(fast=True)  # call-arg
cudamod.ProgramOptions(debug="yes")  # arg-type
cudamod.Program("", "c++").compile(3)  # arg-type
cudamod.Linker("file")  # arg-type
cudamod.LaunchConfig(grid=1, block=1, mem_sync_domain="far")  # arg-type
cudamod.LaunchConfig(1, None, 1, 0, False, False, (2, 1))  # call-arg
cudamod.TensorMap.tiled(0, 1, swizzle="512b")  # arg-type
