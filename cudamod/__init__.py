"""Load CUDA code objects, inspect their kernels, and launch them at the cost of the C call.

Importing this package opens no driver.
"""

from __future__ import annotations

from cudamod import _core
from cudamod._core import (
    CURRENT,
    Buffer,
    Context,
    Device,
    Graph,
    Kernel,
    KernelAttributes,
    KernelOccupancy,
    LaunchConfig,
    Launcher,
    LaunchSequence,
    MemoryPoolAttributes,
    MemoryResource,
    Prepared,
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
    from cudamod import driver, emulator, handles, launch_hooks
    from cudamod.compile_cache import CompileCache
    from cudamod.launch_attributes import (
        AccessPolicyWindow,
        LaunchCompletionEvent,
        ProgrammaticEvent,
    )
    from cudamod.linker import Linker
    from cudamod.linker_options import LinkerOptions
    from cudamod.memory_resource import (
        DeviceMemoryResource,
        DeviceMemoryResourceOptions,
        LegacyPinnedMemoryResource,
        ManagedMemoryResource,
        ManagedMemoryResourceOptions,
        PinnedMemoryResource,
        PinnedMemoryResourceOptions,
    )
    from cudamod.program import Program
    from cudamod.program_options import ProgramOptions
    from cudamod.tensor_map import TensorMap

__version__ = "0.1.0"

__all__ = [
    "CURRENT",
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
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DriverNotFoundError",
    "DriverTooOldError",
    "Event",
    "EventOptions",
    "Graph",
    "Kernel",
    "KernelAttributes",
    "KernelOccupancy",
    "LaunchCompletionEvent",
    "LaunchConfig",
    "LaunchSequence",
    "Launcher",
    "LegacyPinnedMemoryResource",
    "Linker",
    "LinkerOptions",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryPoolAttributes",
    "MemoryResource",
    "ObjectCode",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Prepared",
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
    "launch_hooks",
]


# Where the rare classes are: their modules are imported when they are asked for.
_LAZY = {
    "AccessPolicyWindow": "launch_attributes",
    "CompileCache": "compile_cache",
    "DeviceMemoryResource": "memory_resource",
    "DeviceMemoryResourceOptions": "memory_resource",
    "LaunchCompletionEvent": "launch_attributes",
    "LegacyPinnedMemoryResource": "memory_resource",
    "Linker": "linker",
    "LinkerOptions": "linker_options",
    "ManagedMemoryResource": "memory_resource",
    "ManagedMemoryResourceOptions": "memory_resource",
    "PinnedMemoryResource": "memory_resource",
    "PinnedMemoryResourceOptions": "memory_resource",
    "Program": "program",
    "ProgramOptions": "program_options",
    "ProgrammaticEvent": "launch_attributes",
    "TensorMap": "tensor_map",
}

if not TYPE_CHECKING:  # a checker knows the modules, and would take any other name for one

    def _import(name):
        import importlib

        return importlib.import_module(name)

    _core.set_module_importer(_import)

    def __getattr__(name):
        """What most programs don't need, imported when it is asked for."""
        if name in ("driver", "emulator", "handles", "launch_hooks"):
            return _import(f"cudamod.{name}")
        if name in _LAZY:
            return getattr(_import(f"cudamod.{_LAZY[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
