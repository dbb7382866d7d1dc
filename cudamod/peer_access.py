"""Which other devices may use a pool's memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import TYPE_CHECKING, Any

from cudamod import _core
from cudamod._core import Device

if TYPE_CHECKING:
    from typing_extensions import Self

    from cudamod.device_memory_resource import DeviceMemoryResource

__all__ = ["PeerAccessibleBySetProxy"]


class PeerAccessibleBySetProxy(MutableSet[Device]):
    """The devices that may use a pool's memory, besides its own: a set that is the driver's state.

    Reading asks the driver, changing it is one driver call for all devices concerned; the pool's
    own device is left out silently. Members are given as Device or int.
    """

    __slots__ = ("_resource",)

    def __init__(self, resource: DeviceMemoryResource) -> None:
        if resource.is_closed:
            raise RuntimeError(f"{type(resource).__name__} has been closed")
        self._resource = resource

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]:
        return set(it)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (Device, int)) or isinstance(value, bool):
            return False
        number = int(value)
        if not 0 <= number < Device.count() or number == self._resource.device_id:
            return False
        return _core.pool_has_access(self._resource, number)

    def __iter__(self) -> Iterator[Device]:
        own = self._resource.device_id
        for number in range(Device.count()):
            if number != own and _core.pool_has_access(self._resource, number):
                yield Device(number)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def add(self, value: Device | int) -> None:
        """Let the device use the memory."""
        self.update([value])

    def discard(self, value: Device | int) -> None:
        """Take the memory from the device."""
        self.difference_update([value])

    def clear(self) -> None:
        """Take the memory from all devices."""
        self._change(set(), _numbers(self))

    def update(self, *others: Iterable[Device | int]) -> None:
        """Let all these devices use the memory."""
        self._change(_numbers(value for other in others for value in other), set())

    def difference_update(self, *others: Iterable[Device | int]) -> None:
        """Take the memory from all these devices."""
        self._change(set(), _numbers(value for other in others for value in other))

    def intersection_update(self, *others: Iterable[Device | int]) -> None:
        """Take the memory from all devices that are not in each of these."""
        kept = _numbers(self)
        for other in others:
            kept &= _numbers(other)
        self._change(set(), _numbers(self) - kept)

    def symmetric_difference_update(self, other: Iterable[Device | int]) -> None:
        """Let those of these devices use the memory that may not, and take it from the others."""
        toggled, given = _numbers(other), _numbers(self)
        self._change(toggled - given, toggled & given)

    # One driver call each, where MutableSet would change member by member.

    def __ior__(self, other: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.update(other)
        return self

    def __iand__(self, other: Iterable[Any]) -> Self:
        self.intersection_update(other)
        return self

    def __isub__(self, other: Iterable[Any]) -> Self:
        self.difference_update(other)
        return self

    def __ixor__(self, other: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.symmetric_difference_update(other)
        return self

    def __repr__(self) -> str:
        return f"PeerAccessibleBySetProxy({set(self)!r})"

    def _change(self, given: set[int], taken: set[int]) -> None:
        own, now = self._resource.device_id, _numbers(self)
        given, taken = given - now - {own}, taken & now
        for number in given:
            if not Device(number).can_access_peer(own):
                raise ValueError(f"device {number} cannot access memory of device {own}")
        _core.set_pool_access(self._resource, sorted(given), sorted(taken))


def _numbers(devices: Iterable[Device | int]) -> set[int]:
    return {Device(device).device_id for device in devices}


def replace(resource: DeviceMemoryResource, devices: Iterable[Device | int]) -> None:
    """Let exactly these devices use the memory."""
    proxy, wanted = PeerAccessibleBySetProxy(resource), _numbers(devices)
    proxy._change(wanted, _numbers(proxy) - wanted)
