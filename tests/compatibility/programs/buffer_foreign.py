"""Memory of others."""

from cuda.core import Buffer, Device
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
mine = device.allocate(64, stream=stream)
view = Buffer.from_handle(int(mine.handle), 64, owner=mine)
show(
    size=view.size,
    same=int(view.handle) == int(mine.handle),
    owner=view.owner is mine,
    device=view.device_id,
    dlpack=[int(part) for part in view.__dlpack_device__()],
    filled=attempt(lambda: view.fill(1, stream=stream)),
)
view.close()
show(closed=view.is_closed, other=mine.is_closed)
with device.allocate(8, stream=stream) as scoped:
    show(inside=scoped.is_closed)
show(outside=scoped.is_closed)
