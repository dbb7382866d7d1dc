"""The types that the selected functions use, as CFFI declarations.

What the compiler knows better is left to it: enumerators carry no value, an array length that is
not a literal becomes ``[...]``, and a structure with an alignment of its own is partial. All other
structures are complete, so CFFI holds every field's offset and size against the compiler's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from pycparser import c_ast, c_generator

from cffi_build.header import BUILT_IN_TYPES, Header, walk


class TypeClosure:
    """Every typedef and tag of ``header`` that the functions in ``names`` (exported) need."""

    def __init__(self, header: Header, names: Iterable[str]) -> None:
        self._header = header
        self.typedefs: set[str] = set()
        self.tags: set[tuple[type, str]] = set()
        for name in names:
            self._add(header.declarations[name].type)

    def _add(self, node: c_ast.Node) -> None:
        for inner in walk(node):
            if isinstance(inner, c_ast.IdentifierType):
                for name in inner.names:
                    self._add_typedef(name)
            elif isinstance(inner, (c_ast.Struct, c_ast.Union, c_ast.Enum)) and inner.name:
                key = type(inner), inner.name
                if key not in self.tags:
                    self.tags.add(key)
                    if body := self._header.tags.get(key):
                        self._add(body)

    def _add_typedef(self, name: str) -> None:
        if name in self._header.typedefs and name not in self.typedefs | BUILT_IN_TYPES:
            self.typedefs.add(name)
            self._add(self._header.typedefs[name])

    def text(self) -> str:
        """The declarations, in the header's order."""
        lines = []
        for node in self._header.tree.ext:
            if isinstance(node, c_ast.Typedef):
                if node.name in self.typedefs and node is self._header.typedefs[node.name]:
                    lines.append(declaration_text(node))
            elif isinstance(node, c_ast.Decl) and node.name is None:
                tag = node.type
                if (type(tag), getattr(tag, "name", None)) in self.tags:
                    lines.append(declaration_text(node))
        return "\n".join(lines) + "\n"

    def enums(self) -> dict[str, c_ast.Enum]:
        """Enums by the name of their typedef, in the header's order; one may have several names."""
        names = (name for name in self._header.typedefs if name in self.typedefs)
        return {name: enum for name in names if (enum := self._header.enum_of(name))}


def declaration_text(node: c_ast.Node) -> str:
    """One declaration as CFFI wants it."""
    node = copy.deepcopy(node)
    partial = False
    for inner in walk(node):
        if isinstance(inner, c_ast.Enum) and inner.values:
            for enumerator in inner.values.enumerators:
                enumerator.value = None
            inner.values.enumerators.append(c_ast.Enumerator("...", None))
        elif isinstance(inner, c_ast.ArrayDecl) and not isinstance(
            inner.dim, (c_ast.Constant, type(None))
        ):
            inner.dim = c_ast.ID("...")
        elif isinstance(inner, (c_ast.Decl, c_ast.TypeDecl)) and getattr(inner, "align", None):
            inner.align = []
            partial = True
    text = f"{c_generator.CGenerator().visit(node)};"
    if partial:
        head, brace, tail = text.rpartition("}")
        text = f"{head}  ...;\n{brace}{tail}"
    return text
