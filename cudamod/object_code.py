"""Code objects: images that kernels are loaded from."""

from __future__ import annotations

import errno
import os
from _thread import RLock

from cudamod import _core
from cudamod.errors import CUDAFileError, CUDAFileNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cudamod._core import Kernel

    Image = bytes | bytearray | memoryview
    Path = str | os.PathLike[str]

__all__ = ["ObjectCode"]

_LOADABLE = ("cubin", "ptx", "fatbin")
_CODE_TYPES = (*_LOADABLE, "ltoir", "object", "library")

_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND
_FILE_NOT_FOUND = 301  # CUDA_ERROR_FILE_NOT_FOUND
_OPERATING_SYSTEM = 304  # CUDA_ERROR_OPERATING_SYSTEM


class ObjectCode:
    """An image (cubin, PTX, fatbin, ...) and, once something needs it, its loaded library.

    Made by the ``from_*`` functions from bytes or from a path (``str`` or ``os.PathLike``). Nothing
    is loaded before :meth:`load`, :meth:`get_kernel`, :meth:`kernels`, :attr:`handle` or
    :attr:`log`. Its kernels keep the library loaded; with the last of them it is unloaded at the
    next safe point. Shareable between threads. Pickled and copied as the image, not as what is
    loaded.
    """

    __slots__ = (
        "__weakref__",
        "_code",
        "_code_type",
        "_kernels",
        "_kernels_by_symbol",
        "_loaded",
        "_lock",
        "_name",
        "_symbol_mapping",
    )

    _code: bytes | str
    _code_type: str
    _name: str
    _symbol_mapping: dict[str, str]
    _lock: RLock
    _loaded: _core.Library | None
    _kernels: dict[str | bytes, Kernel]  # by the names that get_kernel was given
    _kernels_by_symbol: dict[str, Kernel]

    def __new__(cls, *_args: Any, **_kwargs: Any) -> ObjectCode:
        """Refuse: no ObjectCode without an image."""
        raise RuntimeError(
            "ObjectCode objects cannot be instantiated directly. Please use ObjectCode APIs "
            "(from_cubin, from_ptx) or Program APIs (compile)."
        )

    @classmethod
    def _init(
        cls,
        module: Image | Path,
        code_type: str,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        if code_type not in _CODE_TYPES:
            raise ValueError(f"{code_type=} is not supported (known: {', '.join(_CODE_TYPES)})")
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        self = object.__new__(cls)
        if isinstance(module, (bytes, bytearray, memoryview)):
            # Loading is lazy: what the caller does to its buffer meanwhile must not show.
            self._code = bytes(module)
        else:
            path = os.fspath(module)
            self._code = os.fsdecode(path)
        self._code_type = code_type
        self._name = name
        self._symbol_mapping = _text_mapping(symbol_mapping)
        self._lock = RLock()
        self._loaded = None
        self._kernels = {}
        self._kernels_by_symbol = {}
        return self

    @classmethod
    def from_cubin(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """Machine code for one architecture: the image, or the path of a file.

        ``symbol_mapping`` maps names that :meth:`get_kernel` takes to names in the image.
        """
        return cls._init(module, "cubin", name=name, symbol_mapping=symbol_mapping)

    @classmethod
    def from_ptx(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """PTX, which the driver compiles when it is loaded. Bytes need no trailing NUL."""
        return cls._init(module, "ptx", name=name, symbol_mapping=symbol_mapping)

    @classmethod
    def from_fatbin(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """Images for several architectures, of which the driver picks one."""
        return cls._init(module, "fatbin", name=name, symbol_mapping=symbol_mapping)

    @classmethod
    def from_ltoir(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """LTO-IR, for linking: it can't be loaded."""
        return cls._init(module, "ltoir", name=name, symbol_mapping=symbol_mapping)

    @classmethod
    def from_object(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """A relocatable device object, for linking: it can't be loaded."""
        return cls._init(module, "object", name=name, symbol_mapping=symbol_mapping)

    @classmethod
    def from_library(
        cls,
        module: Image | Path,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
    ) -> ObjectCode:
        """An archive of relocatable device objects, for linking: it can't be loaded."""
        return cls._init(module, "library", name=name, symbol_mapping=symbol_mapping)

    @property
    def code(self) -> bytes | str:
        """The image, or the path of its file."""
        return self._code

    @property
    def code_type(self) -> str:
        """``cubin``, ``ptx``, ``fatbin``, ``ltoir``, ``object`` or ``library``."""
        return self._code_type

    @property
    def name(self) -> str:
        """The name that it was given; part of error messages."""
        return self._name

    @property
    def symbol_mapping(self) -> dict[str, str]:
        """A copy of the mapping from names to names in the image."""
        return dict(self._symbol_mapping)

    @property
    def handle(self) -> int:
        """The CUlibrary as an int. Loads."""
        return self._library().handle

    @property
    def log(self) -> str:
        """What the driver's compiler wrote when it compiled the image. Loads."""
        written = self._library().log()
        return "" if written is None else "\n".join(part for part in written if part)

    def load(self) -> ObjectCode:
        """Load the library now, and answer the object itself.

        Raises:
            CUDAError: the driver refuses the image; ``.log`` holds what its compiler wrote.
            CUDAFileNotFoundError: there is no such file (a FileNotFoundError, too).
            CUDAFileError: the file can't be read (an OSError, too).
            RuntimeError: it is code for linking.
        """
        self._library()
        return self

    def get_kernel(self, name: str | bytes) -> Kernel:
        """The kernel of that name: the same object each time. Loads.

        Raises:
            CUDAError: there is none (CUDA_ERROR_NOT_FOUND, with names that are close), or loading
                fails as in :meth:`load`.
            ValueError: the name is empty, or has a NUL, or is not UTF-8.
        """
        try:
            kernel = self._kernels.get(name)
        except TypeError:
            kernel = None
        return kernel if kernel is not None else self._find_kernel(name)

    def kernels(self) -> list[str]:
        """The names of all kernels, as the image has them. Loads.

        With a driver older than 12.4, which can't tell, the list is empty.
        """
        return self._library().kernel_names()

    def __eq__(self, other: object) -> bool:
        """Whether image (or path), type and mapping are the same. Loads nothing."""
        if not isinstance(other, ObjectCode):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self._code_type, self._code))

    def __repr__(self) -> str:
        name = f" name={self._name!r}" if self._name else ""
        code = f"{len(self._code)} bytes" if isinstance(self._code, bytes) else repr(self._code)
        return f"<ObjectCode{name} code_type={self._code_type!r} code={code}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._code, self._code_type, self._name, self._symbol_mapping)

    def _identity(self) -> tuple[Any, ...]:
        return self._code_type, self._code, self._symbol_mapping

    def _subject(self) -> str:
        if isinstance(self._code, str):
            return f"{self._code_type} file {_shortened(self._code)!r}"
        name = f" {self._name!r}" if self._name else ""
        return f"{self._code_type} image{name} of {len(self._code)} bytes"

    def _library(self) -> _core.Library:
        loaded = self._loaded
        if loaded is not None:
            return loaded
        if self._code_type not in _LOADABLE:
            raise RuntimeError(
                f'Unsupported code type "{self._code_type}" (supported_code_types={_LOADABLE}); '
                "link it first"
            )
        with self._lock:
            if self._loaded is None:
                self._loaded = _core.Library.load(self._read(), self._subject(), ())
            return self._loaded

    def _read(self) -> bytes:
        if isinstance(self._code, bytes):
            return self._code
        try:
            with open(self._code, "rb") as file:
                return file.read()
        except ValueError:  # a NUL
            raise self._unreadable(OSError(errno.EINVAL, os.strerror(errno.EINVAL))) from None
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> CUDAFileError:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        cls = CUDAFileNotFoundError if missing else CUDAFileError
        assert isinstance(self._code, str)
        lines = "\n" in self._code
        made = cls.of(
            error,
            _FILE_NOT_FOUND if missing else _OPERATING_SYSTEM,
            "CUDA_ERROR_FILE_NOT_FOUND" if missing else "CUDA_ERROR_OPERATING_SYSTEM",
            self._subject() + ("; a str is a path: encode() a text" if lines else ""),
        )
        made.filename = self._code
        return made

    def _find_kernel(self, name: str | bytes) -> Kernel:
        text = _checked_name(name)
        symbol = self._symbol_mapping.get(text, text)
        library = self._library()
        with self._lock:
            kernel = self._kernels_by_symbol.get(symbol)
            if kernel is None:
                kernel = library.find_kernel(symbol)
                if kernel is None:
                    raise self._missing_kernel(symbol)
                self._kernels_by_symbol[symbol] = kernel
            self._kernels[name] = kernel
            return kernel

    def _missing_kernel(self, symbol: str) -> BaseException:
        from difflib import get_close_matches

        names = self.kernels()
        close = get_close_matches(symbol, names, n=3) or sorted(names)[:8]
        there = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        if len(names) > len(close):
            there += f" (it has {len(names)} kernels)"
        try:
            _core.raise_status(
                _NOT_FOUND, "cuLibraryGetKernel", f"kernel {symbol!r} in {self._subject()}{there}"
            )
        except BaseException as error:
            return error
        raise AssertionError("a status that is no success raises")


def _shortened(path: str) -> str:
    return path if len(path) <= 300 else path[:300] + "..."


def _checked_name(name: object) -> str:
    if isinstance(name, bytes):
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise ValueError(f"kernel name {name!r} is not UTF-8") from None
    elif isinstance(name, str):
        text = name
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"kernel name {name!r} can't be written in UTF-8") from None
    else:
        raise TypeError(f"kernel name must be str or bytes, not {type(name).__name__}")
    if not text:
        raise ValueError("kernel name is empty")
    if "\0" in text:
        raise ValueError(f"kernel name {name!r} has an embedded NUL")
    return text


def _text_mapping(mapping: Mapping[Any, Any] | None) -> dict[str, str]:
    if mapping is None:
        return {}
    if not hasattr(mapping, "items"):
        raise TypeError(f"symbol_mapping must be a mapping or None, not {type(mapping).__name__}")
    return {_checked_name(key): _checked_name(value) for key, value in mapping.items()}


def _restore(
    cls: type[ObjectCode], code: Image | Path, code_type: str, name: str, mapping: dict[str, str]
) -> ObjectCode:
    return cls._init(code, code_type, name=name, symbol_mapping=mapping)
