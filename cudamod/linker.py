"""Linking object code, with nvJitLink or with the driver."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cudamod import _core, _nvjitlink
from cudamod._compile_option import with_values
from cudamod._compiler_library import NVJITLINK, file_identity
from cudamod._nvjitlink import Input, Linked
from cudamod.errors import CompileError, CompilerNotFoundError, DriverNotFoundError
from cudamod.linker_options import LinkerOptions
from cudamod.object_code import ObjectCode

if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["Linker", "LinkerOptions", "current_architecture"]

_TARGETS = ("cubin", "ptx")


def current_architecture() -> str:
    """The current device's architecture, ``"sm_90"``. Opens the driver."""
    return f"sm_{_core.Device().arch}"


class Linker:
    """Object codes that become one, and the options for it.

    nvJitLink does it; where that is missing, the driver (with a RuntimeWarning), which links no
    LTO-IR and needs a current context. Nothing is read or linked before :meth:`link`.

    Raises:
        ValueError: no object code; an option that the backend has not.
        TypeError: something that is no ObjectCode.
        CompilerNotFoundError: LTO-IR without nvJitLink, or neither that nor a driver (a
            RuntimeError).
    """

    __slots__ = ("__weakref__", "_backend", "_inputs", "_is_closed", "_logs", "_options")

    _inputs: tuple[ObjectCode, ...]
    _options: LinkerOptions
    _backend: str
    _is_closed: bool
    _logs: tuple[str, str]  # info, error

    def __new__(
        cls, *object_codes: ObjectCode, options: LinkerOptions | dict[str, Any] | None = None
    ) -> Linker:
        if not object_codes:
            raise ValueError("At least one ObjectCode object must be provided")
        for code in object_codes:
            if not isinstance(code, ObjectCode):
                raise TypeError(f"Expected type ObjectCode, but got {type(code).__name__}")
        self = object.__new__(cls)
        self._inputs = object_codes
        self._options = with_values(LinkerOptions, options, "Linker")
        self._backend = choose_backend(
            [code.code_type for code in object_codes], self._options, stacklevel=3
        )
        self._is_closed = False
        self._logs = "", ""
        if self._options.numba_debug:
            warnings.warn("numba_debug has no effect on linking", UserWarning, stacklevel=2)
        return self

    @staticmethod
    def which_backend() -> str:
        """What links in this process: ``"nvJitLink"`` or ``"driver"``."""
        return "nvJitLink" if NVJITLINK.is_available() else "driver"

    @property
    def backend(self) -> str:
        """What links here: ``"nvJitLink"`` or ``"driver"``."""
        return self._backend

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._is_closed

    def link(self, target_type: str) -> ObjectCode:
        """Link to a ``"cubin"``, or LTO-IR to ``"ptx"``. As often as you like.

        Raises:
            CompileError: the linker refuses an input or an option, and has the log; or two inputs
                define the same name.
            CUDAFileError: an input's file can't be read (an OSError, too).
            ValueError: another target; an input that is damaged, or whose code is not relocatable.
            RuntimeError: the linker is closed.
        """
        codes = self._inputs  # before the check: another thread may close
        if self._is_closed:
            raise RuntimeError("Linker has been closed")
        target = checked_target(target_type, _TARGETS, "linking")
        inputs = [
            Input(code.code_type, code._image.contents(), code.name or f"input {index}")
            for index, code in enumerate(codes)
        ]
        try:
            linked = link_inputs(inputs, self._options, target, self._backend)
        except Exception as error:
            self._logs = "", str(getattr(error, "log", ""))
            raise
        self._logs = linked.info_log, linked.error_log
        return ObjectCode._init(linked.code, target, name=str(self._options.name))

    def get_info_log(self) -> str:
        """What the last :meth:`link` said."""
        return self._logs[0]

    def get_error_log(self) -> str:
        """What the last :meth:`link` complained of."""
        return self._logs[1]

    def close(self) -> None:
        """Refuse to link any more, and let the inputs go. Can be repeated."""
        self._is_closed = True
        self._inputs = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self._inputs)} inputs"
        return f"<Linker {self._options.name!r} backend={self._backend!r} {state}>"


def link_inputs(
    inputs: Sequence[Input], options: LinkerOptions, target: str, backend: str
) -> Linked:
    """Link with a backend of :attr:`Linker.backend`, for the current device if no other."""
    for item in inputs:
        if damage := _core.damage_of(item.code_type, item.code):
            raise ValueError(f"{item.code_type} {item.name!r} is damaged: {damage}")
    if options.arch is None:
        options = dataclasses.replace(options, arch=current_architecture())
    assert options.arch is not None
    _refuse_what_is_dropped(inputs, options.arch, str(options.name))
    if backend == "nvJitLink":
        flags = linker_flags(options, target, any(item.code_type == "ltoir" for item in inputs))
        return _nvjitlink.link(inputs, flags, target, str(options.name))
    if target != "cubin":
        raise ValueError(f"the driver links to cubin alone, not to {target!r}; nvJitLink can")
    from cudamod import _culink

    return _culink.link(inputs, options)


def _refuse_what_is_dropped(inputs: Sequence[Input], arch: str, name: str) -> None:
    """Raise for what the linkers drop in silence, or break at."""
    sm = int("".join(character for character in arch if character.isdigit()))
    first: dict[str, str] = {}
    for item in inputs:
        names, whole = _core.definitions_of(item.code_type, item.code, sm)
        if whole:
            raise ValueError(
                f"nothing of {item.code_type} {item.name!r} can be linked: its code for sm_{sm} is "
                "not relocatable; compile it with relocatable_device_code=True (nvcc: -rdc=true)"
            )
        for symbol in names:
            if symbol in first:
                twice = f"{symbol!r} is defined by input {first[symbol]!r} and by {item.name!r}"
                raise CompileError.of(0, twice, "link", f"link {name!r}", "", ())
            first[symbol] = item.name


def linker_flags(options: LinkerOptions, target: str, has_ltoir: bool) -> list[str]:
    """The flags for nvJitLink, with those that target and inputs imply."""
    flags = options._flags()
    to_ptx = target == "ptx"
    if options.link_time_optimization is None and (has_ltoir or to_ptx):
        flags.append("-lto")
    if to_ptx and not options.ptx:
        flags.append("-ptx")
    return flags


def linker_identity(backend: str) -> str:
    """What tells one build of the backend from another."""
    if backend == "nvJitLink":
        return f"nvJitLink {_nvjitlink.version()} {NVJITLINK.identity()}"
    found = _core.driver_open()
    return f"driver {found['version']} {file_identity(found['path'])}"


def checked_target(target: str, known: tuple[str, ...], what: str) -> str:
    """The target in lower case; ValueError for one that is not among the known."""
    if not isinstance(target, str):
        raise TypeError(f"target_type must be str, not {type(target).__name__}")
    lower = str(target).lower()
    if lower not in known:
        raise ValueError(
            f"Unsupported target_type={target!r} for {what} (supported: {', '.join(known)})"
        )
    return lower


def choose_backend(code_types: list[str], options: LinkerOptions, stacklevel: int) -> str:
    """nvJitLink; where it is missing the driver, with a warning.

    Raises CompilerNotFoundError where there is no driver either, and for LTO-IR; ValueError for an
    option that the driver hasn't.
    """
    try:
        NVJITLINK.path()
    except CompilerNotFoundError as error:
        if "ltoir" in code_types or options.link_time_optimization:
            raise CompilerNotFoundError(
                f"nvJitLink is not available, and LTO-IR needs it. {error}"
            ) from error
        try:
            _core.driver_open()
        except DriverNotFoundError:
            raise CompilerNotFoundError(f"{error} There is no driver to link instead.") from error
        from cudamod import _culink

        _culink.refuse_options(options, stacklevel + 1)
        warnings.warn(f"{error} The driver links instead.", RuntimeWarning, stacklevel=stacklevel)
        return "driver"
    return "nvJitLink"
