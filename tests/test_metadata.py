"""What the installed distribution says of itself, and that versions are written once."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import cudamod

ROOT = Path(__file__).parents[1]
METADATA = importlib.metadata.metadata("cudamod")


def test_metadata_is_complete() -> None:
    assert METADATA["License-Expression"] == "Apache-2.0"
    assert METADATA.get_all("License-File") == ["LICENSE"]
    assert METADATA["Requires-Python"] == ">=3.10"
    assert set(METADATA.get_all("Provides-Extra") or ()) == {
        *("bench", "cli", "compile", "docs", "test")
    }
    assert "Typing :: Typed" in (METADATA.get_all("Classifier") or ())


def test_version_is_the_distributions() -> None:
    assert cudamod.__version__ == METADATA["Version"]


def test_core_needs_cffi_alone() -> None:
    requirements = importlib.metadata.requires("cudamod") or []
    core = [requirement for requirement in requirements if "extra ==" not in requirement]
    assert [re.match(r"\w+", requirement)[0] for requirement in core] == ["cffi"]  # type: ignore[index]


def test_wheel_holds_the_package_and_nothing_of_the_build() -> None:
    files = importlib.metadata.files("cudamod") or []
    names = {str(file) for file in files if "__pycache__" not in str(file)}
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} <= {"cudamod", ".."}
    assert {"cudamod/py.typed", "cudamod/_core.pyi", "cudamod/driver.pyi"} <= names
    assert not [name for name in names if name.endswith((".h", ".c", ".cpp", ".inc", ".a"))]


def test_tools_have_one_version() -> None:
    pinned = re.findall(r"^([\w-]+==[\w.]+)$", (ROOT / ".ci/requirements.txt").read_text(), re.M)
    hooks = set(re.findall(r"[\w-]+==[\w.]+", (ROOT / ".pre-commit-config.yaml").read_text()))
    assert hooks
    assert hooks <= set(pinned)


def test_readme_shows_the_command_that_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"<!-- ci: test -->\n```\w*\n(.+)\n```", readme)
    assert command, "README.md has no one-line command under <!-- ci: test -->"
    assert "pytest" in command[1]
