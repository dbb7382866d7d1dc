"""Streams and events."""

from __future__ import annotations

import ctypes
import threading

from emulated_driver_api import EmulatedDriver, Pointer

INVALID_VALUE, INVALID_HANDLE, NOT_PERMITTED = 1, 400, 800


def test_stream_properties(current: EmulatedDriver) -> None:
    least, greatest = ctypes.c_int(), ctypes.c_int()
    current.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
    assert (least.value, greatest.value) == (0, -5)
    stream = current.pointer("cuStreamCreateWithPriority", 1, -9)
    flags, priority, number = ctypes.c_uint(), ctypes.c_int(), ctypes.c_ulonglong()
    current.call("cuStreamGetFlags", stream, ctypes.byref(flags))
    current.call("cuStreamGetPriority", stream, ctypes.byref(priority))
    assert (flags.value, priority.value) == (1, -5)
    numbers = set()
    for handle in (None, Pointer(1), Pointer(2), stream):
        current.call("cuStreamGetId", handle, ctypes.byref(number))
        numbers.add(number.value)
    assert len(numbers) == 3  # 0 and 1 are the same stream
    assert current.status("cuStreamCreate", ctypes.byref(Pointer()), 2) == INVALID_VALUE
    status = ctypes.c_int(-1)
    current.call("cuStreamIsCapturing", stream, ctypes.byref(status))
    assert status.value == 0
    current.call("cuStreamDestroy", stream)


def test_a_destroyed_stream_is_refused(current: EmulatedDriver) -> None:
    stream = current.pointer("cuStreamCreate", 0)
    current.call("cuStreamDestroy", stream)
    again = current.pointer("cuStreamCreate", 0)
    assert again.value != stream.value
    for name in ("cuStreamSynchronize", "cuStreamQuery", "cuStreamDestroy"):
        assert current.status(name, stream) == INVALID_HANDLE
    for bad in (None, Pointer(1), Pointer(2), Pointer(0x1234), Pointer(again.value + 8)):
        assert current.status("cuStreamDestroy", bad) == INVALID_HANDLE
    current.call("cuStreamDestroy", again)


def test_elapsed_time(current: EmulatedDriver) -> None:
    start, end, untimed = (current.pointer("cuEventCreate", flags) for flags in (0, 0, 2))
    time = ctypes.c_float(-1)
    assert current.status("cuEventElapsedTime", ctypes.byref(time), start, end) == INVALID_HANDLE
    for event in (start, end, untimed):
        current.call("cuEventRecord", event, None)
    current.call("cuEventElapsedTime", ctypes.byref(time), start, end)
    assert 0 <= time.value < 1000
    assert (
        current.status("cuEventElapsedTime", ctypes.byref(time), start, untimed) == INVALID_HANDLE
    )
    current.call("cuEventQuery", end)
    current.call("cuEventSynchronize", end)
    current.call("cuStreamWaitEvent", None, end, 0)
    current.call("cuEventDestroy", start)
    for name in ("cuEventDestroy", "cuEventQuery", "cuEventSynchronize"):
        assert current.status(name, start) == INVALID_HANDLE


def test_an_event_belongs_to_its_context(current: EmulatedDriver) -> None:
    event = current.pointer("cuEventCreate", 0)
    other = current.pointer("cuCtxCreate", 0, 0)
    assert current.status("cuEventRecord", event, None) == INVALID_HANDLE
    current.call("cuCtxDestroy", other)


def test_host_functions_may_not_call_the_driver(current: EmulatedDriver) -> None:
    seen: list[tuple[int | None, int]] = []

    @ctypes.CFUNCTYPE(None, Pointer)
    def function(data: int | None) -> None:
        seen.append((data, current.status("cuCtxSynchronize")))

    current.call("cuLaunchHostFunc", None, function, Pointer(42))
    current.call("cuCtxSynchronize")
    assert seen == [(42, NOT_PERMITTED)]


def test_others_may_enqueue_while_a_host_function_runs(current: EmulatedDriver) -> None:
    context = Pointer(current.get("cuCtxGetCurrent", Pointer))
    stream, memory = current.pointer("cuStreamCreate", 0), current.allocate(4)
    entered, enqueued, order = threading.Event(), threading.Event(), []

    @ctypes.CFUNCTYPE(None, Pointer)
    def function(_: int | None) -> None:
        entered.set()
        assert enqueued.wait(10)
        order.append("function")

    def enqueue() -> None:
        assert entered.wait(10)
        current.call("cuCtxSetCurrent", context)
        current.call("cuMemsetD8Async", memory, 1, ctypes.c_size_t(4), stream)
        assert current.status("cuStreamQuery", stream) == 600
        enqueued.set()
        current.call("cuStreamSynchronize", stream)
        order.append("synchronized")

    thread = threading.Thread(target=enqueue)
    thread.start()
    current.call("cuLaunchHostFunc", stream, function, None)
    thread.join()
    assert order == ["function", "synchronized"]


def test_capture_mode_is_exchanged(current: EmulatedDriver) -> None:
    mode = ctypes.c_int(2)
    current.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == 0
    current.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == 2
    mode.value = 3
    assert current.status("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == INVALID_VALUE


def test_user_objects_count_references(current: EmulatedDriver) -> None:
    seen: list[tuple[int | None, int]] = []

    @ctypes.CFUNCTYPE(None, Pointer)
    def destroy(data: int | None) -> None:
        seen.append((data, current.status("cuCtxSynchronize")))

    handle = current.pointer("cuUserObjectCreate", Pointer(7), destroy, 1, 1)
    current.call("cuUserObjectRetain", handle, 2)
    current.call("cuUserObjectRelease", handle, 2)
    assert current.status("cuUserObjectRelease", handle, 2) == INVALID_VALUE
    assert seen == []
    current.call("cuUserObjectRelease", handle, 1)
    assert seen == [(7, NOT_PERMITTED)]
    assert current.status("cuUserObjectRetain", handle, 1) == INVALID_VALUE
