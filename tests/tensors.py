"""Tensors for tests of tensor maps."""

from __future__ import annotations

from typing import Any

from cudamod import TensorMap

ROWS, COLUMNS = 64, 128


def tiled(tensor: Any, box: Any = (8, 16), **given: Any) -> TensorMap:
    return TensorMap.tiled(
        tensor, box, **{"shape": (ROWS, COLUMNS), "data_type": "float32", **given}
    )


class Array:
    """What CuPy and Numba arrays are to us."""

    def __init__(self, address: int, **interface: Any) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (ROWS, COLUMNS),
            "typestr": "<f4",
            "strides": None,
            **interface,
        }
