"""No launch gets a part of another's arguments: many threads, every output checked."""

from __future__ import annotations

import random
import struct
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from ptx import ONE, storing

import cudamod
from cudamod import Device, Kernel, ObjectCode, launch

THREADS, SLOTS = 8, 32
TYPES = ("u64", "u32", "bytes[24]", "f32", "u64", "u16", "f64", "u8")
PACKED = struct.Struct("<QI24sfQHdB")
STRIDE = 64


class Index:
    """An integer whose conversion lets other threads run, and launches the same launcher."""

    def __init__(self, value: int, again: Any = None) -> None:
        self.value, self.again = value, again

    def __index__(self) -> int:
        if self.again is not None:
            again, self.again = self.again, None
            again()
        time.sleep(0)
        return self.value


class Author:
    """One thread's launches: each writes its own arguments to a slot of its own."""

    def __init__(self, number: int, shared: list[Any], kernel: Kernel, device: Device) -> None:
        self.random = random.Random(number)
        self.number, self.count, self.kernel = number, 0, kernel
        self.stream = device.create_stream()
        self.out = device.allocate(SLOTS * STRIDE, stream=self.stream)
        self.stream.sync()
        self.launchers = [
            *shared,
            kernel.bind(ONE, self.stream, gil="release"),
            kernel.bind(ONE, self.stream, gil="auto"),
            lambda *values: launch(self.stream, ONE, kernel, *values),
            lambda *values: kernel[1, 1, self.stream](*values),
            lambda *values: shared[0](*values, stream=self.stream),
            lambda *values: shared[1](*values, grid=1, block=1),
        ]
        self.prepared = kernel.bind(ONE, self.stream).prepare(self.out.handle, *self.values()[0])
        self.shared_streams = [launcher.stream for launcher in shared]

    def values(self) -> tuple[list[Any], bytes]:
        """Arguments that no other launch has, and their bytes."""
        self.count += 1
        seed = self.number << 56 | self.count << 8
        numbers = [
            seed | 1,
            self.count * THREADS + self.number & 0xFFFFFFFF,
            struct.pack("<3Q", seed | 2, seed | 3, seed | 4),
            float(self.count % (1 << 20) * THREADS + self.number),
            seed | 5,
            (self.count * THREADS + self.number) & 0xFFFF,
            float(seed | 6),
            self.count & 0xFF,
        ]
        expected = PACKED.pack(*numbers)
        given: list[Any] = list(numbers)
        kind = self.random.randrange(4)
        if kind == 1:
            given[0], given[1], given[3] = (
                np.uint64(given[0]),
                np.uint32(given[1]),
                np.float32(given[3]),
            )
        elif kind == 2:
            given[1], given[4] = Index(given[1]), Index(given[4])
        elif kind == 3:
            given[2] = memoryview(bytearray(given[2]))
        return given, expected

    def one(self, slot: int) -> bytes:
        """Launch into a slot in some way, and answer what must lie there."""
        given, expected = self.values()
        address = self.out.handle + slot * STRIDE
        way = self.random.randrange(len(self.launchers) + 2)
        if way == len(self.launchers):
            for index, value in enumerate([address, *given]):
                self.prepared.set_arg(index, value)
            self.prepared()
        elif way > len(self.launchers):
            # While the last argument is converted, the same launcher launches something else.
            other, _ = self.values()
            launcher = self.random.choice(self.launchers)
            given[7] = Index(given[7], lambda: launcher(address, *other))
            launcher(address, *given)
        else:
            self.launchers[way](address, *given)
        return expected

    def run(self, end: float) -> int:
        """Launch until then; how many outputs were right."""
        checked = 0
        while time.monotonic() < end:
            expected = [self.one(slot) for slot in range(SLOTS)]
            for stream in (*self.shared_streams, self.stream):
                stream.sync()
            data = bytes(self.out.copy_to(bytearray(SLOTS * STRIDE), stream=self.stream))
            for slot, wanted in enumerate(expected):
                found = data[slot * STRIDE :][: PACKED.size]
                assert found == wanted, (self.number, slot, found.hex(), wanted.hex())
            checked += SLOTS
        return checked


@pytest.fixture
def _often() -> Iterator[None]:
    """Threads take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_often")
def test_torn_results_never(device: Device, request: pytest.FixtureRequest) -> None:
    """Shared and distinct launchers, every way to launch; a minute of it with --long."""
    seconds = 60 if request.config.getoption("--long") else 1.5
    signature = ("ptr", "u64", "u32", "bytes[24]", "f32", "u64", "u16", "f64", "u8")
    code = ObjectCode.from_ptx(storing(TYPES))
    kernel = code.get_kernel("store")
    shared = [
        kernel.bind(ONE, device.create_stream(), gil=gil, signature=given)
        for gil, given in (("release", None), ("auto", signature), ("hold", None))
    ]
    barrier = threading.Barrier(THREADS)

    def start(number: int) -> int:
        author = Author(number, shared, kernel, device)
        barrier.wait(60)
        return author.run(time.monotonic() + seconds)

    with ThreadPoolExecutor(THREADS) as pool:
        checked = list(pool.map(start, range(THREADS)))
    assert min(checked) >= SLOTS
    print(f"{sum(checked)} outputs checked on {cudamod.driver.describe()}")
