"""The driver that benchmarks run on, and what they launch."""

from __future__ import annotations

import os

import pytest
from workloads import Bench


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--driver",
        choices=["emulated", "hardware"],
        default="emulated",
        help="the emulated driver, whose launches return at once (default), or the installed one",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--driver") == "emulated":
        os.environ["CUDAMOD_DRIVER"] = "emulated"
        os.environ["CUDAMOD_EMULATOR_NULL_LAUNCH"] = "1"
    else:
        os.environ["CUDAMOD_DRIVER"] = "auto"


def pytest_report_header() -> str:
    from cudamod import Device, driver

    return f"cudamod benchmarks on {driver.describe()}, {Device(0).name}"


@pytest.fixture(scope="session")
def bench() -> Bench:
    """A device, a stream, and kernels that do nothing."""
    return Bench()
