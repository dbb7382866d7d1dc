"""Loading, launching and dropping, again and again, leaves nothing but what waits to be unloaded.

``CUDAMOD_TEST_LOADS=10000`` makes it that many times, after a start that lets the emulated driver
have all 65,536 handles that it remembers as gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from ptx import empty

#: What host and device memory may grow by.
BOUND_MIB = 5
LOADS = int(os.environ.get("CUDAMOD_TEST_LOADS", "1500"))
WARM = 800 if LOADS < 10_000 else 70_000

PROGRAM = """
import threading
from pathlib import Path
from cudamod import Device, LaunchConfig, ObjectCode, driver, handles

image, threads, loads, raw = {image!r}, {threads}, {loads}, {raw}
device = Device(0)
config = LaunchConfig(grid=1, block=1)

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def free():
    device.set_current()
    return int(driver.cuMemGetInfo()[0])

def ours(stream):
    ObjectCode.from_ptx(image).get_kernel("k").bind(config, stream)()

def drivers(stream):
    library = driver.cuLibraryLoadData(image + bytes(1), None, None, 0, None, None, 0)
    kernel = driver.ffi.cast("CUfunction", driver.cuLibraryGetKernel(library, "k"))
    driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream.handle, None, None)
    driver.cuLibraryUnload(library)

def work(count):
    stream = device.create_stream()
    for _ in range(count):
        drivers(stream) if raw else ours(stream)
    stream.sync()

def run(count):
    if threads == 1:
        return work(count)
    workers = [threading.Thread(target=work, args=(count // threads,)) for _ in range(threads)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()

run({warm})  # what is retired at most, and what the allocator and the driver keep for good
handles.reclaim()
host, memory = resident(), free()
run(loads)
retired = handles.retired().libraries
handles.reclaim()
print(resident() - host, memory - free(), retired)
"""


@pytest.mark.parametrize("threads", [1, 8])
def test_loads_leave_nothing(run_python: Callable[..., str], threads: int) -> None:
    """Beyond what the driver keeps, which the same calls without this library show."""

    def grown(*, raw: bool) -> tuple[int, int, int]:
        code = PROGRAM.format(image=empty("k"), threads=threads, loads=LOADS, raw=raw, warm=WARM)
        # Else glibc gives each thread a heap of its own, which keeps what was once in use.
        host, memory, retired = map(int, run_python(code, MALLOC_ARENA_MAX="1").split())
        return host, memory, retired

    host, memory, retired = grown(raw=False)
    host_alone, memory_alone, _ = grown(raw=True)
    assert host - host_alone < BOUND_MIB << 20
    assert memory - memory_alone < BOUND_MIB << 20
    assert 0 < retired <= 64 + threads
