"""Options of pools."""

from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    ManagedMemoryResourceOptions,
    PinnedMemoryResourceOptions,
)
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
options = DeviceMemoryResourceOptions(max_size=1 << 25)
resource = DeviceMemoryResource(device, options)
show(
    owned=resource.is_handle_owned,
    within=attempt(lambda: resource.allocate(1 << 20, stream=stream).size),
    beyond=attempt(lambda: resource.allocate(1 << 28, stream=stream).size),
    other=resource == DeviceMemoryResource(device, options),
    as_dict=DeviceMemoryResource(device, {"max_size": 1 << 25}).is_handle_owned,
    threshold=resource.attributes.release_threshold,
    defaults=[
        [getattr(DeviceMemoryResourceOptions(), name) for name in ("ipc_enabled", "max_size")],
        [
            getattr(PinnedMemoryResourceOptions(), name)
            for name in ("ipc_enabled", "max_size", "numa_id")
        ],
        [
            getattr(ManagedMemoryResourceOptions(), name)
            for name in ("preferred_location", "preferred_location_type")
        ],
    ],
    equal=options == DeviceMemoryResourceOptions(max_size=1 << 25),
    unknown=attempt(lambda: DeviceMemoryResourceOptions(nothing=1)),
    unknown_in_dict=attempt(lambda: DeviceMemoryResource(device, {"nothing": 1})),
    no_options=attempt(lambda: DeviceMemoryResource(device, 3)),
    no_device=attempt(lambda: DeviceMemoryResource(1000, options)),
    negative_device=attempt(lambda: DeviceMemoryResource(-1, options)),
    text_device=attempt(lambda: DeviceMemoryResource("0", options)),
    negative=attempt(lambda: DeviceMemoryResource(device, {"max_size": -1})),
)
