"""Builds the native test programs once and runs each as a test of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
FOLDERS = ("formats", "ptx", "emulator")


def sources() -> list[str]:
    return sorted(
        f"{folder}-{source.stem}"
        for folder in FOLDERS
        for source in (HERE / folder).glob("test_*.cpp")
    )


def run(command: list[str]) -> None:
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-8000:]}")


def tool(name: str) -> str:
    """A program of the environment that runs the tests, or else of the system."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"native tests need {name}")
    return found


def emulated_driver() -> str:
    """The one to test; empty: none is installed, it has to be built."""
    package = importlib.util.find_spec("cudamod")
    for folder in (package.submodule_search_locations or []) if package else []:
        if (library := Path(folder) / "libcudamod_emulated_driver.so").exists():
            return str(library)
    return ""


@pytest.fixture(scope="session")
def build(pytestconfig: pytest.Config) -> Path:
    """The folder with the built programs; kept between runs, so that only changes are compiled."""
    cmake, ninja = tool("cmake"), tool("ninja")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("cudamod-native")
    options = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DCMAKE_BUILD_TYPE=Debug"]
    options += ["-DCMAKE_CXX_FLAGS_DEBUG=", f"-DCUDAMOD_EMULATED_DRIVER={emulated_driver()}"]
    run([cmake, "-S", str(HERE), "-B", str(folder), *options])
    run([cmake, "--build", str(folder), "-j2"])
    return folder


def write_facts(target: Path) -> None:
    """driver.json as lines of words, without the images that aren't kept here."""
    recorded = json.loads((DATA / "h200" / "driver.json").read_text())
    lines: list[str] = []
    for image, about in sorted(recorded["images"].items()):
        if not (DATA / "h200" / image).exists():
            continue
        for name, facts in about.get("kernels", {}).items():
            lines.append(f"kernel {image} {name}")
            for number in range(19):
                value = facts[f"attr{number}"]
                if isinstance(value, int):
                    lines.append(f"attribute {number} {value}")
            lines += [f"parameter {offset} {size}" for offset, size in facts["params"]]
            for case, blocks in facts["occ"].items():
                lines.append(f"occupancy {case.replace(',', ' ')} {blocks}")
            lines.append("potential {} {}".format(*facts["potential"]))
            lines += [f"available {blocks} {size}" for blocks, size in facts["avail_dyn"].items()]
    target.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("program", sources())
def test_native(program: str, build: Path, tmp_path: Path) -> None:
    arguments = [str(DATA)]
    if program == "formats-test_driver_facts":
        facts = tmp_path / "facts.txt"
        write_facts(facts)
        arguments.append(str(facts))
    run([str(build / program), *arguments])
