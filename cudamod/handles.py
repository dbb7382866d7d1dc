"""Which driver objects are alive, and what becomes of them when nobody needs them any more.

Every driver object is held by a handle. :func:`live` lists them, :func:`trace` tells of each that
comes and goes, :func:`leaks` lists those that should be gone. ``CUDAMOD_TRACE=1`` prints the trace,
``CUDAMOD_LEAK_CHECK=1`` what was never released by the end of the process; both on stderr.

A library whose last handle is gone is only *retired*: unloading waits for the whole device and
blocks other threads' launches. Retired libraries are unloaded by :func:`reclaim`, by a load once
they exceed the limits, and when memory is exhausted. The environment's ``CUDAMOD_UNLOAD`` is
``deferred`` (this), ``now`` or ``never``.
"""

from __future__ import annotations

import gc
import sys
from typing import NamedTuple

from cudamod import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

__all__ = [
    "LiveHandle",
    "Retired",
    "TraceEvent",
    "leaks",
    "live",
    "reclaim",
    "retired",
    "retirement_limits",
    "set_retirement_limits",
    "trace",
]


class LiveHandle(NamedTuple):
    """A driver object that is alive.

    Attributes:
        kind: ``"stream"``, ``"event"``, ``"device memory"``, ``"library"``, ``"kernel"``, ...
        value: the driver's raw handle or address.
        serial: counts what was created, from 1; unique in the process.
        references: how many handles hold it: Python objects, and what depends on it.
        age: seconds since it was created here.
        lifetime: ``"owned"`` ends with its last handle, ``"borrowed"`` belongs to somebody else,
            ``"process"`` (default streams) is kept to the end, ``"internal"`` is this library's
            own, such as the event that tells when the memory of a pool is free.
        dependencies: kind and value of what it keeps alive.
        site: ``file:line`` of the Python code that created it, if that was traced, else None.
    """

    kind: str
    value: int
    serial: int
    references: int
    age: float
    lifetime: str
    dependencies: tuple[tuple[str, int], ...]
    site: str | None

    def __str__(self) -> str:
        made = f", made at {self.site}" if self.site else ""
        return f"{self.kind} {self.value:#x}, {self.references} references{made}"


class TraceEvent(NamedTuple):
    """A handle was created or destroyed; the attributes are :class:`LiveHandle`'s."""

    created: bool
    kind: str
    value: int
    serial: int
    site: str | None

    def __str__(self) -> str:
        made = f" (made at {self.site})" if self.site else ""
        return f"{'created' if self.created else 'destroyed'} {self.kind} {self.value:#x}{made}"


def live() -> list[LiveHandle]:
    """Every handle that is alive, in the order of creation. No driver call."""
    return [
        LiveHandle(kind, value, serial, references, age * 1e-9, lifetime, dependencies, site)
        for kind, value, serial, references, age, lifetime, dependencies, site in (
            _core.live_handles()
        )
    ]


def leaks() -> list[LiveHandle]:
    """Collect garbage, and list what is alive all the same and would end with its last handle.

    Whoever calls this has let go of everything: what is listed is still referred to by somebody.
    """
    gc.collect()
    _core.free_deferred()
    return [handle for handle in live() if handle.lifetime == "owned"]


def trace(target: Callable[[TraceEvent], object] | logging.Logger | None) -> None:
    """Tell ``target`` of every handle that is created or destroyed from now on; None ends it.

    A logger gets them at level DEBUG. Events are queued where they happen and delivered at the
    start of a later call of this library, since a destructor must not run Python; what ``target``
    raises becomes an unraisable exception. Creation sites are noted from the first trace on.

    Raises:
        TypeError: ``target`` is neither a callable, nor a logger, nor None.
    """
    if target is None:
        _core.set_trace(None)
        return
    debug = getattr(target, "debug", None)
    if callable(target):
        tell: Callable[[TraceEvent], object] = target
    elif callable(debug):

        def tell(event: TraceEvent) -> object:
            return debug("%s", event)

    else:
        raise TypeError(f"trace() takes a callable, a logger or None, not {target!r}")
    _core.set_trace(lambda *event: tell(TraceEvent(*event)))


def _print_event(*event: object) -> None:
    print("cudamod:", TraceEvent(*event), file=sys.stderr)  # type: ignore[arg-type]


class Retired(NamedTuple):
    """Retired libraries: how many, and the bytes of their images."""

    libraries: int
    image_bytes: int


def reclaim() -> int:
    """Unload every retired library and answer how many. May wait for the device."""
    return _core.reclaim()


def retired() -> Retired:
    """The libraries that wait to be unloaded."""
    return Retired(*_core.retired())


def retirement_limits() -> Retired:
    """How much may be retired before a load unloads it; 0 is no limit."""
    return Retired(*_core.retirement_limits())


def set_retirement_limits(*, libraries: int = 64, image_bytes: int = 64 << 20) -> None:
    """Change the limits; 0 leaves that dimension to :func:`reclaim`.

    Programs with kernels that don't end set both to 0: a load then never waits for them.
    """
    _core.set_retirement_limits(libraries, image_bytes)
