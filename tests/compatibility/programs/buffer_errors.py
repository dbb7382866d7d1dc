"""Memory: what is refused."""

from cuda.core import Buffer, Device
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
first, small = device.allocate(16, stream=stream), device.allocate(8, stream=stream)
show(
    sizes=attempt(lambda: first.copy_to(small, stream=stream)),
    no_stream=attempt(lambda: first.copy_to(small)),
    pattern=attempt(lambda: first.fill(b"abc", stream=stream)),
    byte=attempt(lambda: first.fill(256, stream=stream)),
    negative=attempt(lambda: first.fill(-1, stream=stream)),
    direct=attempt(Buffer),
    huge=attempt(lambda: device.allocate(1 << 50, stream=stream)),
    minus=attempt(lambda: device.allocate(-1, stream=stream)),
)
first.close()
first.close()
show(
    closed=first.is_closed,
    handle=int(first.handle),
    use=attempt(lambda: first.copy_to(small, stream=stream)),
    fill=attempt(lambda: first.fill(1, stream=stream)),
)
