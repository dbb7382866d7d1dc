"""A pytest plugin: fails a test that leaves handles of cudamod alive.

Installed with the package and off by default. ``pytest --cudamod-leaks``, or ``cudamod_leaks =
true`` in the configuration, turns it on. After a test that passed, once its fixtures are torn down,
every handle that was created meanwhile and would end with its last reference must be gone; what a
fixture of a wider scope created may stay. ``@pytest.mark.cudamod_leaks_allowed`` exempts a test.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from cudamod import handles

__all__ = ["LeakCheck", "pytest_addoption", "pytest_configure"]

MARK = "cudamod_leaks_allowed"


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "fail a test that leaves handles of cudamod alive"
    parser.getgroup("cudamod").addoption("--cudamod-leaks", action="store_true", help=help)
    parser.addini("cudamod_leaks", help, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: the test may leave handles of cudamod alive")
    if config.getoption("--cudamod-leaks") or config.getini("cudamod_leaks"):
        config.pluginmanager.register(LeakCheck(), "cudamod-leaks")


def _owned() -> list[handles.LiveHandle]:
    return [handle for handle in handles.live() if handle.lifetime == "owned"]


class LeakCheck:
    """Compares the live handles before and after each test."""

    def __init__(self) -> None:
        self._expected: set[int] = set()
        self._passed = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        self._expected = {handle.serial for handle in handles.live()}
        self._passed = True
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        before = {handle.serial for handle in handles.live()}
        try:
            return (yield)
        finally:
            self._expected |= {handle.serial for handle in handles.live()} - before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self,
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._passed &= report.passed
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        result = yield
        # A failure keeps the test's frames, and with them its handles.
        if self._passed and not item.get_closest_marker(MARK):
            if arguments := getattr(item, "funcargs", None):
                arguments.clear()  # the fixtures' values, which pytest lets go of only later
            if self._left(_owned()) and (left := self._left(handles.leaks())):
                pytest.fail(
                    "the test left handles alive:\n" + "\n".join(f"  {handle}" for handle in left),
                    pytrace=False,
                )
        return result

    def _left(self, live: list[handles.LiveHandle]) -> list[handles.LiveHandle]:
        return [handle for handle in live if handle.serial not in self._expected]
