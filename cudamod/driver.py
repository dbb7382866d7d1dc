"""The driver API, one Python function per driver function.

``driver.cuX(...)`` calls the driver, raises :class:`cudamod.CUDAError` when it answers an error,
and returns the output parameters: nothing, one value, or a tuple. ``driver.lib.cuX`` is the raw
call, with every C parameter, returning its status. Enum types are Python enums
(``driver.CUresult.CUDA_SUCCESS``), integer macros are integers.

Handles come back as CFFI data and may be given as such or as integers; text may be ``str``; memory
may be any object with the buffer protocol; a structure may be a dictionary in a list. A function
that the installed driver lacks raises :class:`cudamod.DriverTooOldError` when it is looked up;
that error is an ``AttributeError`` as well, so ``hasattr`` works. Without any driver, the call
raises :class:`cudamod.DriverNotFoundError`.

Integers and pointers given to this module cannot be validated: a wrong one can crash the process.
"""

from __future__ import annotations

import os
from typing import Any

from cudamod import _core
from cudamod._driver_function import enum_type, ffi, lib, make_function
from cudamod.errors import DriverNotFoundError, DriverTooOldError, MissingFunctionError

__all__ = [
    "CData",
    "describe",
    "ffi",
    "functions",
    "has",
    "lib",
    "needed_version",
    "opened",
    "use",
    "version",
]

CData = ffi.CData
_FUNCTIONS = frozenset(_core.driver_functions())


def use(choice: str | os.PathLike[str]) -> None:
    """Choose the driver: ``"auto"``, ``"emulated"`` or a path. Only before the first call.

    Raises RuntimeError when another one is open already.
    """
    _core.driver_select(os.fspath(choice))


def opened() -> bool:
    """Whether a driver is open."""
    return _core.driver_opened()


def version() -> int:
    """The driver's CUDA version, 13000 for 13.0. Opens the driver."""
    return _core.driver_version()


def has(name: str) -> bool:
    """Whether the driver has the function, with the signature that this build knows. Opens it."""
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
    return f"CUDA {number // 1000}.{number % 1000 // 10} driver {found['path']}"


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        try:
            _core.driver_require(name)
        except DriverTooOldError as error:
            raise MissingFunctionError.of(error) from None
        except DriverNotFoundError:
            return make_function(name)
        value: Any = make_function(name)
    else:
        value = _constant(name)
    globals()[name] = value
    return value


def _constant(name: str) -> Any:
    """An enum type or an integer macro of the header."""
    try:
        ctype = ffi.typeof(name)
    except ffi.error:
        value = getattr(lib, name, None)
        if isinstance(value, int):
            return value
    else:
        if ctype.kind == "enum":
            return enum_type(ctype)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})
