"""`import cudamod` does little, and says what."""

from __future__ import annotations

from collections.abc import Callable

# Everything that the import adds to a bare interpreter. A new name here is a decision.
OWN = {
    "cudamod",
    "cudamod._core",
    "cudamod.errors",
    "cudamod.event",
    "cudamod.image",
    "cudamod.object_code",
    "cudamod.options",
    "cudamod.stream",
}
STANDARD = {"__future__", "atexit"}


def test_import_brings_a_short_list_of_modules(run_python: Callable[..., str]) -> None:
    code = """
import sys
before = set(sys.modules)
import cudamod
print(*sorted(set(sys.modules) - before))
"""
    assert set(run_python(code).split()) <= OWN | STANDARD


def test_import_opens_no_library(run_python: Callable[..., str]) -> None:
    code = """
import cudamod
maps = open("/proc/self/maps").read()
assert "cudamod/_core" in maps
for name in ("libcuda", "libcudamod_emulated", "_cffi_backend", "libnvrtc", "numpy"):
    assert name not in maps, name
"""
    run_python(code)


def test_rare_modules_come_when_they_are_asked_for(run_python: Callable[..., str]) -> None:
    code = """
import cudamod
cudamod.handles.retired, cudamod.driver.use, cudamod.emulator.inject
cudamod.Program, cudamod.ProgramOptions, cudamod.Linker, cudamod.LinkerOptions, cudamod.CompileCache
try:
    cudamod.nothing
except AttributeError as error:
    print(error)
"""
    assert run_python(code) == "module 'cudamod' has no attribute 'nothing'\n"


def test_a_second_copy_is_refused(run_python: Callable[..., str]) -> None:
    code = """
import sys
import cudamod
for name in [name for name in sys.modules if name.startswith("cudamod")]:
    del sys.modules[name]
try:
    import cudamod as again
except ImportError as error:
    print(error)
"""
    assert "once per process" in run_python(code)


def test_options_of_programs_need_no_compiler(run_python: Callable[..., str]) -> None:
    code = """
import sys
import cudamod
cudamod.Program("", "c++", cudamod.ProgramOptions(arch="sm_90"))
print([name for name in sys.modules if name == "cuda" or name.startswith("cuda.")])
assert "libnvrtc" not in open("/proc/self/maps").read()
"""
    assert run_python(code) == "[]\n"
