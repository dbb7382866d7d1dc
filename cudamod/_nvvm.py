"""Compiling NVVM IR with libNVVM."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from cudamod import _core
from cudamod._compiler_library import NVVM
from cudamod._nvrtc import Compiled
from cudamod.errors import CompileError, CompilerNotFoundError

__all__ = ["compile_ir", "libdevice_path", "version"]


def version() -> tuple[int, ...]:
    """The version of libNVVM, then that of the IR and of its debug metadata."""
    nvvm = NVVM.bindings()
    return (*nvvm.version(), *nvvm.ir_version())


def libdevice_path() -> str:
    """The file of the library of mathematical functions.

    Raises CompilerNotFoundError when there is none.
    """
    NVVM.path()
    pathfinder = importlib.import_module("cuda.pathfinder")
    try:
        return str(pathfinder.find_bitcode_lib("device"))
    except pathfinder.BitcodeLibNotFoundError as error:
        raise CompilerNotFoundError(
            "use_libdevice needs libdevice, which `pip install cudamod[compile]` installs: "
            + str(error).partition("\n")[0]
        ) from error


def compile_ir(
    modules: Sequence[tuple[str, bytes]], flags: Sequence[str], libdevice: str | None = None
) -> Compiled:
    """Compile modules, pairs of name and IR; the first one names the program.

    The flags choose the target. Functions of the libdevice at the path are added as they are used.

    Raises:
        ValueError: bitcode is not whole; libNVVM would end the process.
        CompileError: libNVVM refuses a module or an option.
        CompilerNotFoundError: there is no libNVVM.
    """
    nvvm = NVVM.bindings()
    options = tuple(flags)
    subject = f"program {modules[0][0]!r}"
    for name, code in modules:
        if damage := _core.damage_of("nvvm", code):
            raise ValueError(f"NVVM IR {name!r} is damaged: {damage}")
    program = nvvm.create_program()

    def call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(program, *arguments)
        except nvvm.nvvmError as error:
            status = nvvm.Result(error.status)
            raise CompileError.of(
                error.status, f"NVVM_{status.name}", name, subject, _log(nvvm, program), options
            ) from None

    try:
        for name, code in modules:
            call("nvvmAddModuleToProgram", nvvm.add_module_to_program, code, len(code), name)
        if libdevice is not None:
            with open(libdevice, "rb") as file:
                code = file.read()
            call(
                "nvvmLazyAddModuleToProgram",
                nvvm.lazy_add_module_to_program,
                code,
                len(code),
                "libdevice",
            )
        call("nvvmVerifyProgram", nvvm.verify_program, len(options), options)
        call("nvvmCompileProgram", nvvm.compile_program, len(options), options)
        log = _log(nvvm, program)
        made = bytearray(call("nvvmGetCompiledResultSize", nvvm.get_compiled_result_size))
        call("nvvmGetCompiledResult", nvvm.get_compiled_result, made)
        return Compiled(bytes(made), log)
    finally:
        nvvm.destroy_program(program)


def _log(nvvm: Any, program: int) -> str:
    content = bytearray(nvvm.get_program_log_size(program))
    if len(content) > 1:
        nvvm.get_program_log(program, content)
    return content.rstrip(b"\0").decode(errors="replace")
