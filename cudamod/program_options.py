"""Options of :class:`cudamod.Program`."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from cudamod import _compile_option as kind
from cudamod._compile_option import (
    Spelling,
    check_fields,
    flags_of,
    is_given,
    option,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Text = str | os.PathLike[str]
    Texts = Text | Sequence[Text]
    Macro = str | tuple[str, str]

__all__ = ["ProgramOptions"]

_BACKENDS = {"nvrtc": Spelling(), "nvvm": Spelling("1", "0")}


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How a program is compiled: immutable, comparable, hashable, picklable.

    None leaves an option to the compiler. The names are cuda.core's; docs/compiling.md lists them
    with their flags.

    Raises:
        TypeError, ValueError: an option of the wrong type or value; the message names it.
    """

    name: str | None = option(
        kind.text,
        "the program's name, in messages and debug information",
        default="default_program",
    )
    arch: str | None = option(
        kind.architecture,
        "the architecture, with its suffix: `sm_90`, `sm_90a`, `sm_100f`, `compute_90`; None is "
        "the current device's",
        nvrtc="-arch=",
        linker="arch",
    )
    relocatable_device_code: bool | None = option(
        kind.switch, "code that can be linked", nvrtc="--relocatable-device-code="
    )
    extensible_whole_program: bool | None = option(
        kind.switch, "whole program, extensible at link time", nvrtc="--extensible-whole-program"
    )
    debug: bool | None = option(
        kind.switch, "debug information", nvrtc="--device-debug", nvvm="-g", linker="debug"
    )
    lineinfo: bool | None = option(
        kind.switch, "line numbers", nvrtc="--generate-line-info", linker="lineinfo"
    )
    device_code_optimize: bool | None = option(
        kind.switch,
        "optimise even with debug information; for NVVM, False is `-opt=0`",
        nvrtc="--dopt=on",
    )
    ptxas_options: Texts | None = option(
        kind.texts, "options of the assembler", nvrtc="--ptxas-options=", linker="ptxas_options"
    )
    max_register_count: int | None = option(
        kind.number,
        "most registers of a thread",
        nvrtc="--maxrregcount=",
        linker="max_register_count",
    )
    ftz: bool | None = option(
        kind.switch, "flush denormal numbers to zero", nvrtc="--ftz=", nvvm="-ftz=", linker="ftz"
    )
    prec_sqrt: bool | None = option(
        kind.switch,
        "IEEE square root",
        nvrtc="--prec-sqrt=",
        nvvm="-prec-sqrt=",
        linker="prec_sqrt",
    )
    prec_div: bool | None = option(
        kind.switch, "IEEE division", nvrtc="--prec-div=", nvvm="-prec-div=", linker="prec_div"
    )
    fma: bool | None = option(
        kind.switch, "contract multiply and add", nvrtc="--fmad=", nvvm="-fma=", linker="fma"
    )
    use_fast_math: bool | None = option(
        kind.switch, "fast, less exact functions", nvrtc="--use_fast_math"
    )
    extra_device_vectorization: bool | None = option(
        kind.switch, "more vectorisation", nvrtc="--extra-device-vectorization"
    )
    link_time_optimization: bool | None = option(
        kind.switch,
        "make LTO-IR; implied by the target `ltoir`",
        nvrtc="--dlink-time-opt",
        linker="link_time_optimization",
    )
    gen_opt_lto: bool | None = option(
        kind.switch, "optimise before LTO-IR is made", nvrtc="--gen-opt-lto"
    )
    define_macro: Macro | Sequence[Macro] | None = option(
        kind.macros,
        'macros: `"N"`, `("N", "V")`, or a list of these; a tuple of two `str` is one macro',
        nvrtc="--define-macro=",
    )
    undefine_macro: Texts | None = option(
        kind.texts, "macros to undefine", nvrtc="--undefine-macro="
    )
    include_path: Texts | None = option(kind.texts, "folders of headers", nvrtc="--include-path=")
    use_bundled_headers: bool | None = option(
        kind.switch,
        "the headers inside NVRTC (13.3 and newer), extracted once into the cache folder",
    )
    pre_include: Texts | None = option(
        kind.texts, "headers included before the source", nvrtc="--pre-include="
    )
    no_source_include: bool | None = option(
        kind.switch, "don't look for headers beside the source", nvrtc="--no-source-include"
    )
    std: str | None = option(kind.text, "the language: `c++17`", nvrtc="--std=")
    builtin_move_forward: bool | None = option(
        kind.switch, "built-in `std::move` and `std::forward`", nvrtc="--builtin-move-forward="
    )
    builtin_initializer_list: bool | None = option(
        kind.switch, "built-in `std::initializer_list`", nvrtc="--builtin-initializer-list="
    )
    disable_warnings: bool | None = option(kind.switch, "no warnings", nvrtc="--disable-warnings")
    restrict: bool | None = option(kind.switch, "kernel pointers don't alias", nvrtc="--restrict")
    device_as_default_execution_space: bool | None = option(
        kind.switch,
        "functions without a space are device functions",
        nvrtc="--device-as-default-execution-space",
    )
    device_int128: bool | None = option(kind.switch, "`__int128`", nvrtc="--device-int128")
    optimization_info: str | None = option(
        kind.text, "remarks about a kind of optimisation: `inline`", nvrtc="--optimization-info="
    )
    no_display_error_number: bool | None = option(
        kind.switch, "messages without numbers", nvrtc="--no-display-error-number"
    )
    diag_error: int | Sequence[int] | None = option(
        kind.numbers, "messages that become errors", nvrtc="--diag-error="
    )
    diag_suppress: int | Sequence[int] | None = option(
        kind.numbers, "messages that are dropped", nvrtc="--diag-suppress="
    )
    diag_warn: int | Sequence[int] | None = option(
        kind.numbers, "messages that become warnings", nvrtc="--diag-warn="
    )
    brief_diagnostics: bool | None = option(
        kind.switch, "messages without the source line", nvrtc="--brief-diagnostics="
    )
    time: str | None = option(
        kind.text, "file that the phases' times are written to", nvrtc="--time="
    )
    split_compile: int | None = option(
        kind.number,
        "threads of the optimiser, 0 for all processors",
        nvrtc="--split-compile=",
        linker="split_compile",
    )
    fdevice_syntax_only: bool | None = option(
        kind.switch, "check the syntax, make no code", nvrtc="--fdevice-syntax-only"
    )
    minimal: bool | None = option(
        kind.switch, "fewer language features, compiled faster", nvrtc="--minimal"
    )
    no_cache: bool | None = option(
        kind.switch,
        "neither the compiler's cache nor this library's",
        nvrtc="--no-cache",
        linker="no_cache",
    )
    fdevice_time_trace: str | None = option(
        kind.text, "file for a trace of the compilation", nvrtc="--fdevice-time-trace="
    )
    device_float128: bool | None = option(kind.switch, "`__float128`", nvrtc="--device-float128")
    frandom_seed: str | None = option(kind.text, "seed of generated names", nvrtc="--frandom-seed=")
    ofast_compile: str | None = option(
        kind.text, "compile faster: `0`, `min`, `mid`, `max`", nvrtc="--Ofast-compile="
    )
    pch: bool | None = option(kind.switch, "precompiled headers, automatic", nvrtc="--pch")
    create_pch: str | None = option(
        kind.text, "file of the precompiled header to make", nvrtc="--create-pch="
    )
    use_pch: str | None = option(
        kind.text, "file of the precompiled header to use", nvrtc="--use-pch="
    )
    pch_dir: str | None = option(kind.text, "folder of precompiled headers", nvrtc="--pch-dir=")
    pch_verbose: bool | None = option(
        kind.switch, "say why a precompiled header is not used", nvrtc="--pch-verbose="
    )
    pch_messages: bool | None = option(
        kind.switch, "say when one is made or used", nvrtc="--pch-messages="
    )
    instantiate_templates_in_pch: bool | None = option(
        kind.switch, "templates' instances in them", nvrtc="--instantiate-templates-in-pch="
    )
    extra_sources: Sequence[tuple[str, str | bytes | bytearray]] | None = option(
        kind.sources, "NVVM only: more modules, as pairs of name and IR"
    )
    use_libdevice: bool | None = option(
        kind.switch, "NVVM only: with the library of mathematical functions"
    )
    numba_debug: bool | None = option(
        kind.switch, "debug information for Numba", nvrtc="--numba-debug", nvvm="-numba-debug"
    )

    def __new__(cls, *_values: object, **_named: object) -> ProgramOptions:
        made: ProgramOptions = with_defaults(cls)
        return made

    def __post_init__(self) -> None:
        check_fields(self)

    def as_bytes(self, backend: str, target_type: str | None = None) -> list[bytes]:
        """The flags as they are given to ``"nvrtc"`` or ``"nvvm"``, for a target.

        Raises:
            ValueError: another backend, or an option that the backend has not.
        """
        name = backend.lower()
        if name not in _BACKENDS:
            raise ValueError(f"Unknown backend {backend!r}. Must be one of: 'nvrtc', 'nvvm'")
        return [os.fsencode(flag) for flag in self._flags(name, target_type)]

    def _flags(self, backend: str, target: str | None) -> list[str]:
        flags = list(flags_of(self, backend, _BACKENDS[backend]))
        if backend == "nvrtc":
            self._refuse_others("nvrtc", also=("use_bundled_headers",))
            if target == "ltoir" and self.link_time_optimization is None:
                flags.append("--dlink-time-opt")
            return flags
        self._refuse_others(
            "nvvm",
            also=(
                "arch",
                "device_code_optimize",
                "extra_sources",
                "use_libdevice",
                "link_time_optimization",
                "no_cache",
            ),
        )
        if self.arch is not None:
            flags.insert(0, "-arch=compute_" + self.arch.partition("_")[2])
        if self.device_code_optimize is not None:
            flags.append("-opt=3" if self.device_code_optimize else "-opt=0")
        if target == "ltoir":
            flags.append("-gen-lto")
        return flags

    def _refuse_others(self, backend: str, also: tuple[str, ...]) -> None:
        """Refuse what the backend would drop silently."""
        dropped = [
            field.name
            for field in dataclasses.fields(self)
            if field.name not in ("name", *also)
            and backend not in field.metadata["flags"]
            and is_given(self, field.name)
        ]
        if dropped:
            title = {"nvrtc": "NVRTC", "nvvm": "NVVM", "linker": "PTX"}[backend]
            raise ValueError(
                f"The following options are not supported by the {title} backend: "
                + ", ".join(dropped)
            )

    def _for_linker(self) -> dict[str, object]:
        """The same as values of :class:`cudamod.LinkerOptions`, for PTX."""
        self._refuse_others("linker", also=("numba_debug", "time"))
        values: dict[str, object] = {
            field.metadata["flags"]["linker"]: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if "linker" in field.metadata["flags"]
        }
        return {**values, "name": self.name, "time": None if self.time is None else True}
