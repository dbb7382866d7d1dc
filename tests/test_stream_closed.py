"""A closed stream refuses every use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cudamod import Buffer, Device, Stream

MAKERS = [
    pytest.param(Device.create_stream, id="own"),
    pytest.param(lambda device: device.default_stream, id="default"),
]


@dataclass
class Scene:
    """What a closed stream is used with."""

    closed: Stream
    device: Device
    open: Stream
    buffer: Buffer
    empty: Buffer


CLOSED_USES: dict[str, Callable[[Scene], object]] = {
    "sync": lambda s: s.closed.sync(),
    "record": lambda s: s.closed.record(),
    "record an event": lambda s: s.closed.record(s.device.create_event()),
    "record with bad options": lambda s: s.closed.record(options=5),
    "wait for an event": lambda s: s.closed.wait(s.open.record()),
    "wait for a stream": lambda s: s.closed.wait(s.open),
    "be waited for": lambda s: s.open.wait(s.closed),
    "priority": lambda s: s.closed.priority,
    "is_nonblocking": lambda s: s.closed.is_nonblocking,
    "device": lambda s: s.closed.device,
    "context": lambda s: s.closed.context,
    "protocol": lambda s: s.closed.__cuda_stream__(),
    "create_stream": lambda s: s.device.create_stream(s.closed),
    "allocate": lambda s: s.device.allocate(8, stream=s.closed),
    "allocate nothing": lambda s: s.device.allocate(0, stream=s.closed),
    "copy to": lambda s: s.buffer.copy_to(bytearray(8), stream=s.closed),
    "copy to a new buffer": lambda s: s.buffer.copy_to(stream=s.closed),
    "copy from": lambda s: s.buffer.copy_from(bytes(8), stream=s.closed),
    "copy between": lambda s: s.buffer.copy_from(s.buffer, stream=s.closed),
    "fill": lambda s: s.buffer.fill(0, stream=s.closed),
    "copy nothing to": lambda s: s.empty.copy_to(bytearray(0), stream=s.closed),
    "copy nothing from": lambda s: s.empty.copy_from(b"", stream=s.closed),
    "copy nothing between": lambda s: s.empty.copy_from(s.empty, stream=s.closed),
    "fill nothing": lambda s: s.empty.fill(0, stream=s.closed),
    "close": lambda s: s.buffer.close(s.closed),
    "close nothing": lambda s: s.empty.close(s.closed),
}


@pytest.mark.parametrize("use", CLOSED_USES)
@pytest.mark.parametrize("make", MAKERS)
def test_a_closed_stream_refuses_every_use(
    device: Device, stream: Stream, make: Callable[[Device], Stream], use: str
) -> None:
    closed = make(device)
    buffer, empty = device.allocate(8, stream=stream), device.allocate(0, stream=stream)
    scene = Scene(closed, device, stream, buffer, empty)
    closed.close()
    with pytest.raises(RuntimeError, match=r"^Stream has been closed$"):
        CLOSED_USES[use](scene)


def test_what_a_closed_stream_still_tells(device: Device) -> None:
    stream = device.create_stream()
    stream.close()
    stream.close()
    assert stream.is_closed
    assert stream.handle == 0
    assert repr(stream) == "<Stream closed>"
