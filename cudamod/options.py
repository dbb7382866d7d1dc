"""Immutable options with names.

Not dataclasses: importing those alone takes longer than importing this package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from typing_extensions import Self

__all__ = ["Options"]


class Options:
    """Base of the options classes: frozen, comparable, hashable, picklable."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def _make(cls, **values: object) -> Self:
        """The object with its values: never seen without them, and not changed by a second call."""
        self = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        return self

    def _values(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in type(self).__slots__}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__name__}({values})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._values())


def _restore(cls: type[Options], values: dict[str, object]) -> Options:
    return cls(**values)
