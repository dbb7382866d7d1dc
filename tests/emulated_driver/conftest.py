"""The emulated driver as a fixture: one per process, and one that starts each test afresh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver, find_driver


@pytest.fixture(scope="session")
def shared_driver(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDriver:
    """A copy of the driver, and so one with nothing in it that other tests of the process did."""
    path = find_driver()
    if path is None:
        pytest.fail("no emulated driver: install the package or set CUDAMOD_TEST_EMULATED_DRIVER")
    return EmulatedDriver(Path(shutil.copy(path, tmp_path_factory.mktemp("driver"))))


@pytest.fixture
def driver(shared_driver: EmulatedDriver) -> Iterator[EmulatedDriver]:
    """The driver without injected failures, faults, recordings and current context."""
    shared_driver.library.cudamodEmulatorReset()
    yield shared_driver
    shared_driver.library.cudamodEmulatorReset()
    shared_driver.status("cuCtxSetCurrent", None)


@pytest.fixture
def current(driver: EmulatedDriver) -> Iterator[EmulatedDriver]:
    """The driver with device 0's primary context current; the context ends with the test."""
    driver.make_current()
    yield driver
    driver.library.cudamodEmulatorReset()
    driver.call("cuDevicePrimaryCtxRelease", 0)
