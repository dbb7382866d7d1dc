"""Launching: arguments that one of the two refuses."""

import ctypes
from decimal import Decimal

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import attempt, empty, ptx, show

device = Device(0)
stream = device.create_stream()
one = LaunchConfig(grid=1, block=1)
code = ObjectCode.from_ptx(ptx(empty("p", "u64"), empty("i", "u32")))
kernel = code.get_kernel("p")


class Index:
    """Only an index."""

    def __index__(self):
        """A number."""
        return 3


class Pair(ctypes.Structure):
    """Eight bytes."""

    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


class Array:
    """An object with the CUDA array interface."""

    def __init__(self, buffer):
        """Around a buffer."""
        self.__cuda_array_interface__ = {
            "shape": (8,),
            "typestr": "|u1",
            "data": (int(buffer.handle), False),
            "version": 3,
        }


memory = device.allocate(8, stream=stream)
VALUES = {
    "text": "x",
    "bytes": b"12345678",
    "list": [1],
    "none": None,
    "decimal": Decimal(1),
    "host_array": np.zeros(4),
    "index": Index(),
    "structure": Pair(1, 2),
    "void": np.zeros(1, np.dtype([("a", "i4"), ("b", "i4")]))[0],
    "cuda_array": Array(memory),
    "beyond": 2**63,
    "far_beyond": 2**64,
    "pointer": ctypes.c_void_p(0),
}
for name, value in VALUES.items():
    show(**{name: attempt(lambda value=value: launch(stream, one, kernel, value))})
show(
    sync=attempt(stream.sync),
    wide_int=attempt(lambda: launch(stream, one, code.get_kernel("i"), 2**40)),
    double_in_word=attempt(lambda: launch(stream, one, code.get_kernel("i"), 1.5)),
)
