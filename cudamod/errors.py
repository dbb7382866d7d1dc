"""The exceptions. Every failed driver call becomes one of these, in one place."""

from __future__ import annotations

from cudamod import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CUDAError(RuntimeError):
    """A driver call failed.

    Attributes:
        status: the ``CUresult`` as an integer; ``cudamod.driver.CUresult(status)`` is its enum.
        name: its name, ``"CUDA_ERROR_INVALID_VALUE"``.
        call: the driver function, ``"cuLaunchKernelEx"``.
        subject: the object and value concerned, or an empty string.
        log: what the driver itself said, one message per line; empty before CUDA 12.9.
        launches: with the fault of a kernel, the last launches of each device from the oldest to
            the newest, if ``CUDAMOD_LAUNCH_LOG`` asks for them.
    """

    launches: tuple[str, ...] = ()

    def __init__(
        self, message: str, status: int, name: str, call: str, subject: str = "", log: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.call = call
        self.subject = subject
        self.log = log

    def __reduce__(self) -> tuple[Any, ...]:
        made_from = (*self.args, self.status, self.name, self.call, self.subject, self.log)
        return type(self), made_from, self.__dict__


class CUDAOutOfMemoryError(CUDAError, MemoryError):
    """CUDA_ERROR_OUT_OF_MEMORY."""


class CompileError(CUDAError):
    """Compiling or linking failed: in NVRTC, libNVVM, nvJitLink or the driver's linker.

    ``status`` and ``name`` are those of the library whose function is ``call``; ``subject`` names
    the program or the link; ``log`` is what the compiler wrote.

    Attributes:
        options: the options as they were given to the compiler.
    """

    options: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, status: int, name: str, call: str, subject: str, log: str, options: tuple[str, ...]
    ) -> CompileError:
        """The error with its message: the call, what is concerned, the options and the log."""
        given = f", options {' '.join(options)}" if options else ""
        written = f"\n\n{log}" if log else ""
        made = cls(f"{call}: {name} ({subject}{given}){written}", status, name, call, subject, log)
        made.options = options
        return made


class CUDAFileError(CUDAError, OSError):
    """The file of an image can't be read."""

    def __str__(self) -> str:
        return str(self.args[0])

    @classmethod
    def of(cls, error: OSError, status: int, name: str, subject: str) -> CUDAFileError:
        """The error of a file, as one of a driver call that was to load it."""
        message = f"open: {name}: {error.strerror} ({subject})"
        made = cls(message, status, name, "open", subject)
        made.errno, made.filename, made.strerror = error.errno, error.filename, error.strerror
        return made


class CUDAFileNotFoundError(CUDAFileError, FileNotFoundError):
    """CUDA_ERROR_FILE_NOT_FOUND."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.errno = 2  # ENOENT


class DriverTooOldError(CUDAError, NotImplementedError):
    """The installed driver lacks a function or a launch attribute.

    Attributes:
        needed: the CUDA version whose drivers have it, 12040 for 12.4.
        found: the CUDA version of the installed driver.
    """

    needed = 0
    found = 0


class MissingFunctionError(DriverTooOldError, AttributeError):  # type: ignore[misc]  # name
    """Looking up a function of ``cudamod.driver`` that the installed driver lacks."""

    @classmethod
    def of(cls, error: DriverTooOldError) -> MissingFunctionError:
        """The same error, as one of an attribute."""
        made = cls(str(error), error.status, error.name, error.call, error.subject, error.log)
        made.needed, made.found = error.needed, error.found
        return made


class DriverNotFoundError(RuntimeError):
    """No usable driver: none installed, too old, a stub for linking, or without a device.

    Attributes:
        choice: the driver that was asked for, ``"auto"``, ``"emulated"`` or a path.
        searched: what was tried, as pairs of place and reason.
    """

    def __init__(
        self, message: str, choice: str = "auto", searched: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.choice = choice
        self.searched = searched


class CompilerNotFoundError(RuntimeError):
    """A compiler or linker library is not installed, or the bindings that call it."""


class CUDAWarning(RuntimeWarning):
    """Something failed where nobody could be told, in a destructor for example."""


_CLASSES: dict[str, type[CUDAError]] = {
    "CUDA_ERROR_OUT_OF_MEMORY": CUDAOutOfMemoryError,
    "CUDA_ERROR_FILE_NOT_FOUND": CUDAFileNotFoundError,
}


def _driver_error(
    message: str,
    status: int,
    name: str,
    call: str,
    subject: str,
    log: str,
    needed: int,
    found: int,
    launches: tuple[str, ...] = (),
) -> CUDAError:
    if needed:
        too_old = DriverTooOldError(message, status, name, call, subject, log)
        too_old.needed = needed
        too_old.found = found
        return too_old
    if launches:
        message = "\n  ".join((f"{message}\nThe last launches, the newest last:", *launches))
    error = _CLASSES.get(name, CUDAError)(message, status, name, call, subject, log)
    if launches:
        error.launches = launches
    return error


def _not_found(message: str, choice: str, searched: list[tuple[str, str]]) -> DriverNotFoundError:
    return DriverNotFoundError(message, choice, tuple(searched))


_core.set_error_factories(_driver_error, _not_found, CUDAWarning)
