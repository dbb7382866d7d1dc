"""A launch on CURRENT: on the stream of the first tensor's framework."""

from __future__ import annotations

import ctypes
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exchange import NAME, ExchangeAPI, Tensor, capsule, describe, exchangeable
from ptx import ONE, Stored, empty, read

import cudamod
from cudamod import CURRENT, Device, Kernel, LaunchConfig, ObjectCode, driver, launch

WorkStream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class Framework:
    """A framework with a current stream, which speaks DLPack's C exchange API."""

    def __init__(self) -> None:
        self.current = 0
        self.asked: list[tuple[int, int]] = []
        self.fails = False
        self._function = WorkStream(self._answer)
        self._api = ExchangeAPI(
            major=1,
            minor=3,
            dltensor_from_py_object_no_sync=describe,
            current_work_stream=ctypes.cast(self._function, ctypes.c_void_p),
        )
        self.kind = type(
            "Tensor", (Tensor,), {"__dlpack_c_exchange_api__": capsule(self._api, NAME)}
        )

    def _answer(self, device_type: int, device_id: int, out: Any) -> int:
        self.asked.append((device_type, device_id))
        out[0] = self.current
        return -1 if self.fails else 0

    def tensor(self, address: int, **how: Any) -> Any:
        return exchangeable(address, kind=self.kind, **how)


@pytest.fixture
def framework() -> Framework:
    return Framework()


@pytest.fixture
def foreign(device: Device) -> Iterator[int]:
    """A stream that somebody else owns."""
    raw = driver.cuStreamCreate(1)
    yield int(driver.ffi.cast("uintptr_t", raw))
    driver.cuStreamSynchronize(raw)
    driver.cuStreamDestroy(raw)


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k", parameters=["u64", "u32"])).get_kernel("k")


def launched_on(call: Callable[[], object], *streams: int) -> int:
    """Which of the streams a call launches on: the one whose capture has it."""
    modes = driver.CUstreamCaptureMode
    for raw in streams:
        driver.cuStreamBeginCapture(raw, modes.CU_STREAM_CAPTURE_MODE_RELAXED)
    call()
    found = []
    for raw in streams:
        graph = driver.cuStreamEndCapture(raw)
        count = driver.ffi.new("size_t*")
        assert driver.lib.cuGraphGetNodes(graph, driver.ffi.NULL, count) == 0
        found += [raw] * count[0]
        driver.cuGraphDestroy(graph)
    (only,) = found
    return only


def test_what_it_is() -> None:
    assert repr(CURRENT) == "cudamod.CURRENT"
    assert pickle.loads(pickle.dumps(CURRENT)) is CURRENT
    for make in (type(CURRENT), lambda: type(CURRENT).__new__(type(CURRENT))):
        with pytest.raises(RuntimeError, match=r"cudamod\.CURRENT"):
            make()


@pytest.mark.emulated
@pytest.mark.parametrize("how", ["launcher", "launch", "keyword", "on", "subscript", "short"])
def test_it_is_asked_at_each_launch(
    framework: Framework, kernel: Kernel, device: Device, foreign: int, how: str
) -> None:
    from cudamod import emulator

    own = device.create_stream()
    buffer = device.allocate(8, stream=own)
    tensor = framework.tensor(buffer.handle)
    bound = kernel.bind(ONE, CURRENT)
    elsewhere = kernel.bind(ONE, own)
    assert bound.stream is CURRENT
    calls: dict[str, Callable[[], object]] = {
        "launcher": lambda: bound(tensor, 1),
        "launch": lambda: launch(CURRENT, ONE, kernel, tensor, 1),
        "keyword": lambda: elsewhere(tensor, 1, stream=CURRENT, grid=1),
        "on": lambda: elsewhere.on(CURRENT)(tensor, 1),
        "subscript": lambda: kernel[1, 1, CURRENT](tensor, 1),
        "short": lambda: kernel[1, 1](tensor, 1),
    }
    expected = [foreign, own.handle, 1, foreign, 2, own.handle]
    with emulator.recording():
        for framework.current in [foreign, own.handle, 0, foreign, 2, own.handle]:
            calls[how]()
    assert [entry.stream for entry in emulator.launches()] == expected
    assert set(framework.asked) == {(2, 0)}
    device.sync()


def test_results_are_right(framework: Framework, stored: Stored, device: Device) -> None:
    launcher = stored.kernel("u32", "u32").bind(ONE, CURRENT)
    out = device.allocate(8)
    for number in range(20):
        work = device.create_stream()
        framework.current = work.handle
        launcher(framework.tensor(out.handle), number, 7)
        assert read(out, work) == number.to_bytes(4, "little") + b"\7\0\0\0"


def test_the_first_tensor_on_a_device_decides(
    framework: Framework, stored: Stored, device: Device, foreign: int
) -> None:
    other = Framework()
    framework.current, other.current = foreign, 0xDEAD
    launcher = stored.kernel("u64", "u64", "u32").bind(ONE, CURRENT)
    out = device.allocate(24)
    launcher(out, framework.tensor(out.handle, offset=4), other.tensor(out.handle), 3)
    driver.cuStreamSynchronize(foreign)
    found = read(out, device.create_stream())
    assert int.from_bytes(found[:8], "little") == out.handle + 4
    assert int.from_bytes(found[8:16], "little") == out.handle
    assert other.asked == []


def test_without_a_tensor_it_says_what_is_missing(
    framework: Framework, kernel: Kernel, device: Device
) -> None:
    launcher = kernel.bind(ONE, CURRENT)
    buffer = device.allocate(8)
    without = exchangeable(buffer.handle)  # its framework tells no stream
    for argument in (buffer, buffer.handle, None, without):
        with pytest.raises(TypeError, match="'k': stream is CURRENT, but no argument is a tensor"):
            launcher(argument, 1)
    for call in (lambda: launcher(), lambda: launcher(1), lambda: launch(CURRENT, ONE, kernel)):
        with pytest.raises(TypeError, match="'k'"):
            call()


def test_a_framework_that_fails(framework: Framework, kernel: Kernel, device: Device) -> None:
    launcher = kernel.bind(ONE, CURRENT)
    buffer = device.allocate(8)
    tensor = framework.tensor(buffer.handle)
    framework.fails = True
    with pytest.raises(RuntimeError, match="Tensor has no current stream on device 0"):
        launcher(tensor, 1)
    framework.fails = False
    for ordinal in (-1, 10_000):
        with pytest.raises(ValueError, match=f"device {ordinal}"):
            launcher(framework.tensor(buffer.handle, device=(2, ordinal)), 1)
    launcher(tensor, 1)
    device.sync()


def test_a_launch_in_the_capture_of_the_current_stream(
    framework: Framework, kernel: Kernel, device: Device
) -> None:
    first, second = device.create_stream(), device.create_stream()
    tensor = framework.tensor(device.allocate(8).handle)
    launcher = kernel.bind(ONE, CURRENT)
    framework.current = second.handle
    launcher(tensor, 1)  # loads
    device.sync()
    try:
        assert launched_on(lambda: launcher(tensor, 1), first.handle, second.handle) == (
            second.handle
        )
    except cudamod.CUDAError as error:
        if error.name != "CUDA_ERROR_NOT_SUPPORTED":
            raise
        pytest.skip("this driver has no capture")


def test_shared_memory_is_opted_in(framework: Framework, kernel: Kernel, device: Device) -> None:
    tensor = framework.tensor(device.allocate(8).handle)
    kernel.bind(LaunchConfig(grid=1, block=1, shmem_size=60_000), CURRENT)(tensor, 1)
    kernel[1, 1, CURRENT, 61_000](tensor, 1)
    with pytest.raises(ValueError, match="dynamic shared memory"):
        kernel[1, 1, CURRENT, 10_000_000](tensor, 1)
    device.sync()


class OfModule:
    """Frameworks that are asked in Python."""

    @staticmethod
    def torch(monkeypatch: Any, raw: int) -> tuple[str, dict[str, Any]]:
        stream = types.SimpleNamespace(cuda_stream=raw, device_index=0)
        cuda = types.SimpleNamespace(current_stream=lambda device: stream)
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
        return "torch", {"is_cuda": True, "device": "cuda:0"}

    @staticmethod
    def cupy(monkeypatch: Any, raw: int) -> tuple[str, dict[str, Any]]:
        stream = types.SimpleNamespace(ptr=raw)
        cuda = types.SimpleNamespace(get_current_stream=lambda device: stream)
        monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
        return "cupy._core.core", {"device": types.SimpleNamespace(id=0)}

    @staticmethod
    def numba(monkeypatch: Any, raw: int) -> tuple[str, dict[str, Any]]:
        stream = types.SimpleNamespace(handle=ctypes.c_void_p(raw))
        cuda: Any = types.ModuleType("numba.cuda")
        cuda.default_stream = lambda: stream
        cuda.get_current_device = lambda: types.SimpleNamespace(id=0)
        monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
        monkeypatch.setitem(sys.modules, "numba.cuda", cuda)
        return "numba.cuda.cudadrv.devicearray", {"stream": 0}


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["torch", "cupy", "numba"])
@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize("derived", [False, True])
def test_frameworks_that_are_asked_in_python(
    monkeypatch: Any,
    kernel: Kernel,
    device: Device,
    foreign: int,
    name: str,
    default: bool,
    derived: bool,
) -> None:
    from cudamod import emulator

    raw = 0 if default else foreign
    module, attributes = getattr(OfModule, name)(monkeypatch, raw)
    buffer = device.allocate(8)
    interface = {"data": (buffer.handle, False), "shape": (8,), "typestr": "|u1", "version": 3}
    kind: Any = type(
        "Array",
        (),
        {"__module__": module, "__cuda_array_interface__": interface, **attributes},
    )
    if derived:
        kind = type("Mine", (kind,), {"__module__": "mine"})
    with emulator.recording():
        kernel.bind(ONE, CURRENT)(kind(), 1)
    assert [entry.stream for entry in emulator.launches()] == [raw or 1]


def test_an_error_of_the_framework_passes(monkeypatch: Any, kernel: Kernel, device: Device) -> None:
    module = OfModule.torch(monkeypatch, 0)[0]
    interface = {"data": (device.allocate(8).handle, False)}

    class Broken:
        __module__ = module
        __cuda_array_interface__ = interface

        @property
        def is_cuda(self) -> bool:
            raise LookupError("no device today")

    with pytest.raises(LookupError, match="no device today"):
        kernel.bind(ONE, CURRENT)(Broken(), 1)


def test_a_tensor_of_the_host_decides_nothing(
    framework: Framework, kernel: Kernel, device: Device
) -> None:
    with pytest.raises(TypeError, match="no argument is a tensor"):
        kernel.bind(ONE, CURRENT)(framework.tensor(4096, device=(1, 0)), 1)


def test_bind_needs_no_current_context(kernel: Kernel, framework: Framework) -> None:
    driver.cuCtxSetCurrent(None)
    fresh = ObjectCode.from_ptx(empty("other", parameters=["u64"])).get_kernel("other")
    assert fresh.bind(ONE, CURRENT).signature == "b64"


def test_own_streams_are_not_kept(framework: Framework, kernel: Kernel, device: Device) -> None:
    import gc
    import weakref

    stream = device.create_stream()
    framework.current = stream.handle
    tensor = framework.tensor(device.allocate(8, stream=stream).handle)
    kernel[1, 1](tensor, 1)
    stream.sync()
    reference = weakref.ref(stream)
    handle = stream.handle
    del stream
    gc.collect()
    assert reference() is None
    assert handle not in [live.value for live in _streams()]


def _streams() -> list[Any]:
    return [live for live in cudamod.handles.live() if live.kind == "stream"]
