"""Streams of other libraries, by the protocol."""

from cuda.core import Device
from outcome import attempt, show

device = Device(0)
stream = device.create_stream()


class Foreign:
    """Another library's stream."""

    def __cuda_stream__(self):
        """Version and handle."""
        return (0, int(stream.handle))


class Malformed:
    """A stream that does not keep the protocol."""

    def __cuda_stream__(self):
        """No pair."""
        return 5


wrapped = device.create_stream(Foreign())
show(
    same=int(wrapped.handle) == int(stream.handle),
    number=attempt(lambda: device.create_stream(5)),
    text=attempt(lambda: device.create_stream("x")),
    malformed=attempt(lambda: device.create_stream(Malformed())),
)
