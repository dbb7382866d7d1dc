"""A folder of compiled programs that outlives the process."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from cudamod import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CacheContent", "CompileCache", "cache_directory"]

_MAGIC = b"cudamod compile cache 1\n"
_UNFINISHED = ".new-"
_UNFINISHED_SECONDS = 3600


class CacheContent(NamedTuple):
    """What a cache holds: entries, and their bytes."""

    entries: int
    bytes: int


def cache_directory() -> str | None:
    """The folder for what this package keeps on disk, or None when there is no place for it.

    ``CUDAMOD_CACHE_DIR``, else ``cudamod`` in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    chosen = _core.cache_directory()
    if chosen is not None:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cudamod") if os.path.isabs(base) else None


class CompileCache:
    """Compiled programs in a folder: bounded, shared by processes, never a reason to fail.

    An entry is written to a file of its own that is then renamed, and is checked by its digest
    when it is read: an entry that is damaged, or was torn by a crash, is dropped as if it weren't
    there. Folders that can't be written, are full, or belong to somebody else only mean that
    nothing is kept. Entries used least recently go first when the folder exceeds ``max_bytes``.

    The folder must be one that only people may write to whose code you would run.
    """

    __slots__ = ("_directory", "_is_default", "_max_bytes")

    _directory: str | None
    _is_default: bool
    _max_bytes: int

    def __new__(
        cls, directory: str | os.PathLike[str] | None = None, *, max_bytes: int = 256 << 20
    ) -> CompileCache:
        """A cache in the folder, or in ``programs`` in :func:`cache_directory`."""
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
            raise TypeError(f"max_bytes must be int, not {type(max_bytes).__name__}")
        if max_bytes < 0:
            raise ValueError(f"max_bytes must not be negative: {max_bytes}")
        self = object.__new__(cls)
        self._is_default = directory is None
        self._max_bytes = max_bytes
        if directory is None:
            base = cache_directory()
            self._directory = None if base is None else os.path.join(base, "programs")
        else:
            path = os.fsdecode(os.fspath(directory))
            if not path or "\0" in path:
                raise ValueError(f"directory is no path: {directory!r}")
            self._directory = os.path.abspath(path)
        return self

    @property
    def directory(self) -> str | None:
        """The folder; None when the system has no place for one."""
        return self._directory

    @property
    def max_bytes(self) -> int:
        """How many bytes the entries may have in all."""
        return self._max_bytes

    def get(self, key: str) -> bytes | None:
        """The entry of that key, or None. A damaged entry is removed."""
        path = self._path(key)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            return None
        digest, payload = content[: len(_MAGIC) + 32], content[len(_MAGIC) + 32 :]
        if digest != _MAGIC + _digest(key, payload):
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> bool:
        """Keep an entry; answers whether it was kept."""
        path = self._path(key)
        size = len(_MAGIC) + 32 + len(payload)
        if path is None or size > self._max_bytes:
            return False
        assert self._directory is not None
        unfinished = None
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            if not self._is_trusted():
                return False
            handle, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._directory)
            with open(handle, "wb") as file:
                file.write(_MAGIC + _digest(key, payload))
                file.write(payload)
            os.replace(unfinished, path)
            unfinished = None
        except OSError:
            return False
        finally:
            if unfinished is not None:
                with suppress(OSError):
                    os.unlink(unfinished)
        self._shrink()
        return True

    def content(self) -> CacheContent:
        """How much is in the folder."""
        sizes = [size for _, size, _ in self._entries()]
        return CacheContent(len(sizes), sum(sizes))

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in self._entries():
            with suppress(OSError):
                os.unlink(path)

    def __repr__(self) -> str:
        return f"CompileCache({self._directory!r}, max_bytes={self._max_bytes})"

    def __reduce__(self) -> tuple[object, ...]:
        directory = None if self._is_default else self._directory
        return _restore, (type(self), directory, self._max_bytes)

    def _path(self, key: str) -> str | None:
        if not key or not key.isascii() or not key.isalnum():
            raise ValueError(f"a key must be of letters and digits: {key!r}")
        if self._directory is None or not self._is_trusted():
            return None
        return os.path.join(self._directory, key)

    def _is_trusted(self) -> bool:
        """Whether nobody else chose what lies there: code from there will be run."""
        assert self._directory is not None
        if not self._is_default:
            return True
        try:
            return os.stat(self._directory).st_uid == os.geteuid()
        except OSError:
            return True  # not there yet

    def _entries(self) -> Iterator[tuple[int, int, str]]:
        """When each entry was used last, its bytes and path. Removes what was never finished."""
        if self._directory is None:
            return
        try:
            files = list(os.scandir(self._directory))
        except OSError:
            return
        for file in files:
            with suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if not file.name.startswith(_UNFINISHED):
                    yield status.st_mtime_ns, status.st_size, file.path
                elif time.time() - status.st_mtime > _UNFINISHED_SECONDS:
                    os.unlink(file.path)

    def _shrink(self) -> None:
        entries = sorted(self._entries())
        excess = sum(size for _, size, _ in entries) - self._max_bytes
        for _, size, path in entries:
            if excess <= 0:
                return
            with suppress(OSError):
                os.unlink(path)
            excess -= size


def _digest(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + payload).digest()


def _restore(cls: type[CompileCache], directory: str | None, max_bytes: int) -> CompileCache:
    return cls(directory, max_bytes=max_bytes)
