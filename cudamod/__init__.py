"""Load CUDA code objects, inspect their kernels, and launch them at the cost of the C call.

Importing this package opens no driver.
"""

from __future__ import annotations

from cudamod import _core
from cudamod._core import (
    Buffer,
    Context,
    Device,
    Kernel,
    KernelAttributes,
    KernelOccupancy,
    LaunchConfig,
    Launcher,
    MemoryPoolAttributes,
    MemoryResource,
    launch,
)
from cudamod.errors import (
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
    from cudamod.memory_resource import (
        DeviceMemoryResource,
        DeviceMemoryResourceOptions,
        LegacyPinnedMemoryResource,
        ManagedMemoryResource,
        ManagedMemoryResourceOptions,
        PinnedMemoryResource,
        PinnedMemoryResourceOptions,
    )

__version__ = "0.1.0"

__all__ = [
    "Buffer",
    "CUDAError",
    "CUDAFileError",
    "CUDAFileNotFoundError",
    "CUDAOutOfMemoryError",
    "CUDAWarning",
    "Context",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DriverNotFoundError",
    "DriverTooOldError",
    "Event",
    "EventOptions",
    "Kernel",
    "KernelAttributes",
    "KernelOccupancy",
    "LaunchConfig",
    "Launcher",
    "LegacyPinnedMemoryResource",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryPoolAttributes",
    "MemoryResource",
    "ObjectCode",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
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
    _HOMES = {
        "DeviceMemoryResource": "memory_resource",
        "DeviceMemoryResourceOptions": "memory_resource",
        "LegacyPinnedMemoryResource": "memory_resource",
        "ManagedMemoryResource": "memory_resource",
        "ManagedMemoryResourceOptions": "memory_resource",
        "PinnedMemoryResource": "memory_resource",
        "PinnedMemoryResourceOptions": "memory_resource",
    }

    def _import(name):
        import importlib

        return importlib.import_module(name)

    _core.set_module_importer(_import)

    def __getattr__(name):
        """What most programs don't need, imported when it is asked for."""
        if name in _MODULES:
            return _import(f"cudamod.{name}")
        if name in _HOMES:
            return getattr(_import(f"cudamod.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
