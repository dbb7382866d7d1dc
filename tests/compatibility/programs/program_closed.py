"""Programs and linkers that are closed, and what they write."""

import io

from cuda.core import Linker, LinkerOptions, ObjectCode, Program, ProgramOptions
from outcome import attempt, empty, ptx, show

WARNS = "__global__ void k() { int unused; }"
program = Program(WARNS, "c++", ProgramOptions(arch="sm_75"))
log, quiet = io.StringIO(), io.StringIO()
first = program.compile("ptx", logs=log)
Program("__global__ void k() {}", "c++", ProgramOptions(arch="sm_75")).compile("ptx", logs=quiet)
show(
    log="unused" in log.getvalue(),
    quiet=quiet.getvalue(),
    twice=program.compile("ptx").code == first.code,
    open=program.is_closed,
)
program.close()
program.close()
show(
    closed=program.is_closed,
    compile=attempt(lambda: program.compile("ptx")),
    backend=str(program.backend),
    made=first.name,
)
code = ObjectCode.from_ptx(ptx(empty("k")))
linker = Linker(code, options=LinkerOptions(arch="sm_75"))
show(linker_open=linker.is_closed, errors=linker.get_error_log())
linker.close()
linker.close()
show(linker_closed=linker.is_closed, link=attempt(lambda: linker.link("cubin")))
