"""The journal, the launch recorder, injected failures, live counts, the driver's sentences."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, run_script
from test_emulated_launches import ADD, EMPTY

SIZE = ctypes.c_size_t


@pytest.fixture
def control(driver: EmulatedDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """cudamod.emulator on this driver, whether the package is installed or not."""
    module = load_control()
    monkeypatch.setattr(module, "_opened", module.open_control(str(driver.path)))
    yield module
    module.reset()


def load_control() -> ModuleType:
    source = Path(__file__).parents[2] / "cudamod" / "emulator.py"
    spec = importlib.util.spec_from_file_location("cudamod_emulator_under_test", source)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_devices(current: EmulatedDriver, control: Any) -> None:
    (device,) = control.devices()
    assert (device.ordinal, device.architecture) == (0, "sm_90")
    assert "emulated" in device.name


def test_other_libraries_are_not_controlled() -> None:
    module = load_control()
    with pytest.raises(module.NotEmulatedError, match="not the emulated driver"):
        module.open_control("libc.so.6")


def test_journal(current: EmulatedDriver, control: Any) -> None:
    current.call("cuCtxSynchronize")
    assert control.journal() == []
    with control.recording():
        memory = current.allocate(1000)
        assert current.status("cuLibraryGetKernel", None, None, b"name") == 1
    current.call("cuMemFree", memory)
    first, second = control.journal()
    assert (first.index, first.name, first.status) == (0, "cuMemAlloc", 0)
    assert first.arguments.endswith(", 1000")
    assert (second.index, second.name, second.status) == (1, "cuLibraryGetKernel", 1)
    assert second.arguments == "NULL, NULL, 'name'"
    assert first.thread == second.thread > 0


def test_launch_recorder(current: EmulatedDriver, control: Any) -> None:
    kernel = current.kernel(current.load(ADD), b"add")
    memory = current.upload(bytes(64))
    arguments = [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(7)]
    with control.recording():
        assert current.launch(kernel, arguments, grid=(2, 1, 1), block=(4, 1, 1), shared=16) == 0
        assert current.launch(kernel, None) == 1
    (launch,) = control.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("add", (2, 1, 1), (4, 1, 1))
    assert (launch.dynamic_shared, launch.cluster, launch.stream) == (16, (0, 0, 0), 0)
    assert launch.parameters == ((memory.value or 0).to_bytes(8, "little"), b"\7\0\0\0")
    names = [(call.name, call.status) for call in control.journal()]
    assert names == [("cuLaunchKernel", 0), ("cuLaunchKernel", 1)]
    assert "grid=(2, 1, 1), block=(4, 1, 1), shared=16" in control.journal()[0].arguments


def test_injected_failures(current: EmulatedDriver, control: Any) -> None:
    control.inject("cuMemAlloc", nth=2, status=2)
    control.inject("cuCtxSynchronize", status=719)
    assert control.injections_left() == 2
    out = Pointer()
    answers = [current.status("cuMemAlloc", ctypes.byref(out), SIZE(8)) for _ in range(3)]
    assert answers == [0, 2, 0]
    assert current.status("cuCtxSynchronize") == 719
    assert current.status("cuCtxSynchronize") == 0
    assert control.injections_left() == 0
    for bad in (("", 1, 2), ("cuMemAlloc", 0, 2), ("cuMemAlloc", 1, 0), ("cuMemAlloc", -1, 2)):
        with pytest.raises(ValueError, match="cannot inject"):
            control.inject(*bad)
    for wrong in ((5,), (None,), ("cuMemAlloc", "1"), ("cuMemAlloc", 1, 2.5)):
        with pytest.raises(TypeError, match=re.escape(repr(wrong[-1]))):
            control.inject(*wrong)


def test_failures_from_the_environment(driver: EmulatedDriver) -> None:
    script = """
driver.make_current()
print([driver.status("cuStreamCreate", ctypes.byref(Pointer()), 0) for _ in range(3)])
"""
    done = run_script(
        driver.path, script, CUDAMOD_EMULATOR_FAIL="cuStreamCreate:2:2,cuStreamCreate:3:999"
    )
    assert done.stdout.strip() == "[0, 2, 999]"
    assert (
        "cannot be read"
        in run_script(driver.path, script, CUDAMOD_EMULATOR_FAIL="cuStreamCreate").stderr
    )


def test_journal_in_a_file(driver: EmulatedDriver, tmp_path: Path) -> None:
    script = "driver.make_current(); driver.status('cuStreamDestroy', None)"
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_JOURNAL=str(tmp_path / "calls"))
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "calls").read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(index) for index in range(len(lines))]
    assert lines[0].endswith(" cuInit(0) = 0 CUDA_SUCCESS")
    assert lines[-1].endswith(" cuStreamDestroy(NULL) = 400 CUDA_ERROR_INVALID_HANDLE")
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_JOURNAL=str(tmp_path / "no" / "way"))
    assert "cannot be written" in done.stderr


def test_live_counts(current: EmulatedDriver, control: Any) -> None:
    before = control.counts()
    stream, event = current.pointer("cuStreamCreate", 0), current.pointer("cuEventCreate", 0)
    memory, library = current.allocate(10), current.load(EMPTY)
    kernel = current.kernel(library, b"k")
    after = control.counts()
    grown = {family for family in after if after[family] - before[family] == 1}
    assert grown == {"stream", "event", "device_memory", "library", "kernel"}
    assert kernel.value
    current.call("cuLibraryUnload", library)
    current.call("cuStreamDestroy", stream)
    current.call("cuEventDestroy", event)
    current.call("cuMemFree", memory)
    assert control.counts() == before


def test_leaks_are_reported_at_exit(driver: EmulatedDriver) -> None:
    script = "driver.make_current(); driver.allocate(1234); driver.pointer('cuStreamCreate', 0)"
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_LEAKS="1")
    assert "1 stream" in done.stderr
    assert "1234 bytes" in done.stderr


def test_null_launch_on_demand(current: EmulatedDriver, control: Any) -> None:
    control.null_launch(True)
    assert current.launch(Pointer(5), None) == 0
    assert control.null_launches() == 1
    control.null_launch(False)
    assert current.launch(Pointer(5), None) == 400


def test_behaviours(control: Any) -> None:
    table = control.behaviours()
    assert {row.basis for row in table} == {"measured", "documented", "assumed"}
    assert len({row.text for row in table}) == len(table) > 20


@pytest.fixture
def sentences(current: EmulatedDriver) -> Iterator[list[str]]:
    """What the driver says to a callback of cuLogsRegisterCallback."""
    heard: list[str] = []

    @ctypes.CFUNCTYPE(None, Pointer, ctypes.c_int, ctypes.c_void_p, SIZE)
    def callback(data: int | None, level: int, message: int, length: int) -> None:
        assert (data, level) == (99, 0)
        heard.append(ctypes.string_at(message, length).decode())

    handle = Pointer()
    current.call("cuLogsRegisterCallback", callback, Pointer(99), ctypes.byref(handle))
    yield heard
    current.call("cuLogsUnregisterCallback", handle)
    heard.clear()
    assert current.status("cuLogsUnregisterCallback", handle) == 1
    assert heard == []


def test_failing_calls_explain_themselves(current: EmulatedDriver, sentences: list[str]) -> None:
    library = current.load(ADD)
    kernel = current.kernel(library, b"add")
    current.call("cuCtxSynchronize")
    assert sentences == []
    assert current.launch(kernel, [ctypes.c_uint64(), ctypes.c_uint32()], shared=100000) == 1
    first, last = sentences
    assert "dynamic shared memory size of 100000 bytes" in first
    assert "49152 bytes" in first
    assert last == "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernel"
    sentences.clear()
    current.launch(kernel, [], grid=(0, 1, 1))
    assert "Grid Dimension X must be nonzero" in sentences[0]
    sentences.clear()
    out = Pointer()
    current.status("cuLibraryGetKernel", ctypes.byref(out), library, b"zzz")
    assert sentences[0] == "Kernel (zzz) cannot be found in library"
    assert sentences[1] == "Returning 500 (CUDA_ERROR_NOT_FOUND) from cuLibraryGetKernel"
    sentences.clear()
    memory = current.allocate(8)
    current.call("cuMemFree", memory)
    current.status("cuMemFree", memory)
    assert "was freed" in sentences[0]


def test_a_fault_names_kernel_and_address(current: EmulatedDriver, sentences: list[str]) -> None:
    kernel = current.kernel(current.load(ADD), b"add")
    memory = current.allocate(4)
    current.launch(kernel, [ctypes.c_uint64((memory.value or 0) + 4), ctypes.c_uint32()])
    assert current.status("cuCtxSynchronize") == 700
    assert "add" in sentences[0]
    assert "past the end of memory of 4 bytes" in sentences[0]


def test_logs_are_kept(current: EmulatedDriver) -> None:
    position = ctypes.c_uint()
    current.call("cuLogsCurrent", ctypes.byref(position), 0)
    current.status("cuStreamDestroy", None)
    text, size = ctypes.create_string_buffer(1000), SIZE(1000)
    arguments = (ctypes.byref(position), text, ctypes.byref(size), 0)
    current.call("cuLogsDumpToMemory", *arguments)
    assert text.value.endswith(b"Returning 400 (CUDA_ERROR_INVALID_HANDLE) from cuStreamDestroy\n")
    size.value = 1000
    current.call("cuLogsDumpToMemory", *arguments)
    assert text.value == b""
