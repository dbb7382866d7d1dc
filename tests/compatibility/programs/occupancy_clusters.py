"""Occupancy of clusters."""

from cuda.core import Device, LaunchConfig, ObjectCode
from outcome import attempt, empty, ptx, show

device = Device(0)
stream = device.create_stream()
kernel = ObjectCode.from_ptx(ptx(empty("k"))).get_kernel("k")
if device.compute_capability >= (9, 0):
    config = LaunchConfig(grid=8, cluster=2, block=128)
    show(
        size=kernel.occupancy.max_potential_cluster_size(config, stream=stream),
        active=kernel.occupancy.max_active_clusters(config, stream=stream) > 0,
        no_stream=attempt(lambda: kernel.occupancy.max_active_clusters(config)),
        none=attempt(lambda: kernel.occupancy.max_active_clusters(config, stream=None)),
    )
