"""What an ObjectCode and its kernels are made of: bytes or a file, and how they are loaded."""

from __future__ import annotations

import os
from _thread import RLock

from cudamod import _core
from cudamod.errors import CUDAError, CUDAFileError, CUDAFileNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cudamod._core import ImageInfo, Kernel

__all__ = ["Image"]

LOADABLE = ("cubin", "ptx", "fatbin")
CODE_TYPES = (*LOADABLE, "ltoir", "object", "library")

_UNSUPPORTED_PTX_VERSION = 222  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION
_NO_BINARY_FOR_GPU = 209  # CUDA_ERROR_NO_BINARY_FOR_GPU
_FILE_NOT_FOUND = 301  # CUDA_ERROR_FILE_NOT_FOUND
_OPERATING_SYSTEM = 304  # CUDA_ERROR_OPERATING_SYSTEM


class Image:
    """An image, by value or by its path, and the library that it is once something needs it."""

    __slots__ = ("__weakref__", "_loaded", "code", "code_type", "lock", "name", "options")

    code: bytes | str
    code_type: str
    name: str
    options: dict[str, Any]
    lock: RLock
    _loaded: _core.Library | None

    def __init__(
        self, code: object, code_type: str, name: str = "", options: dict[str, Any] | None = None
    ) -> None:
        if code_type not in CODE_TYPES:
            raise ValueError(f"{code_type=} is not supported (known: {', '.join(CODE_TYPES)})")
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        # Loading is lazy: what the caller does to its buffer meanwhile must not show.
        if isinstance(code, (bytes, bytearray, memoryview)):
            self.code = bytes(code)
        else:
            self.code = _checked_path(code)
        self.code_type = code_type
        self.name = name
        self.options = {}
        if options:
            from cudamod.load_options import checked

            self.options = checked(options)
        self.lock = RLock()
        self._loaded = None

    @property
    def subject(self) -> str:
        """What errors call it."""
        if isinstance(self.code, str):
            return f"{self.code_type} file {shortened(self.code)!r}"
        name = f" {self.name!r}" if self.name else ""
        return f"{self.code_type} image{name} of {len(self.code)} bytes"

    @property
    def identity(self) -> tuple[Any, ...]:
        """What two equal images have in common: content or path, type and load options."""
        return self.code_type, self.code, self.options

    def fresh(self) -> Image:
        """The same image, not loaded."""
        return Image(self.code, self.code_type, self.name, self.options)

    def library(self) -> _core.Library:
        """The library, loaded at the first call."""
        loaded = self._loaded
        if loaded is not None:
            return loaded
        if self.code_type not in LOADABLE:
            raise RuntimeError(
                f'Unsupported code type "{self.code_type}" (supported_code_types={LOADABLE}); '
                "link it first"
            )
        with self.lock:
            if self._loaded is None:
                try:
                    self._loaded = self._load()
                except CUDAError as error:
                    if error.status == _NO_BINARY_FOR_GPU:
                        error.args = (str(error) + self._architectures(),)
                    # Options of the driver's compiler mean nothing to another one.
                    newer = self.code_type == "ptx" and error.status == _UNSUPPORTED_PTX_VERSION
                    if not newer or self.options:
                        raise
                    from cudamod.newer_ptx import assemble_newer

                    cubin = assemble_newer(self.contents(), self.name, error)
                    self._loaded = _core.Library.load(cubin, self.subject, [], False)
            return self._loaded

    def read(self) -> list[ImageInfo]:
        """What the image says of itself, without a driver."""
        return _core.read_image(self.contents(), self.subject)

    def fatbins(self) -> list[Image]:
        """Those that it embeds, as images of their own."""
        found = _core.find_fatbins(self.contents(), self.subject)
        return [
            Image(fatbin, "fatbin", member or self.name, self.options) for member, fatbin in found
        ]

    def _architectures(self) -> str:
        """What there is instead of the code that a device would need."""
        try:
            found = list(dict.fromkeys(info.arch for info in self.read() if info.arch))
        except (ValueError, OSError):
            return ""
        return f"; the image has code for {', '.join(found)}" if found else ""

    def _load(self) -> _core.Library:
        jit: list[tuple[int, int]] = []
        if self.options:
            from cudamod.load_options import jit_options

            jit = jit_options(self.options)
        preserved = bool(self.options.get("preserve_binary"))
        if isinstance(self.code, bytes):
            return _core.Library.load(self.code, self.subject, jit, preserved)
        if not preserved:
            return _core.Library.load(self._read(), self.subject, jit, False)
        try:
            with open(self.code, "rb") as file:
                return _core.Library.load(file.fileno(), self.subject, jit, True)
        except OSError as error:
            if isinstance(error, CUDAFileError):
                raise
            raise self._unreadable(error) from error

    def contents(self) -> bytes:
        """Its bytes. Raises CUDAFileError when the file can't be read."""
        return self.code if isinstance(self.code, bytes) else self._read()

    def _read(self) -> bytes:
        assert isinstance(self.code, str)
        try:
            with open(self.code, "rb") as file:
                return file.read()
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> CUDAFileError:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        cls = CUDAFileNotFoundError if missing else CUDAFileError
        assert isinstance(self.code, str)
        made = cls.of(
            error,
            _FILE_NOT_FOUND if missing else _OPERATING_SYSTEM,
            "CUDA_ERROR_FILE_NOT_FOUND" if missing else "CUDA_ERROR_OPERATING_SYSTEM",
            self.subject + (_NO_PATH if "\n" in self.code else ""),
        )
        made.filename = self.code
        return made

    def _reduce_kernel(self, name: str) -> tuple[Any, ...]:
        return _restore_kernel, (self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Image, (self.code, self.code_type, self.name, self.options)


_NO_PATH = "; a str is a path: encode() a text"


def _restore_kernel(image: Image, name: str) -> Kernel:
    kernel = image.library().find_kernel(name, image)
    if kernel is None:
        _core.raise_status(500, "cuLibraryGetKernel", f"kernel {name!r} in {image.subject}")
        raise AssertionError("a status that is no success raises")
    return kernel


def shortened(text: str) -> str:
    """A text for the message of an error."""
    return text if len(text) <= 300 else text[:300] + "..."


def _checked_path(given: Any) -> str:
    path = os.fspath(given)
    try:
        text = os.fsdecode(path)
        encoded = os.fsencode(text)
    except UnicodeError:
        raise ValueError(f"path {shortened(path)!r} can't be encoded") from None
    if not encoded:
        raise ValueError("path is empty")
    if b"\0" in encoded:
        raise ValueError(f"path {shortened(text)!r} has an embedded NUL{_NO_PATH}")
    return text
