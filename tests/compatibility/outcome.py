"""What the programs share: they show values, and the classes of exceptions, by name."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
HEADER = ".version 8.1\n.target sm_75\n.address_size 64\n"

shown: dict[str, Any] = {}


def show(**values: Any) -> None:
    """Show values; handles and other objects by their class, since they differ each time."""
    for name, value in values.items():
        assert name not in shown, name
        shown[name] = plain(value)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("latin-1")
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    return type(value).__name__


def attempt(call: Callable[[], Any]) -> Any:
    """What a call answers, or the exception that it raises.

    A failed driver call is ``CUDAError`` with the driver's name, whatever class it is of; any other
    exception is the built-in class that a handler would name.
    """
    try:
        return plain(call())
    except Exception as error:
        names = [cls.__name__ for cls in type(error).__mro__]
        if "CUDAError" in names:
            found = re.search(r"CUDA_ERROR_\w+", str(error))
            return f"CUDAError {found[0] if found else ''}".rstrip()
        return next(name for name in names if hasattr(builtins, name))


def ptx(*entries: str) -> bytes:
    """A PTX image of entries."""
    return (HEADER + "\n".join(entries)).encode()


def empty(name: str, *types: str) -> str:
    """An entry that does nothing."""
    parameters = ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(types))
    return f".visible .entry {name}({parameters}) {{ ret; }}"


def expecting(kind: str, bits: int, name: str = "check") -> str:
    """An entry that traps unless its parameter has these bits: seen as an error of the stream."""
    size = {"8": 1, "6": 2, "2": 4, "4": 8}[kind[-1]]
    width = "16" if size == 1 else str(8 * size)
    load = f"ld.param.b{8 * size} %v, [p];"
    return f"""
.visible .entry {name}(.param .{kind} p)
{{
.reg .b{width} %v; .reg .pred %p;
{load}
setp.ne.s{width} %p, %v, {bits};
@%p trap;
ret;
}}"""


#: Traps unless the 32-bit word at the address is the value.
WORD = """
.visible .entry word(.param .u64 address, .param .u32 value)
{
.reg .b64 %a; .reg .b32 %v, %w; .reg .pred %p;
ld.param.u64 %a, [address]; ld.param.u32 %v, [value];
ld.global.u32 %w, [%a]; setp.ne.u32 %p, %v, %w;
@%p trap;
ret;
}"""
