"""Memory resources: where Buffers come from."""

from __future__ import annotations

import operator

from cudamod import _core
from cudamod._core import MemoryPoolAttributes, MemoryResource
from cudamod.device_memory_resource import DeviceMemoryResource, DeviceMemoryResourceOptions
from cudamod.managed_memory_resource import ManagedMemoryResource, ManagedMemoryResourceOptions
from cudamod.pinned_memory_resource import PinnedMemoryResource, PinnedMemoryResourceOptions

__all__ = [
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "LegacyPinnedMemoryResource",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryPoolAttributes",
    "MemoryResource",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "SynchronousMemoryResource",
]


class LegacyPinnedMemoryResource(_core.PlainMemory):
    """Pinned host memory without a pool (``cuMemAllocHost``): what every device has.

    ``allocate(size, stream=None)`` takes the memory at once, in the stream's context or the current
    one; ``stream`` is waited for before it is freed.
    """

    __slots__ = ()

    def __new__(cls) -> LegacyPinnedMemoryResource:
        return _core.new_plain_memory(cls, -1)


class SynchronousMemoryResource(_core.PlainMemory):
    """Device memory without a pool (``cuMemAlloc``): for devices that have none."""

    __slots__ = ()

    def __new__(cls, device_id: _core.Device | int) -> SynchronousMemoryResource:
        return _core.new_plain_memory(cls, operator.index(_core.Device(device_id).device_id))


def standard_resource(device_id: int, has_pools: bool) -> MemoryResource:
    """The resource of a device where nobody has set another."""
    if has_pools:
        return DeviceMemoryResource(device_id)
    return SynchronousMemoryResource(device_id)
