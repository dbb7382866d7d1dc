"""A Buffer as a DLPack capsule: what is in it, who frees it and when."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from cudamod import Buffer, Device, Stream, driver, emulator


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    name, used = b"dltensor", b"used_dltensor"  # a capsule keeps the pointer to its name
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


class Versioned(ctypes.Structure):
    name, used = b"dltensor_versioned", b"used_dltensor_versioned"
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


PROTOCOLS = [
    pytest.param((None, Managed), id="unversioned"),
    pytest.param(((0, 8), Managed), id="0.8"),
    pytest.param(((1, 0), Versioned), id="1.0"),
    pytest.param(((1, 3), Versioned), id="1.3"),
    pytest.param(([2, 0], Versioned), id="2.0"),
]
Protocol = tuple[Any, type[Any]]

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def look(capsule: object, kind: type[Any]) -> Any:
    return kind.from_address(_get_pointer(capsule, kind.name))


def consume(capsule: object, kind: type[Any]) -> Any:
    """What a consumer does: take the tensor over, so that the capsule no longer frees it."""
    managed = look(capsule, kind)
    _set_name(capsule, kind.used)
    return managed


def delete(managed: Any) -> None:
    managed.deleter(ctypes.addressof(managed))


class Owner:
    """Whatever keeps memory alive."""

    def __init__(self, memory: Buffer) -> None:
        self.memory = memory


@pytest.fixture
def owned(device: Device) -> tuple[Buffer, weakref.ref[Owner]]:
    """A buffer and a reference to its owner, which lives as long as anybody holds the memory."""
    memory = device.allocate(64)
    owner = Owner(memory)
    return Buffer.from_handle(memory.handle, 64, owner=owner), weakref.ref(owner)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tensor_is_the_bytes(device: Device, stream: Stream, protocol: Protocol) -> None:
    max_version, kind = protocol
    buffer = device.allocate(64, stream=stream)
    capsule = buffer.__dlpack__(max_version=max_version)
    managed = look(capsule, kind)
    tensor = managed.tensor
    assert tensor.data == buffer.handle
    assert (tensor.device_type, tensor.device_id) == buffer.__dlpack_device__() == (2, 0)
    assert (tensor.code, tensor.bits, tensor.lanes) == (1, 8, 1)
    assert (tensor.ndim, tensor.shape[0], tensor.strides[0]) == (1, 64, 1)
    assert tensor.byte_offset == 0
    if kind is Versioned:
        assert (managed.major, managed.flags) == (1, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_capsule_that_nobody_consumes_frees_its_tensor(
    owned: tuple[Buffer, weakref.ref[Owner]], protocol: Protocol
) -> None:
    buffer, owner = owned[0], owned[1]
    capsule = buffer.__dlpack__(max_version=protocol[0])
    buffer.close()
    assert owner() is not None
    del capsule
    assert owner() is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_consumed_tensor_lives_until_its_deleter_runs(
    owned: tuple[Buffer, weakref.ref[Owner]], protocol: Protocol
) -> None:
    buffer, owner = owned[0], owned[1]
    capsule = buffer.__dlpack__(max_version=protocol[0])
    managed = consume(capsule, protocol[1])
    buffer.close()
    del capsule
    gc.collect()
    assert owner() is not None
    delete(managed)
    assert owner() is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_deleter_may_run_in_another_thread(
    owned: tuple[Buffer, weakref.ref[Owner]], protocol: Protocol
) -> None:
    buffer, owner = owned[0], owned[1]
    managed = consume(buffer.__dlpack__(max_version=protocol[0]), protocol[1])
    buffer.close()
    thread = threading.Thread(target=delete, args=(managed,))
    thread.start()
    thread.join()
    assert owner() is None


@pytest.mark.emulated
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_memory_outlives_the_closing_of_its_buffer(
    device: Device, stream: Stream, protocol: Protocol
) -> None:
    buffer = device.allocate(64, stream=stream)
    address = buffer.handle
    managed = consume(buffer.__dlpack__(max_version=protocol[0]), protocol[1])
    emulator.start_recording()
    buffer.close()
    assert "cuMemFreeAsync" not in [call.name for call in emulator.journal()]
    consumer = Buffer.from_handle(address, 64)
    consumer.fill(3, stream=stream)
    assert consumer.copy_to(bytearray(64), stream=stream) == b"\3" * 64
    delete(managed)
    emulator.stop_recording()
    assert "cuMemFreeAsync" in [call.name for call in emulator.journal()]


@pytest.mark.parametrize("value", [None, -1, 1, 2, np.int64(1)])
def test_the_consumers_stream_waits_for_the_producers(
    device: Device, stream: Stream, value: Any
) -> None:
    buffer = device.allocate(64, stream=stream)
    driver.cuCtxSetCurrent(None)
    assert look(buffer.__dlpack__(stream=value), Managed).tensor.data == buffer.handle


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("choice", "waits"), [("none", True), ("no", False), ("same", False), ("other", True)]
)
def test_the_wait_is_there_when_it_is_needed(
    device: Device, stream: Stream, choice: str, waits: bool
) -> None:
    other = device.create_stream()
    value = {"none": None, "no": -1, "same": stream.handle, "other": other.handle}[choice]
    buffer = device.allocate(64, stream=stream)
    with emulator.recording():
        buffer.__dlpack__(stream=value)
    names = [call.name for call in emulator.journal()]
    assert ("cuStreamWaitEvent" in names) is waits
    assert names.count("cuEventCreate") == names.count("cuEventDestroy")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-2, OverflowError),
        (2**64, OverflowError),
        ("1", TypeError),
        (1.5, TypeError),
        (True, TypeError),
    ],
    ids=repr,
)
def test_a_wrong_stream_is_refused_by_every_buffer(
    device: Device, value: Any, error: type[Exception]
) -> None:
    ours = device.allocate(64)
    for buffer in (ours, device.allocate(0), Buffer.from_handle(ours.handle, 64)):
        with pytest.raises(error, match="__dlpack__: stream"):
            buffer.__dlpack__(stream=value)


@pytest.mark.parametrize("version", [1, "1", (), ("1", "0"), (None, 0), (1.0, 0)], ids=repr)
def test_a_version_is_two_integers(device: Device, version: Any) -> None:
    with pytest.raises((TypeError, IndexError)):
        device.allocate(8).__dlpack__(max_version=version)


def test_the_buffer_stays_where_it_is(device: Device) -> None:
    buffer = device.allocate(8)
    assert buffer.__dlpack__(dl_device=(2, 0), copy=False) is not None
    for elsewhere in ((1, 0), (2, 1), (3, 0), (2,), 2, "cuda"):
        with pytest.raises(BufferError, match="another device"):
            buffer.__dlpack__(dl_device=elsewhere)  # type: ignore[arg-type]
    for wanted in (True, 1):
        with pytest.raises(BufferError, match="copy=True"):
            buffer.__dlpack__(copy=wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["pinned", "managed"])
def test_numpy_reads_what_the_host_can_reach(device: Device, stream: Stream, kind: str) -> None:
    if kind == "pinned":
        pointer = driver.cuMemAllocHost(64)
        buffer = Buffer.from_handle(int(driver.ffi.cast("uintptr_t", pointer)), 64)
        assert buffer.__dlpack_device__() == (3, 0)
    else:
        pointer = driver.cuMemAllocManaged(64, 1)  # CU_MEM_ATTACH_GLOBAL
        buffer = Buffer.from_handle(int(pointer), 64)
        assert buffer.__dlpack_device__() == (13, 0)
    buffer.fill(7, stream=stream)
    stream.sync()
    array = np.from_dlpack(buffer)
    assert array.dtype == np.uint8
    assert array.tolist() == [7] * 64
    del array
    (driver.cuMemFreeHost if kind == "pinned" else driver.cuMemFree)(pointer)


def test_numpy_refuses_device_memory(device: Device) -> None:
    with pytest.raises((RuntimeError, BufferError), match="device"):
        np.from_dlpack(device.allocate(8))


def test_many_capsules_of_one_buffer(owned: tuple[Buffer, weakref.ref[Owner]]) -> None:
    buffer, owner = owned[0], owned[1]
    capsules = [buffer.__dlpack__() for _ in range(100)]
    buffer.close()
    while capsules:
        assert owner() is not None
        capsules.pop()
    assert owner() is None
