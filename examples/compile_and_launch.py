"""Compile a template, pick two of its instances by their C++ names, and launch them.

Needs the extra ``compile``: pip install cudamod[compile]
"""

from __future__ import annotations

from array import array

from cudamod import CompileError, Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
template <class T, int N>
__global__ void power(T* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    T product = 1;
    for (int factor = 0; factor < N; ++factor) product *= values[i];
    values[i] = product;
}
"""

device = Device()
device.set_current()
stream = device.create_stream()

options = ProgramOptions(name="power.cu", std="c++17", arch=f"sm_{device.arch}")
try:
    code = Program(SOURCE, "c++", options).compile("ptx", ["power<float, 3>", "power<int, 2>"])
except CompileError as error:
    raise SystemExit(f"{error.subject} with {error.options}:\n{error.log}") from error

for name, values in (
    ("power<float, 3>", array("f", range(8))),
    ("power<int, 2>", array("i", range(8))),
):
    kernel = code.get_kernel(name)
    buffer = device.allocate(len(values) * values.itemsize, stream=stream)
    buffer.copy_from(values, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), kernel, buffer, len(values))
    buffer.copy_to(values, stream=stream)
    stream.sync()
    print(f"{name}: {kernel.name}({kernel.signature}) -> {list(values)}")
    exponent = 3 if values.typecode == "f" else 2
    assert list(values) == [i**exponent for i in range(8)]
