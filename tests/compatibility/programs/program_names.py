"""Name expressions, and the object code that has them."""

import copy
import pickle

from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from outcome import WORD, attempt, ptx, show

SOURCE = """
namespace n { template <class T, int N> __global__ void add(T* x) { *x += N; } }
template <class T> __global__ void add(T* x, T y) { *x += y; }
"""
NAMES = ("n::add<unsigned, 4>", "add<float>", "n::add<unsigned, 5>")
device = Device(0)
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch="sm_75"))
code = program.compile("ptx", name_expressions=NAMES)
show(
    keys=sorted(code.symbol_mapping),
    mangled=list(code.symbol_mapping.values()),
    counts=[code.get_kernel(name).num_arguments for name in NAMES],
    by_symbol=code.get_kernel("_ZN1n3addIjLi4EEEvPT_").num_arguments,
    missing=attempt(lambda: code.get_kernel("n::add<unsigned, 6>")),
    again=attempt(lambda: sorted(program.compile("ptx", list(NAMES)).symbol_mapping)),
    wrong=attempt(lambda: Program(SOURCE, "c++", ProgramOptions(arch="sm_75")).compile("ptx", [3])),
    unknown=attempt(
        lambda: Program(SOURCE, "c++", ProgramOptions(arch="sm_75")).compile("ptx", ["no<int>"])
    ),
)
buffer = device.allocate(4, stream=stream)
buffer.fill(b"\x01\0\0\0", stream=stream)
one = LaunchConfig(grid=1, block=1)
twin = pickle.loads(pickle.dumps(code))
for kernel in (
    code.get_kernel(NAMES[0]),
    twin.get_kernel(NAMES[2]),
    copy.deepcopy(code).get_kernel(NAMES[0]),
):
    launch(stream, one, kernel, buffer)
launch(stream, one, ObjectCode.from_ptx(ptx(WORD)).get_kernel("word"), buffer, 14)
show(ran=attempt(stream.sync), twin=sorted(twin.symbol_mapping) == sorted(NAMES))
