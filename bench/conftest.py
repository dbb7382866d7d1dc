"""The driver that benchmarks run on, and what they launch."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from interleaved import Interleaved
from workloads import Bench


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--driver",
        choices=["emulated", "hardware"],
        default="emulated",
        help="the emulated driver, whose launches return at once (default), or the installed one",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "card: what means nothing without one")
    if config.getoption("--driver") == "emulated":
        os.environ["CUDAMOD_DRIVER"] = "emulated"
        os.environ["CUDAMOD_EMULATOR_NULL_LAUNCH"] = "1"
        if importlib.util.find_spec("cuda") is not None:
            show_peers_the_emulated_driver(config)
    else:
        os.environ["CUDAMOD_DRIVER"] = "auto"


def show_peers_the_emulated_driver(config: pytest.Config) -> None:
    """Start again with the emulated driver as this process's libcuda, for cuda.core and bindings.

    A process's library path is read when it starts.
    """
    folder = os.environ.get("CUDAMOD_BENCH_LIBCUDA")
    if folder is None:
        folder = tempfile.mkdtemp(prefix="cudamod-bench-")
        package = Path(importlib.util.find_spec("cudamod").origin).parent
        Path(folder, "libcuda.so.1").symlink_to(package / "libcudamod_emulated_driver.so")
        path = os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
        environment = {**os.environ, "LD_LIBRARY_PATH": path, "CUDAMOD_BENCH_LIBCUDA": folder}
        if capture := config.pluginmanager.getplugin("capturemanager"):
            capture.stop_global_capturing()  # the new process shall print where this one would
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--driver") == "hardware":
        return
    for item in items:
        if item.get_closest_marker("card"):
            item.add_marker(pytest.mark.skip(reason="means nothing without a card"))


def pytest_report_header() -> str:
    from cudamod import Device, driver

    return f"cudamod benchmarks on {driver.describe()}, {Device(0).name}"


def pytest_benchmark_update_machine_info(
    config: pytest.Config, machine_info: dict[str, Any]
) -> None:
    """What every result must name."""
    import cudamod
    from cudamod import Device, driver

    machine_info["cudamod"] = {
        "version": cudamod.__version__,
        "driver": driver.describe(),
        "device": Device(0).name,
    }


@pytest.fixture(scope="session")
def bench() -> Bench:
    """A device, a stream, and kernels that do nothing."""
    return Bench()


@pytest.fixture
def interleaved(benchmark: Any, bench: Bench) -> Interleaved:
    """Measures several ways to do one thing in turn."""
    return Interleaved(benchmark, bench.device.sync)
