"""Which parameters of a driver function are outputs, so that a Python call returns them.

The rules, for parameters that point to something not const:

1. named ``..._out`` or ``...Out``: an output, wherever it stands;
2. to a number, an enum value, a handle, or text (``const char **``): an output when it belongs to
   the run of such parameters that opens or closes the list; ``void **`` opens, never closes
   (``kernelParams``, ``optionValues`` are inputs);
3. to a structure: an output when the function's name says ``Get`` or ``Encode`` and the parameter
   is the first or the last;
4. everything else (``char *``, ``void *``, arrays of functions named ``...BatchAsync`` or
   ``...Enumerate...``) is the caller's memory and stays a parameter.

``EXCEPTIONS`` names the functions that break the rules, each with its true outputs.
"""

from __future__ import annotations

from cffi_build.header import Function, Header, Parameter

EXCEPTIONS: dict[str, tuple[str, ...]] = {
    # Read and written.
    "cuCoredumpGetAttribute": (),
    "cuCoredumpGetAttributeGlobal": (),
    "cuCoredumpSetAttribute": (),
    "cuCoredumpSetAttributeGlobal": (),
    "cuLogsDumpToFile": (),
    "cuLogsDumpToMemory": (),
    "cuThreadExchangeStreamCaptureMode": (),
    # Arrays of the caller, some with a length that is read and written.
    "cuDeviceGetCliqueInfo": (),
    "cuDeviceGetHostAtomicCapabilities": (),
    "cuDeviceGetP2PAtomicCapabilities": (),
    "cuDevSmResourceSplit": (),
    "cuDevSmResourceSplitByCount": (),
    "cuGraphGetEdges": (),
    "cuGraphGetEdges_v2": (),
    "cuGraphGetNodes": (),
    "cuGraphGetRootNodes": (),
    "cuGraphNodeGetDependencies": (),
    "cuGraphNodeGetDependencies_v2": (),
    "cuGraphNodeGetDependentNodes": (),
    "cuGraphNodeGetDependentNodes_v2": (),
    "cuMemGetLocationInfo": (),
    "cuMemRangeGetAttributes": (),
    # A structure that is read beside one that is written.
    "cuMemPoolGetAccess": ("flags",),
    # Outputs in the middle.
    "cuCtxGetDevResource": ("resource",),
    "cuDeviceGetDevResource": ("resource",),
    "cuGetProcAddress": ("pfn", "symbolStatus"),
    "cuGreenCtxGetDevResource": ("resource",),
    "cuStreamGetDevResource": ("resource",),
}

_NUMBERS = frozenset(
    {"int", "unsigned", "unsigned int", "unsigned long long", "size_t", "float", "double"}
)


def outputs(header: Header, function: Function) -> tuple[int, ...]:
    """Positions of the output parameters of ``function``."""
    if function.name in EXCEPTIONS:
        names = EXCEPTIONS[function.name]
        return tuple(i for i, p in enumerate(function.parameters) if p.name in names)
    parameters = function.parameters
    found = {i for i, p in enumerate(parameters) if _is_named_output(p)}
    if not (function.name.endswith("BatchAsync") or "Enumerate" in function.name):
        fills = "Get" in function.name or "Encode" in function.name
        found |= set(_opening_run(header, parameters, fills))
        last = len(parameters) - 1
        for position in range(last, -1, -1):
            pointee = _pointee(parameters[position])
            is_structure = fills and position == last and header.is_structure(pointee)
            if not (is_structure or _is_scalar(header, pointee)):
                break
            found.add(position)
    return tuple(sorted(found))


def _opening_run(header: Header, parameters: tuple[Parameter, ...], fills: bool) -> list[int]:
    run: list[int] = []
    for position, parameter in enumerate(parameters):
        pointee = _pointee(parameter)
        is_structure = fills and position == 0 and header.is_structure(pointee)
        if not (is_structure or pointee == "void *" or _is_scalar(header, pointee)):
            break
        run.append(position)
    return run


def _is_named_output(parameter: Parameter) -> bool:
    return parameter.name.endswith(("_out", "Out")) and _pointee(parameter) not in ("", "void")


def _pointee(parameter: Parameter) -> str:
    """What the parameter points to; empty when that is const or nothing."""
    if not parameter.type.endswith("*"):
        return ""
    pointee = parameter.type[:-1].rstrip()
    if pointee.startswith("const ") and not pointee.endswith("*"):
        return ""
    return pointee


def _is_scalar(header: Header, pointee: str) -> bool:
    if pointee in _NUMBERS or pointee == "const char *":
        return True
    if pointee not in header.typedefs:
        return False
    return not header.is_structure(pointee)
