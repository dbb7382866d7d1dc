"""Events shared between processes: what describes them, and how multiprocessing sends them.

Descriptors come from another process: take them from trusted ones only.
"""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from cudamod._core import Event
from cudamod.options import Options

__all__ = ["IPCEventDescriptor"]

_DESCRIPTOR_BYTES = 64


class IPCEventDescriptor(Options):
    """What describes an Event to another process; picklable."""

    __slots__ = ("_payload", "is_blocking_sync")

    _payload: bytes
    is_blocking_sync: bool  #: as the exporter made it

    def __new__(cls, _payload: bytes, is_blocking_sync: bool) -> IPCEventDescriptor:
        if not isinstance(_payload, bytes) or len(_payload) != _DESCRIPTOR_BYTES:
            raise ValueError(f"the payload of an IPCEventDescriptor has {_DESCRIPTOR_BYTES} bytes")
        return cls._make(_payload=_payload, is_blocking_sync=bool(is_blocking_sync))

    def __repr__(self) -> str:
        return f"<IPCEventDescriptor is_blocking_sync={self.is_blocking_sync}>"


def _reduce_event(event: Event) -> tuple[Any, ...]:
    """How an event goes through multiprocessing."""
    if not event.is_ipc_enabled:
        raise TypeError(
            "cannot pickle 'Event' object: it belongs to this process "
            "(it was not made with ipc_enabled)"
        )
    return _rebuild_event, (event.ipc_descriptor,)


def _rebuild_event(descriptor: IPCEventDescriptor) -> Event:
    return Event.from_ipc_descriptor(descriptor)


reduction.register(Event, _reduce_event)
