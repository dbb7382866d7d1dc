"""Options are values."""

from cuda.core import EventOptions, StreamOptions
from outcome import attempt, show

show(
    event=EventOptions(True) == EventOptions(timing_enabled=True),
    defaults=[EventOptions().timing_enabled, EventOptions().blocking_sync],
    stream=[StreamOptions().nonblocking, StreamOptions().priority],
    unknown=attempt(lambda: EventOptions(nothing=1)),
)
