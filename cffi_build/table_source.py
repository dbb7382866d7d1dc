"""The C++ half: the list that the driver table is made of, and what is known of each function."""

from __future__ import annotations

from collections.abc import Sequence

from cffi_build.header import Function, Header
from cffi_build.outputs import outputs


def function_list(functions: Sequence[Function]) -> str:
    """``driver_functions.h``: the list as an X macro, for C and C++."""
    rows = "".join(f" \\\n    X({f.name})" for f in functions)
    return f"#pragma once\n\n#define CUDAMOD_DRIVER_FUNCTIONS(X){rows}\n"


def function_facts(header: Header, functions: Sequence[Function]) -> str:
    """``driver_facts.inc``: one initialiser of ``driver::Function`` per function.

    The compiler decides which of the header's function pointer types is the default's.
    """
    return "".join(_fact(header, function) for function in functions)


def _fact(header: Header, function: Function) -> str:
    versions = ", ".join(
        f"version_if_same<decltype(&{function.name}), "
        f"PFN_{function.looked_up_as}_v{version}>({version})"
        for version in function.versions
    )
    names = ",".join(parameter.name for parameter in function.parameters)
    lifted = ",".join(str(position) for position in outputs(header, function))
    return (
        f'{{"{function.name}", "{function.exported}", "{function.looked_up_as}", "{names}", '
        f'"{lifted}", {{{{{versions}}}}}}},\n'
    )


def status_names(header: Header) -> str:
    """``driver_status_names.inc``: one ``case`` per enumerator of ``CUresult``."""
    enum = header.enum_of("CUresult")
    assert enum is not None
    return "".join(
        f'case {enumerator.name}: return "{enumerator.name}";\n'
        for enumerator in enum.values.enumerators
    )


def device_attributes(header: Header) -> str:
    """``driver_device_attributes.inc``: each device attribute with its name in lower case."""
    enum = header.enum_of("CUdevice_attribute")
    assert enum is not None
    prefix = "CU_DEVICE_ATTRIBUTE_"
    names = [e.name for e in enum.values.enumerators if e.name.startswith(prefix)]
    names.remove(f"{prefix}MAX")
    return "".join(f'{{"{name[len(prefix) :].lower()}", {name}}},\n' for name in names)
