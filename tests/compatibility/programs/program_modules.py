"""What is compiled and linked, as code of each architecture and through files."""

import os
import tempfile

from cuda.core import Kernel, ObjectCode, Program, ProgramOptions
from outcome import attempt, show

SOURCE = 'extern "C" __global__ void k(int* p, float x) { *p = (int)x; }'


def compiled(target, arch):
    """Object code for an architecture."""
    return Program(SOURCE, "c++", ProgramOptions(arch=arch)).compile(target)


show(
    suffixed=compiled("cubin", "sm_90a").code[:4],
    family=compiled("cubin", "sm_100f").code[:4],
    virtual=b".target sm_80" in compiled("ptx", "compute_80").code,
)
code = compiled("ptx", "compute_75")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "k.ptx")
    with open(path, "wb") as file:
        file.write(code.code)
    show(file=ObjectCode.from_ptx(path).get_kernel("k").arguments_info)
kernel = code.get_kernel("k")
show(
    info=[list(info) for info in kernel.arguments_info],
    fields=[kernel.arguments_info[1].offset, kernel.arguments_info[1].size],
    as_dict=attempt(lambda: kernel.arguments_info[1]._asdict()),
    handle=Kernel.from_handle(int(kernel.handle), code) == kernel,
    module=int(code.get_module()) != 0,
    lto=attempt(
        lambda: (
            Program(SOURCE, "c++", ProgramOptions(arch="sm_75", link_time_optimization=True))
            .compile("ltoir")
            .get_kernel("k")
        )
    ),
    relocatable=str(
        Program(SOURCE, "c++", ProgramOptions(arch="sm_75", relocatable_device_code=True))
        .compile("cubin")
        .code_type
    ),
)
