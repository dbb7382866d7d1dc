"""The driver API, one Python function per driver function.

``driver.cuX(...)`` calls the driver, raises :class:`cudamod.CUDAError` when it answers an error, and
returns the output parameters: nothing, one value, or a tuple. ``driver.lib.cuX`` is the raw call,
with every C parameter, returning its status. Enum types are Python enums
(``driver.CUresult.CUDA_SUCCESS``), integer macros are integers.

Handles come back as CFFI data and may be given as such or as integers; text may be ``str``; memory
may be any object with the buffer protocol. A function that the installed driver lacks raises
:class:`cudamod.DriverTooOldError` when it is looked up, which is an ``AttributeError`` as well.

Integers and pointers given to this module cannot be validated: a wrong one can crash the process.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any

from cudamod import _core
from cudamod.errors import DriverNotFoundError, DriverTooOldError

ffi: Any
lib: Any
ffi, lib = _core.load_cffi()

_FUNCTIONS = frozenset(_core.driver_functions())
_RAW_MEMORY = (bytes, bytearray, memoryview)
_TEXT = ffi.typeof("char *")
_VOID = ffi.typeof("void *")


class _MissingFunctionError(DriverTooOldError, AttributeError):
    """What looking up a function that the driver lacks raises, so that hasattr() works."""


def use(choice: str) -> None:
    """Choose the driver: ``"auto"``, ``"emulated"`` or a path. Only before the first call."""
    _core.driver_select(os.fspath(choice))


def opened() -> bool:
    """Whether a driver is open."""
    return _core.driver_opened()


def version() -> int:
    """The driver's CUDA version, 13000 for 13.0. Opens the driver."""
    return _core.driver_version()


def has(name: str) -> bool:
    """Whether the driver has the function, with the signature that this build knows."""
    return name in _FUNCTIONS and _core.driver_has(name)


def functions() -> tuple[str, ...]:
    """The name of every driver function that this build knows."""
    return _core.driver_functions()


def needed_version(name: str) -> int:
    """The oldest CUDA version whose drivers have the function, 12040 for 12.4."""
    return _core.driver_function(name)[1]


def describe() -> str:
    """One line about the driver that is open; opens it."""
    found = _core.driver_open()
    number = found["version"]
    return f"{found['path']} (CUDA {number // 1000}.{number % 1000 // 10}, choice {found['choice']!r})"


def _convert_parameter(ctype: Any) -> Callable[[Any], Any]:
    """How a Python value becomes an argument of that C type."""
    if ctype.kind != "pointer" and ctype.kind != "function":
        return lambda value: value
    is_text = ctype is _TEXT

    def convert(value: Any) -> Any:
        if value is None:
            return ffi.NULL
        if isinstance(value, int):
            return ffi.cast(ctype, value)
        if is_text:
            return os.fsencode(value) if isinstance(value, (str, os.PathLike)) else value
        if isinstance(value, _RAW_MEMORY):
            return ffi.cast(ctype, ffi.from_buffer(value))
        return value

    return convert


def _convert_output(ctype: Any) -> Callable[[Any], Any]:
    """How what an output parameter of that type points to becomes a Python value."""
    item = ctype.item
    if item is _TEXT:
        return lambda place: ffi.string(place[0]).decode(errors="replace") if place[0] else ""
    if item.kind == "enum":
        members = __getattr__(item.cname.removeprefix("enum "))
        return lambda place: members(place[0])
    if item.kind in ("struct", "union"):
        return lambda place: place
    return lambda place: place[0]


def _make_function(name: str) -> Callable[..., Any]:
    raw = getattr(lib, name)
    _, _, names, lifted = _core.driver_function(name)
    types = ffi.typeof(raw).args
    positions = [int(position) for position in lifted.split(",") if position]
    outputs = [(p, types[p], _convert_output(types[p])) for p in positions]
    inputs = [(p, _convert_parameter(t)) for p, t in enumerate(types) if p not in positions]

    def call(*arguments: Any) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"{name}() takes {len(inputs)} arguments ({len(arguments)} given)")
        passed = [None] * len(types)
        for (position, convert), argument in zip(inputs, arguments):
            passed[position] = convert(argument)
        for position, ctype, _ in outputs:
            passed[position] = ffi.new(ctype)
        if status := raw(*passed):
            _core.raise_status(status, name)
        results = tuple(convert(passed[position]) for position, _, convert in outputs)
        return results[0] if len(results) == 1 else results or None

    call.__name__ = call.__qualname__ = name
    return call


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        try:
            _core.driver_require(name)
        except DriverTooOldError as error:
            missing = _MissingFunctionError(*error.args, error.status, error.name, error.call)
            missing.needed, missing.found = error.needed, error.found
            raise missing from None
        except DriverNotFoundError:
            return _make_function(name)  # the call raises it
        value: Any = _make_function(name)
    else:
        value = _constant(name)
    globals()[name] = value
    return value


def _constant(name: str) -> Any:
    try:
        ctype = ffi.typeof(name)
    except ffi.error:
        ctype = None
    if ctype is not None and ctype.kind == "enum":
        return enum.IntEnum(name, ctype.relements, module=__name__)
    value = getattr(lib, name, None)
    if isinstance(value, int):
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})
