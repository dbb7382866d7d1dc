"""Whether a compilation may be cached, and under which key.

Two compilations have the same key only if the same compiler would make the same code. What can't
be known from the arguments (headers, precompiled headers, the date) keeps a program out of the
cache, or has to be vouched for by the caller's digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Sequence

from cudamod._compile_option import is_given
from cudamod.program_options import ProgramOptions

__all__ = ["compile_key", "includes", "needs_digest"]

_FORMAT = 1

# These write files, read files that no digest of headers covers, or ask for no cache.
_NEVER = (
    "no_cache",
    "time",
    "fdevice_syntax_only",
    "fdevice_time_trace",
    "pch",
    "create_pch",
    "use_pch",
    "pch_dir",
)
# Options of the assembler that do.
_FILES_OF_PTXAS = re.compile(r"(?<![\w-])(-o|-optf|--output-file|--options-file)(?![\w-])")
_LINE_SPLICE = re.compile(r"(\\|\?\?/)[ \t]*\r?\n")
_DIRECTIVE = re.compile(
    r"(?:#|%:|\?\?=)(?:\s|/\*.*?\*/)*(?:include|include_next|import|embed)\b(?:\s|/\*.*?\*/)*(<?)",
    re.DOTALL,
)
_PROBE = re.compile(r"\b__has_(?:include|include_next|embed)\b")
_CLOCK = re.compile(r"\b__(?:DATE|TIME|TIMESTAMP)__")


def includes(source: str) -> tuple[bool, bool]:
    """Whether a source reads headers, and whether it reads any that is not ``#include <...>``.

    Sees too much rather than too little: directives in comments and in branches that are not taken
    count.
    """
    spliced = _LINE_SPLICE.sub("", source)
    brackets = _DIRECTIVE.findall(spliced)
    others = any(not bracket for bracket in brackets) or bool(_PROBE.search(spliced))
    return bool(brackets) or others, others


def needs_digest(source: str, options: ProgramOptions) -> bool:
    """Whether what is compiled depends on files that only the caller knows."""
    if is_given(options, "pre_include"):
        return True
    any_header, others = includes(source)
    if is_given(options, "use_bundled_headers") and not is_given(options, "include_path"):
        return others  # the rest comes with the compiler
    return any_header


def compile_key(
    source: bytes,
    code_type: str,
    options: ProgramOptions,
    target: str,
    expressions: Sequence[str],
    compiler: str,
    flags: Sequence[str],
    extra_digest: str | bytes | None,
) -> str | None:
    """The key, or None for what can't be cached.

    The options must have their architecture; ``compiler`` tells one build of it from another, and
    the driver's where the driver assembles.
    """
    if any(is_given(options, name) for name in _NEVER):
        return None
    if _FILES_OF_PTXAS.search(" ".join(map(str, options.ptxas_options or ()))):  # type: ignore[arg-type]
        return None
    if code_type == "c++":
        text = source.decode()
        macros = "".join(map(str, options.define_macro or ()))
        if _CLOCK.search(_LINE_SPLICE.sub("", text) + macros):
            return None
        if extra_digest is None and needs_digest(text, options):
            return None
    values = [(field.name, getattr(options, field.name)) for field in dataclasses.fields(options)]
    folder = ""
    if options.debug or options.lineinfo:
        # Debug information holds the folder that a relative name is meant in.
        try:
            folder = os.getcwd()
        except OSError:  # it was removed
            return None
    parts = (
        _FORMAT,
        code_type,
        target,
        values,
        tuple(flags),
        tuple(expressions),
        compiler,
        folder,
        extra_digest,
        source,
    )
    return hashlib.sha256(repr(parts).encode(errors="surrogateescape")).hexdigest()
