"""What may stand for a stream in a call: the protocol, and what does not follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cudamod
from cudamod import Buffer, Device, Stream


class AsMethod:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


class AsProperty(AsMethod):
    @property
    def __cuda_stream__(self) -> Any:
        return self.answer


SPEAKERS = [AsMethod, AsProperty]


def with_memory(device: Device, use: Callable[[Buffer], object]) -> None:
    """Memory that is there before any stream uses it, and until all have."""
    memory = device.allocate(8)
    device.sync()
    try:
        use(memory)
    finally:
        device.sync()


USES: dict[str, Callable[[Device, Any], object]] = {
    "create_stream": lambda device, stream: device.create_stream(stream),
    "allocate": lambda device, stream: device.allocate(8, stream=stream),
    "copy_to": lambda device, stream: with_memory(
        device, lambda memory: memory.copy_to(bytearray(8), stream=stream)
    ),
    "copy_from": lambda device, stream: with_memory(
        device, lambda memory: memory.copy_from(bytes(8), stream=stream)
    ),
    "fill": lambda device, stream: with_memory(
        device, lambda memory: memory.fill(0, stream=stream)
    ),
    "fill nothing": lambda device, stream: device.allocate(0).fill(0, stream=stream),
    "close": lambda device, stream: device.allocate(8).close(stream),
    "wait": lambda device, stream: device.create_stream().wait(stream),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("speaker", SPEAKERS)
def test_whoever_speaks_the_protocol_is_a_stream(
    device: Device, stream: Stream, speaker: type[AsMethod], use: str
) -> None:
    USES[use](device, speaker((0, stream.handle)))
    USES[use](device, stream)
    stream.sync()


@pytest.mark.parametrize("speaker", SPEAKERS)
@pytest.mark.parametrize("handle", [0, 1, 2])
def test_the_protocol_may_name_a_default_stream(
    device: Device, speaker: type[AsMethod], handle: int
) -> None:
    assert device.create_stream(speaker((0, handle))) == Stream.from_handle(handle)


def test_our_stream_speaks_the_protocol(device: Device, stream: Stream) -> None:
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert device.default_stream.__cuda_stream__() == (0, 1)
    assert device.create_stream(AsMethod(stream.__cuda_stream__())) == stream


@pytest.mark.parametrize("speaker", SPEAKERS)
@pytest.mark.parametrize(
    "answer",
    [
        None,
        0,
        (),
        (0,),
        (0, 1, 2),
        [0, 1],
        "01",
        (1, 1),
        (-1, 1),
        (0, -1),
        (0, 2**64),
        (0, None),
        (None, 1),
        (0, "1"),
        (0, 1.0),
        (0, True),
        (False, 1),
        (2**64, 1),
    ],
    ids=repr,
)
def test_an_answer_against_the_protocol_is_shown(
    device: Device, speaker: type[AsMethod], answer: Any
) -> None:
    with pytest.raises(RuntimeError, match=r"must answer \(0, handle\), not ") as caught:
        device.create_stream(speaker(answer))
    assert repr(answer) in str(caught.value)
    assert speaker.__name__ in str(caught.value)


@pytest.mark.parametrize("speaker", SPEAKERS)
@pytest.mark.parametrize("error", [ZeroDivisionError, RuntimeError, KeyboardInterrupt])
def test_an_error_inside_the_protocol_passes(
    device: Device, speaker: type[AsMethod], error: type[BaseException]
) -> None:
    class Failing(speaker):  # type: ignore[misc, valid-type]
        @property
        def answer(self) -> Any:
            raise error("no stream today")

        @answer.setter
        def answer(self, value: Any) -> None:
            pass

    with pytest.raises(error, match="no stream today"):
        device.create_stream(Failing(None))


@pytest.mark.emulated
def test_a_handle_of_no_stream_is_the_drivers_error(device: Device) -> None:
    with pytest.raises(cudamod.CUDAError, match="0xdead0"):
        device.create_stream(AsMethod((0, 0xDEAD0)))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", [0, 1, 2**63, "stream", b"", 1.0, object(), len], ids=repr)
def test_nothing_else_is_a_stream(device: Device, use: str, value: Any) -> None:
    with pytest.raises(
        TypeError, match="stream must be a Stream or an object with __cuda_stream__"
    ):
        USES[use](device, value)


@pytest.mark.parametrize("use", ["copy_to", "copy_from", "fill", "fill nothing", "wait"])
def test_none_is_no_stream(device: Device, use: str) -> None:
    with pytest.raises(TypeError, match="stream is required and must not be None"):
        USES[use](device, None)


def test_an_int_is_told_the_way(device: Device) -> None:
    with pytest.raises(TypeError, match=r"through Stream\.from_handle"):
        device.allocate(8, stream=0)


@pytest.mark.parametrize(
    ("module", "attribute"),
    [("torch.cuda", "cuda_stream"), ("cupy.cuda", "ptr"), ("numba.cuda", "handle")],
)
def test_streams_of_older_frameworks_are_known_by_their_module(
    device: Device, stream: Stream, module: str, attribute: str
) -> None:
    kind = type("Stream", (), {"__module__": module, attribute: stream.handle})
    assert device.create_stream(kind()) == stream
    kind = type("Stream", (), {"__module__": module, attribute: 0})
    assert device.create_stream(kind()) == device.default_stream
    for value in ("text", 1.5):
        kind = type("Stream", (), {"__module__": module, attribute: value})
        with pytest.raises(TypeError, match="__cuda_stream__"):
            device.create_stream(kind())
    for value in (-1, 2**64):
        kind = type("Stream", (), {"__module__": module, attribute: value})
        with pytest.raises(OverflowError, match=str(value)):
            device.create_stream(kind())
    with pytest.raises(TypeError, match="__cuda_stream__"):
        device.create_stream(type("Stream", (), {"__module__": module})())
