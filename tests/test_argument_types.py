"""How an argument is converted is remembered by type: of no consequence for the types."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from ptx import ONE, Stored, read

from cudamod import Stream


def an_integer(value: int) -> Any:
    return type("Integer", (), {"__index__": lambda self: value})()


def test_a_type_is_not_kept_alive(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    for value in range(1000):
        argument = an_integer(value)
        kind = weakref.ref(type(argument))
        launcher(out, argument)
        del argument
        gc.collect(0)
    gc.collect()
    assert kind() is None
    assert read(out, stream) == (999).to_bytes(4, "little")


def test_another_type_at_the_same_address(stored: Stored, stream: Stream) -> None:
    """Types come and go, alike in everything but their conversion."""
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    seen: set[int] = set()
    again = 0
    gc.collect()
    gc.disable()
    try:
        for round in range(300):
            names = {"__index__": lambda self: 7} if round % 2 else {"__float__": lambda self: 7.0}
            kind = type("Sometimes", (), names)
            argument: Any = kind()
            again += id(kind) in seen
            seen.add(id(kind))
            if round % 2:
                launcher(out, argument)
            else:
                with pytest.raises(TypeError, match="Sometimes"):
                    launcher(out, argument)
            gone = weakref.ref(kind)
            del argument, kind
            gc.collect(0)  # what is new: all objects would take a hundred times as long
            assert gone() is None
    finally:
        gc.enable()
    assert again > 100


def test_a_type_may_change(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)

    class Changing:
        pass

    value: Any = Changing()
    with pytest.raises(TypeError, match="Changing"):
        launcher(out, value)
    Changing.__index__ = lambda self: 5  # type: ignore[attr-defined]
    launcher(out, value)
    assert read(out, stream) == (5).to_bytes(4, "little")
    del Changing.__index__  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="Changing"):
        launcher(out, value)


def test_more_types_than_are_remembered(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    arguments = [an_integer(value) for value in range(1500)]
    for _ in range(2):
        for value, argument in enumerate(arguments):
            launcher(out, argument)
            if value % 100 == 0:
                assert read(out, stream) == value.to_bytes(4, "little")
