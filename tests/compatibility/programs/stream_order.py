"""Streams and events wait for each other."""

from cuda.core import Device
from outcome import attempt, show

device = Device(0)
first, second = device.create_stream(), device.create_stream()
event = first.record()
second.wait(event)
second.wait(first)
last = second.record()
last.sync()
show(
    done=[event.is_done, last.is_done],
    again=first.record(event) is event,
    nothing=attempt(lambda: first.wait(None)),
    number=attempt(lambda: first.wait(5)),
)
