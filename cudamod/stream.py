"""Streams: queues of work on a device."""

from __future__ import annotations

from typing import NamedTuple

from cudamod._core import Stream

__all__ = ["Stream", "StreamOptions"]


class StreamOptions(NamedTuple):
    """Options of :meth:`cudamod.Device.create_stream`.

    Attributes:
        nonblocking: the stream does not wait for the legacy default stream.
        priority: lower numbers run first; None is the lowest priority.
    """

    nonblocking: bool = True
    priority: int | None = None
