"""The argument contract: objects that only have DLPack's methods."""

from __future__ import annotations

from typing import Any

import pytest
from ptx import Stored

from cudamod import Buffer, Stream


class Methods:
    """What a library without C exchange API offers, around a Buffer."""

    def __init__(self, buffer: Any, device: tuple[int, int] | None = None) -> None:
        self.buffer = buffer
        self.device = device
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.buffer.__dlpack_device__()

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append(keywords)
        return self.buffer.__dlpack__(**keywords)


class Versioned(Methods):
    def __dlpack__(self, **keywords: Any) -> Any:
        return self.buffer.__dlpack__(**keywords, max_version=(1, 0))


@pytest.fixture
def buffer(stream: Stream) -> Buffer:
    return stream.device.allocate(64, stream=stream)


@pytest.mark.parametrize("kind", [Methods, Versioned])
def test_its_address_arrives(stored: Stored, buffer: Buffer, kind: type[Methods]) -> None:
    value = kind(buffer)
    for signature in ("ptr", None):
        arrived = stored.one("u64", value, signature=signature)
        assert arrived == buffer.handle.to_bytes(8, "little")
    # Ordering is the caller's, as for every other argument.
    assert value.asked in ([{"stream": -1}] * 2, [])


def test_nothing_is_kept(stored: Stored, buffer: Buffer) -> None:
    import sys

    value = Methods(buffer)
    stored.one("u64", value)
    before = sys.getrefcount(value), sys.getrefcount(buffer)
    for _ in range(10):
        stored.one("u64", value)
    assert (sys.getrefcount(value), sys.getrefcount(buffer)) == before


def test_it_is_no_number(stored: Stored, buffer: Buffer) -> None:
    for parameter in ("u32", "f32"):
        with pytest.raises(TypeError, match="argument 2"):
            stored.one(parameter, Methods(buffer))


def test_host_memory_is_refused(stored: Stored) -> None:
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="argument 2: Methods object lies in host memory"):
        stored.one("u64", Methods(numpy.zeros(8)))


class Broken:
    def __init__(self, device: Any = (2, 0), capsule: Any = None) -> None:
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        if isinstance(self.device, type):
            raise self.device("mine")
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        if isinstance(self.capsule, type):
            raise self.capsule("mine")
        return self.capsule


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Broken(), TypeError, "argument 2: DLPack can't describe Broken object"),
        (Broken(capsule=5), TypeError, "DLPack can't describe"),
        (Broken(capsule=LookupError), LookupError, "mine"),
        (Broken(LookupError), LookupError, "mine"),
        (Broken(5), TypeError, "int"),
        (Broken(()), IndexError, "index"),
        (Broken(("cuda", 0)), TypeError, "str"),
        (Broken((2**80, 0)), OverflowError, "big|large"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_what_is_broken(stored: Stored, value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        stored.one("u64", value)


def test_a_taken_capsule_is_refused(stored: Stored, buffer: Buffer) -> None:
    numpy = pytest.importorskip("numpy")

    array = numpy.zeros(8)
    capsule = array.__dlpack__()

    class Once:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **keywords: Any) -> Any:
            return capsule

    with pytest.raises(TypeError, match="host memory"):
        stored.one("u64", Once())
    numpy.from_dlpack(Once())
    with pytest.raises(TypeError, match="DLPack can't describe Once object"):
        stored.one("u64", Once())
