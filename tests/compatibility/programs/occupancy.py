"""Occupancy of a kernel."""

from cuda.core import Device, ObjectCode
from outcome import DATA, attempt, show

device = Device(0)
if device.arch == "90":
    code = ObjectCode.from_cubin(str(DATA / "h200" / "matmul_tiled.sm90.cubin"))
    occupancy = code.get_kernel("matmul_tiled").occupancy
    potential = occupancy.max_potential_block_size(0, 0)
    show(
        blocks=[
            occupancy.max_active_blocks_per_multiprocessor(size, shared)
            for size in (32, 256, 1024)
            for shared in (0, 16384)
        ],
        keywords=occupancy.max_active_blocks_per_multiprocessor(
            block_size=64, dynamic_shared_memory_size=0
        ),
        potential=[potential.min_grid_size, potential.max_block_size],
        limited=occupancy.max_potential_block_size(0, 128).max_block_size,
        available=occupancy.available_dynamic_shared_memory_per_block(8, 128),
    )
    show(
        text=attempt(lambda: occupancy.max_active_blocks_per_multiprocessor("1", 0)),
        negative=attempt(lambda: occupancy.max_active_blocks_per_multiprocessor(32, -1)),
        huge=attempt(lambda: occupancy.max_active_blocks_per_multiprocessor(2**40, 0)),
        direct=attempt(type(occupancy)),
        dots=attempt(lambda: occupancy.max_potential_block_size(..., 0)),
    )
