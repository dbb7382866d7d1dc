"""Modules: a library in one context, for calls that take no library."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cudamod import _core

__all__ = ["Module"]


class Module(int):
    """A CUmodule as an int, from ``ObjectCode.get_module``; it keeps its library loaded."""

    _library: _core.Library

    def __new__(cls, *_args: object, **_kwargs: object) -> Module:
        """Refuse: no Module without a library."""
        raise RuntimeError(
            "Module objects cannot be instantiated directly. Use ObjectCode.get_module."
        )

    @classmethod
    def _of(cls, library: _core.Library) -> Module:
        self = int.__new__(cls, library.module())
        self._library = library
        return self

    @property
    def handle(self) -> int:
        """The CUmodule as a plain int, which keeps nothing."""
        return int(self)

    def __repr__(self) -> str:
        return f"<Module handle={int(self):#x}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'Module' object: it belongs to this process")
