"""The device's default stream."""

from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import attempt, empty, ptx, show

device = Device(0)
stream = device.default_stream
kernel = ObjectCode.from_ptx(ptx(empty("k"))).get_kernel("k")
launch(stream, LaunchConfig(grid=1, block=1), kernel)
show(
    sync=attempt(stream.sync),
    same=device.default_stream == stream,
    blocking=stream.is_nonblocking,
    allocate=device.allocate(16, stream=stream).size,
)
