"""A driver function as a Python function: arguments in, output parameters out."""

from __future__ import annotations

import enum
import inspect
import keyword
import operator
import os
from collections.abc import Callable
from typing import Any

from cudamod import _core

ffi: Any
lib: Any
ffi, lib = _core.load_cffi()

_CHAR_POINTER = ffi.typeof("char *")
_enums: dict[Any, type[enum.IntEnum]] = {}


def enum_type(ctype: Any) -> type[enum.IntEnum]:
    """The Python enum of a C enum type."""
    if ctype not in _enums:
        make: Any = enum.IntEnum  # mypy reads the functional form only with a literal name
        name = ctype.cname.removeprefix("enum ").removesuffix("_enum")
        _enums[ctype] = make(name, ctype.relements, module="cudamod.driver")
    return _enums[ctype]


def make_function(name: str) -> Callable[..., Any]:
    """The function that calls the driver's ``name``, raises its errors and returns its outputs."""
    raw = getattr(lib, name)
    _, needed, parameter_names, output_positions = _core.driver_function(name)
    names = [f"{n}_" if keyword.iskeyword(n) else n for n in parameter_names.split(",") if n]
    types = ffi.typeof(raw).args
    positions = [int(position) for position in output_positions.split(",") if position]
    outputs = [(p, types[p], _output(types[p])) for p in positions]
    inputs = [(p, _input(types[p])) for p in range(len(types)) if p not in positions]

    def call(*arguments: Any) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"{name}() takes {len(inputs)} arguments, not {len(arguments)}")
        passed: list[Any] = [None] * len(types)
        for (position, convert), argument in zip(inputs, arguments, strict=True):
            try:
                passed[position] = convert(argument)
            except TypeError as error:
                raise TypeError(f"{name}(): {names[position]}: {error}") from None
        for position, ctype, _ in outputs:
            passed[position] = _place(ctype)
        if status := raw(*passed):
            _core.raise_status(status, name)
        results = tuple(convert(passed[position]) for position, _, convert in outputs)
        return results[0] if len(results) == 1 else results or None

    call.__name__ = call.__qualname__ = name
    call.__module__ = "cudamod.driver"
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(names[p], inspect.Parameter.POSITIONAL_ONLY) for p, _ in inputs]
    )
    declared = ", ".join(f"{t.cname} {n}" for t, n in zip(types, names, strict=True))
    since = f"{needed // 1000}.{needed % 1000 // 10}"
    call.__doc__ = f"CUresult {name}({declared}), CUDA {since} and newer."
    if positions:
        call.__doc__ += f"\n\nReturns {', '.join(names[p] for p in positions)}."
    return call


def _input(ctype: Any) -> Callable[[Any], Any]:
    """How a Python value becomes an argument of that C type."""
    if ctype.kind not in ("pointer", "function"):
        return lambda value: value
    is_text = ctype is _CHAR_POINTER

    def convert(value: Any) -> Any:
        if value is None:
            return ffi.NULL
        if isinstance(value, (ffi.CData, list, tuple, dict)):
            return value
        if is_text and isinstance(value, (str, os.PathLike)):
            return os.fsencode(value)
        if is_text and not isinstance(value, (bytes, bytearray)):
            raise TypeError(f"a text must be str, bytes or CFFI data, not {type(value).__name__}")
        if hasattr(value, "__index__"):
            return ffi.cast(ctype, operator.index(value))
        return ffi.cast(ctype, ffi.from_buffer(value))

    return convert


def _place(ctype: Any) -> Any:
    """Memory for an output parameter of that type; CFFI's own is aligned as malloc's is."""
    item = ctype.item
    alignment = ffi.alignof(item) if item.kind in ("struct", "union") else 0
    if alignment <= 16:
        return ffi.new(ctype)
    space = ffi.new("char[]", ffi.sizeof(item) + alignment)
    start = -int(ffi.cast("uintptr_t", space)) % alignment
    # The destructor does nothing but keep the memory.
    return ffi.gc(ffi.cast(ctype, space + start), lambda _, space=space: None)


def _output(ctype: Any) -> Callable[[Any], Any]:
    """How what an output parameter of that type points to becomes a Python value."""
    item = ctype.item
    if item is _CHAR_POINTER:
        return lambda place: ffi.string(place[0]).decode(errors="replace") if place[0] else ""
    if item.kind == "enum":
        return lambda place: _enum_value(item, place)
    if item.kind in ("struct", "union"):
        return lambda place: place
    return lambda place: place[0]


def _enum_value(ctype: Any, place: Any) -> int:
    number = int(place[0])
    try:
        return enum_type(ctype)(number)
    except ValueError:
        return number  # newer than the header
