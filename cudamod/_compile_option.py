"""How one option of a compiler is checked, stored and spelled.

The fields of ``ProgramOptions`` and ``LinkerOptions`` are made by :func:`option`; everything that
is said about an option (flags, documentation) lies in its field's metadata and nowhere else.
"""

from __future__ import annotations

import dataclasses
import operator
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

__all__ = [
    "Spelling",
    "check_fields",
    "flags_of",
    "is_given",
    "option",
    "with_defaults",
    "with_values",
]

_ARCHITECTURE = re.compile(r"(sm|compute|lto)_\d{2,3}[af]?")


@dataclasses.dataclass(frozen=True)
class Spelling:
    """The words of a backend for true and false: ``--ftz=true``, ``-ftz=1``."""

    true: str = "true"
    false: str = "false"


def option(
    check: Callable[[str, Any], Any], says: str, *, default: Any = None, **flags: str
) -> Any:
    """A field: how its value is checked, what it does, and its flag for each backend.

    A flag that ends in ``=`` is followed by the value. ``check`` is one of the functions below.
    """
    metadata = {"check": check, "says": says, "flags": flags}
    return dataclasses.field(default=default, metadata=metadata)


def with_defaults(cls: type[Any]) -> Any:
    """An object whose fields have their defaults, for ``__new__``: none is seen without them."""
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        object.__setattr__(made, field.name, field.default)
    return made


def check_fields(options: Any) -> None:
    """Bring every field into its one form: tuples for sequences, plain ``str`` and ``int``.

    Raises TypeError or ValueError naming the field and its value.
    """
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if value is not None:
            checked = field.metadata["check"](f"{type(options).__name__}.{field.name}", value)
            object.__setattr__(options, field.name, checked)
        elif field.default is not None:
            object.__setattr__(options, field.name, field.default)


def with_values(cls: type[Any], options: Any, what: str) -> Any:
    """An object of the class from None, a mapping of its fields, or such an object."""
    if options is None:
        return cls()
    if isinstance(options, cls):
        return options
    if not isinstance(options, dict):
        raise TypeError(
            f"The {what} options must be provided as an object of type {cls.__name__} or as a "
            f"dict with valid {what} options. The provided object is {options!r}."
        )
    known = [field.name for field in dataclasses.fields(cls)]
    for name in options:
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(str(name), known, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{cls.__name__} has no option {name!r}{meant}")
    return cls(**options)


def flags_of(options: Any, backend: str, spelling: Spelling) -> Iterator[str]:
    """The flags for a backend, in the order of the fields."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        flag = field.metadata["flags"].get(backend)
        if flag is None or value is None:
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, bool):
                if flag.endswith("="):
                    yield flag + (spelling.true if part else spelling.false)
                elif part:
                    yield flag
            elif isinstance(part, tuple):
                yield f"{flag}{part[0]}={part[1]}"
            else:
                yield f"{flag}{part}"


def is_given(options: Any, name: str) -> bool:
    """Whether the option asks for anything: set, and no switch that is off."""
    value = getattr(options, name)
    return value is not None and value is not False and value != ()


def text(what: str, value: Any) -> str:
    """A text or a path, without NUL."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        value = os.fsdecode(value)
    if not isinstance(value, str):
        raise TypeError(f"{what} must be str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what} has an embedded NUL: {value!r}")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError(f"{what} can't be written in UTF-8: {value!r}") from None
    return str(value)


def architecture(what: str, value: Any) -> str:
    """``sm_90``, ``sm_90a``, ``sm_100f``, ``compute_90``."""
    name = text(what, value)
    if not _ARCHITECTURE.fullmatch(name):
        raise ValueError(f"{what} must be such as sm_90, sm_90a, sm_100f or compute_90: {name!r}")
    return name


def switch(what: str, value: Any) -> bool:
    """A bool, or the integer 0 or 1."""
    if type(value).__name__ not in ("bool", "bool_", "int") or value not in (0, 1):
        raise TypeError(f"{what} must be a bool, not {value!r}")
    return bool(value)


def number(what: str, value: Any) -> int:
    """An integer that is not negative."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be int, not {type(value).__name__}")
    checked = operator.index(value)
    if checked < 0:
        raise ValueError(f"{what} must not be negative: {checked}")
    return checked


def texts(what: str, value: Any) -> tuple[str, ...]:
    """One text or path, or a sequence of them."""
    if isinstance(value, (str, bytes, os.PathLike)):
        value = (value,)
    return tuple(text(what, part) for part in _sequence(what, value))


def numbers(what: str, value: Any) -> tuple[int, ...]:
    """One number or a sequence of them."""
    if not isinstance(value, (list, tuple)):
        value = (value,)
    return tuple(number(what, part) for part in value)


def macros(what: str, value: Any) -> tuple[str | tuple[str, str], ...]:
    """``"N"``, ``("N", "V")``, or a sequence of these.

    A tuple of two ``str`` is a name and its value; for two names give a list.
    """
    if isinstance(value, str) or (isinstance(value, tuple) and _is_pair(value)):
        value = (value,)
    checked: list[str | tuple[str, str]] = []
    for part in _sequence(what, value):
        if isinstance(part, (tuple, list)):
            if not _is_pair(part):
                raise TypeError(f"{what} must be names or pairs of name and value, not {part!r}")
            checked.append((text(what, part[0]), text(what, part[1])))
        else:
            checked.append(text(what, part))
    return tuple(checked)


def sources(what: str, value: Any) -> tuple[tuple[str, bytes], ...]:
    """Pairs of a name and a text or bitcode."""
    checked = []
    for part in _sequence(what, value):
        if not isinstance(part, (tuple, list)) or len(part) != 2:
            raise TypeError(f"{what} must be pairs of name and source, not {part!r}")
        name, source = part
        if not isinstance(name, str):
            raise TypeError(f"{what}: a name must be str, not {type(name).__name__}")
        if not isinstance(source, (str, bytes, bytearray)):
            raise TypeError(
                f"{what}: the source of {name!r} must be str, bytes or bytearray, "
                f"not {type(source).__name__}"
            )
        if not source:
            raise ValueError(f"{what}: the source of {name!r} is empty")
        checked.append((name, source.encode() if isinstance(source, str) else bytes(source)))
    return tuple(checked)


def _sequence(what: str, value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{what} must be a list or tuple, not {type(value).__name__}")
    return value


def _is_pair(value: Any) -> bool:
    return len(value) == 2 and all(isinstance(part, str) for part in value)
