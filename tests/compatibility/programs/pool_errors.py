"""Memory that is refused."""

from cuda.core import Device, DeviceMemoryResource, MemoryResource
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
resource = DeviceMemoryResource(device)
show(
    no_stream=attempt(lambda: resource.allocate(64)),
    stream_none=attempt(lambda: resource.allocate(64, stream=None)),
    stream_number=attempt(lambda: resource.allocate(64, stream=0)),
    text=attempt(lambda: resource.allocate("64", stream=stream)),
    float=attempt(lambda: resource.allocate(64.0, stream=stream)),
    huge=attempt(lambda: resource.allocate(1 << 50, stream=stream)),
    negative=attempt(lambda: resource.allocate(-1, stream=stream)),
    peers_text=attempt(lambda: setattr(resource, "peer_accessible_by", ["x"])),
    peers_beyond=attempt(lambda: setattr(resource, "peer_accessible_by", [1000])),
    not_shared=attempt(lambda: resource.allocation_handle),
    base=attempt(lambda: MemoryResource().allocate(4, stream=stream)),
)
