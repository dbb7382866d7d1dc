"""Programs written for cuda.core, run with it and with cudamod in its place.

``cuda_core.json`` is what they showed with cuda.core 1.2 on the emulated sm_90, ``surface.json``
what there is in it; cudamod has to show and have the same but for the differences in
``differences.py`` and what is missing by ``missing.py``. Where cuda.core is installed, it runs too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cudamod
from cudamod import Device, _nvrtc, driver
from cudamod._compiler_library import NVJITLINK, NVRTC, NVVM

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from differences import DIFFERENCES, PAGE, expected, with_table  # noqa: E402
from missing import MISSING, SURFACE, here, surface_of  # noqa: E402
from missing import with_table as with_missing  # noqa: E402

RECORDED = HERE / "cuda_core.json"
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.py"))
Shown = dict[str, dict[str, Any]]


def recorded() -> Shown:
    shown: Shown = json.loads(RECORDED.read_text())
    return shown


def run(module: str, names: list[str], **environment: str) -> Shown:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "run_programs.py"), module, *names],
        env={**os.environ, "CUDAMOD_EMULATOR_QUIET": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown: Shown = json.loads(done.stdout)
    return shown


def needs_compilers(program: str) -> bool:
    return program.startswith(("program", "linker"))


def have_compilers() -> bool:
    """Whether they are there, and the driver takes what they make."""
    if not all(library.is_available() for library in (NVRTC, NVJITLINK, NVVM)):
        return False
    major, minor = _nvrtc.version()
    return 1000 * major + 10 * minor <= driver.version()


def runnable() -> list[str]:
    compilers = have_compilers()
    return [program for program in PROGRAMS if compilers or not needs_compilers(program)]


def skip_unless_runnable(program: str, shown: Shown) -> None:
    if program not in shown:
        pytest.skip("the extra compile is not installed, or newer than the driver")


def have_cuda_core() -> bool:
    try:
        found = importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False
    if found:
        from importlib.metadata import version

        found = version("cuda-core").startswith("1.2.")
    return found


@pytest.fixture(scope="module")
def ours() -> Shown:
    """What the programs show with cudamod."""
    return run("cudamod", runnable())


@pytest.fixture(scope="module")
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """What they show with cuda.core, on the same driver."""
    if not have_cuda_core():
        pytest.skip("cuda.core 1.2 is not installed")
    environment = {}
    if request.config.getoption("--driver") == "emulated":
        folder = tmp_path_factory.mktemp("driver")
        emulated = Path(cudamod.__file__).with_name("libcudamod_emulated_driver.so")
        (folder / "libcuda.so.1").symlink_to(emulated)
        environment["LD_LIBRARY_PATH"] = str(folder)
    return run("cuda.core", runnable(), **environment)


@pytest.mark.parametrize("program", PROGRAMS)
def test_cudamod_shows_what_is_recorded(ours: Shown, program: str) -> None:
    if Device(0).arch != "90":
        pytest.skip("recorded on sm_90")
    skip_unless_runnable(program, ours)
    assert ours[program] == expected(recorded())[program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_cudamod_shows_what_cuda_core_does(ours: Shown, theirs: Shown, program: str) -> None:
    skip_unless_runnable(program, ours)
    assert ours[program] == expected(theirs)[program]


@pytest.mark.emulated
def test_the_recording_is_cuda_cores(theirs: Shown) -> None:
    assert theirs == {program: recorded()[program] for program in theirs}


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 50
    assert sorted(recorded()) == PROGRAMS
    for program in PROGRAMS:
        text = (HERE / "programs" / f"{program}.py").read_text()
        assert "from cuda.core import" in text
        assert "cudamod" not in text


def test_differences_are_differences() -> None:
    shown = recorded()
    for difference in DIFFERENCES:
        assert difference.shown, difference.subject
        for key, value in difference.shown.items():
            program, name = key.split(".")
            assert shown[program][name] != value, f"{key} is no difference"


def test_the_documented_table_is_this_one() -> None:
    assert with_table(PAGE.read_text()) == PAGE.read_text()
    assert with_missing(PAGE.read_text()) == PAGE.read_text()


def test_what_is_missing_is_known() -> None:
    documented = {name for names in MISSING for name in names}
    theirs: dict[str, list[str]] = json.loads(SURFACE.read_text())
    missing = {
        f"{kind}.{name}" if kind else name
        for kind, names in theirs.items()
        for name in names
        if not here(kind, name)
    }
    assert {name for name in missing if name.split(".")[0] not in documented} <= documented
    assert documented <= missing


def test_the_recorded_surface_is_cuda_cores() -> None:
    if not have_cuda_core():
        pytest.skip("cuda.core 1.2 is not installed")
    import cuda.core

    assert surface_of(cuda.core) == json.loads(SURFACE.read_text())
