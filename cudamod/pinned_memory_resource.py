"""Pools of pinned host memory."""

from __future__ import annotations

from cudamod import _core
from cudamod._core import Device
from cudamod.options import Options
from cudamod.shared_pool import SharedPool, options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudamod.memory_ipc import IPCAllocationHandle

__all__ = ["PinnedMemoryResource", "PinnedMemoryResourceOptions"]


class PinnedMemoryResourceOptions(Options):
    """Options of :class:`PinnedMemoryResource`.

    Attributes:
        ipc_enabled: the pool and its memory can be shared with other processes.
        max_size: the most bytes that the pool may hold, which the driver rounds up; 0 is its limit.
        numa_id: the host's NUMA node; None is the system's choice, or with ``ipc_enabled``, which
            needs a node, the current device's.
    """

    __slots__ = ("ipc_enabled", "max_size", "numa_id")

    ipc_enabled: bool
    max_size: int
    numa_id: int | None

    def __new__(
        cls, ipc_enabled: bool = False, max_size: int = 0, numa_id: int | None = None
    ) -> PinnedMemoryResourceOptions:
        return cls._make(ipc_enabled=ipc_enabled, max_size=max_size, numa_id=numa_id)


class PinnedMemoryResource(SharedPool):
    """Pinned host memory from a pool, in the order of streams; every device reaches it.

    Without options the pool is the host's current one (CUDA 13), which is not ours. With options
    (PinnedMemoryResourceOptions or a dict) it is a new one.

    Raises CUDAError where the driver has no such pools; LegacyPinnedMemoryResource needs none.
    """

    __slots__ = ()

    def __new__(cls, options: object = None) -> PinnedMemoryResource:
        if options is None:
            return _core.current_pool(cls, "pinned", "host", -1)
        wanted = options_of(PinnedMemoryResourceOptions, options)
        node = wanted.numa_id
        if node is None and wanted.ipc_enabled:
            node = _node_of_the_current_device()
        location = "host" if node is None else "host_numa"
        return cls._new_pool("pinned", location, _number(node), wanted.ipc_enabled, wanted.max_size)

    @classmethod
    def from_allocation_handle(
        cls, alloc_handle: IPCAllocationHandle | int
    ) -> PinnedMemoryResource:
        """The pool that another process exported, for the memory that it exports.

        ``alloc_handle`` is an :class:`IPCAllocationHandle` or a file descriptor; it stays the
        caller's to close.
        """
        return cls._import_pool("pinned", "host_numa", -1, alloc_handle)

    @property
    def numa_id(self) -> int:
        """The NUMA node of the memory; -1 for the system's choice and in an importing process."""
        return _core.pool_location(self)[1]


def _number(node: int | None) -> int:
    if node is None:
        return -1
    if isinstance(node, bool) or not isinstance(node, int):
        raise TypeError(f"numa_id must be an int or None, not {type(node).__name__}")
    if node < 0:
        raise ValueError(f"numa_id must be >= 0, not {node}")
    return node


def _node_of_the_current_device() -> int:
    from cudamod import driver

    if not driver.cuCtxGetCurrent():
        raise RuntimeError(
            "an IPC-enabled pinned pool lies on a NUMA node: give numa_id, or make a device "
            "current whose node it shall be"
        )
    node: int = Device().properties.host_numa_id
    if node < 0:
        raise RuntimeError(
            f"device {int(Device())} has no NUMA node: an IPC-enabled pinned pool needs one"
        )
    return node
