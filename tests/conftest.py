"""What all tests share: the choice of driver, child processes, and a C++ compiler."""

from __future__ import annotations

import gc
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ptx import Stored
    from ptx_kernels import Bench

    from cudamod import Device, Stream

CHOICES = {"emulated": "emulated", "hardware": "auto"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--driver",
        choices=sorted(CHOICES),
        default="emulated",
        help="run on the emulated driver (default) or on the installed one",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="run for a minute what shows by its length that something never happens",
    )
    parser.addoption(
        "--part",
        metavar="I/N",
        help="run the I-th of N parts of the test files, for machines that are lent for minutes",
    )
    parser.addoption(
        "--cuda-headers",
        type=Path,
        metavar="DIR",
        help="folder with nvidia-cuda-runtime wheels whose headers the generator must handle",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Through the environment, so that child processes run on the same driver.
    os.environ["CUDAMOD_DRIVER"] = CHOICES[config.getoption("--driver")]
    # A shell has what it runs in the background, and so its children, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "emulated: what only the emulated driver survives or tells")


def pytest_report_header() -> str:
    import cudamod
    from cudamod import driver

    try:
        return f"cudamod {cudamod.__version__} on {driver.describe()}"
    except cudamod.DriverNotFoundError as error:
        return f"cudamod {cudamod.__version__}: {error}"


@pytest.fixture(scope="session", autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Through the environment, so that child processes keep out of it, too."""
    os.environ["CUDAMOD_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def cxx() -> list[str]:
    """The command of a C++ compiler."""
    for candidate in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        command = shlex.split(candidate)
        if command and shutil.which(command[0]):
            return command
    pytest.skip("no C++ compiler here")


@pytest.fixture
def run_python_both(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Run code in a fresh interpreter and return what it printed, on stdout and on stderr.

    It must exit with 0. Keyword arguments are environment variables; None removes one.
    """

    def run(code: str, **environment: str | None) -> tuple[str, str]:
        merged: dict[str, str | None] = {**os.environ, **environment}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={name: value for name, value in merged.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    return run


@pytest.fixture
def run_python(run_python_both: Callable[..., tuple[str, str]]) -> Callable[..., str]:
    """The same, for what it printed on stdout."""
    return lambda code, **environment: run_python_both(code, **environment)[0]


def keep_part(config: pytest.Config, items: list[pytest.Item], part: str) -> None:
    """Deselect the tests of other parts; a file stays whole, since its tests share fixtures."""
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise pytest.UsageError(f"--part must be I/N with 1 <= I <= N, not {part!r}")
    index, count = int(match[1]) - 1, int(match[2])
    files = sorted({item.path for item in items})
    chosen = set(files[index::count])
    config.hook.pytest_deselected(items=[item for item in items if item.path not in chosen])
    items[:] = [item for item in items if item.path in chosen]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if part := config.getoption("--part"):
        keep_part(config, items, part)
    if config.getoption("--driver") == "emulated":
        return
    skip = pytest.mark.skip(reason="only the emulated driver survives or tells this")
    for item in items:
        if item.get_closest_marker("emulated"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Lets collections pass over what is alive now: many tests collect garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def device() -> Iterator[Device]:
    """Device 0, current in this thread; afterwards the thread has no current context."""
    import cudamod
    from cudamod import driver

    device = cudamod.Device(0)
    device.set_current()
    yield device
    driver.cuCtxSetCurrent(None)


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    """A new stream on device 0, which is current."""
    stream = device.create_stream()
    yield stream
    if not stream.is_closed:
        stream.sync()


@pytest.fixture
def other_context(device: Device) -> Iterator[int]:
    """The handle of a context beside the primary one, which is current when the test begins."""
    from cudamod import driver

    if not driver.has("cuCtxCreate"):
        pytest.skip("the driver lacks this build's cuCtxCreate")
    context = driver.cuCtxCreate(None, 0, device.device_id)
    driver.cuCtxPopCurrent()
    yield int(driver.ffi.cast("uintptr_t", context))
    driver.cuCtxDestroy(context)


@pytest.fixture
def stored(stream: Stream) -> Stored:
    """Kernels that store their arguments, see ``tests/ptx.py``."""
    from ptx import Stored

    return Stored(stream)


@pytest.fixture
def bench(stream: Stream, pytestconfig: pytest.Config) -> Iterator[Bench]:
    """Runs the kernels of ``data/ptx``, see ``tests/ptx_kernels.py``, under every check."""
    from ptx_kernels import Bench

    from cudamod import emulator

    if pytestconfig.getoption("--driver") != "emulated":
        yield Bench(stream)
        return
    emulator.checks("all")
    yield Bench(stream)
    emulator.checks()
