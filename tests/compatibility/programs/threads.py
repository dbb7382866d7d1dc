"""One kernel from several threads."""

import threading

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import WORD, attempt, ptx, show

code = ObjectCode.from_ptx(ptx(WORD))
one = LaunchConfig(grid=1, block=1)
outcomes = []


def work(number):
    """Fill and check memory of its own."""
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    memory = device.allocate(4, stream=stream)
    memory.fill(number, stream=stream)
    launch(stream, one, code.get_kernel("word"), memory, np.uint32(number * 0x01010101))
    outcomes.append(attempt(stream.sync))


threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
show(outcomes=outcomes)
