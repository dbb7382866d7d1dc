"""The CFFI half: declarations, checks that the compiler makes of them, and the generated C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cffi

from cffi_build.declarations import TypeClosure
from cffi_build.header import Function, Header

MODULE = "cudamod._cffi"


def declarations(header: Header, functions: Sequence[Function], closure: TypeClosure) -> str:
    """The text given to ``ffi.cdef``."""
    macros = "".join(f"#define {name} ...\n" for name in header.integer_macros)
    return closure.text() + macros + "".join(f"{f.declaration}\n" for f in functions)


def preamble(functions: Sequence[Function]) -> str:
    """C that CFFI puts before its own.

    Each function's declaration must be compatible with the header's; then its name becomes a call
    through the driver table, so that nothing links against the driver.
    """
    checks = "".join(
        f"_Static_assert(__builtin_types_compatible_p(__typeof__(&{f.name}), "
        f"{f.result} (*)({f.parameter_types})), "
        f'"the declaration of {f.name} is not the one of cuda.h");\n'
        for f in functions
    )
    calls = "".join(
        f"#undef {f.name}\n#define {f.name}(...) (cudamod_driver_table.{f.exported}(__VA_ARGS__))\n"
        for f in functions
    )
    return f'#include "driver/table.h"\n\n{checks}\n{calls}'


def write(path: Path, cdef: str, functions: Sequence[Function]) -> None:
    """Write the C source of the CFFI module."""
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    ffi.set_source(MODULE, preamble(functions))
    ffi.emit_c_code(str(path))
