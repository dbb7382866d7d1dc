"""Managed memory from pools."""

import numpy as np
from cuda.core import (
    Device,
    LaunchConfig,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    ObjectCode,
    launch,
)
from outcome import WORD, attempt, ptx, show

device = Device(0)
stream = device.create_stream()
word = ObjectCode.from_ptx(ptx(WORD)).get_kernel("word")
for name, options in (
    ("current", None),
    ("own", ManagedMemoryResourceOptions()),
    ("device", ManagedMemoryResourceOptions(preferred_location=0)),
    ("host", ManagedMemoryResourceOptions(preferred_location=-1)),
    (
        "device_typed",
        ManagedMemoryResourceOptions(preferred_location=0, preferred_location_type="device"),
    ),
    ("host_typed", ManagedMemoryResourceOptions(preferred_location_type="host")),
):
    resource = ManagedMemoryResource(options)
    buffer = resource.allocate(64, stream=stream)
    stream.sync()
    np.from_dlpack(buffer)[:4] = [1, 2, 3, 4]
    launch(stream, LaunchConfig(grid=1, block=1), word, buffer, np.uint32(0x04030201))
    location = resource.preferred_location
    show(
        **{
            name: [
                resource.is_device_accessible,
                resource.is_host_accessible,
                resource.is_managed,
                buffer.is_managed,
                resource.is_handle_owned,
            ],
            f"{name}_location": None if location is None else [str(location[0]), location[1]],
            f"{name}_ran": attempt(stream.sync),
        }
    )
show(
    unknown=attempt(
        lambda: ManagedMemoryResource(ManagedMemoryResourceOptions(preferred_location_type="moon"))
    ),
    host_number=attempt(
        lambda: ManagedMemoryResource(
            ManagedMemoryResourceOptions(preferred_location=1, preferred_location_type="host")
        )
    ),
    no_number=attempt(
        lambda: ManagedMemoryResource(
            ManagedMemoryResourceOptions(preferred_location_type="device")
        )
    ),
    text=attempt(
        lambda: ManagedMemoryResource(ManagedMemoryResourceOptions(preferred_location="0"))
    ),
    shared=[resource.is_ipc_enabled, resource.is_mapped, resource.uuid],
)
