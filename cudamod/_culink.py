"""Linking with the driver (cuLink), where nvJitLink is missing. Needs a current context."""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Sequence
from typing import Any

from cudamod import driver
from cudamod._nvjitlink import Input, Linked
from cudamod.errors import CompileError, CUDAError
from cudamod.linker_options import LinkerOptions

__all__ = ["link", "refuse_options"]

_LOG_BYTES = 1 << 20
_REFUSED = (
    "time",
    "ptx",
    "link_time_optimization",
    "ptxas_options",
    "split_compile",
    "split_compile_extended",
)
_IGNORED = (
    "ftz",
    "prec_div",
    "prec_sqrt",
    "fma",
    "kernels_used",
    "variables_used",
    "optimize_unused_variables",
)
_INPUT_TYPES = {
    "cubin": "CU_JIT_INPUT_CUBIN",
    "ptx": "CU_JIT_INPUT_PTX",
    "fatbin": "CU_JIT_INPUT_FATBINARY",
    "object": "CU_JIT_INPUT_OBJECT",
    "library": "CU_JIT_INPUT_LIBRARY",
}
_SUFFIX_BASES = {
    "": None,
    "a": "CU_COMPUTE_ACCELERATED_TARGET_BASE",
    "f": "CU_COMPUTE_FAMILY_TARGET_BASE",
}


def refuse_options(options: LinkerOptions, stacklevel: int) -> None:
    """Raise ValueError for what the driver can't do; warn of what it takes no notice of."""
    for name in _REFUSED:
        if getattr(options, name):
            raise ValueError(f"{name} option is not supported by the driver API; nvJitLink has it")
    ignored = [name for name in _IGNORED if getattr(options, name) is not None]
    if ignored:
        warnings.warn(
            f"the driver's linker ignores {', '.join(ignored)}; nvJitLink has these options",
            RuntimeWarning,
            stacklevel=stacklevel,
        )


def link(inputs: Sequence[Input], options: LinkerOptions) -> Linked:
    """Link to a cubin.

    Raises:
        CompileError: the driver refuses an input or an option.
        CUDAError: no context is current.
        ValueError: an architecture that the driver API has no number for.
    """
    ffi = driver.ffi
    logs = {"info": ffi.new("char[]", _LOG_BYTES), "error": ffi.new("char[]", _LOG_BYTES)}
    values = _jit_options(options)
    for which, buffer in logs.items():
        values[f"CU_JIT_{which.upper()}_LOG_BUFFER"] = buffer
        values[f"CU_JIT_{which.upper()}_LOG_BUFFER_SIZE_BYTES"] = _LOG_BYTES
    names = ffi.new("CUjit_option[]", [driver.CUjit_option[name] for name in values])
    # The driver writes the logs' sizes into this array until the link is destroyed.
    given = ffi.new("void *[]", [ffi.cast("void *", value) for value in values.values()])
    shown = tuple(f"{name}={value}" for name, value in values.items() if "_LOG_" not in name)
    subject = f"link {options.name!r}"
    state = driver.cuLinkCreate(len(values), names, given)
    try:
        for item in inputs:
            subject = f"link {options.name!r}, input {item.name!r}"
            kind = driver.CUjitInputType[_INPUT_TYPES[item.code_type]]
            code = item.code.rstrip(b"\0") + b"\0" if item.code_type == "ptx" else item.code
            driver.cuLinkAddData(state, kind, code, len(code), item.name, 0, None, None)
        subject = f"link {options.name!r}"
        cubin, size = driver.cuLinkComplete(state)
        made = bytes(ffi.buffer(cubin, size))
    except CUDAError as error:
        log = _text(logs["error"]) or error.log
        raise CompileError.of(error.status, error.name, error.call, subject, log, shown) from error
    finally:
        driver.cuLinkDestroy(state)
    return Linked(made, _text(logs["info"]), _text(logs["error"]))


def _text(buffer: Any) -> str:
    return str(driver.ffi.string(buffer).decode(errors="replace"))


def _jit_options(options: LinkerOptions) -> dict[str, Any]:
    """Names of CUjit_option and values, as integers."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        name = field.metadata["flags"].get("driver")
        if name is None or value is None:
            continue
        if name == "CU_JIT_TARGET":
            values[name] = _target(value)
        elif name == "CU_JIT_CACHE_MODE":
            if value:
                values[name] = 0  # CU_JIT_CACHE_OPTION_NONE
        else:
            values[name] = int(value)
    return values


def _target(architecture: str) -> int:
    """The architecture's CUjit_target."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)([af]?)", architecture)
    if match is None:
        raise ValueError(f"the driver's linker has no architecture {architecture!r}")
    base = _SUFFIX_BASES[match[2]]
    return int(match[1]) + (int(getattr(driver, base)) if base else 0)
