"""Streams: queues of work on a device."""

from __future__ import annotations

from cudamod._core import Stream
from cudamod.options import Options

__all__ = ["Stream", "StreamOptions"]


class StreamOptions(Options):
    """Options of :meth:`cudamod.Device.create_stream`.

    Attributes:
        nonblocking: the stream does not wait for the legacy default stream.
        priority: lower numbers run first; None is the lowest priority.
    """

    __slots__ = ("nonblocking", "priority")

    nonblocking: bool
    priority: int | None

    def __new__(cls, nonblocking: bool = True, priority: int | None = None) -> StreamOptions:
        return cls._make(nonblocking=nonblocking, priority=priority)
