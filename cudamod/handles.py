"""What becomes of driver objects when nobody needs them any more.

A library whose last handle is gone is only *retired*: unloading waits for the whole device and
blocks other threads' launches. Retired libraries are unloaded by :func:`reclaim`, by a load once
they exceed the limits, and when memory is exhausted. The environment's ``CUDAMOD_UNLOAD`` is
``deferred`` (this), ``now`` or ``never``.
"""

from __future__ import annotations

from typing import NamedTuple

from cudamod import _core

__all__ = ["Retired", "reclaim", "retired", "retirement_limits", "set_retirement_limits"]


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
