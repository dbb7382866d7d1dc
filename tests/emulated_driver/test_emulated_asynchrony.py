"""Streams are queues: order, events, depth, functions of the host, faults, copies, memory."""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, run_script

SIZE = ctypes.c_size_t
INVALID_VALUE, ILLEGAL_ADDRESS, NOT_READY, LAUNCH_TIMEOUT = 1, 700, 600, 702
NON_BLOCKING = 1

#: `gate` runs until the host writes to *flag, `put` stores a value, `add_to` adds one word to
#: another, `bad` writes to address 16.
KERNELS = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry gate(.param .u64 flag)
{
    .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [flag];
L:  ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra L;
    ret;
}
.visible .entry put(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry add_to(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    ld.global.u32 %r1, [%rd1];
    ld.global.u32 %r2, [%rd2];
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry bad()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 1;
    ret;
}
"""


class Kernels:
    """The kernels above, and a gate in pinned memory that holds up the streams it was put into."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver = driver
        self.library = driver.load(KERNELS)
        names = ("gate", "put", "add_to", "bad")
        self.kernels = {name: driver.kernel(self.library, name.encode()) for name in names}
        self.flag_memory = driver.pointer("cuMemAllocHost", SIZE(4))
        self.flag = ctypes.c_uint32.from_address(self.flag_memory.value or 0)
        self.flag.value = 0

    def close_gate(self, stream: Pointer | None) -> None:
        self.launch("gate", self.flag_memory, stream=stream)

    def open_gate(self) -> None:
        self.flag.value = 1

    def status(self, name: str, *arguments: Any, stream: Pointer | None = None) -> int:
        return self.driver.launch(self.kernels[name], list(arguments), stream=stream)

    def launch(self, name: str, *arguments: Any, stream: Pointer | None = None) -> None:
        assert self.status(name, *arguments, stream=stream) == 0

    def put(self, memory: Pointer, value: int, stream: Pointer | None = None) -> None:
        self.launch("put", memory, ctypes.c_uint32(value), stream=stream)

    def word(self, memory: Pointer) -> int:
        return int(struct.unpack("I", self.driver.download(memory, 4))[0])


@pytest.fixture
def kernels(current: EmulatedDriver) -> Iterator[Kernels]:
    opened = Kernels(current)
    yield opened
    opened.open_gate()


def stream_of(driver: EmulatedDriver, flags: int = 0) -> Pointer:
    return driver.pointer("cuStreamCreate", flags)


def zero(driver: EmulatedDriver) -> Pointer:
    return driver.upload(bytes(4))


def pinned(driver: EmulatedDriver, value: int) -> tuple[Pointer, ctypes.c_uint32]:
    memory = driver.pointer("cuMemAllocHost", SIZE(4))
    word = ctypes.c_uint32.from_address(memory.value or 0)
    word.value = value
    return memory, word


def test_launches_behind_an_endless_kernel_are_queued(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, memory = stream_of(current), zero(current)
    assert current.status("cuStreamQuery", stream) == 0
    kernels.close_gate(stream)
    for value in range(1, 50):
        kernels.put(memory, value, stream)
    assert current.status("cuStreamQuery", stream) == NOT_READY
    kernels.open_gate()
    current.call("cuStreamSynchronize", stream)
    assert current.status("cuStreamQuery", stream) == 0
    assert kernels.word(memory) == 49


def test_blocking_streams_and_the_legacy_stream_are_ordered(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    first, second, free = stream_of(current), stream_of(current), stream_of(current, NON_BLOCKING)
    memory, (seen, word), (outside, free_word) = (
        zero(current),
        pinned(current, 0),
        pinned(current, 0),
    )
    kernels.close_gate(first)
    kernels.put(memory, 1, None)  # after the gate
    kernels.launch("add_to", seen, memory, stream=second)  # after the legacy stream
    kernels.put(outside, 7, free)
    current.call("cuStreamSynchronize", free)
    assert free_word.value == 7
    assert [current.status("cuStreamQuery", stream) for stream in (None, second)] == [NOT_READY] * 2
    assert word.value == 0
    kernels.open_gate()
    current.call("cuStreamSynchronize", second)
    assert word.value == 1


def test_waiting_for_the_legacy_stream_waits_for_blocking_streams(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, (memory, word) = stream_of(current), pinned(current, 0)
    kernels.close_gate(stream)
    kernels.put(memory, 1, stream)
    opener = threading.Timer(0.05, kernels.open_gate)
    opener.start()
    current.call("cuStreamSynchronize", None)
    assert word.value == 1


@pytest.mark.parametrize("per_thread", [False, True])
def test_streams_run_side_by_side(
    current: EmulatedDriver, kernels: Kernels, per_thread: bool
) -> None:
    held = Pointer(2) if per_thread else stream_of(current)
    other, memory = stream_of(current), zero(current)
    kernels.close_gate(held)
    kernels.put(memory, 3, other)
    current.call("cuStreamSynchronize", other)
    assert current.status("cuStreamQuery", held) == NOT_READY


def test_an_event_orders_streams(current: EmulatedDriver, kernels: Kernels) -> None:
    first, second = stream_of(current, NON_BLOCKING), stream_of(current, NON_BLOCKING)
    event, memory, (seen, word) = (
        current.pointer("cuEventCreate", 0),
        zero(current),
        pinned(current, 0),
    )
    kernels.close_gate(first)
    kernels.put(memory, 5, first)
    current.call("cuEventRecord", event, first)
    current.call("cuStreamWaitEvent", second, event, 0)
    kernels.launch("add_to", seen, memory, stream=second)
    current.call("cuEventRecord", event, first)  # what was waited for is the earlier recording
    current.call("cuEventDestroy", event)
    assert current.status("cuStreamQuery", second) == NOT_READY
    assert word.value == 0
    kernels.open_gate()
    current.call("cuStreamSynchronize", second)
    assert word.value == 5


def test_event_times_are_when_the_stream_got_there(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, held = stream_of(current), ctypes.c_float(-1)
    start, end = current.pointer("cuEventCreate", 0), current.pointer("cuEventCreate", 0)
    current.call("cuEventRecord", start, stream)
    kernels.close_gate(stream)
    current.call("cuEventRecord", end, stream)
    assert current.status("cuEventQuery", start) == 0
    assert current.status("cuEventQuery", end) == NOT_READY
    assert current.status("cuEventElapsedTime", ctypes.byref(held), start, end) == NOT_READY
    time.sleep(0.05)
    kernels.open_gate()
    current.call("cuEventSynchronize", end)
    current.call("cuEventElapsedTime", ctypes.byref(held), start, end)
    assert 50 <= held.value < 10_000


def test_context_events(current: EmulatedDriver, kernels: Kernels) -> None:
    context = Pointer(current.get("cuCtxGetCurrent", Pointer))
    held, other = stream_of(current, NON_BLOCKING), stream_of(current, NON_BLOCKING)
    event, (memory, word) = current.pointer("cuEventCreate", 0), pinned(current, 0)
    kernels.close_gate(held)
    current.call("cuCtxRecordEvent", context, event)
    assert current.status("cuEventQuery", event) == NOT_READY
    current.call("cuCtxWaitEvent", context, event)
    kernels.put(memory, 1, other)
    assert current.status("cuStreamQuery", other) == NOT_READY
    assert word.value == 0
    kernels.open_gate()
    current.call("cuCtxSynchronize")
    assert word.value == 1


def test_functions_of_the_host_run_in_order_on_a_thread_of_the_driver(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, (memory, word) = stream_of(current), pinned(current, 0)
    seen: list[tuple[int | None, int, bool]] = []

    @ctypes.CFUNCTYPE(None, Pointer)
    def function(data: int | None) -> None:
        seen.append((data, word.value, threading.get_ident() == threading.main_thread().ident))

    for number in range(1, 6):
        kernels.put(memory, number, stream)
        current.call("cuLaunchHostFunc", stream, function, Pointer(number))
    current.call("cuStreamSynchronize", stream)
    assert seen == [(number, number, False) for number in range(1, 6)]


def test_a_function_of_the_host_holds_up_its_stream_only(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, other = stream_of(current, NON_BLOCKING), stream_of(current, NON_BLOCKING)
    (memory, word), leave = pinned(current, 0), threading.Event()

    @ctypes.CFUNCTYPE(None, Pointer)
    def function(_: int | None) -> None:
        assert leave.wait(20)

    current.call("cuLaunchHostFunc", stream, function, None)
    kernels.put(memory, 1, stream)
    done, _ = pinned(current, 0)
    kernels.put(done, 1, other)
    current.call("cuStreamSynchronize", other)
    assert current.status("cuStreamQuery", stream) == NOT_READY
    assert word.value == 0
    leave.set()
    current.call("cuStreamSynchronize", stream)
    assert word.value == 1


def test_the_queue_has_a_depth(driver: EmulatedDriver) -> None:
    script = """
import threading
from test_emulated_asynchrony import *
driver.make_current()
kernels, stream, memory = Kernels(driver), stream_of(driver), zero(driver)
context = Pointer(driver.get("cuCtxGetCurrent", Pointer))
kernels.close_gate(stream)
launched = []

def launch():
    driver.call("cuCtxSetCurrent", context)
    for value in range(1, 21):
        kernels.put(memory, value, stream)
        launched.append(value)

thread = threading.Thread(target=launch)
thread.start()
thread.join(0.3)
print(thread.is_alive(), len(launched), end=" ")
other = stream_of(driver)
kernels.put(memory, 99, other)  # another queue has room
driver.call("cuStreamSynchronize", other)
kernels.open_gate()
thread.join()
driver.call("cuStreamSynchronize", stream)
print(len(launched), kernels.word(memory))
"""
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_QUEUE_DEPTH="8")
    assert (done.stdout, done.stderr) == ("True 7 20 20\n", "")


def test_a_fault_arrives_when_it_happens(current: EmulatedDriver, kernels: Kernels) -> None:
    stream, (memory, word) = stream_of(current), pinned(current, 0)
    event, seen = current.pointer("cuEventCreate", 0), []

    @ctypes.CFUNCTYPE(None, Pointer, ctypes.c_int, Pointer)
    def callback(handle: int | None, status: int, _: int | None) -> None:
        seen.append((handle, status))

    @ctypes.CFUNCTYPE(None, Pointer)
    def function(_: int | None) -> None:
        seen.append((None, -1))

    kernels.close_gate(stream)
    kernels.launch("bad", stream=stream)
    kernels.put(memory, 1, stream)
    current.call("cuStreamAddCallback", stream, callback, None, 0)
    current.call("cuLaunchHostFunc", stream, function, None)
    current.call("cuEventRecord", event, stream)
    assert current.status("cuEventQuery", event) == NOT_READY
    kernels.open_gate()
    assert current.status("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS
    assert current.status("cuEventSynchronize", event) == ILLEGAL_ADDRESS
    assert current.status("cuMemAlloc", ctypes.byref(Pointer()), SIZE(4)) == ILLEGAL_ADDRESS
    assert kernels.status("put", memory, ctypes.c_uint32(1), stream=stream) == ILLEGAL_ADDRESS
    assert (word.value, seen) == (0, [(stream.value, ILLEGAL_ADDRESS)])


def test_a_fault_arrives_without_a_synchronisation(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream = stream_of(current)
    kernels.launch("bad", stream=stream)
    deadline = time.monotonic() + 20
    while (status := current.status("cuMemAlloc", ctypes.byref(Pointer()), SIZE(4))) == 0:
        assert time.monotonic() < deadline
    assert status == ILLEGAL_ADDRESS


def test_pageable_memory_is_read_at_the_call_and_pinned_memory_later(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream = stream_of(current)
    pageable, (page_locked, word) = ctypes.c_uint32(1), pinned(current, 1)
    first, second = zero(current), zero(current)
    kernels.close_gate(stream)
    current.call("cuMemcpyHtoDAsync_v2", first, ctypes.byref(pageable), SIZE(4), stream)
    current.call("cuMemcpyHtoDAsync_v2", second, page_locked, SIZE(4), stream)
    pageable.value = word.value = 2
    kernels.open_gate()
    current.call("cuStreamSynchronize", stream)
    assert (kernels.word(first), kernels.word(second)) == (1, 2)


def test_a_copy_to_pageable_memory_is_complete_when_it_returns(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, memory = stream_of(current), zero(current)
    pageable, (page_locked, word) = ctypes.c_uint32(0), pinned(current, 0)
    kernels.close_gate(stream)
    kernels.put(memory, 9, stream)
    current.call("cuMemcpyDtoHAsync_v2", page_locked, memory, SIZE(4), stream)
    assert word.value == 0
    opener = threading.Timer(0.05, kernels.open_gate)
    opener.start()
    current.call("cuMemcpyDtoHAsync_v2", ctypes.byref(pageable), memory, SIZE(4), stream)
    assert (pageable.value, word.value) == (9, 9)


def test_only_copies_between_device_memory_are_late_without_a_stream(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    source, target, (page_locked, word) = (
        current.upload(b"\1\0\0\0"),
        zero(current),
        pinned(current, 0),
    )
    kernels.close_gate(None)
    current.call("cuMemcpyDtoD_v2", target, source, SIZE(4))
    current.call("cuMemsetD8", source, 2, SIZE(4))
    assert current.status("cuStreamQuery", None) == NOT_READY
    opener = threading.Timer(0.05, kernels.open_gate)
    opener.start()
    current.call("cuMemcpyDtoH", page_locked, target, SIZE(4))
    assert (word.value, kernels.word(source)) == (1, 0x02020202)


def test_a_stream_is_destroyed_with_work_pending(current: EmulatedDriver, kernels: Kernels) -> None:
    stream, (memory, word) = stream_of(current), pinned(current, 0)
    kernels.close_gate(stream)
    kernels.put(memory, 4, stream)
    current.call("cuStreamDestroy", stream)
    assert word.value == 0
    opener = threading.Timer(0.05, kernels.open_gate)
    opener.start()
    current.call("cuCtxSynchronize")
    assert word.value == 4


@pytest.mark.parametrize("call", ["cuLibraryUnload", "cuMemFree", "cuMemFreeHost"])
def test_what_waits_for_the_device(current: EmulatedDriver, kernels: Kernels, call: str) -> None:
    stream, (memory, word) = stream_of(current), pinned(current, 0)
    argument = {
        "cuLibraryUnload": kernels.library,
        "cuMemFree": zero(current),
        "cuMemFreeHost": pinned(current, 0)[0],
    }[call]
    kernels.close_gate(stream)
    kernels.put(memory, 4, stream)
    opener = threading.Timer(0.05, kernels.open_gate)
    opener.start()
    current.call(call, argument)
    assert word.value == 4


def test_memory_is_freed_in_stream_order(current: EmulatedDriver, kernels: Kernels) -> None:
    stream = stream_of(current)
    memory = current.pointer("cuMemAllocAsync", SIZE(4), stream)
    kernels.close_gate(stream)
    kernels.put(memory, 1, stream)
    current.call("cuMemFreeAsync", memory, stream)
    for call in (("cuMemFreeAsync", memory, stream), ("cuMemFree", memory)):
        assert current.status(*call) == INVALID_VALUE
    kernels.open_gate()
    current.call("cuStreamSynchronize", stream)
    kernels.put(memory, 1, stream)
    assert current.status("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS


def test_memory_is_allocated_in_stream_order(current: EmulatedDriver, kernels: Kernels) -> None:
    stream, other = stream_of(current, NON_BLOCKING), stream_of(current, NON_BLOCKING)
    kernels.close_gate(stream)
    memory = current.pointer("cuMemAllocAsync", SIZE(4), stream)
    kernels.put(memory, 1, stream)
    kernels.put(memory, 1, other)  # nothing orders the two
    assert current.status("cuStreamSynchronize", other) == ILLEGAL_ADDRESS
    current.library.cudamodEmulatorReset()
    kernels.open_gate()
    current.call("cuMemFree", memory)


def test_a_late_copy_finds_that_its_memory_was_freed(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, other = stream_of(current, NON_BLOCKING), stream_of(current, NON_BLOCKING)
    memory, (page_locked, _) = zero(current), pinned(current, 0)
    kernels.close_gate(stream)
    current.call("cuMemcpyDtoHAsync_v2", page_locked, memory, SIZE(4), stream)
    current.call("cuMemFreeAsync", memory, other)
    current.call("cuStreamSynchronize", other)
    kernels.open_gate()
    assert current.status("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS


def test_allocation_waits_for_memory_that_is_to_be_freed(
    current: EmulatedDriver, kernels: Kernels
) -> None:
    stream, free = stream_of(current), SIZE()
    current.call("cuMemGetInfo", ctypes.byref(free), None)
    most = SIZE(free.value // 3 * 2)
    for _ in range(3):
        memory = current.pointer("cuMemAllocAsync", most, stream)
        kernels.put(memory, 1, stream)
        current.call("cuMemFreeAsync", memory, stream)
    current.call("cuStreamSynchronize", stream)


def test_small_allocations_leave_no_pages_behind(driver: EmulatedDriver) -> None:
    script = """
driver.make_current()
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssShmem", "RssAnon")))
def cycle(count):
    memory, size = Pointer(), ctypes.c_size_t(16)
    allocate, free = driver.function("cuMemAlloc"), driver.function("cuMemFree")
    for _ in range(count):
        assert allocate(ctypes.byref(memory), size) == 0 and free(memory) == 0
cycle(10_000)
before = resident()
cycle(60_000)
print(resident() - before)
"""
    done = run_script(driver.path, script)
    assert int(done.stdout) < 4 * 1024, done.stdout + done.stderr  # KiB


def test_eight_threads_with_eight_streams(current: EmulatedDriver, kernels: Kernels) -> None:
    context = Pointer(current.get("cuCtxGetCurrent", Pointer))
    one, errors = current.upload(struct.pack("I", 1)), []

    def work(number: int) -> None:
        try:
            current.call("cuCtxSetCurrent", context)
            streams = [stream_of(current, number % 2) for _ in range(8)]
            event, memory = current.pointer("cuEventCreate", 2), zero(current)
            for turn in range(25):
                for stream in streams:  # one chain through all streams
                    current.call("cuStreamWaitEvent", stream, event, 0)
                    kernels.launch("add_to", memory, one, stream=stream)
                    scratch = current.pointer("cuMemAllocAsync", SIZE(64), stream)
                    current.call("cuMemsetD8Async", scratch, 1, SIZE(64), stream)
                    current.call("cuMemFreeAsync", scratch, stream)
                    current.call("cuEventRecord", event, stream)
                if turn % 5 == 0:
                    current.call("cuEventSynchronize", event)
            current.call("cuStreamSynchronize", streams[-1])
            assert kernels.word(memory) == 200
            for stream in streams:
                current.call("cuStreamDestroy", stream)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    current.call("cuCtxSynchronize")


@pytest.mark.parametrize("threads", ["1", "4"])
def test_an_endless_kernel_ends_at_the_limit(driver: EmulatedDriver, threads: str) -> None:
    script = """
from test_emulated_asynchrony import *
driver.make_current()
kernels = Kernels(driver)
assert driver.launch(kernels.kernels["gate"], [kernels.flag_memory], grid=(8, 1, 1)) == 0
print(driver.status("cuCtxSynchronize"))
"""
    done = run_script(
        driver.path,
        script,
        CUDAMOD_EMULATOR_LAUNCH_SECONDS="1",
        CUDAMOD_EMULATOR_THREADS=threads,
    )
    assert (done.stdout, done.stderr) == (f"{LAUNCH_TIMEOUT}\n", "")
