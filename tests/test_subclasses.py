"""A class's from_handle makes objects of the class that it is called on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ptx import ONE, empty, read

from cudamod import Buffer, Device, Kernel, ObjectCode, Stream, launch


class MyStream(Stream):
    def twice(self) -> None:
        self.sync()
        self.sync()


class MyBuffer(Buffer):
    @property
    def words(self) -> int:
        return self.size // 4


class MyKernel(Kernel):
    pass


def test_streams(device: Device, stream: Stream) -> None:
    mine = MyStream.from_handle(stream.handle)
    assert type(mine) is MyStream
    mine.twice()
    assert mine == stream
    assert type(Stream.from_handle(stream.handle)) is Stream
    launch(mine, ONE, ObjectCode.from_ptx(empty("k")).get_kernel("k"))
    mine.sync()


def test_buffers(device: Device, stream: Stream) -> None:
    buffer = device.allocate(8, stream=stream)
    mine = MyBuffer.from_handle(buffer.handle, buffer.size, owner=buffer)
    assert type(mine) is MyBuffer
    assert (mine.words, mine.owner is buffer) == (2, True)
    mine.fill(3, stream=stream)
    assert read(mine, stream) == bytes([3] * 8)
    assert type(Buffer.from_handle(buffer.handle, 8)) is Buffer


def test_kernels(device: Device, stream: Stream) -> None:
    kernel = ObjectCode.from_ptx(empty("k")).get_kernel("k")
    mine = MyKernel.from_handle(kernel.handle)
    assert type(mine) is MyKernel
    assert mine == kernel
    launch(stream, ONE, mine)
    stream.sync()


@pytest.mark.parametrize("kind", [Stream, Buffer, Kernel])
@pytest.mark.parametrize("wrong", [int, object, 5, None, Device], ids=repr)
def test_the_class_must_be_one(kind: Any, wrong: Any, device: Device) -> None:
    plain: Callable[..., object] = kind.__dict__["from_handle"].__func__
    with pytest.raises(TypeError):
        plain(wrong, 0, 0) if kind is Buffer else plain(wrong, 1)
