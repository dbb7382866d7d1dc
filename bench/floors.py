"""The C floor of each benchmark: the driver calls alone, in a C loop."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cudamod import _core

Timer = Callable[[int], float]
"""Answers nanoseconds per call for that many calls."""

Arguments = Sequence[int]
"""Up to eleven integers or addresses."""


@functools.cache
def _loops() -> ctypes.CDLL:
    """bench/floor.c, compiled."""
    source = Path(__file__).with_name("floor.c")
    for candidate in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        command = shlex.split(candidate)
        if command and shutil.which(command[0]):
            break
    else:
        raise RuntimeError("the floors need a C compiler: none of $CC, cc, gcc, clang is here")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "floor.so")
        subprocess.run([*command, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        loops = ctypes.CDLL(str(library))
    for name in ("floor_call", "floor_pair", "floor_library"):
        getattr(loops, name).restype = ctypes.c_double
    return loops


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(_core.driver_open()["path"])


def _function(name: str) -> Any:
    """A function of the driver by its exported name."""
    return ctypes.cast(getattr(_driver(), name), ctypes.c_void_p)


def _packed(arguments: Arguments) -> Any:
    return (ctypes.c_uint64 * 11)(*(value & (1 << 64) - 1 for value in arguments))


def _checked(name: str, value: float) -> float:
    if value < 0:
        raise RuntimeError(f"{name} answered {-value:.0f}")
    return value


def proc_floor(name: str, *arguments: int) -> Timer:
    """One driver call through the address that cuGetProcAddress gives."""
    address, packed = ctypes.c_void_p(), _packed(arguments)
    get = _driver().cuGetProcAddress_v2
    version = ctypes.c_int()
    _driver().cuDriverGetVersion(ctypes.byref(version))
    status = get(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(0), None)
    if status:
        raise RuntimeError(f"cuGetProcAddress of {name} answered {status}")
    loop = _loops().floor_call
    return lambda times: _checked(name, loop(address, ctypes.c_long(times), packed))


def call_floor(name: str, *arguments: int) -> Timer:
    """One driver call."""
    function, packed = _function(name), _packed(arguments)
    loop = _loops().floor_call
    return lambda times: _checked(name, loop(function, ctypes.c_long(times), packed))


def pair_floor(first: str, a: Arguments, second: str, b: Arguments) -> Timer:
    """Two driver calls in turn."""
    functions, packed = (_function(first), _function(second)), (_packed(a), _packed(b))
    loop = _loops().floor_pair
    return lambda times: _checked(
        f"{first}, {second}",
        loop(functions[0], packed[0], functions[1], packed[1], ctypes.c_long(times)),
    )


def library_floor(image: bytes, kernel: bytes) -> Timer:
    """Load a library, ask for one kernel, unload it."""
    names = ("cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload")
    load, get_kernel, unload = (_function(name) for name in names)
    loop = _loops().floor_library
    kept = ctypes.create_string_buffer(image)
    return lambda times: _checked(
        "load, get kernel, unload",
        loop(load, get_kernel, unload, kept, ctypes.c_char_p(kernel), ctypes.c_long(times)),
    )
