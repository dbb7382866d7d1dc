"""Making, using and closing streams."""

from cuda.core import Device, Stream, StreamOptions
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
show(
    kind=type(stream).__name__,
    handle=int(stream.handle) > 0,
    nonblocking=stream.is_nonblocking,
    priority=stream.priority,
    device=stream.device == device,
    same=Stream.from_handle(int(stream.handle)) == stream,
    protocol=stream.__cuda_stream__()[0],
    blocking=device.create_stream(options=StreamOptions(nonblocking=False)).is_nonblocking,
    urgent=device.create_stream(options=StreamOptions(priority=-1)).priority,
    by_dict=device.create_stream(options={"priority": -1}).priority,
    too_urgent=attempt(lambda: device.create_stream(options=StreamOptions(priority=-1000))),
    direct=attempt(Stream),
    sync=attempt(stream.sync),
)
stream.close()
stream.close()
show(
    closed=stream.is_closed,
    closed_sync=attempt(stream.sync),
    closed_record=attempt(stream.record),
    closed_priority=attempt(lambda: Stream.from_handle(0).priority),
)
