"""Launch configurations."""

from cuda.core import LaunchConfig
from outcome import show

config = LaunchConfig(grid=(2, 3), block=32, shmem_size=64)
show(
    grid=config.grid,
    block=config.block,
    cluster=config.cluster,
    shared=config.shmem_size,
    cooperative=config.is_cooperative,
    serialization=config.programmatic_stream_serialization,
    equal=LaunchConfig(grid=(2, 3, 1), block=(32,), shmem_size=64) == config,
    hashed=hash(LaunchConfig(grid=(2, 3), block=32, shmem_size=64)) == hash(config),
    different=LaunchConfig(grid=1, block=1) == config,
    none_shared=LaunchConfig(grid=1, block=1, shmem_size=None).shmem_size,
    empty=LaunchConfig(grid=(), block=()).grid,
    boolean=LaunchConfig(grid=True, block=1).grid,
    positional=LaunchConfig(4, None, 5).block,
)
