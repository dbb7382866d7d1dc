"""Memory: allocating, filling, copying."""

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import WORD, attempt, ptx, show

device = Device(0)
stream = device.create_stream()
word = ObjectCode.from_ptx(ptx(WORD)).get_kernel("word")
one = LaunchConfig(grid=1, block=1)
first, second = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
first.fill(b"\x01\x02\x03\x04", stream=stream)
launch(stream, one, word, first, np.uint32(0x04030201))
show(same=first.copy_to(second, stream=stream) is second)
launch(stream, one, word, second, np.uint32(0x04030201))
second.fill(7, stream=stream)
first.copy_from(second, stream=stream)
launch(stream, one, word, first, np.uint32(0x07070707))
new = first.copy_to(stream=stream)
launch(stream, one, word, new, np.uint32(0x07070707))
show(
    sync=attempt(stream.sync),
    size=first.size,
    handle=int(first.handle) > 0,
    device=first.device_id,
    where=[first.is_device_accessible, first.is_host_accessible],
    new=new.size,
)
