"""Parts that are linked."""

from cuda.core import Linker, LinkerOptions, ObjectCode, Program, ProgramOptions
from outcome import attempt, show

CALLER = """extern __device__ int answer(int);
extern "C" __global__ void k(int* p) { *p = answer(*p); }"""
CALLEE = "__device__ int answer(int x) { return x + 1; }"


def halves(target, **options):
    """Two halves of one program."""
    made = []
    for name, source in (("caller", CALLER), ("callee", CALLEE)):
        given = ProgramOptions(name=name, arch="sm_90", relocatable_device_code=True, **options)
        made.append(Program(source, "c++", given).compile(target))
    return made


for target in ("ptx", "cubin"):
    linker = Linker(*halves(target), options=LinkerOptions(arch="sm_90", name="whole"))
    code = linker.link("cubin")
    show(
        **{
            target: [str(code.code_type), code.name, code.code[:4].decode("latin-1")],
            f"{target}_errors": linker.get_error_log(),
            f"{target}_info": isinstance(linker.get_info_log(), str),
            f"{target}_mapping": code.symbol_mapping,
        }
    )
lto = halves("ltoir", link_time_optimization=True)
options = LinkerOptions(arch="sm_90", link_time_optimization=True)
code = Linker(*lto, options=options).link("cubin")
show(lto=str(code.code_type), class_=isinstance(code, ObjectCode))
to_ptx = LinkerOptions(arch="sm_90", link_time_optimization=True, ptx=True)
code = Linker(*lto, options=to_ptx).link("ptx")
show(
    to_ptx=str(code.code_type),
    arguments=code.get_kernel("k").num_arguments,
    undefined=attempt(
        lambda: Linker(halves("ptx")[0], options=LinkerOptions(arch="sm_90")).link("cubin")
    ),
    backend=str(Linker.which_backend()),
)
