"""`import cudamod` does little, and says what."""

from __future__ import annotations

from collections.abc import Callable

# Everything that the import adds to a bare interpreter. A new name here is a decision.
OWN = {
    "cudamod",
    "cudamod._core",
    "cudamod.errors",
    "cudamod.event",
    "cudamod.object_code",
    "cudamod.options",
    "cudamod.stream",
}
STANDARD = {"__future__", "atexit", "errno"}


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
