"""PTX that is newer than the installed driver, assembled by nvJitLink instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cudamod._compiler_library import NVJITLINK
from cudamod.errors import CompileError, CompilerNotFoundError
from cudamod.linker import current_architecture
from cudamod.program import Program
from cudamod.program_options import ProgramOptions

if TYPE_CHECKING:
    from cudamod.errors import CUDAError

__all__ = ["assemble_newer"]

_TARGET = re.compile(rb"^\s*\.target\s+(sm_\d+[af])\b", re.MULTILINE)


def assemble_newer(ptx: bytes, name: str, refusal: CUDAError) -> bytes:
    """The cubin of a PTX that the driver refuses (CUDA_ERROR_UNSUPPORTED_PTX_VERSION).

    It is for the current device, or for the architecture that the PTX insists on (``sm_90a``);
    made once, then found in the compile cache.

    Raises:
        CUDAError: the refusal, with what would help: nvJitLink is missing, or too old as well.
    """
    suffixed = _TARGET.search(ptx)
    try:
        NVJITLINK.path()
        arch = suffixed[1].decode() if suffixed else current_architecture()
        options = ProgramOptions(name=name or None, arch=arch)
        code = Program(ptx.decode(errors="replace"), "ptx", options).compile("cubin").code
    except (CompileError, CompilerNotFoundError) as error:
        raise type(refusal)(
            f"{refusal}. nvJitLink, which would assemble it, doesn't: {error}",
            refusal.status,
            refusal.name,
            refusal.call,
            refusal.subject,
            refusal.log,
        ) from error
    assert isinstance(code, bytes)
    return code
