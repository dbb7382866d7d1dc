"""Memory and events that another process gets."""

import multiprocessing

import children
import numpy as np
from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LaunchConfig,
    ObjectCode,
    launch,
)
from outcome import WORD, attempt, ptx, show

device = Device(0)
stream = device.create_stream()
resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True))
buffer = resource.allocate(256, stream=stream)
buffer.fill(b"\x05\0\0\0", stream=stream)
event = stream.record(options=EventOptions(ipc_enabled=True))
spawn = multiprocessing.get_context("spawn")
answers = spawn.Queue()
process = spawn.Process(target=children.add, args=(resource, buffer, event, answers))
process.start()
show(answer=answers.get(timeout=60))
process.join(60)
word = ObjectCode.from_ptx(ptx(WORD)).get_kernel("word")
launch(stream, LaunchConfig(grid=1, block=1), word, buffer, np.uint32(0x0B0B0B0B))
show(exit=process.exitcode, changed=attempt(stream.sync))
