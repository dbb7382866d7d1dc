"""The device's current pool, and memory from it."""

from cuda.core import Buffer, Device, DeviceMemoryResource, MemoryResource
from outcome import attempt, show

device = Device(0)
device.set_current()
stream = device.create_stream()
resource = DeviceMemoryResource(device)
buffer = resource.allocate(256, stream=stream)
show(
    class_=[isinstance(resource, MemoryResource), isinstance(buffer, Buffer)],
    device=[resource.device_id, buffer.device_id],
    where=[
        resource.is_device_accessible,
        resource.is_host_accessible,
        buffer.is_device_accessible,
        buffer.is_host_accessible,
    ],
    owned=resource.is_handle_owned,
    ipc=[resource.is_ipc_enabled, resource.is_mapped, resource.uuid],
    same=buffer.memory_resource is resource,
    handle=int(resource.handle) != 0,
    by_number=DeviceMemoryResource(0).handle == resource.handle,
    threshold=resource.attributes.release_threshold,
    true=bool(resource),
    size=buffer.size,
    empty=resource.allocate(0, stream=stream).size,
)
device.memory_resource = DeviceMemoryResource(device, {"max_size": 1 << 25})
mine = device.allocate(64, stream=stream)
show(mine=mine.memory_resource is device.memory_resource)
device.memory_resource = resource
with resource.allocate(64, stream=stream) as held:
    show(held=held.size)
show(
    left=held.is_closed,
    wrong=attempt(lambda: setattr(device, "memory_resource", 3)),
    equal=resource == DeviceMemoryResource(0),
)
raw = resource.allocate(64, stream=stream)
show(taken=int(raw.handle) > 0)
raw.close(stream)
stream.sync()
show(closed=raw.is_closed, handle_after=raw.handle)
