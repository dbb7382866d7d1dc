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
    from cudamod.linker import Linker
    from cudamod.linker_options import LinkerOptions
    from cudamod.program import Program
    from cudamod.program_options import ProgramOptions

__version__ = "0.1.0"

__all__ = [
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
    "LaunchConfig",
    "Launcher",
    "Linker",
    "LinkerOptions",
    "ObjectCode",
    "Program",
    "ProgramOptions",
    "Stream",
    "StreamOptions",
    "__version__",
    "driver",
    "emulator",
    "handles",
    "launch",
]


if not TYPE_CHECKING:  # a checker knows the modules, and would take any other name for one
    _MODULES = ("driver", "emulator", "handles")
    _CLASSES = {
        "CompileCache": "compile_cache",
        "Linker": "linker",
        "LinkerOptions": "linker_options",
        "Program": "program",
        "ProgramOptions": "program_options",
    }

    def __getattr__(name):
        """The modules and classes that most programs don't need, imported when asked for."""
        if name not in _MODULES and name not in _CLASSES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"cudamod.{name}")
        value = getattr(importlib.import_module(f"cudamod.{_CLASSES[name]}"), name)
        globals()[name] = value
        return value
