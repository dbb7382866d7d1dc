"""Read ``cuda.h``: preprocess it with the C compiler, parse it with pycparser."""

from __future__ import annotations

import copy
import functools
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pycparser import c_ast, c_generator, c_parser

FAKE_LIBC = Path(__file__).with_name("fake_libc")
# Types that CFFI and the compiler know without us; the fake C library only lets pycparser pass.
BUILT_IN_TYPES = frozenset(
    re.findall(r"(\w+);", "".join(p.read_text() for p in FAKE_LIBC.iterdir()))
)

_VERSIONED = re.compile(r"PFN_(\w+?)_v(\d+)$")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name in the header and its type as written, without the name."""

    name: str
    type: str


@dataclass(frozen=True)
class Function:
    """One driver function.

    ``name`` is what the header's documentation calls it, ``exported`` what its macros expand it to
    (``cuMemAlloc`` and ``cuMemAlloc_v2``), ``versions`` the CUDA versions at which the header has a
    function pointer type for it, newest first, whatever its parameters were then.
    """

    name: str
    exported: str
    result: str
    parameters: tuple[Parameter, ...]
    versions: tuple[int, ...]

    @property
    def looked_up_as(self) -> str:
        """The name to ask ``cuGetProcAddress`` for."""
        return re.sub(r"_v\d+$", "", self.exported)

    @property
    def parameter_types(self) -> str:
        return ", ".join(parameter.type for parameter in self.parameters) or "void"

    @property
    def declaration(self) -> str:
        """The C declaration, by the name that the header's documentation uses."""
        return f"{self.result} {self.name}({self.parameter_types});"


class Header:
    """The parsed ``cuda.h`` (and ``cudaTypedefs.h``) of one include directory.

    ``compiler`` is a command for a C compiler that understands ``-E -P -dM -nostdinc``.
    """

    def __init__(self, include: Path, compiler: Sequence[str] = ("cc",)) -> None:
        self.include = include
        self._compiler = tuple(compiler)
        self.tree = c_parser.CParser().parse(self._preprocess("cuda.h"))
        self.typedefs: dict[str, c_ast.Typedef] = {}
        self.declarations: dict[str, c_ast.Decl] = {}
        self.tags: dict[tuple[type, str], c_ast.Node] = {}
        for node in self.tree.ext:
            if isinstance(node, c_ast.Typedef):
                self.typedefs.setdefault(node.name, node)
            elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
                self.declarations.setdefault(node.name, node)
            for inner in walk(node):
                if isinstance(inner, (c_ast.Struct, c_ast.Union, c_ast.Enum)):
                    body = inner.values if isinstance(inner, c_ast.Enum) else inner.decls
                    if inner.name and body:
                        self.tags[type(inner), inner.name] = inner

    def _preprocess(self, name: str, *options: str) -> str:
        command = [
            *self._compiler,
            *("-E", "-P", "-x", "c", "-nostdinc", f"-I{FAKE_LIBC}", f"-I{self.include}"),
            *("-D__attribute__(x)=", "-D__extension__="),
            *options,
            str(self.include / name),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return done.stdout

    @functools.cached_property
    def macros(self) -> dict[str, str]:
        """Object-like macros of ``cuda.h``, name to text."""
        text = self._preprocess("cuda.h", "-dM")
        return dict(re.findall(r"^#define (\w+) +(\S.*)$", text, re.MULTILINE))

    @property
    def version(self) -> int:
        """``CUDA_VERSION``, 13000 for 13.0."""
        return int(self.macros["CUDA_VERSION"])

    @property
    def integer_macros(self) -> list[str]:
        """Names of the macros that are plain integers."""
        return sorted(
            name
            for name, text in self.macros.items()
            if re.match(r"CU(DA)?_", name)
            and re.fullmatch(r"\(?-?(0[xX])?[0-9a-fA-F]+[uUlL]*\)?", text)
        )

    def enum_of(self, name: str) -> c_ast.Enum | None:
        """The enum with its values that the type name stands for, or None."""
        typedef = self.typedefs.get(name)
        if typedef is None or not isinstance(typedef.type, c_ast.TypeDecl):
            return None
        inner = typedef.type.type
        if isinstance(inner, c_ast.IdentifierType):
            return self.enum_of(inner.names[0])
        if not isinstance(inner, c_ast.Enum):
            return None
        found = inner if inner.values else self.tags.get((c_ast.Enum, inner.name))
        assert found is None or isinstance(found, c_ast.Enum)
        return found

    def is_pointer(self, name: str) -> bool:
        """Whether the type name stands for a pointer: a handle or a function pointer."""
        typedef = self.typedefs.get(name)
        if typedef is None:
            return False
        if isinstance(typedef.type, c_ast.PtrDecl):
            return True
        inner = typedef.type.type
        return isinstance(inner, c_ast.IdentifierType) and self.is_pointer(inner.names[0])

    def is_structure(self, name: str) -> bool:
        """Whether the type name stands for a struct or a union."""
        typedef = self.typedefs.get(name)
        if typedef is None or not isinstance(typedef.type, c_ast.TypeDecl):
            return False
        inner = typedef.type.type
        if isinstance(inner, c_ast.IdentifierType):
            return self.is_structure(inner.names[0])
        return isinstance(inner, (c_ast.Struct, c_ast.Union))

    @functools.cached_property
    def _versions(self) -> dict[str, list[int]]:
        versions: dict[str, set[int]] = {}
        # Preprocessed, because 12.9 hides some versioned names behind macros.
        for name in re.findall(r"\bPFN_\w+", self._preprocess("cudaTypedefs.h")):
            if match := _VERSIONED.match(name):
                versions.setdefault(match[1], set()).add(int(match[2]))
        return {name: sorted(found, reverse=True) for name, found in versions.items()}

    @functools.cached_property
    def _documented_names(self) -> dict[str, str]:
        """Exported name to documented name, where a macro makes them differ."""
        names = {}
        for name, text in self.macros.items():
            match = re.fullmatch(r"(?:__CUDA_API_PT(?:DS|SZ)\()?(cu\w+?)\)?\s*", text)
            if match and name.startswith("cu") and match[1] != name:
                names[match[1]] = name
        return names

    def functions(self) -> Iterator[Function]:
        """Every function that ``cuda.h`` declares, by documented name."""
        for exported, declaration in self.declarations.items():
            name = self._documented_names.get(exported, exported)
            function = declaration.type
            parameters = tuple(
                Parameter(parameter.name or f"arg{index}", type_text(parameter.type))
                for index, parameter in enumerate(function.args.params if function.args else ())
                if type_text(parameter.type) != "void"
            )
            looked_up_as = re.sub(r"_v\d+$", "", exported)
            yield Function(
                name,
                exported,
                type_text(function.type),
                parameters,
                tuple(self._versions.get(looked_up_as, ())),
            )


def walk(node: c_ast.Node) -> Iterator[c_ast.Node]:
    """``node`` and everything below it."""
    yield node
    for _, child in node.children():
        yield from walk(child)


def type_text(node: c_ast.Node) -> str:
    """The C text of a type, without the name that it declares."""
    node = copy.deepcopy(node)
    inner = node
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    inner.declname = None
    return str(c_generator.CGenerator()._generate_type(node, emit_declname=False)).strip()
