"""Compiling CUDA C++ with NVRTC. It holds no interpreter lock while it compiles."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from cudamod._compiler_library import NVRTC
from cudamod.errors import CompileError

__all__ = ["Compiled", "bundled_headers", "compile_source", "version"]

_PCH_STATUS = {
    "NVRTC_SUCCESS": "created",
    "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED": "not_attempted",
    "NVRTC_ERROR_PCH_CREATE": "failed",
}
_HEAP_EXHAUSTED = "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED"


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What a compiler made.

    Attributes:
        code: PTX (with its final NUL), cubin or LTO-IR.
        log: what it wrote: warnings, remarks.
        symbols: the name in the code of each name expression.
        pch_status: of precompiled headers: ``created``, ``not_attempted``, ``failed``, or None.
    """

    code: bytes
    log: str = ""
    symbols: dict[str, str] = dataclasses.field(default_factory=dict)
    pch_status: str | None = None


def version() -> tuple[int, int]:
    """The version of NVRTC."""
    status, major, minor = NVRTC.bindings().nvrtcVersion()
    _check(status, "nvrtcVersion", "NVRTC", (), "")
    return int(major), int(minor)


def bundled_headers(folder: str) -> list[str]:
    """The flags for the headers inside NVRTC, which are extracted into the folder if need be.

    Raises RuntimeError when NVRTC is older than 13.3 and has none.
    """
    found = version()
    if found < (13, 3):
        raise RuntimeError(
            f"use_bundled_headers needs NVRTC 13.3 or newer; {found[0]}.{found[1]} is installed"
        )
    nvrtc = NVRTC.bindings()
    os.makedirs(folder, exist_ok=True)
    status, *written = nvrtc.nvrtcInstallBundledHeaders(
        os.fsencode(folder), nvrtc.NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS
    )
    log = written[0].decode(errors="replace") if written and written[0] else ""
    _check(status, "nvrtcInstallBundledHeaders", folder, (), log)
    return [f"--use-bundled-headers={folder}"]


def compile_source(
    source: bytes,
    name: str,
    flags: Sequence[str],
    target: str,
    expressions: Sequence[str] = (),
    *,
    precompiled: bool = False,
) -> Compiled:
    """Compile for a target: ``ptx``, ``cubin`` or ``ltoir``.

    Raises:
        CompileError: NVRTC refuses the source, an option or a name expression.
        CompilerNotFoundError: there is no NVRTC.
    """
    options = tuple(flags)
    compiled = _compile_once(source, name, options, target, expressions, precompiled)
    if compiled.pch_status == _HEAP_EXHAUSTED:  # by now it is as large as is needed
        compiled = _compile_once(source, name, options, target, expressions, precompiled)
        if compiled.pch_status == _HEAP_EXHAUSTED:
            return dataclasses.replace(compiled, pch_status="failed")
    return compiled


def _compile_once(
    source: bytes,
    name: str,
    options: tuple[str, ...],
    target: str,
    expressions: Sequence[str],
    precompiled: bool,
) -> Compiled:
    nvrtc = NVRTC.bindings()
    subject = f"program {name!r}"
    status, program = nvrtc.nvrtcCreateProgram(source, os.fsencode(name), 0, [], [])
    _check(status, "nvrtcCreateProgram", subject, options, "")
    try:
        for expression in expressions:
            (status,) = nvrtc.nvrtcAddNameExpression(program, expression.encode())
            _check(status, "nvrtcAddNameExpression", f"{subject}, {expression!r}", options, "")
        encoded = [os.fsencode(option) for option in options]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _read(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        _check(status, "nvrtcCompileProgram", subject, options, log)
        symbols = {}
        for expression in expressions:
            status, lowered = nvrtc.nvrtcGetLoweredName(program, expression.encode())
            _check(status, "nvrtcGetLoweredName", f"{subject}, {expression!r}", options, log)
            symbols[expression] = lowered.decode()
        code = _read(nvrtc, program, {"ptx": "PTX", "cubin": "CUBIN", "ltoir": "LTOIR"}[target])
        if len(code) <= 1:
            raise CompileError.of(
                0,
                f"no {target} was made; the options ask for something else",
                "nvrtcCompileProgram",
                subject,
                log,
                options,
            )
        pch = _pch_status(nvrtc, program) if precompiled else None
        return Compiled(code, log, symbols, pch)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(nvrtc: Any, program: Any, what: str) -> bytes:
    call = f"nvrtcGet{what}"
    status, size = getattr(nvrtc, f"{call}Size")(program)
    _check(status, f"{call}Size", "", (), "")
    if size == 0:
        return b""
    content = bytearray(size)
    (status,) = getattr(nvrtc, call)(program, content)
    _check(status, call, "", (), "")
    return bytes(content)


def _pch_status(nvrtc: Any, program: Any) -> str:
    (status,) = nvrtc.nvrtcGetPCHCreateStatus(program)
    if status.name == _HEAP_EXHAUSTED:
        status, needed = nvrtc.nvrtcGetPCHHeapSizeRequired(program)
        _check(status, "nvrtcGetPCHHeapSizeRequired", "", (), "")
        (status,) = nvrtc.nvrtcSetPCHHeapSize(needed)
        _check(status, "nvrtcSetPCHHeapSize", "", (), "")
        return _HEAP_EXHAUSTED
    return _PCH_STATUS.get(status.name, "failed")


def _check(status: Any, call: str, subject: str, options: tuple[str, ...], log: str) -> None:
    if int(status):
        raise CompileError.of(int(status), status.name, call, subject, log, options)
