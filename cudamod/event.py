"""Events: points in a stream."""

from __future__ import annotations

from cudamod._core import Event
from cudamod.options import Options

__all__ = ["Event", "EventOptions"]


class EventOptions(Options):
    """Options of :meth:`cudamod.Device.create_event` and :meth:`cudamod.Stream.record`.

    Attributes:
        timing_enabled: the difference of two such events is a time.
        blocking_sync: a thread that waits for the event sleeps instead of spinning.
        ipc_enabled: other processes can open it, by its ``ipc_descriptor`` or sent through
            ``multiprocessing``; it has no timing then.
    """

    __slots__ = ("timing_enabled", "blocking_sync", "ipc_enabled")  # noqa: RUF023  (repr's order)

    timing_enabled: bool
    blocking_sync: bool
    ipc_enabled: bool

    def __new__(
        cls, timing_enabled: bool = False, blocking_sync: bool = False, ipc_enabled: bool = False
    ) -> EventOptions:
        return cls._make(
            timing_enabled=timing_enabled, blocking_sync=blocking_sync, ipc_enabled=ipc_enabled
        )
