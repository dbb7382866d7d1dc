# What stubgen cannot see by itself: the types written by hand, and the named tuples.
# The format is nanobind's (its documentation: "Pattern files").

^cudamod\._core\.__prefix__$:
    import os
    \from collections.abc import Callable, Mapping, Sequence
    \from typing import Any, Literal, NamedTuple, SupportsIndex, TypeVar
    \from typing_extensions import Self
    \from cudamod.launch_attributes import AccessPolicyWindow, LaunchCompletionEvent, ProgrammaticEvent

    _Pool = TypeVar("_Pool", bound="MemoryPool")
    _Plain = TypeVar("_Plain", bound="PlainMemory")

^cudamod\._core\.ComputeCapability$:
    class ComputeCapability(NamedTuple):
        major: int
        minor: int

^cudamod\._core\.MaxPotentialBlockSizeOccupancyResult$:
    class MaxPotentialBlockSizeOccupancyResult(NamedTuple):
        min_grid_size: int
        max_block_size: int

^cudamod\._core\.ImageInfo$:
    class ImageInfo(NamedTuple):
        kind: str
        arch: str | None
        kernels: tuple[str, ...] | None
        relocatable: bool
        compression: str | None
        member: str | None
        size: int

^cudamod\._core\.ParamInfo$:
    class ParamInfo(NamedTuple):
        offset: int
        size: int

^cudamod\._core\.Device\.__prefix__$:
    def __new__(cls, device_id: Device | SupportsIndex | None = None) -> Device: ...

^cudamod\._core\.LaunchConfig\.__prefix__$:
    def __new__(
        cls,
        grid: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        cluster: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        block: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        shmem_size: SupportsIndex | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
        *,
        preferred_cluster: SupportsIndex | tuple[SupportsIndex, ...] | None = None,
        cluster_scheduling_policy_preference: Literal["default", "spread", "load_balancing"]
        | SupportsIndex
        | None = None,
        programmatic_event: Event | ProgrammaticEvent | dict[str, Any] | None = None,
        launch_completion_event: Event | LaunchCompletionEvent | dict[str, Any] | None = None,
        priority: SupportsIndex | None = None,
        mem_sync_domain: Literal["default", "remote"] | SupportsIndex | None = None,
        mem_sync_domain_map: tuple[SupportsIndex, SupportsIndex] | None = None,
        access_policy_window: AccessPolicyWindow | dict[str, Any] | None = None,
        preferred_shared_memory_carveout: SupportsIndex | None = None,
        attributes: Mapping[int, bytes] | Sequence[tuple[SupportsIndex, bytes]] | None = None,
    ) -> LaunchConfig: ...

^cudamod\._core\.Launcher\.__repr__$:
    def __repr__(self) -> str: ...

^cudamod\._core\.Launcher\.__call__$:
    def __call__(
        self,
        *arguments: Any,
        stream: Any = ...,
        grid: SupportsIndex | tuple[SupportsIndex, ...] = ...,
        block: SupportsIndex | tuple[SupportsIndex, ...] = ...,
        shmem_size: SupportsIndex = ...,
    ) -> None: ...

^cudamod\._core\.Launcher\.on$:
    def on(self, stream: Any, /) -> Launcher:
        """The same launch on another stream."""

^cudamod\._core\.Launcher\.prepare$:
    def prepare(self, *arguments: Any) -> Prepared:
        """The launch with its arguments converted once, to be made again and again."""

^cudamod\._core\.Prepared\.__repr__$:
    def __repr__(self) -> str: ...

^cudamod\._core\.Prepared\.__reduce__$:
    def __reduce__(self) -> str: ...

^cudamod\._core\.Prepared\.__call__$:
    def __call__(self) -> None: ...

^cudamod\._core\.Prepared\.set_arg$:
    def set_arg(self, index: SupportsIndex, value: Any, /) -> None:
        """Changes one argument for later calls."""

^cudamod\._core\.Prepared\.kernel$:
    @property
    def kernel(self) -> Kernel: ...

^cudamod\._core\.Prepared\.config$:
    @property
    def config(self) -> LaunchConfig: ...

^cudamod\._core\.Prepared\.stream$:
    @property
    def stream(self) -> Any: ...

^cudamod\._core\.Prepared\.gil$:
    @property
    def gil(self) -> Literal["release", "auto", "hold"]: ...

^cudamod\._core\.Prepared\.arguments$:
    @property
    def arguments(self) -> tuple[Any, ...]: ...

^cudamod\._core\.LaunchSequence\.__prefix__$:
    def __new__(
        cls,
        launches: Sequence[Prepared],
        after: Mapping[int, Sequence[int]] | None = None,
        *,
        stream: Any = None,
        gil: Literal["release", "auto", "hold"] | None = None,
    ) -> LaunchSequence: ...

^cudamod\._core\.LaunchSequence\.__repr__$:
    def __repr__(self) -> str: ...

^cudamod\._core\.LaunchSequence\.__reduce__$:
    def __reduce__(self) -> str: ...

^cudamod\._core\.LaunchSequence\.__len__$:
    def __len__(self) -> int: ...

^cudamod\._core\.LaunchSequence\.__call__$:
    def __call__(self, *, stream: Any = ...) -> None: ...

^cudamod\._core\.LaunchSequence\.launches$:
    @property
    def launches(self) -> tuple[Prepared, ...]: ...

^cudamod\._core\.LaunchSequence\.mode$:
    @property
    def mode(self) -> Literal["graph", "launches"]: ...

^cudamod\._core\.LaunchSequence\.stream$:
    @property
    def stream(self) -> Any: ...

^cudamod\._core\.LaunchSequence\.gil$:
    @property
    def gil(self) -> Literal["release", "auto", "hold"]: ...

^cudamod\._core\.Launcher\.kernel$:
    @property
    def kernel(self) -> Kernel: ...

^cudamod\._core\.Launcher\.config$:
    @property
    def config(self) -> LaunchConfig: ...

^cudamod\._core\.Launcher\.stream$:
    @property
    def stream(self) -> Any: ...

^cudamod\._core\.Launcher\.metadata$:
    @property
    def metadata(self) -> Any: ...

^cudamod\._core\.Launcher\.gil$:
    @property
    def gil(self) -> Literal["release", "auto", "hold"]: ...

^cudamod\._core\.Kernel\.__getitem__$:
    def __getitem__(self, key: tuple[Any, ...], /) -> Launcher:
        """The launcher of kernel[grid, block, stream, shmem_size], remembered by its key."""

^cudamod\._core\.CURRENT$:
    CURRENT: CurrentStream

^cudamod\._core\.CurrentStream\.(__repr__|__reduce__)$:

^cudamod\._core\.Launcher\.signature$:
    @property
    def signature(self) -> str | None: ...

\.__vectorcalloffset__$:

^cudamod\._core\.launch$:
    def launch(stream: Any, config: LaunchConfig, kernel: Kernel, /, *arguments: Any) -> None:
        \doc

^cudamod\._core\.time_driver_call$:
    def time_driver_call(launcher: Launcher, launches: int, /, *arguments: Any) -> float:
        \doc

^cudamod\._core\.MemoryOwner\.__del__$:
