"""Memory shared between processes: handles, descriptors, and which pools this process knows.

Descriptors and pickled Buffers come from another process: take them from trusted ones only.
"""

from __future__ import annotations

import os
import uuid as uuid_module
import weakref
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any, TypeVar

from cudamod import _core
from cudamod._core import Buffer, Device
from cudamod.options import Options

if TYPE_CHECKING:
    from cudamod.shared_pool import SharedPool

    Resource = TypeVar("Resource", bound=SharedPool)

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor"]

_DESCRIPTOR_BYTES = 64

# One resource for each pool, its own or an imported one. Weak: a pool ends with its users.
_known: weakref.WeakValueDictionary[uuid_module.UUID, Any] = weakref.WeakValueDictionary()


class IPCBufferDescriptor(Options):
    """What describes a Buffer's memory to another process; picklable."""

    __slots__ = ("_payload", "size")

    _payload: bytes
    size: int  #: bytes

    def __new__(cls, _payload: bytes, size: int) -> IPCBufferDescriptor:
        if not isinstance(_payload, bytes) or len(_payload) != _DESCRIPTOR_BYTES:
            raise ValueError(f"the payload of an IPCBufferDescriptor has {_DESCRIPTOR_BYTES} bytes")
        return cls._make(_payload=_payload, size=size)

    def __repr__(self) -> str:
        return f"<IPCBufferDescriptor size={self.size}>"


class IPCAllocationHandle:
    """A file descriptor by which another process imports a pool.

    It travels through ``multiprocessing``; :meth:`close` closes it here.
    """

    __slots__ = ("__weakref__", "_file", "_uuid")

    _file: int
    _uuid: uuid_module.UUID | None

    def __new__(cls, *arguments: object, **named: object) -> IPCAllocationHandle:
        raise RuntimeError(
            "IPCAllocationHandle objects cannot be instantiated directly. "
            "Use the allocation_handle of a memory resource."
        )

    @classmethod
    def _init(cls, handle: int, uuid: uuid_module.UUID | None) -> IPCAllocationHandle:
        """The handle that owns a file descriptor."""
        self = object.__new__(cls)
        self._file, self._uuid = handle, uuid
        return self

    def close(self) -> None:
        """Close the file descriptor."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self, close: Any = os.close) -> None:
        if getattr(self, "_file", -1) >= 0:
            close(self._file)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._file < 0

    @property
    def handle(self) -> int:
        """The file descriptor. Raises RuntimeError when it is closed."""
        if self._file < 0:
            raise RuntimeError("IPCAllocationHandle has been closed")
        return self._file

    def __int__(self) -> int:
        return self.handle

    @property
    def uuid(self) -> uuid_module.UUID | None:
        """The uuid of the pool."""
        return self._uuid

    def duplicate(self) -> IPCAllocationHandle:
        """Another handle of the same pool."""
        return self._init(os.dup(self.handle), self._uuid)

    def __repr__(self) -> str:
        return f"<IPCAllocationHandle {'closed' if self._file < 0 else self._file}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "cannot pickle 'IPCAllocationHandle' object: it travels through multiprocessing only"
        )


def handle_of(resource: SharedPool) -> IPCAllocationHandle:
    """The allocation handle of a resource, exported at its first use."""
    known: IPCAllocationHandle | None = getattr(resource, "_alloc_handle", None)
    if known is not None and not known.is_closed:
        return known
    if resource.is_closed:
        raise RuntimeError(f"{type(resource).__name__} has been closed")
    if not resource.is_ipc_enabled:
        raise RuntimeError("Memory resource is not IPC-enabled")
    if resource.is_mapped:
        raise RuntimeError(
            "the resource was imported by a file descriptor; only its exporter has its handle"
        )
    resource._alloc_handle = IPCAllocationHandle._init(_core.export_pool(resource), resource.uuid)
    return resource._alloc_handle


def register_exported(resource: SharedPool) -> None:
    """Give a new pool its uuid."""
    resource._uuid = uuid_module.uuid4()
    _known[resource._uuid] = resource


def register(resource: Resource, uuid: uuid_module.UUID) -> Resource:
    """Make a resource the one with that uuid, if there is none; answer the one there is."""
    if not isinstance(uuid, uuid_module.UUID):
        raise TypeError(f"uuid must be a uuid.UUID, not {type(uuid).__name__}")
    known: Resource = _known.setdefault(uuid, resource)
    if known is not resource and known.is_closed:
        known = _known[uuid] = resource
    if known is resource:
        if resource.uuid not in (None, uuid):
            del _known[uuid]
            raise ValueError(f"the resource has the uuid {resource.uuid} already")
        resource._uuid = uuid
    return known


def find(cls: type[Resource], uuid: uuid_module.UUID) -> Resource:
    """The resource with that uuid. Raises RuntimeError when this process has none."""
    known = _known.get(uuid)
    if known is None or known.is_closed:
        closed = "" if known is None else " (it has been closed)"
        raise RuntimeError(f"Memory resource {uuid} was not found{closed}")
    if not isinstance(known, cls):
        raise TypeError(f"memory resource {uuid} is a {type(known).__name__}")
    return known


def _no_ipc(resource: SharedPool) -> TypeError:
    return TypeError(
        f"cannot pickle '{type(resource).__name__}' object: it belongs to this process "
        "(its pool was not made with ipc_enabled)"
    )


def reduce_by_uuid(resource: SharedPool) -> tuple[Any, ...]:
    """How a resource is pickled outside of multiprocessing: by its uuid."""
    if resource.uuid is None:
        raise _no_ipc(resource)
    return find, (type(resource), resource.uuid)


def _reduce_handle(handle: IPCAllocationHandle) -> tuple[Any, ...]:
    return _rebuild_handle, (reduction.DupFd(handle.handle), handle.uuid)


def _rebuild_handle(file: Any, uuid: uuid_module.UUID | None) -> IPCAllocationHandle:
    return IPCAllocationHandle._init(file.detach(), uuid)


def _reduce_resource(resource: SharedPool) -> tuple[Any, ...]:
    """How a resource goes through multiprocessing: with the handle to import it by."""
    if resource.uuid is None:
        raise _no_ipc(resource)
    place = (resource.device_id,) if resource.device_id >= 0 else ()
    return _rebuild_resource, (type(resource), place, handle_of(resource))


def _rebuild_resource(cls: Any, place: tuple[int, ...], handle: IPCAllocationHandle) -> SharedPool:
    assert handle.uuid is not None
    known: SharedPool | None = _known.get(handle.uuid)
    if known is None or known.is_closed:
        known = register(cls.from_allocation_handle(*place, handle), handle.uuid)
    handle.close()
    return known


def rebuild_buffer(resource: SharedPool, descriptor: IPCBufferDescriptor) -> Buffer:
    """A Buffer that another process pickled; it is freed in the device's default stream."""
    device = Device(resource.device_id if resource.device_id >= 0 else None)
    return Buffer.from_ipc_descriptor(resource, descriptor, stream=device.default_stream)


def _register_reducers() -> None:
    from cudamod.device_memory_resource import DeviceMemoryResource
    from cudamod.pinned_memory_resource import PinnedMemoryResource

    reduction.register(IPCAllocationHandle, _reduce_handle)
    for kind in (DeviceMemoryResource, PinnedMemoryResource):
        reduction.register(kind, _reduce_resource)


_register_reducers()
