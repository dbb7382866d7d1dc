"""The emulated driver through ctypes, without the rest of the library: what its own tests use."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
IMAGES = DATA / "h200"
NAME = "libcudamod_emulated_driver.so"

Pointer = ctypes.c_void_p

#: Symbols behind the names that this file's ``call`` takes without a version suffix.
SYMBOLS = {
    "cuMemAlloc": "cuMemAlloc_v2",
    "cuMemFree": "cuMemFree_v2",
    "cuMemcpyHtoD": "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH": "cuMemcpyDtoH_v2",
    "cuMemsetD8": "cuMemsetD8_v2",
    "cuMemsetD32": "cuMemsetD32_v2",
    "cuMemGetInfo": "cuMemGetInfo_v2",
    "cuMemAllocHost": "cuMemAllocHost_v2",
    "cuMemHostRegister": "cuMemHostRegister_v2",
    "cuMemHostGetDevicePointer": "cuMemHostGetDevicePointer_v2",
    "cuMemGetAddressRange": "cuMemGetAddressRange_v2",
    "cuModuleGetGlobal": "cuModuleGetGlobal_v2",
    "cuCtxCreate": "cuCtxCreate_v2",
    "cuCtxDestroy": "cuCtxDestroy_v2",
    "cuCtxPushCurrent": "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent": "cuCtxPopCurrent_v2",
    "cuStreamDestroy": "cuStreamDestroy_v2",
    "cuEventDestroy": "cuEventDestroy_v2",
    "cuDevicePrimaryCtxRelease": "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset": "cuDevicePrimaryCtxReset_v2",
    "cuDeviceTotalMem": "cuDeviceTotalMem_v2",
    "cuGetProcAddress": "cuGetProcAddress_v2",
}


def find_driver() -> Path | None:
    """The shared object: ``CUDAMOD_TEST_EMULATED_DRIVER``, else the installed package's."""
    chosen = os.environ.get("CUDAMOD_TEST_EMULATED_DRIVER")
    if chosen:
        return Path(chosen)
    package = importlib.util.find_spec("cudamod")
    for folder in (package.submodule_search_locations or []) if package else []:
        if (Path(folder) / NAME).exists():
            return Path(folder) / NAME
    return None


class DriverError(Exception):
    """A call answered something else than 0."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"{call} answered {status}")
        self.status = status


class EmulatedDriver:
    """The driver's C functions by name; ``status`` answers the status, ``call`` insists on 0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))

    def function(self, name: str) -> Any:
        return getattr(self.library, SYMBOLS.get(name, name))

    def status(self, name: str, *arguments: Any) -> int:
        return int(self.function(name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        status = self.status(name, *arguments)
        if status:
            raise DriverError(name, status)

    def get(self, name: str, ctype: Any, *arguments: Any) -> Any:
        """The value that a call writes through its first argument."""
        value = ctype()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def pointer(self, name: str, *arguments: Any) -> Pointer:
        """The same, as an argument for further calls."""
        return Pointer(self.get(name, Pointer, *arguments))

    def load(self, image: bytes) -> Pointer:
        return self.pointer("cuLibraryLoadData", image + b"\0", None, None, 0, None, None, 0)

    def load_file(self, name: str) -> Pointer:
        return self.load((IMAGES / name).read_bytes())

    def kernel(self, library: Pointer, name: bytes) -> Pointer:
        return self.pointer("cuLibraryGetKernel", library, name)

    def allocate(self, size: int) -> Pointer:
        return self.pointer("cuMemAlloc", ctypes.c_size_t(size))

    def upload(self, data: bytes) -> Pointer:
        memory = self.allocate(len(data))
        self.call("cuMemcpyHtoD", memory, data, ctypes.c_size_t(len(data)))
        return memory

    def download(self, memory: Pointer, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH", data, memory, ctypes.c_size_t(size))
        return data.raw

    def launch(
        self,
        kernel: Pointer,
        arguments: list[Any] | None = None,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (1, 1, 1),
        shared: int = 0,
        stream: Any = None,
    ) -> int:
        """The status of cuLaunchKernel; ``arguments`` are ctypes values, or None for NULL."""
        parameters = None
        if arguments is not None:
            parameters = (Pointer * max(len(arguments), 1))(
                *(ctypes.addressof(argument) for argument in arguments)
            )
        return self.status(
            "cuLaunchKernel", kernel, *grid, *block, shared, stream, parameters, None
        )

    def make_current(self, device: int = 0) -> Pointer:
        """The device's primary context, retained and current."""
        self.call("cuInit", 0)
        context = self.pointer("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxSetCurrent", context)
        return context


IMPORTS = (
    f"import ctypes, sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    "from pathlib import Path\nfrom emulated_driver_api import *\n"
)


def opening(path: Path) -> str:
    """The beginning of a script in which ``driver`` is an EmulatedDriver."""
    return f"{IMPORTS}driver = EmulatedDriver(Path({str(path)!r}))\n"


def run_script(path: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs ``script`` in a fresh interpreter, where ``driver`` is an EmulatedDriver."""
    return run_python(opening(path) + script, **environment)


def run_python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # Python's own warning of a fork beside threads is not what is asked.
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_seeds(path: Path, script: str, seeds: Sequence[int]) -> list[str]:
    """What ``script`` prints with each seed, from one interpreter.

    A child process for each seed opens the driver and has the names of test_emulated_asynchrony.
    """
    whole = f"""{IMPORTS}
import os
from test_emulated_asynchrony import *
script = compile({script!r}, "script", "exec")
for seed in {list(seeds)!r}:
    if not (child := os.fork()):
        os.environ["CUDAMOD_EMULATOR_SEED"] = str(seed)
        driver = EmulatedDriver(Path({str(path)!r}))
        exec(script)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, seed
    print("end of a seed", flush=True)
"""
    done = run_python(whole)
    assert done.stderr == ""
    return done.stdout.split("end of a seed\n")[:-1]
