"""C++ spellings of kernels' names: ``ns::axpy<float, 4>``, ``axpy``, ``axpy(int*)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cudamod import _core

__all__ = ["matches", "similar", "spelling"]

_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\d[\w.]*|::|\S")
_ANONYMOUS = "(anonymous namespace)::"
_INTEGER_WORDS = {"unsigned", "signed", "short", "long", "int"}


class _Name(NamedTuple):
    """A function's name in parts; None for a part that is not given."""

    path: tuple[str, ...]
    template_arguments: str | None
    parameters: str | None
    absolute: bool = False


def spelling(symbol: str) -> str:
    """The name as a reader knows it; the symbol itself where it is not a mangled one."""
    demangled = _core.demangle(symbol)
    return demangled[0] if demangled else symbol


def matches(name: str, symbols: Iterable[str]) -> list[str]:
    """The symbols that a C++ spelling means.

    What the spelling leaves out (namespaces from the left, template arguments, parameters) may be
    anything; anonymous namespaces are always left out. Symbols whose whole path is given go before
    those of which only the end is.
    """
    wanted = _parse(name)
    if wanted is None:
        return []
    whole: list[str] = []
    partial: list[str] = []
    for symbol, known in _mangled(symbols):
        if not _fits(wanted, known):
            continue
        (whole if wanted.path == known.path else partial).append(symbol)
    return whole if whole or wanted.absolute else partial


def similar(name: str, symbols: Iterable[str]) -> list[str]:
    """The symbols that are close to a name, or whose base names are. None for a very long one."""
    if len(name) > 1000:  # comparing takes time by the square
        return []
    from difflib import get_close_matches

    known: dict[str, list[str]] = {}
    for symbol in symbols:
        demangled = _core.demangle(symbol)
        for key in {symbol, demangled[2] if demangled else symbol}:
            known.setdefault(key, []).append(symbol)
    parsed = _parse(name)
    close = get_close_matches(name, known, n=3)
    if parsed is not None:
        close += get_close_matches(parsed.path[-1], known, n=3)
    return list(dict.fromkeys(symbol for key in close for symbol in known[key]))[:8]


def _mangled(symbols: Iterable[str]) -> Iterator[tuple[str, _Name]]:
    for symbol in symbols:
        demangled = _core.demangle(symbol)
        known = _parse(demangled[0]) if demangled else None
        if known is not None:
            yield symbol, known


def _fits(wanted: _Name, known: _Name) -> bool:
    return (
        known.path[-len(wanted.path) :] == wanted.path
        and wanted.template_arguments in (None, known.template_arguments)
        and wanted.parameters in (None, known.parameters)
    )


def _parse(text: str) -> _Name | None:
    """The parts of a spelling; None when it can't be a function's."""
    rest = _canonical(text.replace(_ANONYMOUS, "")).removeprefix("&").removeprefix("void ")
    absolute = rest.startswith("::")
    rest, parameters = _split_end(rest.removeprefix("::"), "(", ")")
    if parameters == "(void)":
        parameters = "()"
    rest, template_arguments = _split_end(rest, "<", ">")
    path = tuple(_split_path(rest))
    return _Name(path, template_arguments, parameters, absolute) if all(path) else None


def _split_end(text: str, opening: str, closing: str) -> tuple[str, str | None]:
    """The text and the bracket that it ends in."""
    if not text.endswith(closing):
        return text, None
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == closing) - (text[at] == opening)
        if depth == 0:
            return text[:at], text[at:]
    return text, None


def _split_path(text: str) -> Iterator[str]:
    """The parts between ``::`` outside brackets."""
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and text.startswith("::", at):
            yield text[start:at]
            start = at + 2
    yield text[start:]


def _canonical(text: str) -> str:
    """One spelling for all that mean the same: blanks, order of const, ways to write integers."""
    parts: list[str] = []
    words: list[str] = []
    glued = False
    for token in _TOKEN.findall(text):
        is_word = token[0].isalnum() or token[0] in "_$"
        if is_word and glued and words:
            words[-1] += token
        elif is_word:
            words.append(token)
        elif token == "::" and words:
            words[-1] += token
        else:
            parts += [_phrase(words), token]
            words = []
        glued = token == "::"
    parts.append(_phrase(words))
    return "".join(parts)


def _phrase(words: list[str]) -> str:
    """Words that stand beside each other: a type, or a return type and a name."""
    qualifiers = sorted(word for word in words if word in ("const", "volatile"))
    plain = [_number(word) for word in words if word not in ("const", "volatile")]
    if plain and all(word in _INTEGER_WORDS or word in ("char", "double") for word in plain):
        plain = [_builtin(plain)]
    return " ".join(plain + qualifiers)


def _number(word: str) -> str:
    return word.rstrip("uUlL") if word[0].isdigit() else word


def _builtin(words: list[str]) -> str:
    """``long unsigned`` is ``unsigned long``, ``unsigned`` is ``unsigned int``."""
    if "double" in words:
        return "long double" if "long" in words else "double"
    if "char" in words:
        return " ".join([word for word in ("unsigned", "signed") if word in words] + ["char"])
    size = "short" if "short" in words else " ".join(["long"] * words.count("long")) or "int"
    return f"unsigned {size}" if "unsigned" in words else size
