"""Launching: configurations."""

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import WORD, attempt, ptx, show

COUNT = """
.visible .entry count(.param .u64 p)
{
.reg .b64 %p; .reg .b32 %r;
ld.param.u64 %p, [p];
atom.global.add.u32 %r, [%p], 1;
ret;
}"""
device = Device(0)
stream = device.create_stream()
code = ObjectCode.from_ptx(ptx(COUNT, WORD))
count, word = code.get_kernel("count"), code.get_kernel("word")
counter = device.allocate(4, stream=stream)
one = LaunchConfig(grid=1, block=1)
CASES = {
    "plain": (LaunchConfig(grid=3, block=32), 96),
    "three": (LaunchConfig(grid=(2, 2, 2), block=(2, 2, 2)), 64),
    "shared": (LaunchConfig(grid=1, block=1, shmem_size=1024), 1),
    "cooperative": (LaunchConfig(grid=2, block=32, is_cooperative=True), 64),
    "serialized": (LaunchConfig(grid=1, block=4, programmatic_stream_serialization=True), 4),
}
if device.compute_capability >= (9, 0):
    CASES["cluster"] = (LaunchConfig(grid=4, cluster=2, block=32), 256)
for name, (config, threads) in CASES.items():
    counter.fill(0, stream=stream)
    launch(stream, config, count, counter)
    launch(stream, one, word, counter, np.uint32(threads))
    show(**{name: attempt(stream.sync)})
show(answer=launch(stream, one, count, counter), sync=attempt(stream.sync))
