"""Compiling: what comes out, what is refused, and what it needs (no driver)."""

from __future__ import annotations

import io
import pickle
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from compiling import (
    ARCH,
    NVVM_IR,
    PTX,
    SAXPY,
    SCALE,
    check_saxpy,
    needs_nvjitlink,
    needs_nvrtc,
    needs_nvvm,
    skip_unless_loadable,
)

import cudamod
from cudamod import CompileError, LaunchConfig, ObjectCode, Program, ProgramOptions, Stream, launch

ELF = b"\x7fELF"


@needs_nvrtc
def test_compiled_source_runs(stream: Stream) -> None:
    code = Program(SAXPY, "c++").compile("ptx")
    assert isinstance(code.code, bytes)
    skip_unless_loadable(code.code)
    check_saxpy(code.get_kernel("saxpy"), stream)


@needs_nvrtc
def test_name_expressions_name_kernels(stream: Stream) -> None:
    names = ["scale<float, 4>", b"scale< double , 1+1 >", "&scale<int, 3>"]
    code = Program(SCALE, "C++", ProgramOptions(std="c++17")).compile("ptx", names)
    assert isinstance(code.code, bytes)
    skip_unless_loadable(code.code)
    assert code.symbol_mapping == {
        "scale<float, 4>": "_Z5scaleIfLi4EEvPT_S0_",
        "scale< double , 1+1 >": "_Z5scaleIdLi2EEvPT_S0_",
        "&scale<int, 3>": "_Z5scaleIiLi3EEvPT_S0_",
    }
    for name, letter, factor in zip(names, "fdi", (4, 2, 3), strict=True):
        values = array(letter, range(32))
        buffer = stream.device.allocate(len(values) * values.itemsize, stream=stream)
        buffer.copy_from(values, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel(name), buffer, 5)
        buffer.copy_to(values, stream=stream)
        stream.sync()
        assert list(values) == [i * factor * 5 for i in range(32)]


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_90", "sm_90a", "sm_100f", "sm_100a", "sm_120"])
def test_architectures_with_their_suffix(arch: str) -> None:
    program = Program(SAXPY, "c++", ProgramOptions(arch=arch, name="named"))
    ptx, cubin = program.compile("ptx"), program.compile("CUBIN")
    assert isinstance(ptx.code, bytes)
    assert f".target {arch}".encode() in ptx.code
    assert isinstance(cubin.code, bytes)
    assert cubin.code.startswith(ELF)
    assert (ptx.code_type, cubin.code_type) == ("ptx", "cubin")
    assert ptx.name == cubin.name == "named"


@needs_nvrtc
def test_a_virtual_architecture_makes_no_cubin() -> None:
    program = Program(SAXPY, "c++", {"arch": "compute_90a"})
    ptx = program.compile("ptx").code
    assert isinstance(ptx, bytes)
    assert b".target sm_90a" in ptx
    with pytest.raises(ValueError, match="not for 'compute_90a'"):
        program.compile("cubin")


@needs_nvrtc
def test_lto_ir_needs_no_option_and_tolerates_no_contradiction() -> None:
    assert len(Program(SAXPY, "c++", {"arch": ARCH}).compile("ltoir").code) > 100
    with pytest.raises(ValueError, match="link_time_optimization"):
        Program(SAXPY, "c++", {"arch": ARCH, "link_time_optimization": False}).compile("ltoir")
    with pytest.raises(ValueError, match="link_time_optimization makes LTO-IR, not 'ptx'"):
        Program(SAXPY, "c++", {"arch": ARCH, "link_time_optimization": True}).compile("ptx")


@needs_nvrtc
def test_the_error_has_log_name_and_options() -> None:
    options = ProgramOptions(arch=ARCH, name="broken", std="c++17")
    with pytest.raises(CompileError) as caught:
        Program("__global__ void f() { return undeclared; }", "c++", options).compile("ptx")
    error = caught.value
    assert isinstance(error, cudamod.CUDAError)
    assert (error.call, error.name, error.status) == (
        "nvrtcCompileProgram",
        "NVRTC_ERROR_COMPILATION",
        6,
    )
    assert error.subject == "program 'broken'"
    assert error.options == ("-arch=sm_90", "--std=c++17")
    assert 'identifier "undeclared" is undefined' in error.log
    for part in (error.name, error.subject, "--std=c++17", error.log):
        assert part in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.options) == (CompileError, str(error), error.options)


@needs_nvrtc
@pytest.mark.parametrize(
    ("options", "expressions", "call"),
    [
        ({"arch": "sm_999"}, (), "nvrtcCompileProgram"),
        ({"std": "c++1"}, (), "nvrtcCompileProgram"),
        ({"diag_error": 10**9}, (), "nvrtcCompileProgram"),
        ({}, ("scale<",), "nvrtcCompileProgram"),
        ({}, ("nothing_of_the_kind",), "nvrtcCompileProgram"),
    ],
    ids=str,
)
def test_what_the_compiler_refuses(
    options: dict[str, Any], expressions: tuple[str, ...], call: str
) -> None:
    program = Program(SCALE, "c++", {"arch": ARCH, **options})
    with pytest.raises(CompileError) as caught:
        program.compile("ptx", expressions)
    assert caught.value.call == call
    assert caught.value.log


@needs_nvrtc
def test_warnings_go_to_the_log_and_only_there() -> None:
    source = "__global__ void f() { int unused; }"
    log = io.StringIO()
    Program(source, "c++", {"arch": ARCH, "name": "warns"}).compile("ptx", logs=log)
    assert "warns(1): warning" in log.getvalue()
    again = io.StringIO()
    Program(source, "c++", {"arch": ARCH, "name": "warns"}).compile("ptx", logs=again)
    assert again.getvalue() == log.getvalue()  # from the cache
    silent = io.StringIO()
    Program(SAXPY, "c++", {"arch": ARCH}).compile("ptx", logs=silent)
    assert silent.getvalue() == ""


@needs_nvrtc
def test_no_driver_is_needed_with_an_architecture(run_python: Callable[..., str]) -> None:
    code = f"""
from cudamod import Program, ProgramOptions, driver
program = Program({SAXPY!r}, "c++", ProgramOptions(arch="sm_90"))
for target in ("ptx", "cubin", "ltoir"):
    print(program.compile(target, cache=False).code_type, driver.opened())
try:
    Program({SAXPY!r}, "c++").compile("ptx")
except Exception as error:
    print(type(error).__name__)
"""
    printed = run_python(code, CUDAMOD_DRIVER="/nowhere/libcuda.so.1")
    assert printed == "ptx False\ncubin False\nltoir False\nDriverNotFoundError\n"


@needs_nvrtc
def test_the_interpreter_runs_while_it_compiles() -> None:
    many = "".join(f"__global__ void k{i}(float* x) {{ x[{i}] = sinf(x[0]); }}" for i in range(60))
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    Program(many, "c++", {"arch": ARCH}).compile("ptx", cache=False)
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(begin < moment < end for moment in ticks) > (end - begin) * 100


@needs_nvrtc
def test_one_program_in_many_threads() -> None:
    program = Program(SCALE, "c++", {"arch": ARCH})
    made: dict[int, ObjectCode] = {}

    def compile_it(number: int) -> None:
        made[number] = program.compile("ptx", [f"scale<float, {number}>"], cache=False)

    threads = [threading.Thread(target=compile_it, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        assert made[number].symbol_mapping == {
            f"scale<float, {number}>": f"_Z5scaleIfLi{number}EEvPT_S0_"
        }


@needs_nvrtc
def test_precompiled_headers_say_what_became_of_them(tmp_path: Any) -> None:
    (tmp_path / "header.h").write_text("struct S { int member; };\n")
    source = '#include "header.h"\n__global__ void f(S* s) { s->member = 1; }'
    options = ProgramOptions(arch=ARCH, include_path=tmp_path, pch=True, pch_dir=tmp_path)
    program = Program(source, "c++", options)
    assert program.pch_status is None
    program.compile("ptx")
    assert program.pch_status in ("created", "not_attempted", "failed")
    plain = Program(SAXPY, "c++", {"arch": ARCH})
    plain.compile("ptx")
    assert plain.pch_status is None


@needs_nvjitlink
def test_ptx_becomes_a_cubin() -> None:
    program = Program(PTX + "\0", "ptx", {"arch": ARCH, "max_register_count": 32})
    assert program.backend == "nvJitLink"
    code = program.compile("cubin").code
    assert isinstance(code, bytes)
    assert code.startswith(ELF)
    with pytest.raises(CompileError, match="requires that all inputs have LTOIR"):
        program.compile("ptx")
    with pytest.raises(CompileError) as caught:
        Program(PTX.replace("ret", "rett"), "ptx", {"arch": ARCH, "name": "bad"}).compile("cubin")
    assert "'rett'" in caught.value.log
    assert "'bad'" in caught.value.subject


@needs_nvvm
def test_nvvm_ir(stream: Stream) -> None:
    options = ProgramOptions(ftz=True, arch=f"sm_{stream.device.arch}")
    for ir in (NVVM_IR, NVVM_IR.encode(), bytearray(NVVM_IR.encode())):
        program = Program(ir, "nvvm", options)
        assert program.backend == "NVVM"
        code = program.compile("ptx")
        assert isinstance(code.code, bytes)
        skip_unless_loadable(code.code)
        buffer = stream.device.allocate(4, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("fill"), buffer)
        value = array("f", [0.0])
        buffer.copy_to(value, stream=stream)
        stream.sync()
        assert value[0] == 2.0
        assert len(program.compile("ltoir").code) > 100


@needs_nvvm
def test_nvvm_ir_of_several_modules() -> None:
    call = NVVM_IR.replace(
        "store float 2.0, float* %p",
        "%v = call float @value(float 2.0)\n  store float %v, float* %p",
    )
    declared = call.replace("define void", "declare float @value(float)\ndefine void")
    head = NVVM_IR[: NVVM_IR.index("define")]
    tail = NVVM_IR[NVVM_IR.index("!nvvmir") :]
    value = head + "define float @value(float %x) { ret float %x }\n" + tail
    options = ProgramOptions(arch=ARCH, extra_sources=[("value", value)])
    code = Program(declared, "nvvm", options).compile("ptx").code
    assert isinstance(code, bytes)
    assert b".entry fill" in code
    math = declared.replace("@value", "@__nv_sqrtf")
    code = Program(math, "nvvm", ProgramOptions(arch=ARCH, use_libdevice=True)).compile("ptx").code
    assert isinstance(code, bytes)
    assert b".extern" not in code


@needs_nvvm
def test_what_nvvm_refuses() -> None:
    with pytest.raises(CompileError) as caught:
        Program("junk", "nvvm", {"arch": ARCH, "name": "bad"}).compile("ptx")
    assert caught.value.name == "NVVM_ERROR_INVALID_IR"
    assert caught.value.subject == "program 'bad'"
    assert caught.value.log
    with pytest.raises(ValueError, match="NVVM backend: std"):
        Program(NVVM_IR, "nvvm", {"arch": ARCH, "std": "c++17"}).compile("ptx")


def test_wrong_arguments_of_the_constructor() -> None:
    with pytest.raises(RuntimeError, match=r"Unsupported code_type='fortran' .*'c\+\+', 'ptx'"):
        Program("x", "Fortran")
    with pytest.raises(TypeError, match="code_type must be str"):
        Program("x", 3)  # type: ignore[arg-type]
    for kind in ("c++", "ptx"):
        with pytest.raises(TypeError, match="Expected type str, but got bytes"):
            Program(b"x", kind)
    with pytest.raises(TypeError, match="NVVM IR code must be provided as"):
        Program(3, "nvvm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NUL at byte 1"):
        Program("a\0b", "c++")
    with pytest.raises(ValueError, match="UTF-8"):
        Program("\ud800", "c++")
    for kind in ("ptx", "nvvm"):
        with pytest.raises(ValueError, match="empty"):
            Program("", kind)
    with pytest.raises(TypeError, match="must be provided as an object of type ProgramOptions"):
        Program("x", "c++", 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option 'fmaa'; did you mean 'fma'"):
        Program("x", "c++", {"fmaa": True})
    for kind, title in (("c++", "NVRTC"), ("ptx", "PTX")):
        with pytest.raises(ValueError, match=f"extra_sources is not supported by the {title}"):
            Program("x", kind, {"extra_sources": [("a", "b")]})
    with pytest.warns(UserWarning, match="numba_debug is ignored"):
        Program(PTX, "ptx", {"numba_debug": True})


def test_wrong_arguments_of_compile() -> None:
    program = Program(SAXPY, "c++", {"arch": ARCH})
    with pytest.raises(ValueError, match=r"target_type='exe' for c\+\+ \(supported: ptx"):
        program.compile("exe")
    with pytest.raises(ValueError, match="for nvvm"):
        Program(NVVM_IR, "nvvm", {"arch": ARCH}).compile("cubin")
    with pytest.raises(TypeError, match="target_type must be str"):
        program.compile(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not one name"):
        program.compile("ptx", "saxpy")
    with pytest.raises(TypeError, match="must be str or bytes, not 3"):
        program.compile("ptx", [3])  # type: ignore[list-item]
    for name in ("", " ", "a\0b", b"\xff"):
        with pytest.raises(ValueError, match="name expression"):
            program.compile("ptx", [name])
    with pytest.raises(ValueError, match=r"are for C\+\+, not for 'ptx'"):
        Program(PTX, "ptx", {"arch": ARCH}).compile("cubin", ["nothing"])
    with pytest.raises(ValueError, match="not supported by the PTX backend: std"):
        Program(PTX, "ptx", {"arch": ARCH, "std": "c++17"}).compile("cubin")
    with pytest.raises(TypeError, match="cache must be"):
        program.compile("ptx", cache="/tmp")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="logs must have a write method"):
        program.compile("ptx", logs="log")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="extra_digest must be"):
        program.compile("ptx", extra_digest=3)  # type: ignore[arg-type]


def test_closed_and_half_built_programs() -> None:
    program = Program(SAXPY, "c++", {"arch": ARCH})
    assert not program.is_closed
    program.close()
    program.close()
    assert program.is_closed
    assert "closed" in repr(program)
    with pytest.raises(RuntimeError, match="Program has been closed"):
        program.compile("ptx")
    with pytest.raises(TypeError):
        Program.__new__(Program)  # type: ignore[call-arg]
