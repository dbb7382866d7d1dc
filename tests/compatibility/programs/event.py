"""Events: options, states, times."""

from cuda.core import Device, Event, EventOptions
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()
timed = EventOptions(timing_enabled=True)
start, end = stream.record(options=timed), stream.record(options=timed)
plain = stream.record()
end.sync()
show(
    elapsed=isinstance(end - start, float) and end - start >= 0,
    timed=[start.is_timing_enabled, plain.is_timing_enabled],
    blocking=device.create_event(EventOptions(blocking_sync=True)).is_blocking_sync,
    untimed=attempt(lambda: end - plain),
    unrecorded=attempt(lambda: end - device.create_event(timed)),
    number=attempt(lambda: end - 5),
    direct=attempt(Event),
    device=start.device == device,
)
start.close()
start.close()
show(
    closed=start.is_closed,
    closed_sync=attempt(start.sync),
    closed_minus=attempt(lambda: end - start),
)
