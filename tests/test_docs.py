"""What the documentation shows is true."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from compiling import needs_nvjitlink, needs_nvrtc

ROOT = Path(__file__).parents[1]


def test_the_example_of_the_readme_runs(run_python: Callable[..., str]) -> None:
    readme = (ROOT / "README.md").read_text()
    example = re.search(r"<!-- example -->\n```python\n(.*?)```", readme, re.DOTALL)
    assert example is not None
    assert run_python(example[1]).startswith("saxpy b32, f32, b64, b64 ")


def test_the_readme_has_its_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    for name, end in {"demo": "cudamod demo", "test": "pytest"}.items():
        command = re.search(rf"<!-- ci: {name} -->\n```sh\n(.*)\n```", readme)
        assert command is not None
        assert command[1].startswith("python3 -m venv .venv && ")
        assert command[1].endswith(f".venv/bin/{end}")


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("mark", ["behaviours", "program options", "linker options"])
def test_generated_tables_are_true(mark: str, request: pytest.FixtureRequest) -> None:
    if mark == "behaviours" and request.config.getoption("--driver") != "emulated":
        pytest.skip("asks the emulated driver")
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    name, table = tables.TABLES[mark]
    page = (ROOT / "docs" / name).read_text()
    assert tables.with_table(page, mark, table()) == page
    assert f"<!-- {mark} -->" in page


@needs_nvrtc
@needs_nvjitlink
@pytest.mark.parametrize("example", ["compile_and_launch.py"])
def test_examples_run(example: str, run_python: Callable[..., str]) -> None:
    # An emulated driver as new as any compiler's PTX.
    text = (ROOT / "examples" / example).read_text()
    assert run_python(text, CUDAMOD_EMULATOR_DRIVER_VERSION="13090")


@needs_nvrtc
@needs_nvjitlink
def test_the_examples_of_the_page_on_compiling_run(run_python: Callable[..., str]) -> None:
    page = (ROOT / "docs" / "compiling.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) > 3
    run_python("\n".join(examples))


def test_the_tests_that_the_documentation_names_exist() -> None:
    named = []
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for file, name in re.findall(r"`(test_\w+\.py)::(\w+)`", page.read_text()):
            named.append(name)
            text = (ROOT / "tests" / file).read_text()
            assert f"def {name}(" in text, f"{page.name} names {file}::{name}"
    assert len(named) > 20
