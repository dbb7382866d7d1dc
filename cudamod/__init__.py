"""Load CUDA code objects, inspect their kernels, and launch them at the cost of the C call.

Importing this package opens no driver.
"""

from __future__ import annotations

from cudamod.errors import (
    CUDAError,
    CUDAFileNotFoundError,
    CUDAOutOfMemoryError,
    CUDAWarning,
    DriverNotFoundError,
    DriverTooOldError,
)

__version__ = "0.1.0"

__all__ = [
    "CUDAError",
    "CUDAFileNotFoundError",
    "CUDAOutOfMemoryError",
    "CUDAWarning",
    "DriverNotFoundError",
    "DriverTooOldError",
    "__version__",
]
