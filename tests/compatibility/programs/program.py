"""C++ that is compiled, to each target."""

from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from outcome import WORD, attempt, ptx, show

SOURCE = """
extern "C" __global__ void twice(unsigned* x) { *x *= FACTOR; }
"""
device = Device(0)
stream = device.create_stream()
options = ProgramOptions(name="p", arch="sm_75", define_macro=("FACTOR", "2"))
program = Program(SOURCE, "C++", options)
made = {target: program.compile(target) for target in ("ptx", "PTX", "cubin")}
show(
    classes=[isinstance(code, ObjectCode) for code in made.values()],
    types=[str(code.code_type) for code in made.values()],
    names=[code.name for code in made.values()],
    payloads=[isinstance(code.code, bytes) for code in made.values()],
    nul=made["ptx"].code.endswith(b"\0"),
    elf=made["cubin"].code[:4],
    mapping=made["ptx"].symbol_mapping,
    backend=str(program.backend),
    pch=program.pch_status,
)
kernel = made["ptx"].get_kernel("twice")
buffer = device.allocate(4, stream=stream)
buffer.fill(b"\x03\0\0\0", stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
check = ObjectCode.from_ptx(ptx(WORD)).get_kernel("word")
launch(stream, LaunchConfig(grid=1, block=1), check, buffer, 6)
show(ran=attempt(stream.sync), arguments=kernel.num_arguments)
lto = Program(SOURCE, "c++", ProgramOptions(arch="sm_75", define_macro="FACTOR=2"))
show(
    default_name=lto.compile("ptx").name,
    as_dict=str(
        Program(SOURCE, "c++", {"arch": "sm_75", "define_macro": ("FACTOR", "2")})
        .compile("ptx")
        .code_type
    ),
    current=str(Program("__global__ void k() {}", "c++").compile("ptx").code_type),
)
