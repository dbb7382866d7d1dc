"""The plugin that fails a test which leaves handles alive."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from cudamod import Device

kept = []

@pytest.fixture(scope="module")
def wide():
    return Device(0).create_stream()

@pytest.fixture
def narrow():
    return Device(0).create_stream()

def test_keeps():
    kept.append(Device(0).create_stream())

def test_cleans_up(wide, narrow):
    cycle = [Device(0).create_stream(), narrow]
    cycle.append(cycle)

def test_uses_what_is_there(wide):
    assert not wide.is_closed

@pytest.mark.cudamod_leaks_allowed
def test_may_keep():
    kept.append(Device(0).create_stream())

def test_fails_itself():
    stream = Device(0).create_stream()
    assert stream.is_closed

@pytest.fixture
def leaky():
    kept.append(Device(0).create_event())
    yield
def test_has_a_leaky_fixture(leaky):
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(TESTS)
    return pytester


@pytest.mark.parametrize("way", ["option", "configuration"])
def test_a_test_that_leaves_handles_fails(run: pytest.Pytester, way: str) -> None:
    if way == "configuration":
        run.makeini("[pytest]\ncudamod_leaks = true\n")
    options = ["--cudamod-leaks"] if way == "option" else []
    result = run.runpytest_subprocess("-v", "--strict-markers", *options)
    result.assert_outcomes(passed=5, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_keeps*",
            "the test left handles alive:",
            "  stream 0x*, 1 references",
            "*ERROR at teardown of test_has_a_leaky_fixture*",
            "  event 0x*",
        ]
    )


def test_it_is_off_unless_asked_for(run: pytest.Pytester) -> None:
    run.runpytest_subprocess().assert_outcomes(passed=5, failed=1)
