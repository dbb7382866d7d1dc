"""PTX that is assembled."""

from cuda.core import Program, ProgramOptions
from outcome import attempt, empty, ptx, show

SOURCE = ptx(empty("k", "u64", "u32")).decode()
program = Program(SOURCE, "ptx", ProgramOptions(name="assembled", arch="sm_75"))
code = program.compile("cubin")
show(
    type=str(code.code_type),
    name=code.name,
    elf=code.code[:4],
    backend=str(program.backend),
    broken=attempt(
        lambda: Program(SOURCE.replace("ret", "rett"), "ptx", ProgramOptions(arch="sm_75")).compile(
            "cubin"
        )
    ),
    target=attempt(lambda: program.compile("ltoir")),
    current=str(Program(SOURCE, "ptx").compile("cubin").code_type),
)
program.close()
show(closed=attempt(lambda: program.compile("cubin")))
