"""The generator: what it derives from cuda.h, and that no wrong declaration compiles."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from cudamod import driver

ROOT = Path(__file__).parents[1]


def load_generator() -> ModuleType:
    """The build-time package, without putting the checkout itself on the path."""
    name = "cffi_build"
    if name not in sys.modules:
        folder = ROOT / name
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


load_generator()

from cffi_build import cffi_source, functions, generate, table_source  # noqa: E402
from cffi_build.declarations import TypeClosure  # noqa: E402
from cffi_build.find_header import find_include  # noqa: E402
from cffi_build.header import Function, Header  # noqa: E402
from cffi_build.outputs import EXCEPTIONS, outputs  # noqa: E402


@pytest.fixture(scope="session")
def cc() -> list[str]:
    """The command of a C compiler."""
    for candidate in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        command = shlex.split(candidate)
        if command and shutil.which(command[0]):
            return command
    pytest.skip("no C compiler here")


@pytest.fixture(scope="session")
def include() -> Path:
    found = find_include()
    if found is None:
        pytest.skip("no nvidia-cuda-runtime distribution is installed here")
    return found


@pytest.fixture(scope="session")
def header(include: Path, cc: list[str]) -> Header:
    return Header(include, cc)


def compile_c(cc: list[str], include: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile the generated C as the build does, without writing an object file."""
    command = [
        *cc,
        *("-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter"),
        *("-Werror=incompatible-pointer-types", "-Werror=int-conversion"),
        *("-DCUDA_ENABLE_DEPRECATED", "-D_CFFI_NO_LIMITED_API"),
        *(f"-I{ROOT / 'cpp'}", f"-I{folder}", f"-I{include}"),
        f"-I{sysconfig.get_path('include')}",
        str(folder / "cffi_module.c"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def change(function: Function, **types: str) -> Function:
    """The function with other types for some of its parameters (``result`` is the return type)."""
    parameters = tuple(
        dataclasses.replace(parameter, type=types.get(parameter.name, parameter.type))
        for parameter in function.parameters
    )
    result = types.get("result", function.result)
    return dataclasses.replace(function, parameters=parameters, result=result)


def drop_last(function: Function) -> Function:
    return dataclasses.replace(function, parameters=function.parameters[:-1])


def add_one(function: Function) -> Function:
    extra = dataclasses.replace(function.parameters[-1], name="extra")
    return dataclasses.replace(function, parameters=(*function.parameters, extra))


MUTATIONS = {
    "nothing": (lambda f: f, True),
    "parameter missing": (drop_last, False),
    "parameter too many": (add_one, False),
    "other pointer type": (lambda f: change(f, dptr="CUcontext *"), False),
    "pointer for integer": (lambda f: change(f, bytesize="void *"), False),
    "narrower integer": (lambda f: change(f, bytesize="unsigned int"), False),
    "signed integer": (lambda f: change(f, bytesize="long"), False),
    "other return type": (lambda f: change(f, result="long"), False),
    "const added": (lambda f: change(f, dptr="const CUdeviceptr *"), False),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_declaration_does_not_compile(
    header: Header, include: Path, cc: list[str], tmp_path: Path, mutation: str
) -> None:
    names = ("cuMemAlloc", "cuCtxGetCurrent")
    true = [f for f in header.functions() if f.name in names]
    mutate, compiles = MUTATIONS[mutation]
    declared = [mutate(f) if f.name == "cuMemAlloc" else f for f in true]
    closure = TypeClosure(header, [f.exported for f in true])
    (tmp_path / "driver_functions.h").write_text(table_source.function_list(true))
    cdef = cffi_source.declarations(header, declared, closure)
    cffi_source.write(tmp_path / "cffi_module.c", cdef, declared)
    done = compile_c(cc, include, tmp_path)
    assert (done.returncode == 0) is compiles, done.stderr
    if not compiles:
        assert "the declaration of cuMemAlloc is not the one of cuda.h" in done.stderr


def wheels(config: pytest.Config) -> list[Path]:
    folder = config.getoption("--cuda-headers")
    return sorted(folder.glob("nvidia_cuda_runtime*.whl")) if folder else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "headers" in metafunc.fixturenames:
        found = wheels(metafunc.config)
        names = [f"{wheel.name.split('-')[1]}" for wheel in found]
        metafunc.parametrize("headers", [None, *found], ids=["installed", *names], indirect=True)


@pytest.fixture
def headers(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The include folder of the installed header, or of a wheel of --cuda-headers."""
    if request.param is None:
        installed: Path = request.getfixturevalue("include")
        return installed
    with zipfile.ZipFile(request.param) as wheel:
        names = [n for n in wheel.namelist() if n.endswith(("/cuda.h", "/cudaTypedefs.h"))]
        wheel.extractall(tmp_path / "wheel", names)
    return next((tmp_path / "wheel").rglob("cuda.h")).parent


def test_header_is_understood(headers: Path, cc: list[str], cxx: list[str], tmp_path: Path) -> None:
    """Everything generated compiles; every function has a version; every type is usable."""
    found = Header(headers, cc)
    generate.generate(found, tmp_path)
    assert found.version >= 12090
    done = compile_c(cc, headers, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    # The compiler finds the version of each function whose type is the header's (static_assert).
    for source in ("driver/functions.cpp", "driver/status.cpp", "driver/table.cpp"):
        command = [*cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
        folders = [f"-I{ROOT / 'cpp'}", f"-I{tmp_path}", "-isystem", str(headers)]
        options = ["-DCUDA_ENABLE_DEPRECATED", *folders]
        subprocess.run([*command, *options, str(ROOT / "cpp" / source)], check=True)
    compile((tmp_path / "driver.pyi").read_text(), "driver.pyi", "exec")


def test_every_type_of_this_build_is_usable() -> None:
    """CFFI compares a structure with the compiler's at its first use, so use each."""
    typedefs, structures, unions = driver.ffi.list_types()
    names = [*typedefs, *(f"struct {s}" for s in structures), *(f"union {u}" for u in unions)]
    assert len(names) > 250
    opaque = []
    for name in names:
        try:
            assert driver.ffi.sizeof(name) > 0, name
        except driver.ffi.error as error:
            if "don't know the size of ctype" not in str(error):
                raise  # a field or a size that is not the compiler's
            opaque.append(name)
    # Only what a handle points to is opaque.
    for name in opaque:
        pointers = [t for t in typedefs if driver.ffi.typeof(t).cname == f"{name} *"]
        assert pointers, name


def test_every_function_of_this_build_is_callable() -> None:
    for name in driver.functions():
        ctype = driver.ffi.typeof(getattr(driver.lib, name))
        assert ctype.result.cname == "enum cudaError_enum", name


def test_the_build_holds_exactly_the_selected_functions(header: Header) -> None:
    if header.version != driver.CUDA_VERSION:
        pytest.skip(f"built with another cuda.h than the {header.version} that is installed here")
    selected = [f.name for f in header.functions() if functions.is_selected(f.name)]
    assert selected == list(driver.functions())
    assert len(selected) > 350


def test_selection_is_by_family_and_name() -> None:
    for name in ("cuGraphLaunch", "cuMemcpyHtoD", "cuMemsetD8", "cuInit", "cuKernelGetName"):
        assert functions.is_selected(name), name
    for name in ("cuGraphicsMapResources", "cuTexRefCreate", "cuGetExportTable", "cuInitialize"):
        assert not functions.is_selected(name), name


def test_every_family_and_name_selects_something(header: Header) -> None:
    names = [f.name for f in header.functions()]
    for family in functions.FAMILIES:
        pattern = re.compile(f"{family}[^a-z]")
        assert any(pattern.match(name) for name in names), family
    assert set(functions.NAMES) <= set(names)


def parameters_lifted(header: Header, name: str) -> list[str]:
    function = next(f for f in header.functions() if f.name == name)
    return [function.parameters[position].name for position in outputs(header, function)]


@pytest.mark.parametrize(
    ("name", "lifted"),
    [
        ("cuStreamCreate", ["phStream"]),
        ("cuMemGetInfo", ["free", "total"]),
        ("cuStreamIsCapturing", ["captureStatus"]),
        ("cuKernelGetParamInfo", ["paramOffset", "paramSize"]),
        ("cuDeviceGetUuid", ["uuid"]),
        ("cuKernelGetName", ["name"]),
        ("cuMemAllocHost", ["pp"]),
        ("cuLinkComplete", ["cubinOut", "sizeOut"]),
        ("cuTensorMapEncodeTiled", ["tensorMap"]),
        ("cuGraphMemcpyNodeGetParams", ["nodeParams"]),
        ("cuMemPoolGetAccess", ["flags"]),
        ("cuLibraryLoadData", ["library"]),
        ("cuLaunchKernelEx", []),
        ("cuDeviceGetName", []),
        ("cuLibraryEnumerateKernels", []),
        ("cuMemcpyBatchAsync", []),
        ("cuMemFreeHost", []),
        ("cuGraphExecUpdate", []),
        ("cuLinkAddData", []),
    ],
)
def test_output_parameters(header: Header, name: str, lifted: list[str]) -> None:
    assert parameters_lifted(header, name) == lifted


def test_every_exception_names_parameters_that_exist(header: Header) -> None:
    known = {f.name: {p.name for p in f.parameters} for f in header.functions()}
    for name, lifted in EXCEPTIONS.items():
        if name in known:  # newer and older headers have some others
            assert set(lifted) <= known[name], name


def test_generated_text_is_not_in_the_tree() -> None:
    # A virtual environment or a cache of a tool may lie beside it.
    ours = [entry for entry in ROOT.iterdir() if entry.name != "build" and entry.name[0] != "."]
    names = {path.name for entry in ours for path in (entry, *entry.rglob("*"))}
    assert not names & {"cuda.h", "cudaTypedefs.h", "cffi_module.c", "driver_functions.h"}
