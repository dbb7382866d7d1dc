"""Compiling CUDA C++, PTX and NVVM IR."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudamod import _nvrtc, _nvvm
from cudamod._compile_key import compile_key
from cudamod._compile_option import is_given, with_values
from cudamod._compiler_library import NVRTC, NVVM, file_identity
from cudamod._nvjitlink import Input
from cudamod._nvrtc import Compiled
from cudamod.compile_cache import CompileCache, cache_directory
from cudamod.linker import (
    Linker,
    checked_target,
    choose_backend,
    current_architecture,
    link_inputs,
    linker_flags,
    linker_identity,
)
from cudamod.linker_options import LinkerOptions
from cudamod.object_code import ObjectCode
from cudamod.program_options import ProgramOptions

if TYPE_CHECKING:
    from typing import Any, NoReturn, Protocol

    class Log(Protocol):
        """Something to write to: an open file, ``io.StringIO``."""

        def write(self, text: str, /) -> object:
            """Take a text."""


__all__ = ["Program", "ProgramOptions"]

_TARGETS = {
    "c++": ("ptx", "cubin", "ltoir"),
    "ptx": ("cubin", "ptx"),
    "nvvm": ("ptx", "ltoir"),
}
_PCH = ("pch", "create_pch", "use_pch")


class Program:
    """A source and its options: ``"c++"``, ``"ptx"`` or ``"nvvm"``. Shareable between threads.

    NVRTC compiles C++, libNVVM compiles NVVM IR, and nvJitLink (or the driver, where that is
    missing) assembles PTX. With ``options.arch`` no driver is needed.

    Raises:
        RuntimeError: another code type.
        TypeError, ValueError: a source or an option of the wrong type or value.
    """

    __slots__ = (
        "__weakref__",
        "_code_type",
        "_is_closed",
        "_options",
        "_pch_status",
        "_source",
    )

    _source: bytes
    _code_type: str
    _options: ProgramOptions
    _is_closed: bool
    _pch_status: str | None

    def __new__(
        cls,
        code: str | bytes | bytearray,
        code_type: str,
        options: ProgramOptions | dict[str, Any] | None = None,
    ) -> Program:
        if not isinstance(code_type, str):
            raise TypeError(f"code_type must be str, not {type(code_type).__name__}")
        kind = str(code_type).lower()
        if kind not in _TARGETS:
            raise RuntimeError(
                f"Unsupported code_type={kind!r} (supported_code_types={tuple(_TARGETS)})"
            )
        self = object.__new__(cls)
        self._source = _checked_source(code, kind)
        self._code_type = kind
        self._options = with_values(ProgramOptions, options, "Program")
        self._is_closed = False
        self._pch_status = None
        if kind != "nvvm" and self._options.extra_sources is not None:
            title = "NVRTC" if kind == "c++" else "PTX"
            raise ValueError(f"extra_sources is not supported by the {title} backend")
        if kind == "ptx" and self._options.numba_debug:
            warnings.warn("numba_debug is ignored for code_type='ptx'", UserWarning, stacklevel=2)
        return self

    @property
    def backend(self) -> str:
        """What compiles: ``"NVRTC"``, ``"NVVM"``, ``"nvJitLink"`` or ``"driver"``."""
        if self._code_type == "ptx":
            return Linker.which_backend()
        return "NVRTC" if self._code_type == "c++" else "NVVM"

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    @property
    def pch_status(self) -> str | None:
        """What became of precompiled headers in the last :meth:`compile`.

        ``"created"``, ``"not_attempted"``, ``"failed"``, or None when none were asked for.
        """
        return self._pch_status

    def compile(
        self,
        target_type: str,
        name_expressions: Sequence[str | bytes] = (),
        logs: Log | None = None,
        *,
        cache: CompileCache | bool | None = None,
        extra_digest: str | bytes | None = None,
    ) -> ObjectCode:
        """Compile to ``"ptx"``, ``"cubin"`` or ``"ltoir"``. As often as you like.

        Args:
            target_type: what to make; C++ can become all three, PTX a cubin, NVVM IR PTX or
                LTO-IR.
            name_expressions: C++ expressions that name kernels, ``"scale<float, 4>"``; the names
                that :meth:`ObjectCode.get_kernel` then takes.
            logs: what has a ``write`` for the compiler's warnings.
            cache: a cache, True or None for the one on disk, False for none.
            extra_digest: vouches for what the source includes. A source that includes headers is
                cached only with it; it must change when any of them does.

        Raises:
            CompileError: the compiler refuses the source or an option; it has the log.
            CompilerNotFoundError: the compiler is not installed.
            DriverNotFoundError: ``options.arch`` is None and there is no driver to ask.
            TypeError, ValueError: an argument of the wrong type or value.
            RuntimeError: the program is closed.
        """
        source = self._source  # before the check: another thread may close
        if self._is_closed:
            raise RuntimeError("Program has been closed")
        target = checked_target(target_type, _TARGETS[self._code_type], self._code_type)
        expressions = _checked_expressions(name_expressions, self._code_type)
        if extra_digest is not None and not isinstance(extra_digest, (str, bytes)):
            raise TypeError(f"extra_digest must be str or bytes, not {extra_digest!r}")
        if logs is not None and not hasattr(logs, "write"):
            raise TypeError(f"logs must have a write method, not {logs!r}")
        store = _store(cache)
        options = self._options
        if options.arch is None:
            options = dataclasses.replace(options, arch=current_architecture())
        work = _WORK[self._code_type](source, options, target, expressions)
        key = None
        if store is not None:
            key = compile_key(
                source,
                self._code_type,
                options,
                target,
                expressions,
                work.compiler(),
                work.flags,
                extra_digest,
            )
        compiled = None
        if store is not None and key is not None:
            compiled = _unpacked(store.get(key))
        if compiled is None:
            compiled = work.compile()
            if store is not None and key is not None:
                store.put(key, _packed(compiled))
        self._pch_status = compiled.pch_status
        if logs is not None and len(compiled.log) > 1:
            logs.write(compiled.log)
        return ObjectCode._init(
            compiled.code, target, name=str(options.name), symbol_mapping=compiled.symbols
        )

    def close(self) -> None:
        """Refuse to compile any more, and let the source go. Can be repeated."""
        self._is_closed = True
        self._source = b""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self._source)} bytes"
        return f"<Program {self._options.name!r} code_type={self._code_type!r} {state}>"


class _Nvrtc:
    """One compilation of C++."""

    def __init__(
        self, source: bytes, options: ProgramOptions, target: str, expressions: Sequence[str]
    ) -> None:
        self.source = source
        self.options = options
        self.target = target
        self.expressions = expressions
        assert options.arch is not None
        if target == "cubin" and not options.arch.startswith("sm_"):
            raise ValueError(
                f"a cubin is for a real architecture such as sm_90, not for {options.arch!r}"
            )
        if target == "ltoir" and options.link_time_optimization is False:
            raise ValueError("the target 'ltoir' needs link_time_optimization, which is False")
        if target != "ltoir" and options.link_time_optimization:
            raise ValueError(f"link_time_optimization makes LTO-IR, not {target!r}")
        self.flags = options._flags("nvrtc", target)

    def compiler(self) -> str:
        return f"NVRTC {_nvrtc.version()} {NVRTC.identity()}"

    def compile(self) -> Compiled:
        flags = list(self.flags)
        if self.options.use_bundled_headers:
            flags += _nvrtc.bundled_headers(_headers_folder())
        return _nvrtc.compile_source(
            self.source,
            str(self.options.name),
            flags,
            self.target,
            self.expressions,
            precompiled=any(is_given(self.options, name) for name in _PCH),
        )


class _Nvvm:
    """One compilation of NVVM IR."""

    def __init__(
        self, source: bytes, options: ProgramOptions, target: str, _expressions: Sequence[str]
    ) -> None:
        self.modules = [(str(options.name), source), *(options.extra_sources or ())]
        self.flags = options._flags("nvvm", target)
        self.libdevice = _nvvm.libdevice_path() if options.use_libdevice else None

    def compiler(self) -> str:
        device = file_identity(self.libdevice) if self.libdevice is not None else ""
        return f"NVVM {_nvvm.version()} {NVVM.identity()} {device}"

    def compile(self) -> Compiled:
        return _nvvm.compile_ir(self.modules, self.flags, self.libdevice)  # type: ignore[arg-type]


class _Assembly:
    """One compilation of PTX."""

    def __init__(
        self, source: bytes, options: ProgramOptions, target: str, _expressions: Sequence[str]
    ) -> None:
        values: dict[str, Any] = options._for_linker()
        self.options = LinkerOptions(**values)
        self.target = target
        self.input = Input("ptx", source, str(options.name))
        self.backend = choose_backend(["ptx"], self.options, stacklevel=4)
        self.flags = linker_flags(self.options, target, has_ltoir=False)

    def compiler(self) -> str:
        return linker_identity(self.backend)

    def compile(self) -> Compiled:
        linked = link_inputs([self.input], self.options, self.target, self.backend)
        return Compiled(linked.code, linked.info_log or linked.error_log)


_WORK: dict[str, type[_Nvrtc] | type[_Nvvm] | type[_Assembly]] = {
    "c++": _Nvrtc,
    "nvvm": _Nvvm,
    "ptx": _Assembly,
}


def _headers_folder() -> str:
    base = cache_directory()
    if base is None:
        raise RuntimeError("use_bundled_headers needs a cache folder; set CUDAMOD_CACHE_DIR")
    major, minor = _nvrtc.version()
    return os.path.join(base, f"headers-{major}.{minor}")


def _store(cache: CompileCache | bool | None) -> CompileCache | None:
    if cache is False:
        return None
    if cache is None or cache is True:
        return CompileCache()
    if not isinstance(cache, CompileCache):
        raise TypeError(f"cache must be a CompileCache, a bool or None, not {cache!r}")
    return cache


def _checked_source(code: object, kind: str) -> bytes:
    if kind == "nvvm":
        if not isinstance(code, (str, bytes, bytearray)):
            raise TypeError("NVVM IR code must be provided as str, bytes, or bytearray")
        source = code.encode() if isinstance(code, str) else bytes(code)
    else:
        if not isinstance(code, str):
            raise TypeError(f"Expected type str, but got {type(code).__name__}")
        try:
            source = code.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the source can't be written in UTF-8: {error}") from None
        if kind == "ptx":
            source = source.rstrip(b"\0")
        if b"\0" in source:
            raise ValueError(f"the source has a NUL at byte {source.index(0)}")
    if not source.strip() and kind != "c++":
        raise ValueError("the source is empty")
    return source


def _checked_expressions(expressions: Sequence[str | bytes], kind: str) -> tuple[str, ...]:
    if isinstance(expressions, (str, bytes)):
        raise TypeError(
            f"name_expressions must be a list or tuple of names, not one name: {expressions!r}"
        )
    checked = []
    for expression in expressions:
        if not isinstance(expression, (str, bytes)):
            raise TypeError(f"a name expression must be str or bytes, not {expression!r}")
        try:
            text = expression.decode() if isinstance(expression, bytes) else str(expression)
            text.encode()
        except UnicodeError:
            raise ValueError(f"name expression {expression!r} is not UTF-8") from None
        if not text.strip() or "\0" in text:
            raise ValueError(f"name expression {expression!r} is empty or has a NUL")
        checked.append(text)
    if checked and kind != "c++":
        raise ValueError(f"name_expressions are for C++, not for {kind!r}")
    return tuple(checked)


def _packed(compiled: Compiled) -> bytes:
    about = json.dumps([compiled.log, compiled.symbols, compiled.pch_status]).encode()
    return len(about).to_bytes(8, "little") + about + compiled.code


def _unpacked(entry: bytes | None) -> Compiled | None:
    if entry is None:
        return None
    end = 8 + int.from_bytes(entry[:8], "little")
    log, symbols, pch_status = json.loads(entry[8:end])
    return Compiled(entry[end:], log, symbols, pch_status)
