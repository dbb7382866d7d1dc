"""Inputs that are not whole are refused: NVIDIA's libraries crash on them, or don't return."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import ARCH, CALLER, NVVM_IR, needs_nvjitlink, needs_nvrtc, needs_nvvm

from cudamod import Linker, ObjectCode, Program, _core, _nvvm

DATA = Path(__file__).parent / "data"
WHOLE = [
    *(("cubin", path) for path in sorted(DATA.rglob("*.cubin"))),
    *(("fatbin", path) for path in sorted(DATA.rglob("*.fatbin"))),
]

# Every image that is cut off somewhere, or is junk with a good beginning.
TRY_ALL = """
import random
from cudamod import CompileError, Linker, ObjectCode, Program
image, kind = open({path!r}, "rb").read(), {kind!r}
random.seed(1)
cuts = sorted({{*range(80), *(random.randrange(len(image)) for _ in range(60)), len(image) - 1}})
damaged = [image[:cut] for cut in cuts if cut]
if kind != "ltoir":  # it has no tables that we know
    damaged += [image[:cut] + random.randbytes(len(image)) for cut in cuts if cut < 200]
for bad in damaged:
    try:
        if kind == "nvvm":
            Program(bad, "nvvm", {{"arch": "sm_90"}}).compile("ptx", cache=False)
        else:
            code = getattr(ObjectCode, "from_" + kind)(bad)
            Linker(code, options={{"arch": "sm_90"}}).link("cubin")
    except (CompileError, ValueError):
        pass
print(len(damaged))
"""


def check(run_python: Callable[..., str], path: Path, kind: str) -> None:
    assert int(run_python(TRY_ALL.format(path=str(path), kind=kind))) > 100


@pytest.mark.parametrize(("kind", "path"), WHOLE, ids=lambda value: Path(value).name)
def test_whole_images_are_whole(kind: str, path: Path) -> None:
    image = path.read_bytes()
    assert _core.damage_of(kind, image) == ""
    assert _core.damage_of(kind, image[: len(image) // 2])
    assert _core.damage_of(kind, image[1:])
    assert _core.damage_of("ptx", image) == ""  # no tables


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize("kind", ["cubin", "object", "ltoir"])
def test_damaged_code_of_the_compiler(
    kind: str, tmp_path: Path, run_python: Callable[..., str]
) -> None:
    options = {"arch": ARCH, "relocatable_device_code": True}
    target = "ltoir" if kind == "ltoir" else "cubin"
    code = Program(CALLER, "c++", options).compile(target).code
    assert isinstance(code, bytes)
    path = tmp_path / "code"
    path.write_bytes(code)
    check(run_python, path, kind)


@needs_nvjitlink
@pytest.mark.parametrize("name", ["none", "zstd", "lz4"])
def test_damaged_fatbins(name: str, run_python: Callable[..., str]) -> None:
    check(run_python, DATA / "fatbins" / f"saxpy.{name}.fatbin", "fatbin")


@needs_nvvm
def test_damaged_bitcode(tmp_path: Path, run_python: Callable[..., str]) -> None:
    path = Path(_nvvm.libdevice_path())
    assert _core.damage_of("nvvm", path.read_bytes()) == ""
    assert _core.damage_of("nvvm", NVVM_IR.encode()) == ""
    check(run_python, path, "nvvm")


@needs_nvjitlink
def test_the_error_names_the_input() -> None:
    for code in (
        ObjectCode.from_cubin(b"junk", name="mine"),
        ObjectCode.from_library(b"!<arch>\njunk", name="mine"),
    ):
        with pytest.raises(ValueError, match=f"{code.code_type} 'mine' is damaged: "):
            Linker(code, options={"arch": ARCH}).link("cubin")


def test_objects_and_archives_of_the_host(cxx: list[str], tmp_path: Path) -> None:
    if shutil.which("ar") is None:
        pytest.skip("needs ar")
    source = tmp_path / "source.cpp"
    source.write_text("#include <string>\nstd::string f(int n) { return std::to_string(n); }\n")
    subprocess.run(
        [*cxx, "-c", "-g", "-O1", "-fPIC", "source.cpp", "-o", "object.o"], cwd=tmp_path, check=True
    )
    subprocess.run(["ar", "rc", "library.a", "object.o", "source.cpp"], cwd=tmp_path, check=True)
    whole = {"object": "object.o", "library": "library.a"}
    for kind, name in whole.items():
        image = (tmp_path / name).read_bytes()
        assert _core.damage_of(kind, image) == ""
        assert _core.damage_of(kind, image[:-100])
        assert _core.damage_of(kind, image[:100])
        assert _core.damage_of(kind, b"")
