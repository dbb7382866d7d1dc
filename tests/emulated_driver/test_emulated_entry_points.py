"""What the emulated driver exports, and what cuGetProcAddress answers."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver, Pointer, find_driver, run_script

LIST = Path(__file__).parents[2] / "cpp" / "emulator" / "entry_point_list.h"
ROW = re.compile(r"^CUDAMOD_(ENTRY|REFUSED)\((\w+), (\d+), (\w+)\)$", re.MULTILINE)

NOT_FOUND, NOT_SUPPORTED, NOT_INITIALIZED = 500, 801, 3
SYMBOL_NOT_FOUND, VERSION_NOT_SUFFICIENT = 1, 2


def rows() -> list[tuple[str, str, int, str]]:
    found = ROW.findall(LIST.read_text())
    assert len(found) > 400
    return [(kind, name, int(version), symbol) for kind, name, version, symbol in found]


def query(driver: EmulatedDriver, name: bytes, version: int) -> tuple[int, int | None, int]:
    address, result = Pointer(), ctypes.c_int(-1)
    status = driver.status(
        "cuGetProcAddress",
        name,
        ctypes.byref(address),
        version,
        ctypes.c_uint64(0),
        ctypes.byref(result),
    )
    return status, address.value, result.value


def address_of(driver: EmulatedDriver, symbol: str) -> int | None:
    return ctypes.cast(getattr(driver.library, symbol), Pointer).value


def test_exports_nothing_but_the_driver_and_its_control(driver: EmulatedDriver) -> None:
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(driver.path)], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert {name for name in names if not re.match(r"cu[A-Z]|cudamodEmulator", name)} == set()
    assert {symbol for _, _, _, symbol in rows()} <= names


def test_is_not_called_libcuda(driver: EmulatedDriver) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    dynamic = subprocess.run(
        ["readelf", "-d", str(driver.path)], capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"soname: \[(.*)\]", dynamic) == ["libcudamod_emulated_driver.so"]


def test_each_row_is_found_at_its_version(driver: EmulatedDriver) -> None:
    for _, name, version, symbol in rows():
        assert query(driver, name.encode(), version) == (0, address_of(driver, symbol), 0), name


def test_the_newest_abi_up_to_the_version_asked(driver: EmulatedDriver) -> None:
    for asked, symbol in (
        (11039, "cuCtxCreate_v2"),
        (12040, "cuCtxCreate_v3"),
        (99999, "cuCtxCreate_v4"),
    ):
        assert query(driver, b"cuCtxCreate", asked)[1] == address_of(driver, symbol)


def test_unknown_names_and_too_low_versions(driver: EmulatedDriver) -> None:
    assert query(driver, b"cuNoSuchThing", 13000) == (NOT_FOUND, None, SYMBOL_NOT_FOUND)
    assert query(driver, b"cuLibraryLoadData", 11080) == (NOT_FOUND, None, VERSION_NOT_SUFFICIENT)


def test_an_old_driver_lacks_what_came_later(driver: EmulatedDriver) -> None:
    script = """
def found(name):
    address = Pointer()
    out = ctypes.byref(address), 13000, ctypes.c_uint64(0), None
    return driver.status("cuGetProcAddress", name, *out)
assert found(b"cuKernelGetParamInfo") == 500
assert found(b"cuLibraryLoadData") == 0
assert driver.get("cuDriverGetVersion", ctypes.c_int) == 12020
"""
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_DRIVER_VERSION="12020")
    assert done.returncode == 0, done.stderr


def test_refused_functions_say_so(driver: EmulatedDriver) -> None:
    driver.make_current()
    for kind, name, _, symbol in rows():
        if kind == "REFUSED":
            assert driver.status(symbol, None, None, None, None, None, None) == NOT_SUPPORTED, name


def test_export_table_is_not_found(driver: EmulatedDriver) -> None:
    table = Pointer(1)
    uuid = (ctypes.c_char * 16)()
    assert driver.status("cuGetExportTable", ctypes.byref(table), uuid) == NOT_FOUND
    assert table.value is None


def test_before_init_and_after_fork(driver: EmulatedDriver) -> None:
    script = """
import os
assert driver.status("cuDeviceGetCount", ctypes.byref(ctypes.c_int())) == 3
assert driver.status("cuGraphCreate", None, 0) == 3
assert driver.status("cuInit", 1) == 1
driver.make_current()
child = os.fork()
if not child:
    counted = driver.status("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
    os._exit(10 * counted + driver.status("cuInit", 0))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 33
"""
    done = run_script(driver.path, script)
    assert done.returncode == 0, done.stderr


def test_announces_itself_once(driver: EmulatedDriver) -> None:
    script = "driver.call('cuInit', 0); driver.call('cuInit', 0)"
    loud = run_script(driver.path, script, CUDAMOD_EMULATOR_QUIET="0")
    assert loud.stderr.count("emulated driver, not a GPU") == 1
    assert run_script(driver.path, script).stderr == ""


def test_error_names_and_sentences(driver: EmulatedDriver) -> None:
    text = ctypes.c_char_p()
    driver.call("cuGetErrorName", 700, ctypes.byref(text))
    assert text.value == b"CUDA_ERROR_ILLEGAL_ADDRESS"
    driver.call("cuGetErrorString", 700, ctypes.byref(text))
    assert text.value
    assert driver.status("cuGetErrorName", 12345, ctypes.byref(text)) == 1
    assert text.value is None


def test_driver_is_found() -> None:
    assert find_driver() is not None
