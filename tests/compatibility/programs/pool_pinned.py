"""Pinned host memory, from pools and without."""

import numpy as np
from cuda.core import (
    Device,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
for name, resource in (
    ("current", PinnedMemoryResource()),
    ("own", PinnedMemoryResource(PinnedMemoryResourceOptions())),
    ("sized", PinnedMemoryResource({"max_size": 1 << 25})),
    ("legacy", LegacyPinnedMemoryResource()),
):
    buffer = resource.allocate(64, stream=stream)
    stream.sync()
    np.from_dlpack(buffer)[:] = 3
    other = device.allocate(64, stream=stream)
    buffer.copy_to(other, stream=stream)
    back = resource.allocate(64, stream=stream)
    other.copy_to(back, stream=stream)
    stream.sync()
    show(
        **{
            name: [
                resource.is_device_accessible,
                resource.is_host_accessible,
                buffer.is_device_accessible,
                buffer.is_host_accessible,
                buffer.size,
                buffer.memory_resource is resource,
            ],
            f"{name}_content": int(np.from_dlpack(back).sum()),
            f"{name}_device_id": attempt(lambda resource=resource: resource.device_id),
        }
    )
    buffer.close(stream)
    stream.sync()
pool = PinnedMemoryResource(PinnedMemoryResourceOptions())
show(
    owned=[PinnedMemoryResource().is_handle_owned, pool.is_handle_owned],
    ipc=[pool.is_ipc_enabled, pool.is_mapped, pool.uuid],
    node=pool.numa_id,
    used=pool.attributes.used_mem_current,
    bad_node=attempt(lambda: PinnedMemoryResource(PinnedMemoryResourceOptions(numa_id=-3))),
    text_node=attempt(lambda: PinnedMemoryResource(PinnedMemoryResourceOptions(numa_id="0"))),
    no_options=attempt(lambda: PinnedMemoryResource(3)),
    legacy_negative=attempt(lambda: LegacyPinnedMemoryResource().allocate(-1, stream=stream)),
)
pool.close()
show(closed=attempt(lambda: pool.allocate(4, stream=stream)))
