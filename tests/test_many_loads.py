"""Loading, launching and dropping, again and again, leaves nothing but what waits to be unloaded.

``CUDAMOD_TEST_LOADS`` is how many times, for a longer run than the suite's.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from ptx import empty

#: Beyond what may be retired: 64 libraries, or one more for each thread.
BOUND_MIB = 5
LOADS = int(os.environ.get("CUDAMOD_TEST_LOADS", "2000"))

PROGRAM = """
import sys, threading
from pathlib import Path
from cudamod import Device, LaunchConfig, ObjectCode, driver, handles

image, threads, loads = {image!r}, {threads}, {loads}
device = Device(0)
config = LaunchConfig(grid=1, block=1)

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def free():
    device.set_current()
    return int(driver.cuMemGetInfo()[0])

def work(count):
    stream = device.create_stream()
    for _ in range(count):
        ObjectCode.from_ptx(image).get_kernel("k").bind(config, stream)()
    stream.sync()

def run(count):
    if threads == 1:
        return work(count)
    workers = [threading.Thread(target=work, args=(count // threads,)) for _ in range(threads)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()

run(400)  # what is retired at most, and what the allocator and the driver keep for good
handles.reclaim()
host, memory = resident(), free()
run(loads)
retired = handles.retired().libraries
handles.reclaim()
print(resident() - host, memory - free(), retired)
"""


@pytest.mark.parametrize("threads", [1, 8])
def test_loads_leave_nothing(run_python: Callable[..., str], threads: int) -> None:
    code = PROGRAM.format(image=empty("k"), threads=threads, loads=LOADS)
    host, memory, retired = (int(word) for word in run_python(code).split())
    assert host < BOUND_MIB << 20
    assert memory < BOUND_MIB << 20
    assert 0 < retired <= 64 + threads
