"""Virtual memory management: addresses, physical memory, and one mapped at the other."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, run_script
from test_emulated_asynchrony import Kernels

SIZE, FLAGS = ctypes.c_size_t, ctypes.c_ulonglong
MIB = 1 << 20
CHUNK = 2 * MIB
INVALID_VALUE, OUT_OF_MEMORY, NOT_SUPPORTED, ILLEGAL_ADDRESS = 1, 2, 801, 700
NONE, READ, READ_WRITE = 0, 1, 3


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("security", Pointer),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


PINNED = Properties(type=1, location=Location(1, 0))


class Virtual:
    """The functions with their out-parameters taken care of."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver = driver

    def reserve(self, size: int) -> int:
        name = "cuMemAddressReserve"
        return int(self.driver.get(name, FLAGS, SIZE(size), SIZE(0), FLAGS(0), FLAGS(0)))

    def create(self, size: int = CHUNK, properties: Properties = PINNED) -> int:
        made = self.driver.get("cuMemCreate", FLAGS, SIZE(size), ctypes.byref(properties), FLAGS(0))
        return int(made)

    def map(self, address: int, handle: int, size: int = CHUNK) -> None:
        self.driver.call("cuMemMap", FLAGS(address), SIZE(size), SIZE(0), FLAGS(handle), FLAGS(0))

    def allow(self, address: int, size: int = CHUNK, flags: int = READ_WRITE) -> None:
        access = Access(Location(1, 0), flags)
        call = "cuMemSetAccess", FLAGS(address), SIZE(size), ctypes.byref(access), SIZE(1)
        self.driver.call(*call)

    def unmap(self, address: int, size: int = CHUNK) -> None:
        self.driver.call("cuMemUnmap", FLAGS(address), SIZE(size))

    def release(self, handle: int) -> None:
        self.driver.call("cuMemRelease", FLAGS(handle))

    def free(self, address: int, size: int) -> None:
        self.driver.call("cuMemAddressFree", FLAGS(address), SIZE(size))

    def left(self) -> int:
        free, total = SIZE(), SIZE()
        self.driver.call("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value


@pytest.fixture
def virtual(current: EmulatedDriver) -> Iterator[Virtual]:
    opened = Virtual(current)
    before = opened.left()
    yield opened
    assert opened.left() == before


def test_granularity(virtual: Virtual) -> None:
    name = "cuMemGetAllocationGranularity"
    for option in (0, 1):
        assert virtual.driver.get(name, SIZE, ctypes.byref(PINNED), option) == CHUNK


def test_an_expandable_segment(current: EmulatedDriver, virtual: Virtual) -> None:
    """Memory grows in place: copies, fills and kernels cross what was mapped piece by piece."""
    size = 8 * CHUNK
    base = virtual.reserve(size)
    assert base % CHUNK == 0
    before, handles = virtual.left(), []
    for number in range(3):
        handle = virtual.create()
        virtual.map(base + number * CHUNK, handle)
        virtual.allow(base + number * CHUNK)
        virtual.release(handle)  # the mapping keeps it
        handles.append(handle)
        assert virtual.left() == before - (number + 1) * CHUNK
        current.call("cuMemsetD32", FLAGS(base), number, SIZE(CHUNK // 4))
    word = bytes(range(100)) * 2
    across = FLAGS(base + CHUNK - 100)
    current.call("cuMemcpyHtoD", across, word, SIZE(200))
    assert current.download(Pointer(across.value), 200) == word
    assert current.download(Pointer(base + 2 * CHUNK - 2), 4) == b"\xff" * 4  # fresh
    assert current.download(Pointer(base), 4) == b"\2\0\0\0"  # growing keeps what there is
    kernels = Kernels(current)
    kernels.put(Pointer(base + 3 * CHUNK - 4), 77)
    assert kernels.word(Pointer(base + 3 * CHUNK - 4)) == 77
    kernels.put(Pointer(base + 3 * CHUNK), 1)  # not there yet
    assert current.status("cuCtxSynchronize") == ILLEGAL_ADDRESS
    current.library.cudamodEmulatorReset()
    virtual.unmap(base + CHUNK)
    assert virtual.left() == before - 2 * CHUNK
    assert current.status("cuMemcpyDtoH", bytes(200), across, SIZE(200)) == INVALID_VALUE
    assert kernels.word(Pointer(base + 3 * CHUNK - 4)) == 77
    virtual.unmap(base)
    virtual.unmap(base + 2 * CHUNK)
    virtual.free(base, size)
    assert virtual.left() == before
    current.call("cuMemFreeHost", kernels.flag_memory)


def test_memory_at_two_addresses(current: EmulatedDriver, virtual: Virtual) -> None:
    base, handle = virtual.reserve(2 * CHUNK), virtual.create()
    for address in (base, base + CHUNK):
        virtual.map(address, handle)
    virtual.allow(base, 2 * CHUNK)
    current.call("cuMemcpyHtoD", FLAGS(base), b"same", SIZE(4))
    assert current.download(Pointer(base + CHUNK), 4) == b"same"
    virtual.unmap(base, 2 * CHUNK)
    virtual.map(base, handle)  # what it holds stays with it
    virtual.allow(base)
    assert current.download(Pointer(base), 4) == b"same"
    again = current.get("cuMemRetainAllocationHandle", FLAGS, FLAGS(base + 5))
    assert again == handle
    virtual.release(again)
    found = Properties()
    call = "cuMemGetAllocationPropertiesFromHandle", ctypes.byref(found), FLAGS(handle)
    current.call(*call)
    assert (found.type, found.location.type, found.location.id) == (1, 1, 0)
    virtual.unmap(base)
    virtual.release(handle)
    virtual.free(base, 2 * CHUNK)


def test_access(current: EmulatedDriver, virtual: Virtual) -> None:
    base, handle = virtual.reserve(CHUNK), virtual.create()
    kernels = Kernels(current)
    virtual.map(base, handle)
    flags = "cuMemGetAccess", FLAGS, ctypes.byref(Location(1, 0)), FLAGS(base + 1)
    assert current.get(*flags) == NONE
    assert current.status("cuMemcpyDtoH", bytes(4), FLAGS(base), SIZE(4)) == INVALID_VALUE
    virtual.allow(base, flags=READ)
    assert current.get(*flags) == READ
    kernels.launch("add_to", kernels.flag_memory, Pointer(base))
    current.call("cuCtxSynchronize")
    kernels.put(Pointer(base), 1)
    assert current.status("cuCtxSynchronize") == ILLEGAL_ADDRESS
    current.library.cudamodEmulatorReset()
    virtual.allow(base, flags=READ_WRITE)
    kernels.put(Pointer(base), 1)
    assert kernels.word(Pointer(base)) == 1
    virtual.allow(base, flags=NONE)
    assert current.status("cuMemcpyDtoH", bytes(4), FLAGS(base), SIZE(4)) == INVALID_VALUE
    virtual.unmap(base)
    virtual.free(base, CHUNK)
    virtual.release(handle)
    current.call("cuMemFreeHost", kernels.flag_memory)


def test_unmapping_under_a_kernel(current: EmulatedDriver, virtual: Virtual) -> None:
    """The card leaves that open; here the kernel goes on with the memory that it has."""
    base, handle = virtual.reserve(CHUNK), virtual.create()
    virtual.map(base, handle)
    virtual.allow(base)
    kernels = Kernels(current)
    current.call("cuMemsetD32", FLAGS(base), 0, SIZE(1))
    current.call("cuCtxSynchronize")
    kernels.close_gate(None)
    kernels.put(Pointer(base), 5)
    virtual.unmap(base)
    kernels.open_gate()
    assert current.status("cuCtxSynchronize") == ILLEGAL_ADDRESS
    current.library.cudamodEmulatorReset()
    virtual.free(base, CHUNK)
    virtual.release(handle)
    current.call("cuMemFreeHost", kernels.flag_memory)


def test_what_is_refused(current: EmulatedDriver, virtual: Virtual) -> None:
    base, handle = virtual.reserve(2 * CHUNK), virtual.create()
    out, byref, prop = FLAGS(), ctypes.byref, ctypes.byref(PINNED)
    on_host = ctypes.byref(Properties(type=1, location=Location(2, 0)))
    shared = ctypes.byref(Properties(type=1, handles=1, location=Location(1, 0)))
    zero, size = FLAGS(0), SIZE(CHUNK)
    write = byref(Access(Location(1, 0), READ_WRITE))
    virtual.map(base, handle)
    for call, *arguments, status in (
        ("cuMemCreate", byref(out), SIZE(CHUNK + 1), prop, zero, INVALID_VALUE),
        ("cuMemCreate", byref(out), SIZE(1 << 50), prop, zero, OUT_OF_MEMORY),
        ("cuMemCreate", byref(out), size, on_host, zero, NOT_SUPPORTED),
        ("cuMemCreate", byref(out), size, shared, zero, NOT_SUPPORTED),
        ("cuMemAddressReserve", byref(out), SIZE(5), SIZE(0), zero, zero, INVALID_VALUE),
        ("cuMemAddressReserve", byref(out), size, SIZE(3), zero, zero, INVALID_VALUE),
        ("cuMemMap", FLAGS(base), size, SIZE(0), FLAGS(handle), zero, INVALID_VALUE),
        ("cuMemMap", FLAGS(base + CHUNK + 1), size, SIZE(0), FLAGS(handle), zero, INVALID_VALUE),
        ("cuMemMap", FLAGS(base + 2 * CHUNK), size, SIZE(0), FLAGS(handle), zero, INVALID_VALUE),
        ("cuMemMap", FLAGS(base + CHUNK), size, SIZE(0), FLAGS(99), zero, INVALID_VALUE),
        ("cuMemUnmap", FLAGS(base + CHUNK), size, INVALID_VALUE),
        ("cuMemSetAccess", FLAGS(base), SIZE(2 * CHUNK), write, SIZE(1), INVALID_VALUE),
        ("cuMemAddressFree", FLAGS(base), SIZE(2 * CHUNK), INVALID_VALUE),
        ("cuMemAddressFree", FLAGS(base), size, INVALID_VALUE),
        ("cuMemRelease", FLAGS(0), INVALID_VALUE),
    ):
        assert current.status(call, *arguments) == status, (call, arguments)
    virtual.allow(base)
    assert current.status("cuMemFree", FLAGS(base)) == INVALID_VALUE
    assert current.status("cuMemFreeAsync", FLAGS(base), None) == INVALID_VALUE
    virtual.unmap(base)
    virtual.release(handle)
    assert current.status("cuMemRelease", FLAGS(handle)) == INVALID_VALUE
    virtual.free(base, 2 * CHUNK)


def test_leaks(current: EmulatedDriver) -> None:
    script = """
from test_emulated_virtual_memory import *
driver.make_current()
virtual = Virtual(driver)
base, handle = virtual.reserve(CHUNK), virtual.create()
virtual.map(base, handle)
virtual.allow(base)
"""
    done = run_script(current.path, script, CUDAMOD_EMULATOR_LEAKS="1")
    assert "1 device_memory" in done.stderr
    assert "1 physical_memory" in done.stderr
