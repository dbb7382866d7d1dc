"""``cudamod/driver.pyi``: what a type checker knows of ``cudamod.driver``."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence

from pycparser import c_ast

from cffi_build.header import Function, Header, Parameter
from cffi_build.outputs import outputs

_INTEGERS = frozenset(
    {
        *("char", "short", "int", "long", "long long", "unsigned", "unsigned char"),
        *("unsigned short", "unsigned int", "unsigned long", "unsigned long long", "size_t"),
    }
)


class StubWriter:
    """Writes the stub of the functions and enums of one header."""

    def __init__(self, header: Header, enums: Mapping[str, c_ast.Enum]) -> None:
        self._header = header
        self._enums = enums

    def text(self, functions: Sequence[Function], template: str) -> str:
        """``template`` (the hand-written part) with everything that follows from the header."""
        parts = [template.rstrip("\n"), ""]
        classes: dict[c_ast.Enum, str] = {}
        for name, enum in self._enums.items():
            if enum in classes:
                parts += [f"{name} = {classes[enum]}", ""]
                continue
            classes[enum] = name
            members = (f"    {enumerator.name} = ..." for enumerator in enum.values.enumerators)
            parts += [f"class {name}(enum.IntEnum):", *members, ""]
        parts += [f"{name}: Final[int]" for name in self._header.integer_macros]
        parts += [self._signature(function) for function in functions]
        return "\n".join(parts) + "\n"

    def _signature(self, function: Function) -> str:
        lifted = outputs(self._header, function)
        parameters = ", ".join(
            f"{python_name(p.name)}: {self._parameter(p)}"
            for position, p in enumerate(function.parameters)
            if position not in lifted
        )
        if parameters:
            parameters += ", /"
        returned = [self._returned(function.parameters[position]) for position in lifted]
        if not returned:
            result = "None"
        elif len(returned) == 1:
            result = returned[0]
        else:
            result = f"tuple[{', '.join(returned)}]"
        return f"def {function.name}({parameters}) -> {result}: ..."

    def _scalar(self, name: str) -> str | None:
        """The Python type of a C type passed by value, None when it is no number."""
        name = name.removeprefix("const ")
        if name in ("float", "double"):
            return "float"
        if name in _INTEGERS or name in ("cuuint32_t", "cuuint64_t"):
            return "int"
        if self._header.enum_of(name):
            return name
        typedef = self._header.typedefs.get(name)
        if typedef is None or self._header.is_pointer(name) or self._header.is_structure(name):
            return None
        return self._scalar(" ".join(typedef.type.type.names))

    def _parameter(self, parameter: Parameter) -> str:
        type_ = parameter.type
        if type_ == "const char *":
            return "_Text"
        if type_.endswith("*"):
            return "_Pointer"
        scalar = self._scalar(type_)
        if scalar in self._enums:
            return f"{scalar} | int"
        if scalar:
            return scalar
        return "CData" if self._header.is_structure(type_) else "_Handle"

    def _returned(self, parameter: Parameter) -> str:
        pointee = parameter.type.removesuffix("*").rstrip()
        if pointee == "const char *":
            return "str"
        return self._scalar(pointee) or "CData"


def python_name(name: str) -> str:
    """``name``, or with an underscore where Python reserves it (``from``)."""
    return f"{name}_" if keyword.iskeyword(name) else name
