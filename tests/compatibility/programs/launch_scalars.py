"""Launching: scalars of each kind arrive with their bits."""

import ctypes
import struct

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from outcome import attempt, expecting, ptx, show

stream = Device(0).create_stream()
one = LaunchConfig(grid=1, block=1)


def bits(form, value):
    """The bits of a value as an integer."""
    data = struct.pack(form, value)
    return int.from_bytes(data, "little", signed=True)


CASES = {
    "int": ("u64", 2**40 + 5, 2**40 + 5),
    "negative": ("s64", -3, -3),
    "float": ("f64", 1.5, bits("<d", 1.5)),
    "bool": ("u8", True, 1),
    "np_int8": ("s8", np.int8(5), 5),
    "np_uint16": ("u16", np.uint16(7), 7),
    "np_int32": ("s32", np.int32(-7), -7),
    "np_uint32": ("u32", np.uint32(9), 9),
    "np_int64": ("s64", np.int64(-9), -9),
    "np_uint64": ("u64", np.uint64(2**40), 2**40),
    "np_float16": ("b16", np.float16(1.5), bits("<e", 1.5)),
    "np_float32": ("f32", np.float32(2.5), bits("<f", 2.5)),
    "np_float64": ("f64", np.float64(2.5), bits("<d", 2.5)),
    "np_bool": ("u8", np.bool_(True), 1),
    "c_int8": ("s8", ctypes.c_int8(3), 3),
    "c_uint16": ("u16", ctypes.c_uint16(3), 3),
    "c_int": ("s32", ctypes.c_int(-4), -4),
    "c_uint": ("u32", ctypes.c_uint(4), 4),
    "c_int64": ("s64", ctypes.c_int64(-5), -5),
    "c_size_t": ("u64", ctypes.c_size_t(6), 6),
    "c_float": ("f32", ctypes.c_float(0.5), bits("<f", 0.5)),
    "c_double": ("f64", ctypes.c_double(0.5), bits("<d", 0.5)),
    "c_bool": ("u8", ctypes.c_bool(True), 1),
}
for name, (kind, value, expected) in CASES.items():
    kernel = ObjectCode.from_ptx(ptx(expecting(kind, expected))).get_kernel("check")
    launch(stream, one, kernel, value)
    show(**{name: attempt(stream.sync)})
