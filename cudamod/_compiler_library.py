"""NVIDIA's compiler and linker libraries: finding them, and telling one build from another.

They and the bindings that call them are not requirements of this package: its extra ``compile``
installs both.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import os
from typing import Any

from cudamod.errors import CompilerNotFoundError

__all__ = ["NVJITLINK", "NVRTC", "NVVM", "CompilerLibrary", "file_identity"]

_SAMPLE = 64 << 10


@dataclasses.dataclass(frozen=True)
class CompilerLibrary:
    """One of the libraries.

    Attributes:
        title: how people call it.
        module: the module that calls it.
        library: its name for ``cuda.pathfinder``.
        package: the package on PyPI that holds it.
    """

    title: str
    module: str
    library: str
    package: str

    def bindings(self) -> Any:
        """The module that calls the library, which is loaded.

        Raises CompilerNotFoundError when either is missing.
        """
        self.path()
        return importlib.import_module(self.module)

    def is_available(self) -> bool:
        """Whether :meth:`bindings` would succeed."""
        try:
            self.path()
        except CompilerNotFoundError:
            return False
        return True

    def path(self) -> str:
        """The file of the library, which is loaded."""
        try:
            importlib.import_module(self.module)
            pathfinder = importlib.import_module("cuda.pathfinder")
        except ImportError as error:
            raise self._missing(f"the bindings that call it: {error}") from error
        try:
            return str(pathfinder.load_nvidia_dynamic_lib(self.library).abs_path)
        except (RuntimeError, OSError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise self._missing(f"the library ({self.package} on PyPI): {reason}") from error

    def identity(self) -> str:
        """What tells this build of the library from any other."""
        path = self.path()
        folder = os.path.dirname(path)
        parts = sorted(
            os.path.join(folder, name)
            for name in os.listdir(folder)
            if name.startswith(f"lib{self.library}-builtins")
        )
        return " ".join(file_identity(part) for part in (path, *parts))

    def _missing(self, what: str) -> CompilerNotFoundError:
        return CompilerNotFoundError(
            f"{self.title} can't be used without {what}. "
            "`pip install cudamod[compile]` installs both."
        )


def file_identity(path: str) -> str:
    """What changes when a file is replaced by another build: name, size, time, first bytes.

    The first bytes of a shared library hold its build id.
    """
    status = os.stat(path)
    return _digest(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _digest(path: str, size: int, modified: int) -> str:
    with open(path, "rb") as file:
        sample = hashlib.sha256(file.read(_SAMPLE)).hexdigest()
    return f"{os.path.basename(path)}:{size}:{modified}:{sample}"


NVRTC = CompilerLibrary("NVRTC", "cuda.bindings.nvrtc", "nvrtc", "nvidia-cuda-nvrtc")
NVJITLINK = CompilerLibrary("nvJitLink", "cuda.bindings.nvjitlink", "nvJitLink", "nvidia-nvjitlink")
NVVM = CompilerLibrary("libNVVM", "cuda.bindings.nvvm", "nvvm", "nvidia-nvvm")
