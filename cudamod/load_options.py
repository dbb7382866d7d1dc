"""How the driver loads and compiles an image: the keywords of ObjectCode's constructors."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

__all__ = ["LoadOptions", "checked", "jit_options"]


class LoadOptions(TypedDict, total=False):
    """Keywords; one that is absent, or None, leaves the choice to the driver."""

    #: The most registers that a thread may use.
    max_register_count: int | None
    #: 0 to 4.
    optimization_level: int | None
    #: Debug information.
    debug: bool | None
    #: Line numbers.
    lineinfo: bool | None
    #: A log of what the compiler did, see ``ObjectCode.log``.
    verbose: bool | None
    #: Which caches global loads go through: none, L2 ("cg"), or L1 and L2 ("ca").
    cache_mode: Literal["none", "cg", "ca"] | None
    #: The driver may use the image where it is instead of a copy of its own; a file is mapped
    #: instead of read, and must not be cut short while the library is loaded.
    preserve_binary: bool | None


_CACHE_MODES = ("none", "cg", "ca")  # as CUjit_cacheMode numbers them

#: Name: CUjit_option, and the values that it takes.
_JIT: dict[str, tuple[int, type | range | tuple[str, ...]]] = {
    "max_register_count": (0, range(1, 256)),
    "optimization_level": (7, range(5)),
    "debug": (11, bool),
    "verbose": (12, bool),
    "lineinfo": (13, bool),
    "cache_mode": (14, _CACHE_MODES),
}
_NAMES = (*_JIT, "preserve_binary")


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say something.

    Raises:
        TypeError: an unknown name, or a value of another type.
        ValueError: a value out of range.
    """
    for name, value in options.items():
        if name not in _NAMES:
            raise TypeError(f"unexpected load option {name!r} (known: {', '.join(_NAMES)})")
        _check(name, value)
    return {name: options[name] for name in _NAMES if options.get(name) is not None}


def _check(name: str, value: Any) -> None:
    allowed = _JIT[name][1] if name in _JIT else bool
    wanted = int if isinstance(allowed, range) else str if isinstance(allowed, tuple) else bool
    if value is None:
        return
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise TypeError(f"{name} must be a {wanted.__name__} or None, not {type(value).__name__}")
    if isinstance(allowed, range) and value not in allowed:
        raise ValueError(f"{name}={value} is out of range [{allowed[0]}, {allowed[-1]}]")
    if isinstance(allowed, tuple) and value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown (known: {', '.join(allowed)})")


def jit_options(options: dict[str, Any]) -> list[tuple[int, int]]:
    """Pairs of CUjit_option and value."""
    return [
        (_JIT[name][0], _CACHE_MODES.index(value) if isinstance(value, str) else int(value))
        for name, value in options.items()
        if name in _JIT
    ]
