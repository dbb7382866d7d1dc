"""Options of programs and linkers: checked, spelled, compared, pickled. No compiler, no driver."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from cudamod import LinkerOptions, ProgramOptions
from cudamod import _compile_option as kind

# A valid value for each way of checking, and what it becomes.
SAMPLES: dict[Any, tuple[Any, Any]] = {
    kind.text: (Path("name"), "name"),
    kind.architecture: ("sm_100f", "sm_100f"),
    kind.switch: (1, True),
    kind.number: (3, 3),
    kind.texts: (["a", Path("b")], ("a", "b")),
    kind.numbers: ([1, 2], (1, 2)),
    kind.macros: (["A", ("B", "1")], ("A", ("B", "1"))),
    kind.sources: ([("more", "text")], (("more", b"text"),)),
}
WRONG: dict[Any, list[Any]] = {
    kind.text: [3, "a\0b", "\ud8ff"],
    kind.architecture: ["90", "sm90", "sm_9", "sm_90b", "SM_90", "", 90],
    kind.switch: ["yes", 2, None.__class__, 0.0],
    kind.number: [-1, True, "3", 2.0],
    kind.texts: [3, [3], {"a"}, ["\0"]],
    kind.numbers: ["1", [True], [-1]],
    kind.macros: [3, [3], [("a", "b", "c")], [("a", 1)], {"a": "b"}],
    kind.sources: ["ab", [("a",)], [(1, "b")], [("a", 1)], [("a", "")]],
}
FIELDS = [
    pytest.param(cls, field, id=f"{cls.__name__}.{field.name}")
    for cls in (ProgramOptions, LinkerOptions)
    for field in dataclasses.fields(cls)
]

# The flags as cuda.core gives them, but for nvJitLink's 1 and 0: it knows no true and false.
NVRTC = {
    "arch": ["-arch=sm_100f"],
    "relocatable_device_code": ["--relocatable-device-code=true"],
    "extensible_whole_program": ["--extensible-whole-program"],
    "debug": ["--device-debug"],
    "lineinfo": ["--generate-line-info"],
    "device_code_optimize": ["--dopt=on"],
    "ptxas_options": ["--ptxas-options=a", "--ptxas-options=b"],
    "max_register_count": ["--maxrregcount=3"],
    "ftz": ["--ftz=true"],
    "prec_sqrt": ["--prec-sqrt=true"],
    "prec_div": ["--prec-div=true"],
    "fma": ["--fmad=true"],
    "use_fast_math": ["--use_fast_math"],
    "extra_device_vectorization": ["--extra-device-vectorization"],
    "link_time_optimization": ["--dlink-time-opt"],
    "gen_opt_lto": ["--gen-opt-lto"],
    "define_macro": ["--define-macro=A", "--define-macro=B=1"],
    "undefine_macro": ["--undefine-macro=a", "--undefine-macro=b"],
    "include_path": ["--include-path=a", "--include-path=b"],
    "pre_include": ["--pre-include=a", "--pre-include=b"],
    "no_source_include": ["--no-source-include"],
    "std": ["--std=name"],
    "builtin_move_forward": ["--builtin-move-forward=true"],
    "builtin_initializer_list": ["--builtin-initializer-list=true"],
    "disable_warnings": ["--disable-warnings"],
    "restrict": ["--restrict"],
    "device_as_default_execution_space": ["--device-as-default-execution-space"],
    "device_int128": ["--device-int128"],
    "optimization_info": ["--optimization-info=name"],
    "no_display_error_number": ["--no-display-error-number"],
    "diag_error": ["--diag-error=1", "--diag-error=2"],
    "diag_suppress": ["--diag-suppress=1", "--diag-suppress=2"],
    "diag_warn": ["--diag-warn=1", "--diag-warn=2"],
    "brief_diagnostics": ["--brief-diagnostics=true"],
    "time": ["--time=name"],
    "split_compile": ["--split-compile=3"],
    "fdevice_syntax_only": ["--fdevice-syntax-only"],
    "minimal": ["--minimal"],
    "no_cache": ["--no-cache"],
    "fdevice_time_trace": ["--fdevice-time-trace=name"],
    "device_float128": ["--device-float128"],
    "frandom_seed": ["--frandom-seed=name"],
    "ofast_compile": ["--Ofast-compile=name"],
    "pch": ["--pch"],
    "create_pch": ["--create-pch=name"],
    "use_pch": ["--use-pch=name"],
    "pch_dir": ["--pch-dir=name"],
    "pch_verbose": ["--pch-verbose=true"],
    "pch_messages": ["--pch-messages=true"],
    "instantiate_templates_in_pch": ["--instantiate-templates-in-pch=true"],
    "numba_debug": ["--numba-debug"],
}
NVJITLINK = {
    "arch": ["-arch=sm_100f"],
    "max_register_count": ["-maxrregcount=3"],
    "time": ["-time"],
    "verbose": ["-verbose"],
    "link_time_optimization": ["-lto"],
    "ptx": ["-ptx"],
    "optimization_level": ["-O3"],
    "debug": ["-g"],
    "lineinfo": ["-lineinfo"],
    "ftz": ["-ftz=1"],
    "prec_div": ["-prec-div=1"],
    "prec_sqrt": ["-prec-sqrt=1"],
    "fma": ["-fma=1"],
    "kernels_used": ["-kernels-used=a", "-kernels-used=b"],
    "variables_used": ["-variables-used=a", "-variables-used=b"],
    "optimize_unused_variables": ["-optimize-unused-variables"],
    "ptxas_options": ["-Xptxas=a", "-Xptxas=b"],
    "split_compile": ["-split-compile=3"],
    "split_compile_extended": ["-split-compile-extended=3"],
    "no_cache": ["-no-cache"],
}
NVVM = {
    "arch": ["-arch=compute_100f"],
    "debug": ["-g"],
    "device_code_optimize": ["-opt=3"],
    "ftz": ["-ftz=1"],
    "prec_sqrt": ["-prec-sqrt=1"],
    "prec_div": ["-prec-div=1"],
    "fma": ["-fma=1"],
    "numba_debug": ["-numba-debug"],
}


def sample(field: dataclasses.Field[Any]) -> Any:
    return SAMPLES[field.metadata["check"]][0]


def flags(options: Any, *backend: str) -> list[str]:
    return [flag.decode() for flag in options.as_bytes(*backend)]


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_values_come_into_one_form(cls: Any, field: dataclasses.Field[Any]) -> None:
    given, stored = SAMPLES[field.metadata["check"]]
    assert getattr(cls(**{field.name: given}), field.name) == stored
    assert getattr(cls(**{field.name: None}), field.name) == field.default
    assert field.metadata["says"]


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_wrong_values_are_refused_by_name(cls: Any, field: dataclasses.Field[Any]) -> None:
    for value in WRONG[field.metadata["check"]]:
        with pytest.raises((TypeError, ValueError), match=f"{cls.__name__}.{field.name}"):
            cls(**{field.name: value})


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_options_are_values(cls: Any, field: dataclasses.Field[Any]) -> None:
    options = cls(**{field.name: sample(field)})
    for same in (
        pickle.loads(pickle.dumps(options)),
        copy.copy(options),
        copy.deepcopy(options),
        dataclasses.replace(options),
    ):
        assert same == options
        assert hash(same) == hash(options)
    assert options != cls()
    assert f"{field.name}=" in repr(options)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options, field.name, None)


def test_every_flag_of_nvrtc() -> None:
    made = {
        field.name: flags(ProgramOptions(**{field.name: sample(field)}), "nvrtc")
        for field in dataclasses.fields(ProgramOptions)
        if field.name not in ("name", "use_bundled_headers", "extra_sources", "use_libdevice")
    }
    assert made == NVRTC


def test_every_flag_of_nvjitlink() -> None:
    made = {
        field.name: flags(LinkerOptions(**{field.name: sample(field)}))
        for field in dataclasses.fields(LinkerOptions)
        if field.name not in ("name", "numba_debug")
    }
    assert made == NVJITLINK


@pytest.mark.parametrize("field", dataclasses.fields(ProgramOptions), ids=lambda field: field.name)
def test_every_flag_of_nvvm(field: dataclasses.Field[Any]) -> None:
    options = ProgramOptions(**{field.name: sample(field)})
    silent = ("name", "extra_sources", "use_libdevice", "link_time_optimization", "no_cache")
    if field.name in NVVM or field.name in silent:
        assert flags(options, "nvvm") == NVVM.get(field.name, [])
    else:
        with pytest.raises(ValueError, match=f"not supported by the NVVM backend: {field.name}"):
            options.as_bytes("nvvm")


def test_defaults_give_no_flag() -> None:
    assert ProgramOptions().as_bytes("NVRTC") == []
    assert ProgramOptions().as_bytes("nvvm") == []
    assert LinkerOptions().as_bytes() == []
    assert ProgramOptions().name == ProgramOptions(name=None).name == "default_program"
    assert LinkerOptions().name == "<default linker>"


def test_false_is_spelled_where_the_compiler_has_a_word_for_it() -> None:
    off = ProgramOptions(
        relocatable_device_code=False, ftz=False, fma=False, debug=False, restrict=False, pch=False
    )
    assert flags(off, "nvrtc") == ["--relocatable-device-code=false", "--ftz=false", "--fmad=false"]
    assert flags(ProgramOptions(ftz=False, device_code_optimize=False), "nvvm") == [
        "-ftz=0",
        "-opt=0",
    ]
    assert flags(LinkerOptions(fma=False, time=False)) == ["-fma=0"]


def test_targets_imply_flags() -> None:
    assert ProgramOptions().as_bytes("nvrtc", "ltoir") == [b"--dlink-time-opt"]
    assert ProgramOptions().as_bytes("nvvm", "ltoir") == [b"-gen-lto"]


def test_a_pair_is_one_macro_and_a_list_are_several() -> None:
    assert ProgramOptions(define_macro=("A", "1")).define_macro == (("A", "1"),)
    assert ProgramOptions(define_macro=["A", "B"]).define_macro == ("A", "B")
    assert ProgramOptions(define_macro="A").define_macro == ("A",)


def test_unknown_backends() -> None:
    with pytest.raises(ValueError, match="Unknown backend 'gcc'"):
        ProgramOptions().as_bytes("gcc")
    with pytest.raises(ValueError, match="only supports 'nvjitlink'"):
        LinkerOptions().as_bytes("driver")
