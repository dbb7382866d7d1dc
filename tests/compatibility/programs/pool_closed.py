"""Pools that are closed, and what came from them."""

from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
buffer = resource.allocate(64, stream=stream)
show(open=resource.is_closed)
resource.close()
resource.close()
show(
    closed=resource.is_closed,
    handle=int(resource.handle),
    true=bool(resource),
    allocate=attempt(lambda: resource.allocate(64, stream=stream)),
    attributes=attempt(lambda: resource.attributes),
    buffer=buffer.size,
    fill=attempt(lambda: buffer.fill(1, stream=stream)),
    sync=attempt(stream.sync),
    owner=buffer.memory_resource is resource,
    device_id=attempt(lambda: resource.device_id),
    peers=attempt(lambda: resource.peer_accessible_by),
)
buffer.close(stream)
show(buffer_closed=attempt(lambda: buffer.fill(1, stream=stream)), ended=attempt(stream.sync))
