"""What is said where a compiler, or the bindings that call it, are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import NVVM_IR, PTX, SAXPY, needs_nvjitlink, needs_nvrtc, needs_nvvm

import cudamod

Run = Callable[[str], str]


@pytest.fixture(scope="module")
def environment_without_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has everything but NVIDIA's libraries."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    there = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    packages = [
        Path(cudamod.__file__).parents[1],
        Path(sysconfig.get_path("purelib")),
        Path(sysconfig.get_path("platlib")),
    ]
    for package in packages:
        for part in package.iterdir():
            link = Path(there) / part.name
            if not part.name.startswith(("nvidia", "__editable__")) and not link.exists():
                link.symlink_to(part)
    return python


@pytest.fixture
def run_without_libraries(environment_without_libraries: Path, tmp_path: Path) -> Run:
    hidden = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(code: str) -> str:
        done = subprocess.run(
            [environment_without_libraries, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


COMPILE = """
import warnings
warnings.simplefilter("ignore")
import cudamod
from cudamod import Linker, ObjectCode, Program
try:
    {statement}
except cudamod.CompilerNotFoundError as error:
    print(isinstance(error, RuntimeError), error)
"""
CXX = f'Program({SAXPY!r}, "c++", {{"arch": "sm_90"}}).compile("cubin")'
NVVM = f'Program({NVVM_IR!r}, "nvvm", {{"arch": "sm_90"}}).compile("ptx")'
LTO = 'Linker(ObjectCode.from_ltoir(b"x"))'
ASSEMBLE = f'Program({PTX!r}, "ptx", {{"arch": "sm_90"}}).compile("cubin")'
TITLES = {CXX: "NVRTC", NVVM: "libNVVM", LTO: "nvJitLink"}


def check(printed: str, title: str, missing: str) -> None:
    assert printed.startswith("True ")
    assert title in printed
    assert missing in printed
    assert "`pip install cudamod[compile]`" in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize("statement", TITLES, ids=TITLES.values())
def test_no_bindings(statement: str, run_python: Callable[..., str]) -> None:
    hide = "import sys\nsys.modules['cuda'] = None\n"
    printed = run_python(hide + COMPILE.format(statement=statement))
    check(printed, TITLES[statement], "the bindings that call it")


@needs_nvrtc
@needs_nvvm
@needs_nvjitlink
@pytest.mark.parametrize("statement", TITLES, ids=TITLES.values())
def test_no_library(statement: str, run_without_libraries: Run) -> None:
    printed = run_without_libraries(COMPILE.format(statement=statement))
    if not printed:
        pytest.skip("the system has the library itself")
    check(printed, TITLES[statement], "on PyPI")


def test_neither_nvjitlink_nor_a_driver(run_python: Callable[..., str]) -> None:
    hide = "import sys\nsys.modules['cuda'] = None\n"
    code = hide + COMPILE.format(statement=ASSEMBLE)
    printed = run_python(code, CUDAMOD_DRIVER="/nowhere/libcuda.so.1")
    check(printed, "nvJitLink", "no driver")


@needs_nvrtc
def test_what_an_older_nvrtc_has_not(tmp_path: Path) -> None:
    from cudamod import _nvrtc

    program = cudamod.Program(SAXPY, "c++", {"arch": "sm_90", "use_bundled_headers": True})
    if _nvrtc.version() < (13, 3):
        with pytest.raises(RuntimeError, match=r"needs NVRTC 13\.3 or newer; 13\.\d is installed"):
            program.compile("ptx", cache=False)
    else:
        assert program.compile("ptx", cache=False).code
