"""Values of launch attributes, for :class:`cudamod.LaunchConfig`."""

from __future__ import annotations

from cudamod.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, SupportsIndex

    from cudamod._core import Buffer, Event

__all__ = ["AccessPolicyWindow", "LaunchCompletionEvent", "ProgrammaticEvent"]


class ProgrammaticEvent(Options):
    """An event that is recorded when all blocks of the kernel have triggered it.

    Attributes:
        event: made without timing. A configuration that has it keeps it alive.
        flags: of ``cuEventRecordWithFlags``, but not ``CU_EVENT_RECORD_EXTERNAL``.
        trigger_at_block_start: each block triggers the event as it begins.
    """

    __slots__ = ("event", "flags", "trigger_at_block_start")

    event: Event
    flags: int
    trigger_at_block_start: bool

    def __new__(
        cls, event: Event, flags: int = 0, trigger_at_block_start: bool = False
    ) -> ProgrammaticEvent:
        return cls._make(event=event, flags=flags, trigger_at_block_start=trigger_at_block_start)


class LaunchCompletionEvent(Options):
    """An event that is recorded when all blocks of the kernel have begun.

    Attributes:
        event: made without timing. A configuration that has it keeps it alive.
        flags: of ``cuEventRecordWithFlags``, but not ``CU_EVENT_RECORD_EXTERNAL``.
    """

    __slots__ = ("event", "flags")

    event: Event
    flags: int

    def __new__(cls, event: Event, flags: int = 0) -> LaunchCompletionEvent:
        return cls._make(event=event, flags=flags)


class AccessPolicyWindow(Options):
    """How the L2 cache treats a range of memory.

    Attributes:
        base_ptr: a Buffer, or an address.
        num_bytes: the length of the range; None is the whole Buffer.
        hit_ratio: the share of the range, 0 to 1, that gets ``hit_prop``.
        hit_prop: ``"normal"``, ``"streaming"`` or ``"persisting"``.
        miss_prop: the rest of the range: ``"normal"`` or ``"streaming"``.
    """

    __slots__ = ("base_ptr", "num_bytes", "hit_ratio", "hit_prop", "miss_prop")  # noqa: RUF023

    base_ptr: Buffer | int
    num_bytes: int | None
    hit_ratio: float
    hit_prop: Literal["normal", "streaming", "persisting"]
    miss_prop: Literal["normal", "streaming"]

    def __new__(
        cls,
        base_ptr: Buffer | SupportsIndex,
        num_bytes: SupportsIndex | None = None,
        hit_ratio: float = 1.0,
        hit_prop: Literal["normal", "streaming", "persisting"] = "persisting",
        miss_prop: Literal["normal", "streaming"] = "streaming",
    ) -> AccessPolicyWindow:
        return cls._make(
            base_ptr=base_ptr,
            num_bytes=num_bytes,
            hit_ratio=hit_ratio,
            hit_prop=hit_prop,
            miss_prop=miss_prop,
        )
