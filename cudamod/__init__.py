"""Load CUDA code objects, inspect their kernels, and launch them at the cost of the C call.

Importing this package opens no driver.
"""

from __future__ import annotations

from cudamod._core import (
    Buffer,
    Context,
    Device,
    Kernel,
    KernelAttributes,
    KernelOccupancy,
    LaunchConfig,
    Launcher,
    launch,
)
from cudamod.errors import (
    CompileError,
    CompilerNotFoundError,
    CUDAError,
    CUDAFileError,
    CUDAFileNotFoundError,
    CUDAOutOfMemoryError,
    CUDAWarning,
    DriverNotFoundError,
    DriverTooOldError,
)
from cudamod.event import Event, EventOptions
from cudamod.object_code import ObjectCode
from cudamod.stream import Stream, StreamOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudamod import driver, emulator, handles
    from cudamod.compile_cache import CompileCache
    from cudamod.launch_attributes import (
        AccessPolicyWindow,
        LaunchCompletionEvent,
        ProgrammaticEvent,
    )
    from cudamod.linker import Linker
    from cudamod.linker_options import LinkerOptions
    from cudamod.program import Program
    from cudamod.program_options import ProgramOptions
    from cudamod.tensor_map import TensorMap

__version__ = "0.1.0"

__all__ = [
    "AccessPolicyWindow",
    "Buffer",
    "CUDAError",
    "CUDAFileError",
    "CUDAFileNotFoundError",
    "CUDAOutOfMemoryError",
    "CUDAWarning",
    "CompileCache",
    "CompileError",
    "CompilerNotFoundError",
    "Context",
    "Device",
    "DriverNotFoundError",
    "DriverTooOldError",
    "Event",
    "EventOptions",
    "Kernel",
    "KernelAttributes",
    "KernelOccupancy",
    "LaunchCompletionEvent",
    "LaunchConfig",
    "Launcher",
    "Linker",
    "LinkerOptions",
    "ObjectCode",
    "Program",
    "ProgramOptions",
    "ProgrammaticEvent",
    "Stream",
    "StreamOptions",
    "TensorMap",
    "__version__",
    "driver",
    "emulator",
    "handles",
    "launch",
]


# Where the rare classes are: their modules are imported when they are asked for.
_LAZY = {
    "AccessPolicyWindow": "launch_attributes",
    "CompileCache": "compile_cache",
    "LaunchCompletionEvent": "launch_attributes",
    "Linker": "linker",
    "LinkerOptions": "linker_options",
    "Program": "program",
    "ProgramOptions": "program_options",
    "ProgrammaticEvent": "launch_attributes",
    "TensorMap": "tensor_map",
}

if not TYPE_CHECKING:  # a checker knows the modules, and would take any other name for one

    def __getattr__(name):
        """The modules that most programs don't need, imported when they are asked for."""
        if name in ("driver", "emulator", "handles"):
            import importlib

            return importlib.import_module(f"cudamod.{name}")
        if name in _LAZY:
            import importlib

            return getattr(importlib.import_module(f"cudamod.{_LAZY[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
