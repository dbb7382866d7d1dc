"""Linking with nvJitLink."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

from cudamod._compiler_library import NVJITLINK
from cudamod.errors import CompileError

__all__ = ["Input", "Linked", "link", "version"]


_ERROR = re.compile(r"^error\b", re.MULTILINE | re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Input:
    """What is linked: a code type of :class:`cudamod.ObjectCode`, the image and a name."""

    code_type: str
    code: bytes
    name: str


@dataclasses.dataclass(frozen=True)
class Linked:
    """What a linker made, and what it wrote."""

    code: bytes
    info_log: str = ""
    error_log: str = ""


def version() -> tuple[int, int]:
    """The version of nvJitLink."""
    major, minor = NVJITLINK.bindings().version()
    return int(major), int(minor)


def link(inputs: Sequence[Input], flags: Sequence[str], target: str, name: str) -> Linked:
    """Link to a ``cubin`` or to ``ptx``.

    Raises:
        CompileError: nvJitLink refuses an input or an option.
        CompilerNotFoundError: there is no nvJitLink.
    """
    nvjitlink = NVJITLINK.bindings()
    options = tuple(flags)
    subject = f"link {name!r}"
    handle = 0

    def call(function_name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except nvjitlink.nvJitLinkError as error:
            log = _log(nvjitlink, handle, "error") if handle else ""
            status = f"NVJITLINK_{nvjitlink.Result(error.status).name}"
            raise CompileError.of(
                error.status, status, function_name, subject, log, options
            ) from None

    try:
        handle = call("nvJitLinkCreate", nvjitlink.create, len(options), options)
        for given in inputs:
            subject = f"link {name!r}, input {given.name!r}"
            kind = getattr(nvjitlink.InputType, given.code_type.upper())
            code = given.code.rstrip(b"\0") if given.code_type == "ptx" else given.code
            call(
                "nvJitLinkAddData",
                nvjitlink.add_data,
                handle,
                kind,
                code,
                len(code),
                given.name,
            )
        subject = f"link {name!r}"
        call("nvJitLinkComplete", nvjitlink.complete, handle)
        log = _log(nvjitlink, handle, "error")
        if _ERROR.search(log):  # it calls that a success
            raise CompileError.of(
                0, "the linked code is broken", "nvJitLinkComplete", subject, log, options
            )
        title = target.capitalize()
        size = call(
            f"nvJitLinkGetLinked{title}Size",
            getattr(nvjitlink, f"get_linked_{target}_size"),
            handle,
        )
        made = bytearray(size)
        call(
            f"nvJitLinkGetLinked{title}",
            getattr(nvjitlink, f"get_linked_{target}"),
            handle,
            made,
        )
        return Linked(bytes(made), _log(nvjitlink, handle, "info"), log)
    finally:
        if handle:
            nvjitlink.destroy(handle)


def _log(nvjitlink: Any, handle: int, which: str) -> str:
    content = bytearray(getattr(nvjitlink, f"get_{which}_log_size")(handle))
    if content:
        getattr(nvjitlink, f"get_{which}_log")(handle, content)
    return content.rstrip(b"\0").decode(errors="replace")
