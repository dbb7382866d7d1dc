"""The peers: the same empty kernel launched by other libraries, with their own objects.

Each is imported only when asked for; one that is not installed, or has no card to run on, is left
out, and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workloads import Loop, empty_kernel, loop_over

SOURCE = "void empty({parameters}) {{}}"
_C_TYPES = ("float*", "float*", "int", "float")


@dataclass(frozen=True)
class Peer:
    """A peer's launches of ``count`` arguments, and those arguments, which ours takes as well."""

    loops: dict[str, Loop]
    arguments: tuple[object, ...]


def _scalars(pointer: object, integer: object, real: object, count: int) -> tuple[object, ...]:
    return tuple((pointer, pointer, integer, real)[i % 4] for i in range(count))


def _source(count: int, prefix: str) -> str:
    parameters = ", ".join(f"{_C_TYPES[i % 4]} p{i}" for i in range(count))
    return f"{prefix} {SOURCE.format(parameters=parameters)}"


def cuda_core(count: int) -> Peer:
    """cuda.core: ``launch`` with its Buffers and NumPy scalars."""
    import numpy as np
    from cuda import core

    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    kernel = core.ObjectCode.from_ptx(empty_kernel(count)).get_kernel("empty")
    arguments = _scalars(buffer, np.int32(100), np.float32(1.5), count)
    config = core.LaunchConfig(grid=1, block=1)
    name = f"cuda.core {core.__version__}"
    return Peer({name: loop_over(core.launch, stream, config, kernel, *arguments)}, arguments)


def cuda_bindings(count: int) -> Peer:
    """cuda.bindings: ``cuLaunchKernel`` with a tuple of values, and with packed pointers."""
    import ctypes

    import numpy as np
    from cuda.bindings import __version__
    from cuda.bindings import driver as cu

    def check(result: tuple[Any, ...]) -> Any:
        if int(result[0]):
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    stream = check(cu.cuStreamCreate(0))
    pointer = int(check(cu.cuMemAlloc(64)))
    module = check(cu.cuModuleLoadData(empty_kernel(count) + b"\0"))
    function = check(cu.cuModuleGetFunction(module, b"empty"))
    values = _scalars(pointer, 100, 1.5, count)
    kinds = _scalars(ctypes.c_void_p, ctypes.c_int, ctypes.c_float, count)
    cells = [kind(value) for kind, value in zip(kinds, values, strict=True)]  # type: ignore[operator]
    packed = np.array([ctypes.addressof(cell) for cell in cells], dtype=np.uint64)
    shape = (function, 1, 1, 1, 1, 1, 1, 0, stream)
    launch = cu.cuLaunchKernel
    name = f"cuda.bindings {__version__}"
    loops = {
        f"{name}, tuple": loop_over(launch, *shape, (values, kinds), 0),
        f"{name}, packed": loop_over(launch, *shape, packed.ctypes.data, 0),
    }
    return Peer(loops, (*cells, packed))


def cupy(count: int) -> Peer:
    """CuPy: ``RawKernel`` with its arrays."""
    import cupy as cp
    import numpy as np

    kernel = cp.RawKernel(_source(count, 'extern "C" __global__'), "empty")
    array = cp.zeros(16, dtype=cp.float32)
    arguments = _scalars(array, np.int32(100), np.float32(1.5), count)
    loop = loop_over(kernel, (1,), (1,), arguments)
    return Peer({f"CuPy {cp.__version__}": loop}, arguments)


def numba_cuda(count: int) -> Peer:
    """numba-cuda: a configured dispatcher with its device arrays."""
    import numpy as np

    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # what numba-cuda 0.30 still asks of NumPy
    import numba
    from numba import cuda

    scope: dict[str, Any] = {}
    exec(f"def empty({', '.join(f'p{i}' for i in range(count))}):\n    pass\n", scope)
    array = cuda.device_array(16, dtype=np.float32)
    arguments = _scalars(array, np.int32(100), np.float32(1.5), count)
    configured = cuda.jit(scope["empty"])[1, 1]
    return Peer(
        {f"numba-cuda (numba {numba.__version__})": loop_over(configured, *arguments)}, arguments
    )


def torch(count: int) -> Peer:
    """torch: ``torch.cuda._compile_kernel`` with its tensors."""
    import torch as th

    tensor = th.zeros(16, device="cuda")
    arguments = _scalars(tensor, 100, 1.5, count)
    kernel = th.cuda._compile_kernel(_source(count, 'extern "C" __global__'), "empty")

    def launch(*values: object) -> None:
        kernel((1, 1, 1), (1, 1, 1), values)

    return Peer(
        {f"torch {th.__version__} _compile_kernel": loop_over(launch, *arguments)}, arguments
    )


def triton(count: int) -> Peer:
    """Triton: a ``jit`` function with torch's tensors, and the kernel that it compiled."""
    import importlib.util
    import tempfile
    from pathlib import Path

    import torch as th
    import triton as tr

    # It reads the source of what it compiles.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "empty.py")
        parameters = ", ".join(f"p{i}" for i in range(count))
        file.write_text(f"import triton\n\n@triton.jit\ndef empty({parameters}):\n    pass\n")
        spec = importlib.util.spec_from_file_location("empty", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        tensor = th.zeros(16, device="cuda")
        arguments = _scalars(tensor, 100, 1.5, count)
        compiled = module.empty[(1,)](*arguments)
    name = f"Triton {tr.__version__}"
    loops = {f"{name}, jit function": loop_over(module.empty[(1,)], *arguments)}
    if compiled is not None:
        loops[f"{name}, compiled kernel"] = loop_over(compiled[(1, 1, 1)], *arguments)
    return Peer(loops, arguments)


def pycuda(count: int) -> Peer:
    """PyCUDA: a function with its typed scalars, and prepared."""
    import numpy as np
    import pycuda
    import pycuda.driver as cu

    cu.init()
    context = cu.Device(0).retain_primary_context()
    context.push()
    try:
        stream = cu.Stream()
        memory = cu.mem_alloc(64)
        module = cu.module_from_buffer(empty_kernel(count) + b"\0")
        function, prepared = (module.get_function("empty") for _ in range(2))
        prepared.prepare("".join("PPif"[i % 4] for i in range(count)))
        values = _scalars(memory, np.int32(100), np.float32(1.5), count)
        plain = _scalars(int(memory), 100, 1.5, count)
        one = (1, 1, 1)

        def call(times: int) -> None:
            context.push()
            for _ in range(times):
                function(*values, block=one, grid=one, stream=stream)
            context.pop()

        def prepared_call(times: int) -> None:
            context.push()
            for _ in range(times):
                prepared.prepared_async_call(one, one, stream, *plain)
            context.pop()

        call(1)
    finally:
        context.pop()
    name = f"PyCUDA {pycuda.VERSION_TEXT}"
    return Peer({f"{name}, call": call, f"{name}, prepared": prepared_call}, (memory, module))


PEERS: dict[str, Callable[[int], Peer]] = {
    "cuda.core": cuda_core,
    "cuda.bindings": cuda_bindings,
    "CuPy": cupy,
    "numba-cuda": numba_cuda,
    "torch": torch,
    "Triton": triton,
    "PyCUDA": pycuda,
}
NEED_A_CARD = {"CuPy", "numba-cuda", "torch", "Triton"}
