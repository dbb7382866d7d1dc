"""Pools of device memory."""

from __future__ import annotations

from cudamod import _core
from cudamod._core import Device
from cudamod.options import Options
from cudamod.shared_pool import SharedPool, options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudamod.memory_ipc import IPCAllocationHandle
    from cudamod.peer_access import PeerAccessibleBySetProxy

__all__ = ["DeviceMemoryResource", "DeviceMemoryResourceOptions"]


class DeviceMemoryResourceOptions(Options):
    """Options of :class:`DeviceMemoryResource`.

    Attributes:
        ipc_enabled: the pool and its memory can be shared with other processes.
        max_size: the most bytes that the pool may hold, which the driver rounds up; 0 is its limit.
    """

    __slots__ = ("ipc_enabled", "max_size")

    ipc_enabled: bool
    max_size: int

    def __new__(cls, ipc_enabled: bool = False, max_size: int = 0) -> DeviceMemoryResourceOptions:
        return cls._make(ipc_enabled=ipc_enabled, max_size=max_size)


class DeviceMemoryResource(SharedPool):
    """Device memory from a pool, in the order of streams.

    Without options the pool is the device's current one, which is not ours; its release threshold
    is raised from 0 to its maximum. With options (DeviceMemoryResourceOptions or a dict) it is a
    new one, which ends when the resource and everything from it is gone.

    Raises ValueError when there is no such device, RuntimeError when it has no pools.
    """

    __slots__ = ()

    def __new__(cls, device_id: Device | int, options: object = None) -> DeviceMemoryResource:
        device = Device(device_id).device_id
        if options is None:
            return _core.current_pool(cls, "device", "device", device)
        wanted = options_of(DeviceMemoryResourceOptions, options)
        return cls._new_pool("device", "device", device, wanted.ipc_enabled, wanted.max_size)

    @classmethod
    def from_allocation_handle(
        cls, device_id: Device | int, alloc_handle: IPCAllocationHandle | int
    ) -> DeviceMemoryResource:
        """The pool that another process exported, for the memory that it exports.

        ``alloc_handle`` is an :class:`IPCAllocationHandle` or a file descriptor; it stays the
        caller's to close.
        """
        device = Device(device_id).device_id
        return cls._import_pool("device", "device", device, alloc_handle)

    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """The other devices whose kernels may use the pool's memory: a set of the driver's state.

        Assigning devices, or ints, replaces it. Raises ValueError for a device that can't.
        """
        from cudamod.peer_access import PeerAccessibleBySetProxy

        return PeerAccessibleBySetProxy(self)

    @peer_accessible_by.setter
    def peer_accessible_by(self, devices: Iterable[Device | int]) -> None:
        from cudamod.peer_access import replace

        replace(self, devices)
