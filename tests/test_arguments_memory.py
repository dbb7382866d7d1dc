"""The argument contract: what stands for an address (Buffer, arrays of other libraries, None)."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from exchange import exchangeable
from ptx import Stored

from cudamod import Buffer, Device, Stream, driver

#: Parameters that take an address: declared by a signature, a PTX integer, and of known size only.
POINTERS = [("u64", "ptr"), ("u64", None), ("b64", None), ("b64", "ptr")]
#: Those that don't.
OTHERS = [
    ("u32", None),
    ("f64", None),
    ("f32", None),
    ("u64", "u64"),
    ("u64", "i64"),
    ("b64", "f64"),
    ("bytes[8]", None),
    ("bytes[8]", "c64"),
    ("b32", None),
    ("bytes[16]", None),
]


def little(value: int) -> bytes:
    return value.to_bytes(8, "little")


@pytest.fixture
def buffer(stream: Stream) -> Buffer:
    return stream.device.allocate(64, stream=stream)


def array_of(address: Any, **more: Any) -> Any:
    """An object with a CUDA array interface."""
    interface = {"shape": (4,), "typestr": "<f4", "data": (address, False), "version": 3, **more}
    return type("Array", (), {"__cuda_array_interface__": interface})()


@pytest.mark.parametrize(("parameter", "signature"), POINTERS)
def test_addresses(stored: Stored, buffer: Buffer, parameter: str, signature: str | None) -> None:
    proxy = SimpleNamespace(__cuda_array_interface__=buffer.__cuda_array_interface__)
    for value in (
        buffer,
        array_of(buffer.handle),
        array_of(buffer.handle, mask=None),
        proxy,
        buffer.handle,
    ):
        assert stored.one(parameter, value, signature=signature) == little(buffer.handle)
    assert stored.one(parameter, array_of(buffer.handle + 12), signature=signature) == little(
        buffer.handle + 12
    )
    assert stored.one(parameter, None, signature=signature) == bytes(8)
    nothing = stored.stream.device.allocate(0, stream=stored.stream)
    assert stored.one(parameter, nothing, signature=signature) == little(nothing.handle)
    assert stored.one(parameter, array_of(0, shape=(0,)), signature=signature) == bytes(8)


@pytest.mark.parametrize(("parameter", "signature"), OTHERS)
def test_only_pointers_take_addresses(
    stored: Stored, buffer: Buffer, parameter: str, signature: str | None
) -> None:
    for value in (buffer, array_of(buffer.handle), exchangeable(buffer.handle), None):
        with pytest.raises(TypeError, match=r"kernel 'store', argument 2 \(") as caught:
            stored.one(parameter, value, signature=signature)
        assert type(value).__name__ in str(caught.value)


def test_a_closed_buffer_is_refused(stored: Stored, buffer: Buffer) -> None:
    buffer.close()
    for parameter, signature in POINTERS:
        with pytest.raises(RuntimeError, match="'store', argument 2: Buffer has been closed"):
            stored.one(parameter, buffer, signature=signature)


def pinned(size: int) -> int:
    return int(driver.ffi.cast("uintptr_t", driver.cuMemAllocHost(size)))


def test_pinned_and_managed_memory_pass(stored: Stored, stream: Stream) -> None:
    host = pinned(64)
    managed = int(driver.cuMemAllocManaged(64, 1))
    try:
        for address in (host, managed):
            assert stored.one("u64", array_of(address)) == little(address)
            assert stored.one("u64", Buffer.from_handle(address, 64)) == little(address)
        assert stored.one("u64", exchangeable(host, device=(3, 0))) == little(host)
        assert stored.one("u64", exchangeable(managed, device=(13, 0))) == little(managed)
        # Frameworks call pinned memory the CPU's.
        assert stored.one("u64", exchangeable(host, device=(1, 0))) == little(host)
    finally:
        stream.sync()
        driver.cuMemFreeHost(driver.ffi.cast("void*", host))
        driver.cuMemFree(managed)


def test_host_memory_is_refused(stored: Stored) -> None:
    host = ctypes.create_string_buffer(64)
    for value in (
        array_of(ctypes.addressof(host)),
        exchangeable(ctypes.addressof(host), device=(1, 0)),
    ):
        with pytest.raises(TypeError, match=r"'store', argument 2: .* object lies in host memory"):
            stored.one("u64", value)


def test_host_objects_are_refused(stored: Stored) -> None:
    for signature in ("ptr", None):
        values = [
            bytearray(8),
            bytes(8),
            memoryview(bytes(8)),
            ctypes.pointer(ctypes.c_int(1)),
            (ctypes.c_char * 8)(),
        ]
        for value in values:
            with pytest.raises(TypeError, match="'store', argument 2"):
                stored.one("u64", value, signature=signature)


@pytest.mark.parametrize("parameter", ["u64", "f64", "b64", "u32", "bytes[8]"])
def test_numpy_arrays_are_refused(stored: Stored, parameter: str) -> None:
    numpy = pytest.importorskip("numpy")
    for array in (
        numpy.zeros(4),
        numpy.array(1.0),
        numpy.array([1.0]),
        numpy.zeros(0),
        numpy.ma.zeros(2),
    ):
        with pytest.raises(TypeError, match=r"(?s)argument 2 \(.*host memory"):
            stored.one(parameter, array)


MALFORMED: list[Any] = [
    None,
    7,
    (),
    {},
    {"data": None},
    {"data": 4096},
    {"data": (4096,)},
    {"data": ("4096", False)},
    {"data": (None, False)},
    {"data": (-1, False)},
    {"data": (2**64, False)},
    {"data": (1.5, False)},
]


@pytest.mark.parametrize("interface", MALFORMED, ids=repr)
def test_a_malformed_interface_is_refused(stored: Stored, interface: Any) -> None:
    value = SimpleNamespace(__cuda_array_interface__=interface)
    with pytest.raises(TypeError, match=r"'store', argument 2: __cuda_array_interface__ of"):
        stored.one("u64", value)


def test_a_masked_array_is_refused(stored: Stored, buffer: Buffer) -> None:
    with pytest.raises(TypeError, match="'store', argument 2: a masked Array object"):
        stored.one("u64", array_of(buffer.handle, mask=array_of(buffer.handle)))


def test_errors_of_an_interface_come_out(stored: Stored) -> None:
    class Broken:
        @property
        def __cuda_array_interface__(self) -> Any:
            raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        stored.one("u64", Broken())


def test_torch_tensors(stored: Stored) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="argument 2"):
        stored.one("u64", torch.zeros(4))
    if not torch.cuda.is_available():
        pytest.skip("torch sees no device")
    tensor = torch.zeros(4, device="cuda")
    assert stored.one("u64", tensor) == little(tensor.data_ptr())
    assert stored.one("u64", tensor[1:]) == little(tensor.data_ptr() + 4)
    assert stored.one("u64", torch.zeros(0, device="cuda")) == bytes(8)
    assert stored.one("u64", torch.nn.Parameter(tensor)) == little(tensor.data_ptr())
    assert stored.one("u64", torch.zeros(4).pin_memory()) != bytes(8)


def test_cupy_arrays(stored: Stored) -> None:
    cupy = pytest.importorskip("cupy")
    # An array needs no card when the memory is somebody else's.
    buffer = stored.stream.device.allocate(64, stream=stored.stream)
    memory = cupy.cuda.UnownedMemory(buffer.handle, 64, buffer, stored.stream.device.device_id)
    array = cupy.ndarray(8, dtype="f4", memptr=cupy.cuda.MemoryPointer(memory, 16))
    assert stored.one("u64", array) == little(buffer.handle + 16)
    if not cupy.cuda.is_available():
        pytest.skip("cupy sees no device")
    array = cupy.zeros(4)
    assert stored.one("u64", array) == little(array.data.ptr)
    assert stored.one("u64", array[1:]) == little(array.data.ptr + array.itemsize)


def test_memory_of_another_device(run_python: Any) -> None:
    code = """
from types import SimpleNamespace
import pytest, sys
sys.path.insert(0, {tests!r})
from ptx import Stored
from exchange import exchangeable
from cudamod import Device
if Device.count() < 2:
    print("one device"); sys.exit()
first, second = Device(0), Device(1)
second.set_current()
there = second.allocate(64, stream=second.default_stream)
first.set_current()
stored = Stored(first.create_stream())
array = SimpleNamespace(__cuda_array_interface__={{"data": (there.handle, False), "shape": (1,)}})
for value in (there, array, exchangeable(there.handle, device=(2, 1))):
    with pytest.raises(ValueError, match=r"argument 2: .* lies on device 1, but"):
        stored.one("u64", value)
here = Stored(second.create_stream())
for value in (there, array, exchangeable(there.handle, device=(2, 1))):
    assert here.one("u64", value) == there.handle.to_bytes(8, "little")
print("two devices")
"""
    from pathlib import Path

    tests = str(Path(__file__).parent)
    printed = run_python(code.format(tests=tests), CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80")
    assert printed.strip() in ("one device", "two devices")


@pytest.mark.emulated
def test_the_emulated_driver_has_the_other_device(run_python: Any) -> None:
    count = "import cudamod; print(cudamod.Device.count())"
    assert run_python(count, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80").strip() == "2"


def test_the_launch_needs_no_current_context_to_check_addresses(
    device: Device, stored: Stored, buffer: Buffer
) -> None:
    stored.kernel("u8", "u64", "u8").load(device)
    stored.one("u64", buffer)
    kernel = stored.kernel("u64")
    out = device.allocate(8, stream=stored.stream)
    from ptx import ONE, read

    launcher = kernel.bind(ONE, stored.stream)
    driver.cuCtxSetCurrent(None)
    launcher(out, array_of(buffer.handle))
    device.set_current()
    assert read(out, stored.stream) == little(buffer.handle)
