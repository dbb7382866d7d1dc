"""Devices and contexts."""

from __future__ import annotations

import ctypes
import json

from emulated_driver_api import IMAGES, EmulatedDriver, Pointer, run_script
from test_emulated_launches import EMPTY

INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT, INVALID_HANDLE = 1, 101, 201, 400


def current(driver: EmulatedDriver) -> int | None:
    return Pointer(driver.get("cuCtxGetCurrent", Pointer)).value


def test_every_attribute_of_the_recorded_card(driver: EmulatedDriver) -> None:
    driver.call("cuInit", 0)
    recorded = json.loads((IMAGES / "driver.json").read_text())["device_attributes"]
    assert len(recorded) == 169
    for number, wanted in recorded.items():
        value = ctypes.c_int(-7)
        status = driver.status("cuDeviceGetAttribute", ctypes.byref(value), int(number), 0)
        assert (f"E{status}" if status else value.value) == wanted, number


def test_name_says_emulated(driver: EmulatedDriver) -> None:
    driver.call("cuInit", 0)
    name = ctypes.create_string_buffer(100)
    driver.call("cuDeviceGetName", name, 100, 0)
    assert b"emulated" in name.value
    driver.call("cuDeviceGetName", name, 5, 0)
    assert len(name.value) == 4
    assert driver.status("cuDeviceGetName", name, 100, 1) == INVALID_DEVICE


def test_several_devices(driver: EmulatedDriver) -> None:
    script = """
driver.call("cuInit", 0)
assert driver.get("cuDeviceGetCount", ctypes.c_int) == 3
capabilities = [
    tuple(driver.get("cuDeviceGetAttribute", ctypes.c_int, number, device) for number in (75, 76))
    for device in range(3)
]
assert capabilities == [(12, 0), (7, 5), (12, 0)], capabilities
uuids = set()
for device in range(3):
    uuid = ctypes.create_string_buffer(16)
    driver.call("cuDeviceGetUuid_v2", uuid, device)
    uuids.add(uuid.raw)
    bus = ctypes.create_string_buffer(20)
    driver.call("cuDeviceGetPCIBusId", bus, 20, device)
    assert driver.get("cuDeviceGetByPCIBusId", ctypes.c_int, bus) == device
assert len(uuids) == 3
total = ctypes.c_size_t()
driver.call("cuDeviceTotalMem", ctypes.byref(total), 0)
assert total.value == 64 << 20
"""
    done = run_script(
        driver.path,
        script,
        CUDAMOD_EMULATOR_DEVICES="sm_120,sm_75,sm_120",
        CUDAMOD_EMULATOR_MEMORY="64M",
    )
    assert done.returncode == 0, done.stderr


def test_no_device_and_unknown_device(driver: EmulatedDriver) -> None:
    script = "sys.exit(driver.status('cuInit', 0))"
    assert run_script(driver.path, script, CUDAMOD_EMULATOR_DEVICES="none").returncode == 100
    unknown = run_script(driver.path, script, CUDAMOD_EMULATOR_DEVICES="sm_1")
    assert unknown.returncode == 100
    assert "sm_1" in unknown.stderr


def test_without_a_context(driver: EmulatedDriver) -> None:
    driver.call("cuInit", 0)
    out = Pointer()
    assert driver.status("cuMemAlloc", ctypes.byref(out), ctypes.c_size_t(4)) == INVALID_CONTEXT
    assert driver.status("cuCtxPopCurrent", ctypes.byref(out)) == INVALID_CONTEXT
    assert driver.status("cuCtxGetDevice", ctypes.byref(out)) == INVALID_CONTEXT
    assert driver.status("cuStreamCreate", ctypes.byref(out), 0) == INVALID_CONTEXT
    assert driver.status("cuStreamGetCtx", None, ctypes.byref(out)) == INVALID_CONTEXT
    assert driver.status("cuDevicePrimaryCtxRelease", 0) == INVALID_CONTEXT
    assert current(driver) is None


def test_stack(driver: EmulatedDriver) -> None:
    driver.call("cuInit", 0)
    first, second = driver.pointer("cuCtxCreate", 0, 0), driver.pointer("cuCtxCreate", 0, 0)
    assert current(driver) == second.value
    driver.call("cuCtxPushCurrent", first)
    assert driver.pointer("cuCtxPopCurrent").value == first.value
    driver.call("cuCtxSetCurrent", first)
    ids = [ctypes.c_ulonglong(), ctypes.c_ulonglong()]
    for context, number in zip((first, second), ids, strict=True):
        driver.call("cuCtxGetId", context, ctypes.byref(number))
    assert ids[0].value != ids[1].value
    driver.call("cuCtxDestroy", first)
    driver.call("cuCtxDestroy", second)
    assert driver.status("cuCtxSetCurrent", second) == INVALID_CONTEXT
    assert driver.status("cuCtxDestroy", second) == INVALID_CONTEXT
    driver.call("cuCtxSetCurrent", None)


def test_primary_context_is_counted(driver: EmulatedDriver) -> None:
    first = driver.make_current()
    assert driver.make_current().value == first.value
    flags, active = ctypes.c_uint(), ctypes.c_int()
    state = ctypes.byref(flags), ctypes.byref(active)
    for expected in (1, 0):
        driver.call("cuDevicePrimaryCtxRelease", 0)
        driver.call("cuDevicePrimaryCtxGetState", 0, *state)
        assert active.value == expected
    assert driver.status("cuCtxSynchronize") == 709
    assert driver.status("cuDevicePrimaryCtxRelease", 0) == INVALID_CONTEXT


def test_the_end_of_a_context_ends_what_lives_in_it(driver: EmulatedDriver) -> None:
    driver.make_current()
    stream, event = driver.pointer("cuStreamCreate", 0), driver.pointer("cuEventCreate", 0)
    memory = driver.allocate(100)
    driver.call("cuDevicePrimaryCtxRelease", 0)
    driver.make_current()
    assert driver.status("cuStreamQuery", stream) == 400
    assert driver.status("cuEventQuery", event) == 400
    assert driver.status("cuMemFree", memory) == INVALID_VALUE
    driver.call("cuDevicePrimaryCtxRelease", 0)


def test_limits(current: EmulatedDriver) -> None:
    current.call("cuCtxSetLimit", 0, ctypes.c_size_t(4096))
    assert current.get("cuCtxGetLimit", ctypes.c_size_t, 0) == 4096
    assert current.status("cuCtxSetLimit", 77, ctypes.c_size_t(1)) == INVALID_VALUE
    assert current.status("cuCtxSetLimit", 7, ctypes.c_size_t(1)) == 215


def test_current_context_is_per_thread(current: EmulatedDriver) -> None:
    import threading

    seen: list[int | None] = []
    thread = threading.Thread(target=lambda: seen.append(current.get("cuCtxGetCurrent", Pointer)))
    thread.start()
    thread.join()
    assert seen == [None]


def test_handles_of_another_context(driver: EmulatedDriver) -> None:
    """Each is refused where the card refuses it, and named."""
    driver.call("cuInit", 0)
    first, second = (
        driver.pointer("cuCtxCreate", 0, 0),
        driver.pointer("cuCtxCreate", 0, 0),
    )
    made = {}
    for context in (first, second):
        driver.call("cuCtxSetCurrent", context)
        stream = driver.pointer("cuStreamCreate", 0)
        module = driver.pointer("cuModuleLoadData", EMPTY + b"\0")
        made[context.value] = (
            stream,
            driver.pointer("cuEventCreate", 0),
            driver.pointer("cuModuleGetFunction", module, b"k"),
        )
    (stream, event, function), (other, other_event, other_function) = made.values()
    elapsed = ctypes.c_float()
    for own in (stream, None):
        driver.call("cuCtxSetCurrent", first)
        assert driver.status("cuEventRecord", other_event, own) == INVALID_HANDLE
        assert driver.launch(other_function, [], stream=own) == INVALID_HANDLE
        assert driver.launch(function, [], stream=own) == 0
        driver.call("cuEventRecord", event, own)
    driver.call("cuEventRecord", other_event, other)
    driver.call("cuCtxSynchronize")
    driver.call("cuStreamSynchronize", other)
    pair = ctypes.byref(elapsed), event, other_event
    assert driver.status("cuEventElapsedTime", *pair) == INVALID_HANDLE
    driver.call("cuStreamWaitEvent", stream, other_event, 0)  # this alone may cross
    assert driver.launch(other_function, [], stream=other) == 0  # whatever is current
    for context in (first, second):
        driver.call("cuCtxDestroy", context)
    assert driver.status("cuEventQuery", event) == INVALID_HANDLE
    assert driver.launch(function, [], stream=stream) == INVALID_HANDLE
