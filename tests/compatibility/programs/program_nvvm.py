"""NVVM IR that is compiled."""

from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from outcome import WORD, attempt, ptx, show

IR = """target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-\
f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
define void @fill(i32* %p) {
  store i32 9, i32* %p
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void (i32*)* @fill, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
"""
device = Device(0)
stream = device.create_stream()
options = ProgramOptions(name="ir", arch="sm_75")
program = Program(IR, "nvvm", options)
code = program.compile("ptx")
show(
    type=str(code.code_type),
    name=code.name,
    backend=str(program.backend),
    bytes=str(Program(IR.encode(), "nvvm", options).compile("ptx").code_type),
    bytearray=str(Program(bytearray(IR.encode()), "nvvm", options).compile("ptx").code_type),
    lto=str(program.compile("ltoir").code_type),
    broken=attempt(lambda: Program("define", "nvvm", options).compile("ptx")),
    not_for_it=attempt(
        lambda: Program(IR, "nvvm", ProgramOptions(arch="sm_75", use_fast_math=True)).compile("ptx")
    ),
    not_pairs=attempt(
        lambda: Program(IR, "nvvm", ProgramOptions(arch="sm_75", extra_sources=["x"])).compile(
            "ptx"
        )
    ),
)
buffer = device.allocate(4, stream=stream)
one = LaunchConfig(grid=1, block=1)
launch(stream, one, code.get_kernel("fill"), buffer)
launch(stream, one, ObjectCode.from_ptx(ptx(WORD)).get_kernel("word"), buffer, 9)
show(ran=attempt(stream.sync))
