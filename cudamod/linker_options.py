"""Options of :class:`cudamod.Linker`."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from cudamod import _compile_option as kind
from cudamod._compile_option import Spelling, check_fields, flags_of, option, with_defaults

if TYPE_CHECKING:
    from collections.abc import Sequence

    Text = str | os.PathLike[str]
    Texts = Text | Sequence[Text]

__all__ = ["LinkerOptions"]


@dataclasses.dataclass(frozen=True, slots=True)
class LinkerOptions:
    """How code is linked: immutable, comparable, hashable, picklable.

    None leaves an option to the linker. The names are cuda.core's; docs/compiling.md lists them
    with their flags.

    Raises:
        TypeError, ValueError: an option of the wrong type or value; the message names it.
    """

    name: str | None = option(kind.text, "the link's name, in messages", default="<default linker>")
    arch: str | None = option(
        kind.architecture,
        "the architecture, with its suffix; None is the current device's",
        nvjitlink="-arch=",
        driver="CU_JIT_TARGET",
    )
    max_register_count: int | None = option(
        kind.number,
        "most registers of a thread",
        nvjitlink="-maxrregcount=",
        driver="CU_JIT_MAX_REGISTERS",
    )
    time: bool | None = option(kind.switch, "times in the log", nvjitlink="-time")
    verbose: bool | None = option(
        kind.switch, "a longer log", nvjitlink="-verbose", driver="CU_JIT_LOG_VERBOSE"
    )
    link_time_optimization: bool | None = option(
        kind.switch,
        "link LTO-IR; implied by an LTO-IR input",
        nvjitlink="-lto",
    )
    ptx: bool | None = option(
        kind.switch, "make PTX; implied by the target `ptx`", nvjitlink="-ptx"
    )
    optimization_level: int | None = option(
        kind.number,
        "0 or 3; the driver knows 0 to 4",
        nvjitlink="-O",
        driver="CU_JIT_OPTIMIZATION_LEVEL",
    )
    debug: bool | None = option(
        kind.switch, "debug information", nvjitlink="-g", driver="CU_JIT_GENERATE_DEBUG_INFO"
    )
    lineinfo: bool | None = option(
        kind.switch, "line numbers", nvjitlink="-lineinfo", driver="CU_JIT_GENERATE_LINE_INFO"
    )
    ftz: bool | None = option(
        kind.switch, "flush denormal numbers to zero, in LTO-IR", nvjitlink="-ftz="
    )
    prec_div: bool | None = option(kind.switch, "IEEE division, in LTO-IR", nvjitlink="-prec-div=")
    prec_sqrt: bool | None = option(
        kind.switch, "IEEE square root, in LTO-IR", nvjitlink="-prec-sqrt="
    )
    fma: bool | None = option(
        kind.switch, "contract multiply and add, in LTO-IR", nvjitlink="-fma="
    )
    kernels_used: Texts | None = option(
        kind.texts, "the kernels to keep", nvjitlink="-kernels-used="
    )
    variables_used: Texts | None = option(
        kind.texts, "the variables to keep", nvjitlink="-variables-used="
    )
    optimize_unused_variables: bool | None = option(
        kind.switch,
        "drop variables that device code doesn't use",
        nvjitlink="-optimize-unused-variables",
    )
    ptxas_options: Texts | None = option(
        kind.texts, "options of the assembler", nvjitlink="-Xptxas="
    )
    split_compile: int | None = option(
        kind.number, "threads of the optimiser, 0 for all processors", nvjitlink="-split-compile="
    )
    split_compile_extended: int | None = option(
        kind.number, "the same, for more phases", nvjitlink="-split-compile-extended="
    )
    no_cache: bool | None = option(
        kind.switch, "without the linker's cache", nvjitlink="-no-cache", driver="CU_JIT_CACHE_MODE"
    )
    numba_debug: bool | None = option(kind.switch, "no effect: cuda.core has it")

    def __new__(cls, *_values: object, **_named: object) -> LinkerOptions:
        made: LinkerOptions = with_defaults(cls)
        return made

    def __post_init__(self) -> None:
        check_fields(self)

    def as_bytes(self, backend: str = "nvjitlink") -> list[bytes]:
        """The flags as they are given to nvJitLink.

        Raises ValueError for another backend: the driver takes no texts.
        """
        if backend.lower() != "nvjitlink":
            raise ValueError(f"as_bytes() only supports 'nvjitlink' backend, got {backend!r}")
        return [os.fsencode(flag) for flag in self._flags()]

    def _flags(self) -> list[str]:
        return list(flags_of(self, "nvjitlink", Spelling("1", "0")))
