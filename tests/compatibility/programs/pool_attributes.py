"""Attributes of pools."""

from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
from outcome import attempt, show

NAMES = [
    "reuse_follow_event_dependencies",
    "reuse_allow_opportunistic",
    "reuse_allow_internal_dependencies",
    "release_threshold",
    "reserved_mem_current",
    "reserved_mem_high",
    "used_mem_current",
    "used_mem_high",
]
device = Device(0)
stream = device.create_stream()
resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
attributes = resource.attributes
show(
    new=[getattr(attributes, name) for name in NAMES],
    classes=[type(getattr(attributes, name)).__name__ for name in NAMES],
    same=resource.attributes is attributes,
    text=sorted(part.split("=")[0] for part in repr(attributes).split("(")[1].split(", ")),
    direct=attempt(type(attributes)),
    used_is_read_only=attempt(lambda: setattr(attributes, "used_mem_current", 0)),
)
buffer = resource.allocate(1 << 20, stream=stream)
stream.sync()
show(
    used=attributes.used_mem_current,
    high=attributes.used_mem_high,
    reserved=attributes.reserved_mem_current >= 1 << 20,
    settable=attempt(lambda: setattr(attributes, "release_threshold", 5)),
)
buffer.close(stream)
stream.sync()
show(freed=attributes.used_mem_current, still_high=attributes.used_mem_high)
resource.close()
show(
    outlives=attributes.used_mem_high,
    after_close=attempt(lambda closed=resource: closed.attributes),
)
del resource
show(outlives_object=attributes.used_mem_high)
