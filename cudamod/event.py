"""Events: points in a stream."""

from __future__ import annotations

from typing import NamedTuple

from cudamod._core import Event

__all__ = ["Event", "EventOptions"]


class EventOptions(NamedTuple):
    """Options of :meth:`cudamod.Device.create_event` and :meth:`cudamod.Stream.record`.

    Attributes:
        timing_enabled: the difference of two such events is a time.
        blocking_sync: a thread that waits for the event sleeps instead of spinning.
    """

    timing_enabled: bool = False
    blocking_sync: bool = False
