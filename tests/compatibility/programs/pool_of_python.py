"""A resource of Python in the device's place."""

import gc

from cuda.core import Buffer, Device, MemoryResource
from outcome import show

said = []


class Counting(MemoryResource):
    """Counts what it gives and gets back."""

    def __init__(self, inner):
        """Count for another resource."""
        self.inner = inner
        self.held = {}

    def allocate(self, size, *, stream):
        """Memory of the inner resource."""
        buffer = self.inner.allocate(size, stream=stream)
        said.append(("allocate", size))
        self.held[int(buffer.handle)] = buffer
        return Buffer.from_handle(buffer.handle, size, self)

    def deallocate(self, ptr, size, *, stream):
        """Give it back."""
        said.append(("deallocate", size))
        self.held.pop(int(ptr)).close(stream)

    @property
    def is_device_accessible(self):
        """Of devices."""
        return True

    @property
    def is_host_accessible(self):
        """Not of the host."""
        return False

    @property
    def device_id(self):
        """The device's."""
        return self.inner.device_id


device = Device(0)
stream = device.create_stream()
inner = device.memory_resource
device.memory_resource = resource = Counting(inner)
buffer = device.allocate(128, stream=stream)
buffer.fill(1, stream=stream)
show(
    resource=buffer.memory_resource is resource,
    where=[buffer.is_device_accessible, buffer.is_host_accessible, buffer.device_id],
)
buffer.close(stream)
dropped = device.allocate(32, stream=stream)
del dropped
gc.collect()
device.memory_resource = inner
stream.sync()
show(said=said, held=len(resource.held))
