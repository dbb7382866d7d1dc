# What stubgen cannot see by itself (see nanobind's documentation of pattern files).

# Classes that are made by their own __new__.
cudamod._core.Device.__prefix__:
    \from typing import SupportsIndex
    def __new__(cls, device_id: Device | SupportsIndex | None = None) -> Device: ...

cudamod._core.LaunchConfig.__prefix__:
    \from typing import SupportsIndex
    \from typing_extensions import Self
    def __new__(
        cls,
        grid: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        cluster: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        block: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        shmem_size: SupportsIndex | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
    ) -> Self: ...
