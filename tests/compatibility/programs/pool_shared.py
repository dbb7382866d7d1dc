"""Pools that can be shared with other processes, in the process that has them."""

import os
import pickle

from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
)
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True))
handle = resource.allocation_handle
buffer = resource.allocate(256, stream=stream)
stream.sync()
descriptor = buffer.ipc_descriptor
show(
    shared=[resource.is_ipc_enabled, resource.is_mapped, buffer.is_mapped],
    uuid=resource.uuid is not None,
    handle=os.fstat(int(handle)).st_size >= 0,
    handle_uuid=handle.uuid == resource.uuid,
    same=resource.allocation_handle is handle,
    size=descriptor.size,
    twin=pickle.loads(pickle.dumps(descriptor)).size,
    known=attempt(lambda: DeviceMemoryResource.from_registry(resource.uuid) is resource),
    registered=attempt(lambda: resource.register(resource.uuid) is resource),
    pickled=attempt(lambda: pickle.loads(pickle.dumps(resource)) is resource),
    handle_pickled=attempt(lambda: pickle.dumps(handle)),
    direct=attempt(type(handle)),
    descriptor_direct=attempt(type(descriptor)),
    not_shared=attempt(
        lambda: DeviceMemoryResource(device, DeviceMemoryResourceOptions()).allocation_handle
    ),
    buffer_not_shared=attempt(lambda: device.allocate(4, stream=stream).ipc_descriptor),
    event=attempt(lambda: device.create_event(EventOptions(ipc_enabled=True)).is_ipc_enabled),
)
