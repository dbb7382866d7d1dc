"""Pools of managed memory."""

from __future__ import annotations

from cudamod import _core
from cudamod._core import Device
from cudamod.options import Options
from cudamod.shared_pool import options_of

__all__ = ["ManagedMemoryResource", "ManagedMemoryResourceOptions"]

_TYPES = (None, "device", "host", "host_numa")


class ManagedMemoryResourceOptions(Options):
    """Options of :class:`ManagedMemoryResource`.

    Attributes:
        preferred_location: the device's number, or the NUMA node's, by ``preferred_location_type``.
        preferred_location_type: ``"device"``, ``"host"`` (without a number), ``"host_numa"``
            (without a number: the current device's node), or None: ``preferred_location`` is then
            a device, -1 for the host, or None for no preference.
    """

    __slots__ = ("preferred_location", "preferred_location_type")

    preferred_location: int | None
    preferred_location_type: str | None

    def __new__(
        cls, preferred_location: int | None = None, preferred_location_type: str | None = None
    ) -> ManagedMemoryResourceOptions:
        return cls._make(
            preferred_location=preferred_location, preferred_location_type=preferred_location_type
        )


class ManagedMemoryResource(_core.MemoryPool):
    """Managed memory from a pool, in the order of streams: the driver moves it to where it is used.

    Without options the pool is the current one, which is not ours. With options
    (ManagedMemoryResourceOptions or a dict) it is a new one. It needs CUDA 13.

    Raises CUDAError where the driver has no such pools.
    """

    __slots__ = ()

    def __new__(cls, options: object = None) -> ManagedMemoryResource:
        if options is None:
            return _core.current_pool(cls, "managed", "none", -1)
        wanted = options_of(ManagedMemoryResourceOptions, options)
        location, number = _location(wanted)
        return _core.new_pool(cls, "managed", location, number, False, 0)

    @property
    def uuid(self) -> None:
        """None: managed memory is not shared with other processes."""
        return None

    @property
    def preferred_location(self) -> tuple[str, int | None] | None:
        """The type and number of the preferred location; None for no preference."""
        location, number = _core.pool_location(self)
        if location == "none":
            return None
        return location, None if location == "host" else number


def _location(options: ManagedMemoryResourceOptions) -> tuple[str, int]:
    kind, number = options.preferred_location_type, options.preferred_location
    if kind not in _TYPES:
        raise ValueError(f"preferred_location_type must be one of {_TYPES}, not {kind!r}")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise TypeError(f"preferred_location must be an int or None, not {type(number).__name__}")
    if kind is None:
        kind = "none" if number is None else "host" if number == -1 else "device"
        number = None if number == -1 else number
    elif kind == "host" and number is not None:
        raise ValueError(f"preferred_location must be None for the type 'host', not {number}")
    elif kind == "host_numa" and number is None:
        number = Device().properties.host_numa_id
    if kind == "device":
        return kind, Device(number if number is not None else -1).device_id
    if kind == "host_numa" and (number is None or number < 0):
        raise ValueError(f"preferred_location must be a NUMA node >= 0, not {number}")
    return kind, -1 if number is None else number
