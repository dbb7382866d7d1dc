"""The argument contract: tensors with DLPack's C exchange API."""

from __future__ import annotations

import ctypes

import pytest
from exchange import API, NAME, ExchangeAPI, FromObject, Tensor, capsule, exchangeable
from ptx import Stored

from cudamod import Buffer, Stream

POINTERS = [("u64", "ptr"), ("u64", None), ("b64", None), ("b64", "ptr")]


@pytest.fixture
def buffer(stream: Stream) -> Buffer:
    return stream.device.allocate(64, stream=stream)


def little(value: int) -> bytes:
    return value.to_bytes(8, "little")


def test_dlpack_exchange(stored: Stored, buffer: Buffer) -> None:
    for parameter, signature in POINTERS:
        for offset in (0, 16):
            value = exchangeable(buffer.handle, offset=offset)
            arrived = stored.one(parameter, value, signature=signature)
            assert arrived == little(buffer.handle + offset)
        empty = exchangeable(0)
        empty.shape = (0,)
        assert stored.one(parameter, empty, signature=signature) == bytes(8)


def test_dlpack_exchange_refuses(stored: Stored, buffer: Buffer) -> None:
    with pytest.raises(
        ValueError,
        match=r"'store', argument 2: Tensor object lies on device 5, but the launch is on device 0",
    ):
        stored.one("u64", exchangeable(buffer.handle, device=(2, 5)))
    with pytest.raises(TypeError, match="'store', argument 2: Tensor object lies in host memory"):
        stored.one("u64", exchangeable(0, device=(1, 0)))
    for shape in ((), (4,), (2, 3)):
        fake = exchangeable(0)
        fake.shape = shape
        with pytest.raises(
            TypeError, match="argument 2: Tensor object has elements, but no memory"
        ):
            stored.one("u64", fake)


def test_an_older_exchange_api_is_found_behind_a_newer_one(stored: Stored, buffer: Buffer) -> None:
    newer = ExchangeAPI(major=2, previous=ctypes.addressof(API))

    class Newer(Tensor):
        __dlpack_c_exchange_api__ = capsule(newer, NAME)

    assert stored.one("u64", exchangeable(buffer.handle, kind=Newer)) == little(buffer.handle)
    unknown = ExchangeAPI(major=2)

    class Unknown(Tensor):
        __dlpack_c_exchange_api__ = capsule(unknown, NAME)

    class WrongCapsule(Tensor):
        __dlpack_c_exchange_api__ = capsule(API, b"another")

    class NoCapsule(Tensor):
        __dlpack_c_exchange_api__ = 7

    for kind in (Unknown, WrongCapsule, NoCapsule):
        with pytest.raises(TypeError, match=f"argument 2 .* {kind.__name__} object"):
            stored.one("u64", exchangeable(buffer.handle, kind=kind))


def test_a_failure_without_an_error(stored: Stored) -> None:
    @FromObject
    def fail(tensor: object, out: object) -> int:
        return -1

    failing = ExchangeAPI(major=1, minor=3, dltensor_from_py_object_no_sync=fail)

    class Failing(Tensor):
        __dlpack_c_exchange_api__ = capsule(failing, NAME)

    with pytest.raises(TypeError, match="argument 2: DLPack can't describe Failing object"):
        stored.one("u64", exchangeable(4096, kind=Failing))
