"""The rules of the house, held as text: no compiler, no driver, no import of the package.

Each rule is a function from the sources to its violations, and is shown one violation first.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
Sources = dict[str, str]  # path from the root, text

# Which folders of cpp/ a folder may include, besides itself. Data flows from right to left.
MAY_INCLUDE = {
    "driver": set(),
    "formats": set(),
    "handles": {"driver", "formats"},
    "launch": {"driver", "formats", "handles"},
    "python": {"driver", "formats", "handles", "launch", "include"},
    "emulator": {"formats"},
    "include": set(),
}
# Generated files, and the one folder that includes each.
GENERATED = {
    "driver_device_attributes.inc": "python",
    "driver_facts.inc": "driver",
    "driver_functions.h": "driver",
    "driver_status_names.inc": "driver",
}
PACKAGES_AT_TOP = {"cudamod/pytest_plugin.py": {"pytest"}}  # the modules that somebody else loads
CALLS_UNDER_A_LOCK = {"cpp/launch/kernel.cpp"}  # says why
OTHER_LOADERS = {
    "cpp/formats/zstd.cpp",  # the system's libzstd
    "cpp/python/torch_tensor.cpp",  # what torch has loaded
}
FOLDERS = ("cpp", "cudamod", "cffi_build")


def read_tree() -> Sources:
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for path in files
        if path.suffix in (".h", ".cpp", ".py", ".def")
    }


def cpp_files(sources: Sources) -> Iterator[tuple[str, str, str]]:
    """Path, folder below cpp/, text."""
    for path, text in sources.items():
        parts = path.split("/")
        if parts[0] == "cpp":
            yield path, parts[1], text


def python_files(sources: Sources, package: str) -> Iterator[tuple[str, ast.Module]]:
    for path, text in sources.items():
        if path.startswith(f"{package}/") and path.endswith(".py"):
            yield path, ast.parse(text)


def includes_against_the_direction(sources: Sources) -> list[str]:
    found = []
    for path, folder, text in cpp_files(sources):
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
            if name in GENERATED:
                allowed = folder == GENERATED[name]
            elif f"cpp/{name}" in sources:
                allowed = name.split("/")[0] in MAY_INCLUDE[folder] | {folder}
            else:
                allowed = folder in ("python", "include") and name == "cudamod/cudamod.h"
            if not allowed:
                found.append(f"{path} includes {name}")
    return found


def python_outside_its_folder(sources: Sources) -> list[str]:
    pattern = re.compile(r'#\s*include\s*[<"](Python\.h|nanobind/[^>"]*)[>"]')
    return [
        f"{path} includes {name}"
        for path, folder, text in cpp_files(sources)
        if folder != "python"
        for name in pattern.findall(text)
    ]


def declarations_of_driver_functions(sources: Sources) -> list[str]:
    pattern = re.compile(r"\bCUresult\s+(?:CUDAAPI\s+)?(cu[A-Z]\w*)\s*\(")
    return [
        f"{path} declares {name}"
        for path, folder, text in cpp_files(sources)
        if folder != "emulator"
        for name in pattern.findall(text)
    ]


def direct_calls_of_the_driver(sources: Sources) -> list[str]:
    """A call that does not go through the table would need libcuda to link against."""
    pattern = re.compile(r"(?<![\w.&\"])(?:::)?(cu[A-Z]\w*)\(")
    found = []
    for path, folder, text in cpp_files(sources):
        if folder == "emulator":
            continue
        code = re.sub(r'//[^\n]*|"(?:\\.|[^"\\])*"', "", text)
        found += [f"{path} calls {name}" for name in pattern.findall(code)]
    return found


def loading_outside_the_driver_layer(sources: Sources) -> list[str]:
    return [
        f"{path} calls {name}"
        for path, folder, text in cpp_files(sources)
        if folder not in ("driver", "emulator") and path not in OTHER_LOADERS
        for name in re.findall(r"\b(dlopen|dlsym)\s*\(", text)
    ]


def lists_of_driver_functions(sources: Sources) -> list[str]:
    """Only cffi_build/functions.py selects; a list of names elsewhere is a second list."""
    found = []
    for path, text in sources.items():
        if path.startswith(("cpp/emulator/", "cffi_build/")):
            continue
        if re.search(r"(\bX\(\s*cu[A-Z]\w*\s*\)\s*\\?\s*){2}", text) or re.search(
            r'("cu[A-Z]\w*"\s*,\s*){4}', text
        ):
            found.append(f"{path} lists driver functions")
    return found


def knowledge_of_the_emulated_driver(sources: Sources) -> list[str]:
    return [
        f"{path} knows of the emulated driver"
        for path, folder, text in cpp_files(sources)
        if folder in ("handles", "launch") and re.search("emulat", text, re.IGNORECASE)
    ]


def boxes_that_are_not_tracked(sources: Sources) -> list[str]:
    """Each box has its entry in the list of live ones, as last member, and enters it when made."""
    found = []
    for path, folder, text in cpp_files(sources):
        if folder != "handles":
            continue
        for name, body in re.findall(r"struct (\w+Box) \{(.*?)\n\};", text, re.DOTALL):
            members = body.split(f"{name}(")[0].strip()
            if not members.endswith("Tracked tracked;"):
                found.append(f"{path}: {name} does not end in its entry")
        found += [
            f"{path} makes a {name} past make_box"
            for name in re.findall(r"(?:make_shared<(?:const )?|new )(\w+Box)\b", text)
        ]
    return found


def destruction_past_its_path(sources: Sources) -> list[str]:
    """The driver's destroying calls stand in what is given to destroy(), or in a helper of that."""
    pattern = re.compile(r"table\.(cu\w+(?:Destroy|Unload|Free|FreeAsync|FreeHost))\(")
    found = []
    for path, folder, text in cpp_files(sources):
        if folder in ("driver", "emulator"):
            continue
        found += [
            f"{path} calls {call}"
            for call in pattern.findall(text)
            if folder != "handles" or f'destroy("{call}"' not in text
        ]
    return found


def driver_calls_under_a_lock(sources: Sources) -> list[str]:
    """From a lock_guard to the end of its block: no call of the driver."""
    found = []
    for path, folder, text in cpp_files(sources):
        if folder not in ("handles", "launch") or path in CALLS_UNDER_A_LOCK:
            continue
        for guard in re.finditer(r"lock_guard \w+\(", text):
            depth, at = 1, guard.end()
            while depth and at < len(text):
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            if re.search(r"table\.cu[A-Z]", text[guard.end() : at]):
                found.append(f"{path} calls the driver under a lock")
    return found


def environment_names_written_twice(sources: Sources) -> list[str]:
    places: dict[str, set[str]] = {}
    for path, text in sources.items():
        for name in re.findall(r"""["'](CUDAMOD_[A-Z_]+)["']""", text):
            places.setdefault(name, set()).add(path)
    found = []
    for name, paths in places.items():
        emulated = name.startswith("CUDAMOD_EMULATOR_")
        home = "cpp/emulator/" if emulated else "cpp/driver/environment.h"
        if len(paths) > 1 or not min(paths).startswith(home):
            found.append(f"{name} is written in {', '.join(sorted(paths))}")
    return found


def imported_at_top(module: ast.Module) -> Iterator[str]:
    """Modules imported when the module is: not inside functions, not for type checkers only."""
    for node in module.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_at_top_of_other_packages(sources: Sources) -> list[str]:
    allowed = {*sys.stdlib_module_names, "cffi", "cudamod"}
    return [
        f"{path} imports {name}"
        for path, module in python_files(sources, "cudamod")
        for name in imported_at_top(module)
        if name.split(".")[0] not in allowed | PACKAGES_AT_TOP.get(path, set())
    ]


def imports_of_the_package_by_the_generator(sources: Sources) -> list[str]:
    return [
        f"{path} imports {name}"
        for path, module in python_files(sources, "cffi_build")
        for name in imported_at_top(module)
        if name.split(".")[0] == "cudamod"
    ]


def names_from_the_package_root(sources: Sources) -> list[str]:
    """What __init__ imports takes a name from the module that defines it, not from __init__."""
    inner = {
        f"{name.replace('.', '/')}.py"
        for path, module in python_files(sources, "cudamod")
        if path == "cudamod/__init__.py"
        for name in imported_at_top(module)
    }
    return [
        f"{path} imports {name}"
        for path, module in python_files(sources, "cudamod")
        if path in inner
        for name in imported_at_top(module)
        if re.fullmatch(r"cudamod\.\w+", name) and name != "cudamod._core"
        if not {f"{name.replace('.', '/')}{end}" for end in (".py", "/__init__.py")} & {*sources}
    ]


def import_cycles(sources: Sources) -> list[str]:
    graph = {}
    for path, module in python_files(sources, "cudamod"):
        name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        graph[name] = {imported for imported in imported_at_top(module) if imported != "cudamod"}
    found = []
    for start in graph:
        reached, pending = set(), [start]
        while pending:
            for following in graph.get(pending.pop(), ()):
                if following == start:
                    found.append(f"{start} imports itself")
                elif following in graph and following not in reached:
                    reached.add(following)
                    pending.append(following)
    return sorted(set(found))


RULES: list[tuple[Callable[[Sources], list[str]], Sources]] = [
    (
        includes_against_the_direction,
        {"cpp/driver/a.h": '#include "launch/b.h"\n', "cpp/launch/b.h": ""},
    ),
    (
        includes_against_the_direction,
        {"cpp/emulator/ptx/a.h": '#include "driver/b.h"\n', "cpp/driver/b.h": ""},
    ),
    (includes_against_the_direction, {"cpp/launch/a.h": '#include "driver_facts.inc"\n'}),
    (includes_against_the_direction, {"cpp/launch/a.h": '#include "../launch/b.h"\n'}),
    (python_outside_its_folder, {"cpp/launch/a.h": "#include <Python.h>\n"}),
    (python_outside_its_folder, {"cpp/handles/a.h": "#include <nanobind/nanobind.h>\n"}),
    (
        declarations_of_driver_functions,
        {"cpp/launch/a.cpp": 'extern "C" CUresult cuInit(unsigned);\n'},
    ),
    (direct_calls_of_the_driver, {"cpp/launch/a.cpp": "void f() { cuInit(0); }\n"}),
    (loading_outside_the_driver_layer, {"cpp/handles/a.cpp": "void* p = dlsym(h, name);\n"}),
    (lists_of_driver_functions, {"cpp/driver/a.h": "#define L(X) X(cuInit) X(cuMemAlloc)\n"}),
    (lists_of_driver_functions, {"cudamod/a.py": 'N = ["cuInit", "cuA", "cuB", "cuC", "cuD"]\n'}),
    (knowledge_of_the_emulated_driver, {"cpp/launch/a.cpp": "if (emulated) return;\n"}),
    (
        boxes_that_are_not_tracked,
        {"cpp/handles/a.h": "struct ABox {\n    int raw;\n    ABox(int raw_);\n};\n"},
    ),
    (boxes_that_are_not_tracked, {"cpp/handles/a.cpp": "std::make_shared<const ABox>(1);\n"}),
    (destruction_past_its_path, {"cpp/python/a.cpp": "driver::table.cuStreamDestroy(raw);\n"}),
    (destruction_past_its_path, {"cpp/handles/a.cpp": "driver::table.cuMemFreeAsync(raw, s);\n"}),
    (
        driver_calls_under_a_lock,
        {"cpp/handles/a.cpp": "{ std::lock_guard lock(m); driver::table.cuInit(0); }\n"},
    ),
    (
        environment_names_written_twice,
        {"cudamod/a.py": 'os.environ["CUDAMOD_DRIVER"]\n'},
    ),
    (
        environment_names_written_twice,
        {"cpp/driver/environment.h": '"CUDAMOD_X"', "cudamod/a.py": '"CUDAMOD_X"'},
    ),
    (imports_at_top_of_other_packages, {"cudamod/a.py": "import numpy\n"}),
    (
        names_from_the_package_root,
        {
            "cudamod/__init__.py": "from cudamod.a import b\n",
            "cudamod/a.py": "from cudamod import Device\n",
        },
    ),
    (imports_of_the_package_by_the_generator, {"cffi_build/a.py": "from cudamod import driver\n"}),
    (
        import_cycles,
        {"cudamod/a.py": "from cudamod.b import c\n", "cudamod/b.py": "import cudamod.a\n"},
    ),
]


@pytest.mark.parametrize(
    ("rule", "violation"), RULES, ids=lambda value: getattr(value, "__name__", "")
)
def test_rule_sees_a_violation(rule: Callable[[Sources], list[str]], violation: Sources) -> None:
    assert rule(violation)


@pytest.mark.parametrize("rule", dict(RULES), ids=lambda rule: rule.__name__)
def test_tree_follows_the_rule(rule: Callable[[Sources], list[str]]) -> None:
    sources = read_tree()
    assert len(sources) > 20
    assert rule(sources) == []
