"""Memory: allocations, pools, copies, fills, what pointers are."""

from __future__ import annotations

import ctypes
import itertools
import random
import signal

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, run_script

INVALID_VALUE, OUT_OF_MEMORY = 1, 2
SIZE = ctypes.c_size_t


def test_alloc_and_free_codes(current: EmulatedDriver) -> None:
    out = Pointer()
    assert current.status("cuMemAlloc", ctypes.byref(out), SIZE(0)) == INVALID_VALUE
    assert current.status("cuMemAlloc", ctypes.byref(out), SIZE(1 << 50)) == OUT_OF_MEMORY
    memory = current.allocate(1000)
    assert memory.value
    assert memory.value % 512 == 0
    assert current.status("cuMemFree", Pointer(memory.value + 512)) == INVALID_VALUE
    current.call("cuMemFree", None)
    current.call("cuMemFree", memory)
    assert current.status("cuMemFree", memory) == INVALID_VALUE


def test_freed_addresses_come_back_late_and_memory_is_accounted(current: EmulatedDriver) -> None:
    free, total = SIZE(), SIZE()
    current.call("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    before = free.value
    seen = set()
    for _ in range(100):
        memory = current.allocate(1 << 20)
        seen.add(memory.value)
        current.call("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        assert free.value == before - (1 << 20)
        current.call("cuMemFree", memory)
    assert len(seen) == 100


def test_memory_runs_out_and_addresses_wrap(current: EmulatedDriver) -> None:
    script = """
driver.make_current()
kept = driver.allocate(1 << 20)
for _ in range(3000):
    driver.call("cuMemFree", driver.allocate(20 << 20))
held = [driver.allocate(1 << 20) for _ in range(31)]
assert driver.status("cuMemAlloc", ctypes.byref(Pointer()), ctypes.c_size_t(1)) == 2
assert len({memory.value for memory in held} | {kept.value}) == 32
"""
    done = run_script(
        current.path, script, CUDAMOD_EMULATOR_MEMORY="32M", CUDAMOD_EMULATOR_POISON="0"
    )
    assert done.returncode == 0, done.stderr


def test_memory_keeps_its_content(current: EmulatedDriver) -> None:
    choose = random.Random(7)
    held: list[tuple[Pointer, bytearray]] = []
    for _ in range(2000):
        if held and choose.random() < 0.45:
            memory, content = held.pop(choose.randrange(len(held)))
            assert current.download(memory, len(content)) == content
            current.call("cuMemFree", memory)
        elif held and choose.random() < 0.5:
            memory, content = choose.choice(held)
            start = choose.randrange(len(content))
            size = choose.randint(1, len(content) - start)
            content[start : start + size] = bytes([choose.randrange(256)]) * size
            place = Pointer((memory.value or 0) + start)
            current.call("cuMemsetD8", place, content[start], SIZE(size))
        else:
            content = bytearray(choose.randbytes(choose.choice((1, 7, 512, 4096, 100_000))))
            held.append((current.upload(bytes(content)), content))
    spans = sorted((memory.value or 0, len(content)) for memory, content in held)
    for (start, size), (following, _) in itertools.pairwise(spans):
        assert start + size < following
    for memory, _ in held:
        current.call("cuMemFree", memory)


def test_fresh_memory_is_poisoned(current: EmulatedDriver) -> None:
    memory = current.upload(bytes(64))
    current.call("cuMemFree", memory)
    assert current.download(current.allocate(64), 64) == b"\xff" * 64


def test_copies_and_fills(current: EmulatedDriver) -> None:
    data = bytes(range(256))
    memory, other = current.upload(data), current.allocate(256)
    current.call("cuMemcpyDtoD_v2", other, memory, SIZE(256))
    assert current.download(other, 256) == data
    current.call("cuMemsetD8", other, 7, SIZE(3))
    current.call("cuMemsetD32", Pointer(other.value + 8), 0x01020304, SIZE(2))
    assert current.download(other, 18) == (
        b"\7\7\7" + data[3:8] + b"\4\3\2\1\4\3\2\1" + data[16:18]
    )
    assert current.status("cuMemsetD32", Pointer(other.value + 2), 0, SIZE(1)) == INVALID_VALUE
    host = ctypes.create_string_buffer(256)
    current.call("cuMemcpyAsync", host, memory, SIZE(256), None)
    assert host.raw == data


def test_copies_outside_are_refused(current: EmulatedDriver) -> None:
    memory = current.upload(bytes(100))
    host = ctypes.create_string_buffer(200)
    for start, size in ((0, 101), (99, 2), (100, 1), (-1, 1)):
        source = Pointer(memory.value + start)
        assert current.status("cuMemcpyDtoH", host, source, SIZE(size)) == INVALID_VALUE
    current.call("cuMemFree", memory)
    assert current.status("cuMemcpyDtoH", host, memory, SIZE(1)) == INVALID_VALUE
    assert current.status("cuMemcpyHtoD", host, host, SIZE(1)) == INVALID_VALUE


def test_the_host_cannot_dereference_device_memory(driver: EmulatedDriver) -> None:
    script = "driver.make_current(); ctypes.string_at(driver.allocate(64).value, 1)"
    assert run_script(driver.path, script).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("managed", [False, True])
def test_pinned_and_managed_memory_is_the_hosts_as_well(
    current: EmulatedDriver, managed: bool
) -> None:
    if managed:
        memory = current.pointer("cuMemAllocManaged", SIZE(64), 1)
    else:
        memory = current.pointer("cuMemAllocHost", SIZE(64))
    current.call("cuMemsetD8", memory, 5, SIZE(64))
    assert ctypes.string_at(memory.value or 0, 64) == b"\5" * 64
    kind = ctypes.c_uint()
    current.call("cuPointerGetAttribute", ctypes.byref(kind), 2, memory)
    assert kind.value == (2 if managed else 1)
    current.call("cuMemFree" if managed else "cuMemFreeHost", memory)
    assert current.status("cuMemFree" if managed else "cuMemFreeHost", memory) == INVALID_VALUE


def test_registered_memory(current: EmulatedDriver) -> None:
    host = ctypes.create_string_buffer(100)
    current.call("cuMemHostRegister", host, SIZE(100), 0)
    assert current.status("cuMemHostRegister", host, SIZE(10), 0) == 712
    address = Pointer()
    current.call("cuMemHostGetDevicePointer", ctypes.byref(address), host, 0)
    current.call("cuMemsetD8", address, 9, SIZE(100))
    assert host.raw == b"\x09" * 100
    current.call("cuMemHostUnregister", host)
    assert current.status("cuMemHostUnregister", host) == 713
    assert current.status("cuMemsetD8", address, 9, SIZE(100)) == INVALID_VALUE


def test_pointer_attributes(current: EmulatedDriver) -> None:
    memory = current.allocate(1000)
    inside = Pointer(memory.value + 100)
    base, size = Pointer(), SIZE()
    current.call("cuMemGetAddressRange", ctypes.byref(base), ctypes.byref(size), inside)
    assert (base.value, size.value) == (memory.value, 1000)
    ordinal, kind, address = ctypes.c_int(-9), ctypes.c_uint(9), ctypes.c_uint64(9)
    names = (ctypes.c_int * 3)(9, 2, 3)
    values = (Pointer * 3)(*(ctypes.addressof(value) for value in (ordinal, kind, address)))
    current.call("cuPointerGetAttributes", 3, names, values, inside)
    assert (ordinal.value, kind.value, address.value) == (0, 2, inside.value)
    host = ctypes.create_string_buffer(10)
    current.call("cuPointerGetAttributes", 3, names, values, host)
    assert (ordinal.value, kind.value) == (-2, 0)
    out = ctypes.c_uint64()
    assert current.status("cuPointerGetAttribute", ctypes.byref(out), 2, host) == INVALID_VALUE
    assert current.status("cuPointerGetAttribute", ctypes.byref(out), 99, memory) == INVALID_VALUE


def pool_attribute(driver: EmulatedDriver, pool: Pointer, number: int) -> int:
    value = ctypes.c_uint64()
    driver.call("cuMemPoolGetAttribute", pool, number, ctypes.byref(value))
    return value.value


def test_pool_attributes(current: EmulatedDriver) -> None:
    pool = current.pointer("cuDeviceGetDefaultMemPool", 0)
    # What the library made of the same driver's pool in this process is not this test's concern.
    current.call("cuMemPoolSetAttribute", pool, 4, ctypes.byref(ctypes.c_uint64(0)))
    assert [pool_attribute(current, pool, number) for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    current.call("cuMemPoolSetAttribute", pool, 4, ctypes.byref(ctypes.c_uint64(1 << 40)))
    current.call("cuMemPoolSetAttribute", pool, 2, ctypes.byref(ctypes.c_int(0)))
    assert pool_attribute(current, pool, 4) == 1 << 40
    assert pool_attribute(current, pool, 2) == 0
    memory = current.pointer("cuMemAllocAsync", SIZE(1000), None)
    assert pool_attribute(current, pool, 7) == 1000
    assert pool_attribute(current, pool, 8) >= 1000
    assert pool_attribute(current, pool, 5) >= 1000
    current.call("cuMemFreeAsync", memory, None)
    current.call("cuStreamSynchronize", None)
    assert pool_attribute(current, pool, 7) == 0
    assert pool_attribute(current, pool, 5) > 0  # kept below the release threshold
    current.call("cuMemPoolTrimTo", pool, SIZE(0))
    assert pool_attribute(current, pool, 5) == 0
    zero, one = ctypes.c_uint64(0), ctypes.c_uint64(1)
    current.call("cuMemPoolSetAttribute", pool, 8, ctypes.byref(zero))
    assert pool_attribute(current, pool, 8) == 0
    assert current.status("cuMemPoolSetAttribute", pool, 8, ctypes.byref(one)) == INVALID_VALUE
    assert current.status("cuMemPoolSetAttribute", pool, 5, ctypes.byref(zero)) == INVALID_VALUE
    assert current.status("cuMemPoolDestroy", pool) == INVALID_VALUE
    current.call("cuMemPoolSetAttribute", pool, 4, ctypes.byref(zero))
    current.call("cuMemPoolSetAttribute", pool, 2, ctypes.byref(ctypes.c_int(1)))


def test_a_destroyed_pool_serves_what_came_from_it(current: EmulatedDriver) -> None:
    properties = (ctypes.c_int * 22)(1, 0, 1, 0)  # pinned, no handles, device 0
    pool = current.pointer("cuMemPoolCreate", properties)
    memory = current.pointer("cuMemAllocFromPoolAsync", SIZE(64), pool, None)
    current.call("cuMemPoolDestroy", pool)
    out = Pointer()
    status = current.status("cuMemAllocFromPoolAsync", ctypes.byref(out), SIZE(1), pool, None)
    assert status == INVALID_VALUE
    current.call("cuMemsetD8", memory, 1, SIZE(64))
    current.call("cuMemFreeAsync", memory, None)
    assert current.status("cuMemFreeAsync", memory, None) == INVALID_VALUE
