"""Compiling: what is refused."""

from cuda.core import Program, ProgramOptions
from outcome import attempt, show

GOOD = "__global__ void k() {}"
ARCH = ProgramOptions(arch="sm_75")
show(
    type=attempt(lambda: Program(GOOD, "fortran", ARCH)),
    type_class=attempt(lambda: Program(GOOD, 3, ARCH)),
    source_class=attempt(lambda: Program(GOOD.encode(), "c++", ARCH)),
    ptx_class=attempt(lambda: Program(b"", "ptx", ARCH)),
    nvvm_class=attempt(lambda: Program(3, "nvvm", ARCH)),
    options_class=attempt(lambda: Program(GOOD, "c++", 5)),
    unknown_option=attempt(lambda: Program(GOOD, "c++", {"nothing": 1})),
    option=attempt(lambda: ProgramOptions(nothing=1)),
    target=attempt(lambda: Program(GOOD, "c++", ARCH).compile("fatbin")),
    syntax=attempt(lambda: Program("__global__ void k( {}", "c++", ARCH).compile("ptx")),
    arch=attempt(lambda: Program(GOOD, "c++", ProgramOptions(arch="sm_1")).compile("ptx")),
    header=attempt(lambda: Program('#include "not_here.h"', "c++", ARCH).compile("ptx")),
    macro=attempt(
        lambda: Program(GOOD, "c++", ProgramOptions(arch="sm_75", define_macro=3)).compile("ptx")
    ),
    extra=attempt(
        lambda: Program(GOOD, "c++", ProgramOptions(arch="sm_75", extra_sources=[("a", "b")]))
    ),
    unsupported=attempt(lambda: Program("source", "nvvm", ARCH).compile("cubin")),
)
try:
    Program("__global__ void k() { undeclared = 3; }", "c++", ARCH).compile("ptx")
except Exception as error:
    show(message="undeclared" in str(error), named="NVRTC_ERROR_COMPILATION" in str(error))
