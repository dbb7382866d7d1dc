"""What makes two compilations the same, and which ones are not cached at all."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiling import PTX, SAXPY, needs_nvjitlink, needs_nvrtc
from test_program_options import SAMPLES

from cudamod import CompileCache, Program, ProgramOptions
from cudamod import _compile_option as kind
from cudamod._compile_key import compile_key, needs_digest
from cudamod._compiler_library import file_identity

OTHER: dict[Any, Any] = {
    kind.text: "other",
    kind.architecture: "sm_90a",
    kind.switch: False,
    kind.number: 4,
    kind.texts: ["a"],
    kind.numbers: [1],
    kind.macros: ["A"],
    kind.sources: [("more", "other")],
}
BASE: dict[str, Any] = {
    "source": b"source",
    "code_type": "c++",
    "options": ProgramOptions(arch="sm_90"),
    "target": "ptx",
    "expressions": ("f<int>",),
    "compiler": "NVRTC 13",
    "flags": ("-arch=sm_90",),
    "extra_digest": None,
}


def key(**changed: Any) -> str | None:
    return compile_key(**{**BASE, **changed})


@pytest.mark.parametrize("field", dataclasses.fields(ProgramOptions), ids=lambda field: field.name)
def test_every_option_is_in_the_key(field: dataclasses.Field[Any]) -> None:
    """Generated over the options: one that is new is in the key, or keeps out of the cache."""
    check = field.metadata["check"]
    seen = {
        key(options=dataclasses.replace(BASE["options"], **{field.name: value}))
        for value in (SAMPLES[check][0], OTHER[check])
    } | {key()}
    assert len(seen - {None}) == 3 or None in seen


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", b"other"),
        ("code_type", "nvvm"),
        ("target", "cubin"),
        ("expressions", ()),
        ("expressions", ("f<int>", "f<float>")),
        ("compiler", "NVRTC 14"),
        ("flags", ()),
        ("extra_digest", "headers"),
        ("extra_digest", b"headers"),
    ],
)
def test_every_input_is_in_the_key(name: str, value: Any) -> None:
    assert key(**{name: value}) not in (None, key())
    assert key() == key()


def test_every_parameter_is_tested_above() -> None:
    import inspect

    assert set(inspect.signature(compile_key).parameters) == set(BASE)


def test_neighbours_are_not_mixed_up() -> None:
    made = [
        key(expressions=("ab", "c")),
        key(expressions=("a", "bc")),
        key(expressions=("a,bc",)),
        key(options=ProgramOptions(arch="sm_90", define_macro=("A", "1"))),
        key(options=ProgramOptions(arch="sm_90", define_macro=["A", "1"])),
        key(options=ProgramOptions(arch="sm_90", define_macro="A=1")),
        key(extra_digest="1"),
        key(extra_digest=b"1"),
    ]
    assert len(set(made)) == len(made)


def test_debug_information_holds_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ({"debug": True}, {"lineinfo": True}, {}):
        given = ProgramOptions(arch="sm_90", **options)
        before = key(options=given)
        monkeypatch.chdir(tmp_path)
        assert (key(options=given) != before) == bool(options)
        monkeypatch.chdir("/")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert key(options=ProgramOptions(arch="sm_90", debug=True)) is None


HEADERS = [
    '#include "a.h"',
    "#include <a.h>",
    "  #  include <a.h>",
    "#/* why */include <a.h>",
    "#/* one\n two */ include <a.h>",
    "#inc\\\nlude <a.h>",
    "#inc\\  \r\nlude <a.h>",
    "#inc??/\nlude <a.h>",
    "%:include <a.h>",
    "??=include <a.h>",
    "#include MACRO",
    "#include_next <a.h>",
    "#import <a.h>",
    "#embed <a.bin>",
    "#if __has_include(<a.h>)\n#endif",
    "#define H __has_include",
    "int a;\n#if 0\n#include <a.h>\n#endif",
]


@pytest.mark.parametrize("source", HEADERS)
def test_what_includes_needs_the_callers_digest(source: str) -> None:
    source = f"int before;\n{source}\nint after;"
    assert needs_digest(source, ProgramOptions())
    assert key(source=source.encode()) is None
    assert key(source=source.encode(), extra_digest="1") is not None
    # PTX and NVVM IR include nothing, whatever they look like.
    assert key(source=source.encode(), code_type="ptx") is not None


@pytest.mark.parametrize("source", ["", "int include;", "// includes", "#define inc", "#pragma a"])
def test_what_includes_nothing(source: str) -> None:
    assert not needs_digest(source, ProgramOptions(include_path="/headers"))
    assert key(source=source.encode()) is not None
    assert needs_digest(source, ProgramOptions(pre_include="a.h"))


def test_the_compilers_own_headers_come_with_it() -> None:
    bundled = ProgramOptions(arch="sm_90", use_bundled_headers=True)
    assert not needs_digest("#include <cuda_fp16.h>", bundled)
    for source in ('#include "cuda_fp16.h"', "#include M", "#if __has_include(<a>)\n#endif"):
        assert needs_digest(source, bundled)
    more = dataclasses.replace(bundled, include_path="/headers")
    assert needs_digest("#include <cuda_fp16.h>", more)


@pytest.mark.parametrize("name", ["__DATE__", "__TIME__", "__TIMESTAMP__", "__DA\\\nTE__"])
def test_the_clock_is_not_cached(name: str) -> None:
    assert key(source=f"const char* t = {name};".encode()) is None
    assert key(source=f"const char* t = {name};".encode(), extra_digest="1") is None
    if "\n" not in name:
        assert key(options=ProgramOptions(arch="sm_90", define_macro=("T", name))) is None


@pytest.mark.parametrize(
    "options",
    [
        {"no_cache": True},
        {"time": "file"},
        {"fdevice_time_trace": "file"},
        {"fdevice_syntax_only": True},
        {"pch": True},
        {"create_pch": "file"},
        {"use_pch": "file"},
        {"pch_dir": "folder"},
        {"ptxas_options": "--output-file=here"},
        {"ptxas_options": ["-v", "-o here"]},
        {"ptxas_options": "--options-file=there"},
    ],
    ids=str,
)
def test_what_reads_or_writes_files_is_not_cached(options: dict[str, Any]) -> None:
    assert key(options=ProgramOptions(arch="sm_90", **options), extra_digest="1") is None


def test_off_is_not_on() -> None:
    off = ProgramOptions(arch="sm_90", no_cache=False, pch=False, ptxas_options=["--opt-level=2"])
    assert key(options=off) is not None


def test_another_build_of_a_library_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "libnvrtc.so"
    seen = set()
    for content, modified in ((b"a", 1), (b"b", 1), (b"ab", 1), (b"a", 2)):
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        os.utime(path, (modified, modified))
        seen.add(file_identity(str(path)))
    assert len(seen) >= 3  # the same size and time are only told apart by a new process
    assert file_identity(str(path)) == file_identity(str(path))


@pytest.mark.emulated
def test_where_the_driver_assembles_its_version_counts(
    tmp_path: Path, run_python: Callable[..., str]
) -> None:
    code = f"""
import sys, warnings
sys.modules["cuda.bindings.nvjitlink"] = None
warnings.simplefilter("ignore")
from cudamod import CompileCache, Device, Program
Device(0).set_current()
cache = CompileCache({str(tmp_path)!r})
Program({PTX!r}, "ptx", {{"arch": "sm_90"}}).compile("cubin", cache=cache)
print(cache.content().entries)
"""
    made = [
        run_python(code, CUDAMOD_EMULATOR_DRIVER_VERSION=version)
        for version in ("13000", "12080", "13000")
    ]
    assert made == ["1\n", "2\n", "2\n"]


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize(
    ("code", "code_type", "target"),
    [(SAXPY, "c++", "ptx"), (SAXPY, "c++", "ltoir"), (PTX, "ptx", "cubin")],
)
def test_two_architectures_are_two_programs(
    tmp_path: Path, code: str, code_type: str, target: str
) -> None:
    cache = CompileCache(tmp_path)
    made = []
    for arch in ("sm_90", "sm_90a", "sm_90", "sm_100f", "sm_100a"):
        program = Program(code, code_type, {"arch": arch})
        made.append(program.compile(target, cache=cache).code)
    assert cache.content().entries == 4
    assert made[0] == made[2]
