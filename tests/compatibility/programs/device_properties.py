"""Figures of a device."""

from cuda.core import Device
from outcome import attempt, show

properties = Device(0).properties
show(
    warp=properties.warp_size,
    threads=properties.max_threads_per_block,
    grid=[properties.max_grid_dim_x, properties.max_grid_dim_y, properties.max_grid_dim_z],
    shared=properties.max_shared_memory_per_block,
    multiprocessors=properties.multiprocessor_count > 0,
    major=properties.compute_capability_major == Device(0).compute_capability[0],
    unknown=attempt(lambda: properties.no_such_property),
)
