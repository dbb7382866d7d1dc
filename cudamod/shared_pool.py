"""What pools have in common that can be shared with other processes."""

from __future__ import annotations

import os

from cudamod import _core
from cudamod.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar
    from uuid import UUID

    from typing_extensions import Self

    from cudamod.memory_ipc import IPCAllocationHandle

    Wanted = TypeVar("Wanted", bound=Options)

__all__ = ["SharedPool", "options_of"]


class SharedPool(_core.MemoryPool):
    """Base of the resources whose pools other processes can import.

    A pool made with ``ipc_enabled`` has a :attr:`uuid` and an :attr:`allocation_handle`. Sent
    through ``multiprocessing`` (arguments of a Process, Queue, Pipe), the resource arrives as one
    that is mapped; so do its Buffers. Pickled otherwise, it is found by its uuid in a process that
    has it already.
    """

    __slots__ = ("_alloc_handle", "_uuid")

    _alloc_handle: IPCAllocationHandle | None
    _uuid: UUID | None

    @classmethod
    def _new_pool(
        cls, kind: str, location: str, number: int, ipc_enabled: bool, max_size: int
    ) -> Self:
        resource = _core.new_pool(cls, kind, location, number, bool(ipc_enabled), max_size)
        if ipc_enabled:
            from cudamod import memory_ipc

            memory_ipc.register_exported(resource)
        return resource

    @classmethod
    def _import_pool(
        cls, kind: str, location: str, number: int, handle: IPCAllocationHandle | int
    ) -> Self:
        from cudamod import memory_ipc

        file = handle.handle if isinstance(handle, memory_ipc.IPCAllocationHandle) else handle
        if not isinstance(file, int) or isinstance(file, bool):
            raise TypeError(
                "from_allocation_handle: alloc_handle must be an IPCAllocationHandle or an int, "
                f"not {type(file).__name__}"
            )
        os.fstat(file)  # an OSError that says what is wrong, where the driver does not
        resource = _core.imported_pool(cls, kind, location, number, file)
        if isinstance(handle, memory_ipc.IPCAllocationHandle):
            resource._alloc_handle = handle.duplicate()
            resource._uuid = handle.uuid
        return resource

    @property
    def uuid(self) -> UUID | None:
        """What the pool is known by in every process; None unless it is IPC-enabled."""
        return getattr(self, "_uuid", None)

    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """What another process imports the pool by; it belongs to the resource.

        Raises RuntimeError unless the pool is IPC-enabled.
        """
        from cudamod import memory_ipc

        return memory_ipc.handle_of(self)

    @classmethod
    def from_registry(cls, uuid: UUID) -> Self:
        """The resource of this process with that uuid. Raises RuntimeError when there is none."""
        from cudamod import memory_ipc

        return memory_ipc.find(cls, uuid)

    def register(self, uuid: UUID) -> Self:
        """Make the resource the one with that uuid, if there is none; answer the one there is."""
        from cudamod import memory_ipc

        return memory_ipc.register(self, uuid)

    def __reduce__(self) -> tuple[Any, ...]:
        from cudamod import memory_ipc

        return memory_ipc.reduce_by_uuid(self)


def options_of(kind: type[Wanted], options: object) -> Wanted:
    """The options object for what a caller gave: one of the class, or a dict."""
    if isinstance(options, kind):
        return options
    if isinstance(options, dict):
        return kind(**options)
    raise TypeError(
        f"options must be {kind.__name__}, a dict or None, not {type(options).__name__}"
    )
