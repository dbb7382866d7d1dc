"""Code objects: images that kernels are loaded from."""

from __future__ import annotations

from cudamod import _core
from cudamod.image import Image, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any, ClassVar, NoReturn, Protocol

    from typing_extensions import Unpack

    from cudamod._core import Buffer, ImageInfo, Kernel
    from cudamod.load_options import LoadOptions
    from cudamod.module import Module

    Code = bytes | bytearray | memoryview | str | os.PathLike[str]
    Symbols = Mapping[str, str] | Mapping[bytes, bytes] | Mapping[str, bytes] | Mapping[bytes, str]

    class Constructor(Protocol):
        def __call__(
            self,
            module: Code,
            *,
            name: str = "",
            symbol_mapping: Symbols | None = None,
            **load_options: Unpack[LoadOptions],
        ) -> ObjectCode: ...


__all__ = ["ObjectCode"]

_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND


def _constructor(code_type: str, doc: str) -> Any:
    """A class method ``from_TYPE``."""

    def make(
        cls: type[ObjectCode],
        module: Code,
        *,
        name: str = "",
        symbol_mapping: Symbols | None = None,
        **load_options: Unpack[LoadOptions],
    ) -> ObjectCode:
        return cls._init(
            module, code_type, name=name, symbol_mapping=symbol_mapping, **load_options
        )

    make.__name__ = f"from_{code_type}"
    make.__qualname__ = f"ObjectCode.{make.__name__}"
    make.__doc__ = doc
    return classmethod(make)


class ObjectCode:
    """An image (cubin, PTX, fatbin, ...) and, once something needs it, its loaded library.

    Made by the ``from_*`` functions from bytes or from a path (``str`` or ``os.PathLike``).
    ``symbol_mapping`` maps names that :meth:`get_kernel` takes to names in the image;
    ``load_options`` are those of :class:`cudamod.load_options.LoadOptions`.

    Nothing is loaded before :meth:`load`, :meth:`get_kernel`, :meth:`get_global`,
    :meth:`get_module`, :meth:`kernels`, :attr:`handle` or :attr:`log`. Its kernels keep the library
    loaded; with the last of them it is unloaded at the next safe point. Shareable between threads.
    Equal are those of the same content (or path), type, mapping and options. Pickled and copied as
    the image, not as what is loaded.
    """

    __slots__ = ("__weakref__", "_image", "_kernels", "_kernels_by_symbol", "_symbol_mapping")

    _image: Image
    _symbol_mapping: dict[str, str]
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
        module: Code,
        code_type: str,
        *,
        name: str = "",
        symbol_mapping: Mapping[Any, Any] | None = None,
        **load_options: Any,
    ) -> ObjectCode:
        image = Image(module, code_type, name, load_options)
        return cls._of(image, _text_mapping(symbol_mapping))

    @classmethod
    def _of(cls, image: Image, symbol_mapping: dict[str, str]) -> ObjectCode:
        self = object.__new__(cls)
        self._image = image
        self._symbol_mapping = symbol_mapping
        self._kernels = {}
        self._kernels_by_symbol = {}
        return self

    from_cubin: ClassVar[Constructor] = _constructor(
        "cubin", "Machine code for one architecture: the image, or the path of a file."
    )
    from_ptx: ClassVar[Constructor] = _constructor(
        "ptx", "PTX, which the driver compiles when it is loaded. Bytes need no trailing NUL."
    )
    from_fatbin: ClassVar[Constructor] = _constructor(
        "fatbin", "Images for several architectures, of which the driver picks one."
    )
    from_ltoir: ClassVar[Constructor] = _constructor(
        "ltoir", "LTO-IR, for linking: it can't be loaded."
    )
    from_object: ClassVar[Constructor] = _constructor(
        "object", "A relocatable device object, for linking: it can't be loaded."
    )
    from_library: ClassVar[Constructor] = _constructor(
        "library", "An archive of relocatable device objects, for linking: it can't be loaded."
    )

    @property
    def code(self) -> bytes | str:
        """The image, or the path of its file."""
        return self._image.code

    @property
    def code_type(self) -> str:
        """``cubin``, ``ptx``, ``fatbin``, ``ltoir``, ``object`` or ``library``."""
        return self._image.code_type

    @property
    def name(self) -> str:
        """The name that it was given; part of error messages."""
        return self._image.name

    @property
    def symbol_mapping(self) -> dict[str, str]:
        """A copy of the mapping from names to names in the image."""
        return dict(self._symbol_mapping)

    @property
    def load_options(self) -> dict[str, Any]:
        """A copy of the options that it is loaded with."""
        return dict(self._image.options)

    @property
    def handle(self) -> int:
        """The CUlibrary as an int. Loads."""
        return self._library().handle

    @property
    def log(self) -> str:
        """What the driver's compiler wrote when it compiled the image. Loads."""
        written = self._library().log()
        return "" if written is None else "\n".join(part for part in written if part)

    def images(self) -> list[ImageInfo]:
        """What the image consists of: kind, architecture and kernels of each piece of code in it.

        Read without a driver from PTX, cubins, fatbins (compressed ones, too), and from objects and
        archives that embed any of these.

        Raises:
            ValueError: it is none of these, or damaged.
            CUDAFileError: the file can't be read (an OSError, too).
        """
        return self._image.read()

    def fatbins(self) -> list[ObjectCode]:
        """The fatbins that an object, an executable or an archive embeds, one per source file.

        Each is object code of its own, called by the archive's member, with this mapping and these
        load options; it can be loaded unless it is relocatable (see :meth:`images`).

        Raises:
            ValueError: it is neither of these nor a fatbin, or damaged.
            CUDAFileError: the file can't be read (an OSError, too).
        """
        return [self._of(image, self._symbol_mapping) for image in self._image.fatbins()]

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

        The name is a key of the symbol mapping, a (mangled) name in the image, or a C++ spelling
        that means only one of its kernels: ``"ns::axpy<float, 4>"``, ``"axpy(int*)"``, ``"axpy"``.

        Raises:
            CUDAError: there is none (CUDA_ERROR_NOT_FOUND, with names that are close, or with those
                that it may mean), or loading fails as in :meth:`load`.
            ValueError: the name is empty, or has a NUL, or is not UTF-8.
        """
        try:
            kernel = self._kernels.get(name)
        except TypeError:
            kernel = None
        return kernel if kernel is not None else self._find_kernel(name)

    def kernels(self) -> list[str]:
        """The names of all kernels, as the image has them. Loads."""
        names = self._library().kernel_names()
        if names:
            return names
        # Drivers before 12.4 can't tell. The image can, of all architectures together.
        try:
            infos = self.images()
        except ValueError:
            return []
        known = dict.fromkeys(name for info in infos for name in info.kernels or ())
        with self._image.lock:
            return [name for name in known if self._kernel_of(name) is not None]

    def get_global(self, name: str | bytes) -> Buffer:
        """A variable of the image (``__device__``, ``__constant__``, ``__managed__``). Loads.

        A Buffer over the variable where it lies in the current context, to copy from and to, or to
        be an argument; it keeps the library loaded. The name is a key of the symbol mapping, a name
        in the image, or a C++ name with its namespaces.

        Raises:
            CUDAError: there is none (CUDA_ERROR_NOT_FOUND); no context is current; or loading
                fails as in :meth:`load`.
            ValueError: the name is empty, or has a NUL, or is not UTF-8.
        """
        text = _checked_name(name, "variable")
        symbol = self._symbol_mapping.get(text, text)
        library = self._library()
        found = library.find_global(symbol)
        if found is None and "::" in symbol:
            found = library.find_global(_mangled_variable(symbol))
        if found is None:
            self._raise_not_found("cuLibraryGetGlobal", f"variable {shortened(symbol)!r}", "")
        return found

    def get_module(self) -> Module:
        """The CUmodule of the current context, for calls that take no library. Loads.

        Raises:
            CUDAError: no context is current, or loading fails as in :meth:`load`.
        """
        from cudamod.module import Module

        return Module._of(self._library())

    def __eq__(self, other: object) -> bool:
        """Whether image (or path), type, mapping and load options are the same. Loads nothing."""
        if not isinstance(other, ObjectCode):
            return NotImplemented
        return (
            self._image.identity == other._image.identity
            and self._symbol_mapping == other._symbol_mapping
        )

    def __hash__(self) -> int:
        return hash((self._image.code_type, self._image.code))

    def __repr__(self) -> str:
        name = f" name={self.name!r}" if self.name else ""
        code = f"{len(self.code)} bytes" if isinstance(self.code, bytes) else repr(self.code)
        return f"<ObjectCode{name} code_type={self.code_type!r} code={code}>"

    def __copy__(self) -> ObjectCode:
        return self._of(self._image.fresh(), self._symbol_mapping)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._image, self._symbol_mapping)

    def _library(self) -> _core.Library:
        return self._image.library()

    def _find_kernel(self, name: str | bytes) -> Kernel:
        text = _checked_name(name, "kernel")
        symbol = self._symbol_mapping.get(text, text)
        self._library()
        with self._image.lock:
            kernel = self._kernel_of(symbol) or self._kernel_spelled(symbol)
            self._kernels[name] = kernel
            return kernel

    def _kernel_of(self, symbol: str) -> Kernel | None:
        kernel = self._kernels_by_symbol.get(symbol)
        if kernel is None:
            kernel = self._library().find_kernel(symbol, self._image)
            if kernel is not None:
                self._kernels_by_symbol[symbol] = kernel
        return kernel

    def _kernel_spelled(self, spelling: str) -> Kernel:
        from cudamod import kernel_name

        names = self.kernels()
        found = kernel_name.matches(spelling, names)
        kernel = self._kernel_of(found[0]) if len(found) == 1 else None
        if kernel is not None:
            return kernel
        if found:
            listed = ", ".join(f"{kernel_name.spelling(s)!r} ({s})" for s in sorted(found)[:8])
            more = f" and {len(found) - 8} more" if len(found) > 8 else ""
            hint = f" is ambiguous: it may be {listed}{more}"
        else:
            close = kernel_name.similar(spelling, names) or sorted(names)[:8]
            spelled = " or ".join(repr(kernel_name.spelling(symbol)) for symbol in close)
            hint = f"; did you mean {spelled}?" if close else ""
            if len(names) > len(close):
                hint += f" (it has {len(names)} kernels)"
        self._raise_not_found("cuLibraryGetKernel", f"kernel {shortened(spelling)!r}", hint)

    def _raise_not_found(self, call: str, what: str, hint: str) -> NoReturn:
        _core.raise_status(_NOT_FOUND, call, f"{what} in {self._image.subject}{hint}")
        raise AssertionError("a status that is no success raises")


def _checked_name(name: object, what: str) -> str:
    if isinstance(name, bytes):
        try:
            text = name.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{what} name {name!r} is not UTF-8") from None
    elif isinstance(name, str):
        text = name
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} name {name!r} can't be written in UTF-8") from None
    else:
        raise TypeError(f"{what} name must be str or bytes, not {type(name).__name__}")
    if not text:
        raise ValueError(f"{what} name is empty")
    if "\0" in text:
        raise ValueError(f"{what} name {name!r} has an embedded NUL")
    return text


def _text_mapping(mapping: Mapping[Any, Any] | None) -> dict[str, str]:
    if mapping is None:
        return {}
    if not hasattr(mapping, "items"):
        raise TypeError(f"symbol_mapping must be a mapping or None, not {type(mapping).__name__}")
    texts: dict[str, str] = {}
    for key, value in mapping.items():
        name, symbol = (
            _checked_name(key, "symbol_mapping: the"),
            _checked_name(value, "symbol_mapping: the"),
        )
        if texts.setdefault(name, symbol) != symbol:
            raise ValueError(f"symbol_mapping: {key!r} has two values, {texts[name]!r}, {symbol!r}")
    return texts


def _mangled_variable(name: str) -> str:
    """The symbol of a variable in namespaces, ``ns::counter``."""
    parts = name.removeprefix("::").split("::")
    return parts[0] if len(parts) == 1 else f"_ZN{''.join(f'{len(p)}{p}' for p in parts)}E"


def _restore(cls: type[ObjectCode], image: Image, mapping: dict[str, str]) -> ObjectCode:
    return cls._of(image, mapping)
