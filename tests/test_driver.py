"""Finding, choosing and refusing a driver, with stand-in libraries built here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("drivers") / "stand_in.cpp"
USUAL_PLACES = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib")
RunPython = Callable[..., str]
StandIn = Callable[..., Path]


@pytest.fixture(scope="module")
def stand_in(cxx: list[str], tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    """Build a stand-in driver: ``stand_in(VERSION=12020, LACKS="cuMemGetInfo")``."""
    built: dict[str, Path] = {}

    def build(**macros: object) -> Path:
        key = repr(sorted(macros.items()))
        if key not in built:
            path = tmp_path_factory.mktemp("stand_in") / "libcuda.so.1"
            definitions = [
                f"-DSTAND_IN_{name}=" + (f'"{value}"' if isinstance(value, str) else str(value))
                for name, value in macros.items()
            ]
            command = [*cxx, "-std=c++17", "-shared", "-fPIC", *definitions, str(SOURCE), "-o"]
            subprocess.run([*command, str(path)], check=True)
            built[key] = path
        return built[key]

    return build


def has_installed_driver() -> bool:
    try:
        found = subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True, check=False
        ).stdout
    except FileNotFoundError:
        found = ""
    return "libcuda.so.1" in found or any(
        Path(place, "libcuda.so.1").exists() for place in USUAL_PLACES
    )


NOT_FOUND = """
import cudamod
from cudamod import driver
try:
    driver.cuDeviceGetCount()
except cudamod.DriverNotFoundError as error:
    assert isinstance(error, RuntimeError)
    assert not driver.opened()
    print(error)
    print(error.searched)
else:
    raise SystemExit("a driver was found")
"""


def test_import_opens_nothing(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import cudamod
from cudamod import driver
assert not driver.opened()
driver.functions(), driver.CUresult, driver.needed_version("cuInit")
assert not driver.opened()
driver.cuDeviceGetCount()
assert driver.opened()
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_auto_finds_the_loaders_libcuda(run_python: RunPython, stand_in: StandIn) -> None:
    path = stand_in(VERSION=12040)
    code = "from cudamod import driver; print(driver.version(), driver.describe())"
    printed = run_python(code, CUDAMOD_DRIVER=None, LD_LIBRARY_PATH=str(path.parent))
    assert printed == f"12040 CUDA 12.4 driver {path}\n"


@pytest.mark.skipif(has_installed_driver(), reason="a CUDA driver is installed here")
def test_no_driver_at_all(run_python: RunPython) -> None:
    printed = run_python(NOT_FOUND, CUDAMOD_DRIVER="auto", LD_LIBRARY_PATH=None)
    assert "libcuda.so.1: cannot open shared object file" in printed
    assert "CUDAMOD_DRIVER=emulated" in printed
    assert "cudamod.driver.use('emulated')" in printed


@pytest.mark.parametrize(
    ("macros", "reason"),
    [
        ({"VERSION": 11080}, "the driver supports CUDA 11.8; CUDA 12.0 or newer is needed"),
        ({"DEVICES": 0}, "no CUDA device: cuDeviceGetCount says 0"),
        ({"INIT_STATUS": 100}, "cuInit answered 100 (CUDA_ERROR_NO_DEVICE)"),
        ({"INIT_STATUS": 34}, "a stub library for linking, not a driver"),
        ({"VERSION_STATUS": 34}, "a stub library for linking, not a driver"),
        ({"INIT_STATUS": 999}, "cuInit answered 999 (CUDA_ERROR_UNKNOWN)"),
    ],
)
@pytest.mark.parametrize("choice", ["path", "auto"])
def test_unusable_driver_counts_as_none(
    run_python: RunPython, stand_in: StandIn, macros: dict[str, int], reason: str, choice: str
) -> None:
    path = stand_in(**macros)
    if choice == "path":
        printed = run_python(NOT_FOUND, CUDAMOD_DRIVER=str(path))
    elif has_installed_driver():
        pytest.skip("a CUDA driver is installed here, and would be used")
    else:
        printed = run_python(NOT_FOUND, CUDAMOD_DRIVER="auto", LD_LIBRARY_PATH=str(path.parent))
    assert reason in printed
    assert str(path) in printed


@pytest.mark.emulated
def test_the_reason_is_that_of_the_failed_attempt(run_python: RunPython) -> None:
    """A second attempt would succeed, and its success would hide why the first one failed."""
    code = NOT_FOUND.replace("driver.cuDeviceGetCount()", "cudamod.Device(0)")
    printed = run_python(code, CUDAMOD_DRIVER="emulated", CUDAMOD_EMULATOR_FAIL="cuInit:1:2")
    assert "cuInit answered 2 (CUDA_ERROR_OUT_OF_MEMORY)" in printed


def test_file_that_is_no_library(run_python: RunPython, tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so.1"
    path.write_text("hello\n" * 100)
    printed = run_python(NOT_FOUND, CUDAMOD_DRIVER=str(path))
    assert str(path) in printed
    assert "invalid ELF header" in printed


def test_library_that_is_no_driver(run_python: RunPython, cxx: list[str], tmp_path: Path) -> None:
    path = tmp_path / "libother.so"
    command = [*cxx, "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    subprocess.run(command, input="int other;", text=True, check=True)
    printed = run_python(NOT_FOUND, CUDAMOD_DRIVER=str(path))
    assert "not a CUDA driver" in printed


def test_missing_path(run_python: RunPython, tmp_path: Path) -> None:
    path = tmp_path / "nothing.so"
    printed = run_python(NOT_FOUND, CUDAMOD_DRIVER=str(path))
    assert f"{path}: cannot open shared object file" in printed


def test_opening_is_tried_again(run_python: RunPython, stand_in: StandIn, tmp_path: Path) -> None:
    code = """
import os, shutil, cudamod
from cudamod import driver
for _ in range(2):
    try:
        driver.version()
    except cudamod.DriverNotFoundError:
        pass
    else:
        raise SystemExit("opened nothing")
shutil.copy(os.environ["STAND_IN"], "late.so")
assert driver.version() == 13000
"""
    run_python(code, CUDAMOD_DRIVER=str(tmp_path / "late.so"), STAND_IN=str(stand_in()))


def test_use_before_the_first_call_wins(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import os, pathlib
from cudamod import driver
driver.use(pathlib.Path(os.environ["STAND_IN"]))
assert driver.version() == 12020
driver.use(os.environ["STAND_IN"])  # the same again is no change
try:
    driver.use("auto")
except RuntimeError as error:
    assert "is open already" in str(error) and os.environ["STAND_IN"] in str(error), error
else:
    raise SystemExit("the driver was changed")
"""
    run_python(code, CUDAMOD_DRIVER="/nowhere", STAND_IN=str(stand_in(VERSION=12020)))


def test_use_refuses_an_empty_choice(run_python: RunPython) -> None:
    code = """
from cudamod import driver
try:
    driver.use("")
except RuntimeError as error:
    assert "'auto', 'emulated' or a path" in str(error)
else:
    raise SystemExit("accepted")
"""
    run_python(code)


def test_the_environment_is_read_when_the_driver_opens(
    run_python: RunPython, stand_in: StandIn
) -> None:
    code = """
import os
from cudamod import driver
os.environ["CUDAMOD_DRIVER"] = os.environ["STAND_IN"]
assert driver.version() == 13000
"""
    run_python(code, CUDAMOD_DRIVER="/nowhere", STAND_IN=str(stand_in()))


def test_threads_open_one_driver(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from cudamod import driver
barrier = Barrier(8)
def first_call(_):
    barrier.wait()
    return driver.lib.cuInit(0), driver.cuDeviceGetCount()
with ThreadPoolExecutor(8) as pool:
    assert list(pool.map(first_call, range(8))) == [(0, 1)] * 8
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_child_of_a_fork_can_go_on(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import os, warnings
from cudamod import driver
warnings.simplefilter("ignore", DeprecationWarning)
driver.version()
child = os.fork()
if child == 0:
    os._exit(driver.cuDeviceGetCount())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


TOO_OLD = """
import cudamod, pickle
from cudamod import driver
name, needed, found = {name!r}, {needed}, {found}
assert not driver.has(name)
assert not hasattr(driver, name)
assert name in dir(driver)
try:
    getattr(driver, name)
except cudamod.DriverTooOldError as error:
    assert isinstance(error, cudamod.CUDAError) and isinstance(error, NotImplementedError)
    assert (error.call, error.name) == (name, "CUDA_ERROR_NOT_FOUND"), error.name
    assert (error.needed, error.found) == (needed, found), (error.needed, error.found)
    print(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name, again.needed) == (str(error), error.name, needed)
else:
    raise SystemExit("was found")
# The raw call, and what a native caller does with its status, say the same.
types = driver.ffi.typeof(getattr(driver.lib, name)).args
arguments = [driver.ffi.NULL if type.kind == "pointer" else 0 for type in types]
assert getattr(driver.lib, name)(*arguments) == 500
try:
    cudamod._core.raise_status(500, name)
except cudamod.DriverTooOldError as error:
    assert error.needed == needed
else:
    raise SystemExit("no error")
# The note is not taken for another call's.
getattr(driver.lib, name)(*arguments)
try:
    cudamod._core.raise_status(500, "cuModuleGetFunction")
except cudamod.DriverTooOldError:
    raise SystemExit("the wrong call")
except cudamod.CUDAError as error:
    assert error.call == "cuModuleGetFunction"
"""


def test_driver_too_old_for_one_function(run_python: RunPython, stand_in: StandIn) -> None:
    code = TOO_OLD.format(name="cuKernelGetParamInfo", needed=12040, found=12020)
    printed = run_python(code, CUDAMOD_DRIVER=str(stand_in(VERSION=12020)))
    assert printed == (
        "cuKernelGetParamInfo needs a CUDA 12.4 driver; this one supports CUDA 12.2\n"
    )


def test_driver_that_lacks_a_function_of_its_version(
    run_python: RunPython, stand_in: StandIn
) -> None:
    path = stand_in(LACKS="cuMemGetInfo")
    code = TOO_OLD.format(name="cuMemGetInfo", needed=3020, found=13000)
    printed = run_python(code, CUDAMOD_DRIVER=str(path))
    assert "lacks it all the same" in printed


def test_older_function_of_another_type_is_never_called(
    run_python: RunPython, stand_in: StandIn
) -> None:
    """CuCtxCreate took a parameter more from 12.5 on; a 12.2 driver answers with the old one."""
    code = """
import cudamod
from cudamod import driver
takes_parameters = len(driver.ffi.typeof(driver.lib.cuCtxCreate).args) == 4
old = driver.version() < 12050
if takes_parameters and old:
    assert not driver.has("cuCtxCreate")
elif takes_parameters:
    assert int(driver.ffi.cast("intptr_t", driver.cuCtxCreate(None, 0, 0))) == 4
else:
    assert int(driver.ffi.cast("intptr_t", driver.cuCtxCreate(0, 0))) == 2
"""
    for version in (12020, 12050):
        run_python(code, CUDAMOD_DRIVER=str(stand_in(VERSION=version)))


def test_driver_without_logs_gives_shorter_errors(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import cudamod
from cudamod import driver
try:
    driver.cuDeviceGet(7)
except cudamod.CUDAError as error:
    print(error, [error.log])
"""
    printed = run_python(code, CUDAMOD_DRIVER=str(stand_in(VERSION=12020)))
    assert printed == "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE: another error ['']\n"
    printed = run_python(code, CUDAMOD_DRIVER=str(stand_in(VERSION=12090)))
    assert "; the driver says: Device ordinal is beyond the last device [" in printed


def test_log_is_of_the_failing_call_and_thread(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import threading
import cudamod
from cudamod import driver
def log_of(call, *arguments):
    try:
        call(*arguments)
    except cudamod.CUDAError as error:
        return error.log
out = driver.ffi.new("int *")
for _ in range(1000):  # nobody takes these
    driver.lib.cuDeviceGet(out, 7)
assert log_of(driver.cuDeviceGetAttribute, 1, 0) == ""      # silent failure: not the words above
expected = ("Device ordinal is beyond the last device\\n"
            "Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGet")
assert log_of(driver.cuDeviceGet, 7) == expected            # one report, not a thousand
driver.lib.cuDeviceGet(out, 7)
found = []
thread = threading.Thread(target=lambda: found.append(log_of(driver.cuDeviceGetAttribute, 1, 0)))
thread.start(); thread.join()
assert found == [""]
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_functions_return_their_outputs(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import cudamod
from cudamod import driver
assert driver.cuInit(0) is None
assert driver.cuDeviceGetCount() == 1
assert driver.cuMemGetInfo() == (1, 2)
assert driver.cuKernelGetParamInfo(0x1234, 3) == (24, 8)
assert driver.cuEventElapsedTime(0x1, None) == 1.5
assert driver.cuMemAlloc(16) == 0x7f0000000000
status = driver.cuStreamIsCapturing(None)
assert status is driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE, status
name = bytearray(32)
driver.cuDeviceGetName(name, len(name), 0)
assert name.rstrip(b"\\0") == b"stand-in"
assert driver.cuGetErrorString(1) == "invalid argument"
attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE
assert driver.cuDeviceGetAttribute(attribute, 0) == attribute * 10
assert "CUresult cuDeviceGetCount(int * count), CUDA 2.0" in driver.cuDeviceGetCount.__doc__
assert driver.CUstreamAttrID is driver.CUlaunchAttributeID  # two names of one C type
import inspect
assert str(inspect.signature(driver.cuDeviceGetAttribute)) == "(attrib, dev, /)"
for bad in (lambda: driver.cuInit(), lambda: driver.cuInit(0, 0), lambda: driver.cuMemAlloc("x")):
    try:
        bad()
    except TypeError:
        pass
    else:
        raise SystemExit("accepted")
try:
    driver.cuDeviceGetName(object(), 0, 0)
except TypeError as error:
    assert str(error).startswith("cuDeviceGetName(): name: "), error
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_errors_are_what_python_expects(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
import errno, pickle
import cudamod
from cudamod import driver
def error_of(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
        assert (again.status, again.name, again.call, again.log) == (
            error.status, error.name, error.call, error.log)
        return error
memory = error_of(driver.cuMemAlloc, 1 << 40)
assert isinstance(memory, MemoryError) and isinstance(memory, cudamod.CUDAError)
assert memory.status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
load = lambda path: driver.cuLibraryLoadFromFile(path, None, None, 0, None, None, 0)
missing = error_of(load, "missing.cubin")
assert isinstance(missing, FileNotFoundError) and missing.errno == errno.ENOENT
assert (missing.status, missing.name) == (301, "CUDA_ERROR_FILE_NOT_FOUND")
other = error_of(load, "other.cubin")
assert type(other) is cudamod.CUDAError and isinstance(other, RuntimeError)
assert str(other) == "cuLibraryLoadFromFile: CUDA_ERROR_INVALID_VALUE: invalid argument"
named = error_of(cudamod._core.raise_status, 1, "cuLaunchKernelEx", "kernel 'saxpy'")
assert str(named).endswith(": invalid argument (kernel 'saxpy')")
assert named.subject == "kernel 'saxpy'"
future = error_of(cudamod._core.raise_status, 4321, "cuFuture")
assert future.name == "CUDA_ERROR_OF_THE_FUTURE"
assert cudamod._core.raise_status(0, "cuInit") is None
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_unknown_names_are_attribute_errors(run_python: RunPython, stand_in: StandIn) -> None:
    code = """
from cudamod import driver
for name in ("cuNoSuchFunction", "CUnoSuchType", "CUDA_NO_SUCH_MACRO", "CUstream"):
    assert not hasattr(driver, name), name
    assert not driver.has(name)
assert not driver.opened()
try:
    driver.cuNoSuchFunction
except AttributeError as error:
    assert "cuNoSuchFunction" in str(error)
"""
    run_python(code, CUDAMOD_DRIVER=str(stand_in()))


def test_help_works_without_a_driver(run_python: RunPython) -> None:
    code = """
import pydoc
from cudamod import driver
print(pydoc.plain(pydoc.render_doc(driver)))
print(pydoc.plain(pydoc.render_doc(driver.cuStreamCreate)))
"""
    printed = run_python(code, CUDAMOD_DRIVER="/nowhere")
    assert "needed_version(name: 'str')" in printed
    assert "cuStreamCreate(Flags, /)" in printed
    assert "Returns phStream." in printed
