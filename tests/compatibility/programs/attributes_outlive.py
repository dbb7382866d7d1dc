"""Views outlive kernel and code."""

import gc

from cuda.core import ObjectCode
from outcome import empty, ptx, show

kernel = ObjectCode.from_ptx(ptx(empty("k"))).get_kernel("k")
attributes, occupancy = kernel.attributes, kernel.occupancy
del kernel
gc.collect()
show(
    threads=attributes.max_threads_per_block,
    dynamic=attributes.max_dynamic_shared_size_bytes,
    blocks=occupancy.max_active_blocks_per_multiprocessor(1024, 0) > 0,
)
