"""Linking, with nvJitLink and with the driver."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiling import (
    ARCH,
    CALLEE,
    CALLER,
    PTX,
    SAXPY,
    check_saxpy,
    needs_nvjitlink,
    needs_nvrtc,
    skip_unless_loadable,
)

import cudamod
from cudamod import (
    CompileError,
    CompilerNotFoundError,
    Linker,
    LinkerOptions,
    ObjectCode,
    Program,
    Stream,
)

DATA = Path(__file__).parent / "data"
CUBIN = DATA / "h200" / "dyn_shared.sm90.cubin"
ELF = b"\x7fELF"
KINDS = ["ptx", "cubin", "ltoir"]
NOTHING = ObjectCode.from_ptx(PTX.encode(), name="nothing")


def halves(target: str) -> list[ObjectCode]:
    options = {"arch": ARCH, "relocatable_device_code": True}
    return [
        Program(source, "c++", {**options, "name": name}).compile(target)
        for source, name in ((CALLER, "caller"), (CALLEE, "callee"))
    ]


@pytest.fixture
def without_nvjitlink(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its bindings weren't installed."""
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize("target", ["ptx", "cubin", "ltoir"])
def test_parts_become_one(target: str) -> None:
    linker = Linker(*halves(target), options={"arch": ARCH, "name": "whole"})
    assert linker.backend == Linker.which_backend() == "nvJitLink"
    code = linker.link("CUBIN")
    assert (code.code_type, code.name) == ("cubin", "whole")
    assert isinstance(code.code, bytes)
    assert code.code.startswith(ELF)
    assert linker.link("cubin").code == code.code  # as often as you like


@needs_nvrtc
@needs_nvjitlink
def test_lto_ir_becomes_ptx_that_runs(stream: Stream) -> None:
    arch = f"sm_{stream.device.arch}"
    linker = Linker(*halves("ltoir"), options=LinkerOptions(arch=arch, ftz=True, fma=False))
    code = linker.link("ptx")
    assert isinstance(code.code, bytes)
    skip_unless_loadable(code.code)
    check_saxpy(code.get_kernel("saxpy"), stream)


@needs_nvjitlink
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100f", "sm_100a"])
def test_architectures_with_their_suffix(arch: str) -> None:
    code = ObjectCode.from_ptx(PTX.encode())
    assert Linker(code, options={"arch": arch}).link("cubin").code_type == "cubin"


@needs_nvjitlink
def test_inputs_from_files(tmp_path: Path) -> None:
    path = tmp_path / "code.ptx"
    linker = Linker(ObjectCode.from_ptx(path), options={"arch": ARCH})
    with pytest.raises(FileNotFoundError):
        linker.link("cubin")
    path.write_text(PTX)
    assert isinstance(linker.link("cubin").code, bytes)


@needs_nvjitlink
def test_logs_of_the_last_link() -> None:
    linker = Linker(NOTHING, options=LinkerOptions(arch=ARCH, verbose=True))
    assert (linker.get_info_log(), linker.get_error_log()) == ("", "")
    linker.link("cubin")
    assert "Compiling entry function 'nothing'" in linker.get_info_log()
    bad = Linker(ObjectCode.from_ptx(PTX.replace("ret", "rett").encode()), options={"arch": ARCH})
    with pytest.raises(CompileError):
        bad.link("cubin")
    assert "'rett'" in bad.get_error_log()


@needs_nvrtc
@needs_nvjitlink
def test_what_nvjitlink_refuses() -> None:
    caller, callee = halves("ptx")
    with pytest.raises(CompileError) as caught:
        Linker(caller, options=LinkerOptions(arch=ARCH, name="half")).link("cubin")
    error = caught.value
    assert (error.call, error.subject) == ("nvJitLinkComplete", "link 'half'")
    assert error.options == ("-arch=sm_90",)
    assert "Undefined reference to 'share'" in error.log
    assert error.log in str(error)
    for options in ({"arch": "sm_999"}, {"arch": ARCH, "optimization_level": 9}):
        with pytest.raises(CompileError, match="nvJitLinkCreate: NVJITLINK_ERROR_UNRECOGNIZED"):
            Linker(caller, callee, options=options).link("cubin")
    with pytest.raises(CompileError) as caught:
        Linker(ObjectCode.from_ltoir(b"xx", name="junk"), options={"arch": ARCH}).link("cubin")
    assert caught.value.subject == "link '<default linker>', input 'junk'"
    with pytest.raises(CompileError, match="requires that all inputs have LTOIR"):
        Linker(caller, callee, options={"arch": ARCH}).link("ptx")


@pytest.mark.usefixtures("without_nvjitlink")
def test_lto_ir_needs_nvjitlink_and_says_so() -> None:
    code = ObjectCode.from_ltoir(b"not read")
    for inputs, options in (((code,), None), ((NOTHING,), {"link_time_optimization": True})):
        with pytest.raises(CompilerNotFoundError, match=r"LTO-IR needs it.*cudamod\[compile\]"):
            Linker(*inputs, options=options)


@needs_nvrtc
@pytest.mark.usefixtures("without_nvjitlink", "device")
def test_the_driver_links_where_nvjitlink_is_missing(stream: Stream) -> None:
    parts = halves("ptx")
    assert isinstance(parts[0].code, bytes)
    skip_unless_loadable(parts[0].code)
    options = LinkerOptions(
        arch=f"sm_{stream.device.arch}",
        max_register_count=64,
        optimization_level=3,
        lineinfo=True,
        verbose=True,
        no_cache=True,
    )
    with pytest.warns(RuntimeWarning, match=r"cudamod\[compile\].*The driver links instead"):
        linker = Linker(*parts, options=options)
    assert linker.backend == Linker.which_backend() == "driver"
    check_saxpy(linker.link("cubin").get_kernel("saxpy"), stream)
    with pytest.raises(ValueError, match="the driver links to cubin alone"):
        linker.link("ptx")


@needs_nvrtc
@pytest.mark.usefixtures("without_nvjitlink", "device")
def test_the_driver_assembles_ptx_where_nvjitlink_is_missing(stream: Stream) -> None:
    ptx = Program(SAXPY, "c++").compile("ptx").code
    assert isinstance(ptx, bytes)
    skip_unless_loadable(ptx)
    program = Program(ptx.decode(), "ptx")
    assert program.backend == "driver"
    with pytest.warns(RuntimeWarning, match="The driver links instead"):
        code = program.compile("cubin")
    check_saxpy(code.get_kernel("saxpy"), stream)


@pytest.mark.filterwarnings("ignore:nvJitLink can't be used:RuntimeWarning")
@pytest.mark.usefixtures("without_nvjitlink", "device")
class TestTheDriverRefuses:
    """What its linker can't do, or won't."""

    def test_broken_ptx(self) -> None:
        bad = ObjectCode.from_ptx(PTX.replace("ret", "rett").encode())
        linker = Linker(bad, options={"name": "broken"})
        with pytest.raises(CompileError) as caught:
            linker.link("cubin")
        error = caught.value
        assert error.name == "CUDA_ERROR_INVALID_PTX"
        assert error.subject == "link 'broken', input 'input 0'"
        assert "rett" in error.log
        assert error.log == linker.get_error_log()
        assert error.options[0].startswith("CU_JIT_TARGET=")

    def test_undefined_symbols(self) -> None:
        declared = PTX.replace(".visible", ".extern .func missing();\n.visible").replace(
            "ret;", "call missing;\nret;"
        )
        with pytest.raises(CompileError, match="missing"):
            Linker(ObjectCode.from_ptx(declared.encode())).link("cubin")

    def test_options(self) -> None:
        for options in (
            {"time": True},
            {"ptx": True},
            {"ptxas_options": "-v"},
            {"split_compile": 2},
            {"split_compile_extended": 2},
        ):
            with pytest.raises(ValueError, match=f"{next(iter(options))} option is not supported"):
                Linker(NOTHING, options=options)

    def test_or_ignores_options_and_says_so(self) -> None:
        with pytest.warns(RuntimeWarning, match="ignores ftz, kernels_used"):
            Linker(NOTHING, options={"ftz": True, "kernels_used": ["nothing"]})

    def test_a_link_without_a_context(self) -> None:
        from cudamod import driver

        driver.cuCtxSetCurrent(None)
        with pytest.raises(cudamod.CUDAError, match="cuLinkCreate: CUDA_ERROR_INVALID_CONTEXT"):
            Linker(NOTHING, options={"arch": ARCH}).link("cubin")

    @pytest.mark.emulated
    def test_other_code_than_ptx(self) -> None:
        with pytest.raises(CompileError, match="links PTX alone"):
            Linker(NOTHING, ObjectCode.from_object(DATA / "objects" / "part.o")).link("cubin")

    @pytest.mark.emulated
    def test_and_keeps_nothing(self) -> None:
        from cudamod import emulator

        for code in (NOTHING, ObjectCode.from_ptx(b"junk")):
            with contextlib.suppress(CompileError):
                Linker(code).link("cubin")
        assert emulator.counts()["link"] == 0


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="At least one ObjectCode"):
        Linker()
    for wrong in (3, b"x", None):
        with pytest.raises(TypeError, match=f"but got {type(wrong).__name__}"):
            Linker(wrong)  # type: ignore[arg-type]
    for options, message in (
        (5, "must be provided as an object of type LinkerOptions"),
        ({"archs": ARCH}, "no option 'archs'; did you mean 'arch'"),
    ):
        given: Any = options
        with pytest.raises(TypeError, match=message):
            Linker(NOTHING, options=given)


@needs_nvjitlink
def test_numba_debug_is_not_dropped_silently() -> None:
    with pytest.warns(UserWarning, match="numba_debug has no effect"):
        Linker(NOTHING, options={"arch": ARCH, "numba_debug": True})


def compiled(source: str, target: str, name: str, *names: str) -> ObjectCode:
    options: dict[str, Any] = {"arch": ARCH, "name": name}
    if target != "ltoir":
        options["relocatable_device_code"] = True
    return Program(source, "c++", options).compile(target, names)


K = 'extern "C" __global__ void k(int* p) { *p = 1; }'
F = "__device__ int f(int x) { return x; }"
V = "__device__ int v = 3;"
C = "__constant__ int c[4];"


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize("kinds", list(itertools.combinations_with_replacement(KINDS, 2)), ids=str)
def test_what_is_defined_twice_is_named(kinds: tuple[str, str]) -> None:
    for first, second, symbol in (
        (K, K, "k"),
        (K, K.replace("1", "2") + F, "k"),
        (F + K, F, "_Z1fi"),
        (V, V + K, "v"),
        (C + K, C, "c"),
    ):
        parts = compiled(first, kinds[0], "a"), compiled(second, kinds[1], "b")
        with pytest.raises(CompileError, match=rf"'{symbol}'") as caught:
            Linker(*parts, options={"arch": ARCH}).link("cubin")
        if "ltoir" not in kinds:
            assert f"'{symbol}' is defined by input 'a' and by 'b'" in str(caught.value)


TEMPLATE = "template <class T> __device__ __noinline__ T h(T x) { return x + 1; } "


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize("kinds", list(itertools.combinations_with_replacement(KINDS, 2)), ids=str)
def test_what_many_may_define_is_linked(kinds: tuple[str, str]) -> None:
    body = "__global__ void NAME(int* p) { *p = h(*p) + own(*p); }"
    own = "static __device__ __noinline__ int own(int x) { return x * 3; }"
    sources = [
        f'{TEMPLATE}{own}extern "C" {body.replace("NAME", name)}'
        "template <class T> __global__ void t(T* x) { *x += 1; }"
        for name in ("a", "b")
    ]
    parts = [
        compiled(source, kind, name, "t<int>")
        for source, kind, name in zip(sources, kinds, "ab", strict=True)
    ]
    linked = Linker(*parts, options={"arch": ARCH}).link("cubin")
    assert {"a", "b"} <= {name for info in linked.images() for name in info.kernels or ()}


@needs_nvjitlink
@pytest.mark.parametrize(
    "make",
    [
        lambda: ObjectCode.from_cubin(CUBIN, name="it"),
        lambda: ObjectCode.from_fatbin(DATA / "fatbins" / "saxpy.zstd.fatbin", name="it"),
        lambda: ObjectCode.from_object(DATA / "objects" / "single.o", name="it"),
        lambda: ObjectCode.from_library(an_archive("single.o"), name="it"),
    ],
    ids=["cubin", "fatbin", "object", "library"],
)
def test_code_that_is_not_relocatable_is_not_dropped(make: Callable[[], ObjectCode]) -> None:
    code = make()
    with pytest.raises(ValueError, match=f"nothing of {code.code_type} 'it' can be linked") as said:
        Linker(code, NOTHING, options={"arch": ARCH}).link("cubin")
    assert "not relocatable" in str(said.value)


def an_archive(*members: str) -> bytes:
    """An archive of objects of ``data``."""
    made = b"!<arch>\n"
    for member in members:
        content = (DATA / "objects" / member).read_bytes()
        made += f"{member + '/':16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode()
        made += content + b"\n" * (len(content) % 2)
    return made


@needs_nvjitlink
def test_archives_and_objects_are_linked() -> None:
    archive = DATA / "objects" / "parts.a"
    for codes in (
        [ObjectCode.from_library(archive)],
        [ObjectCode.from_library(archive), ObjectCode.from_object(an_object_of_the_host())],
    ):
        linked = Linker(*codes, options={"arch": ARCH}).link("cubin")
        assert [info.kernels for info in linked.images()] == [("part",)]
    with pytest.raises(CompileError, match=r"'part' is defined by input 'it' and by 'input 1'"):
        Linker(
            ObjectCode.from_object(DATA / "objects" / "part.o", name="it"),
            ObjectCode.from_library(archive),
            options={"arch": ARCH},
        ).link("cubin")


def an_object_of_the_host() -> bytes:
    archive = (DATA / "objects" / "parts.a").read_bytes()
    at = archive.index(b"host_only.o/")
    return archive[at + 60 : at + 60 + int(archive[at + 48 : at + 58])]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (".visible .entry k(.param .u64 p) .maxntid 1, 1, 1 { ret; }", ["k"]),
        (".visible .func (.param .b32 r) f (.param .b32 x) { ret; }", ["f"]),
        (".visible .func (.param .b32 r) f (.param .b32 x);", []),
        (".extern .func (.param .b32 r) f (.param .b32 x);", []),
        (".weak .entry w() { ret; } .entry own() { ret; }", []),
        (".visible .global .align 4 .u32 v = 3; .visible .const .b8 c[4] = {1, 2};", ["v", "c"]),
        (".visible .global .attribute(.managed) .align 8 .b8 m[8];", ["m"]),
        (".visible .global .v2 .f32 q; // .visible .global .u32 n;", ["q"]),
        (".entry a() { .reg .b32 %x; { ret; } } .visible .entry b() { ret; }", ["b"]),
        (".visible", []),
        (".visible .entry", []),
        (".visible .entry k(", []),
        (".visible .entry k() {{{", ["k"]),
        ("} } .visible .entry k() {}", []),
    ],
)
def test_definitions_of_ptx(text: str, names: list[str]) -> None:
    from cudamod import _core

    header = ".version 8.0\n.target sm_90\n.address_size 64\n"
    assert _core.definitions_of("ptx", (header + text).encode(), 90) == (names, False)


@needs_nvjitlink
def test_wrong_targets_and_closed_linkers() -> None:
    linker = Linker(NOTHING, options={"arch": ARCH})
    with pytest.raises(ValueError, match=r"target_type='ltoir' for linking \(supported: cubin"):
        linker.link("ltoir")
    linker.close()
    linker.close()
    assert linker.is_closed
    with pytest.raises(RuntimeError, match="Linker has been closed"):
        linker.link("cubin")
    assert "closed" in repr(linker)
