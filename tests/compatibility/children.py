"""What the programs run in processes of their own."""

from __future__ import annotations

from typing import Any

from outcome import attempt


def add(resource: Any, buffer: Any, event: Any, answers: Any) -> None:
    """Answer what arrived, and change the memory."""
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    stream.wait(event)
    buffer.fill(0x0B, stream=stream)
    stream.sync()
    answers.put(
        [
            resource.is_mapped,
            buffer.is_mapped,
            buffer.size,
            buffer.memory_resource is resource,
            event.is_done,
            event.is_ipc_enabled,
            event.is_timing_enabled,
            attempt(lambda: resource.allocate(4, stream=stream)),
            attempt(lambda: resource.allocation_handle),
        ]
    )
    buffer.close(stream)
    stream.sync()
