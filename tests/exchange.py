"""Objects with DLPack's C exchange API, built by ctypes as DLPack 1.3 lays it out."""

from __future__ import annotations

import ctypes
from typing import Any


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))


class ExchangeAPI(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", FromObject),
        ("current_work_stream", ctypes.c_void_p),
    ]


@FromObject
def describe(tensor: Any, out: Any) -> int:
    described = out.contents
    described.data, (described.device_type, described.device_id) = tensor.address, tensor.device
    described.byte_offset = tensor.offset
    described.ndim = len(tensor.shape)
    described.dtype = (ctypes.c_uint8 * 4)(*tensor.dtype, 1, 0)
    sizes = ctypes.c_int64 * len(tensor.shape)
    tensor.arrays = sizes(*tensor.shape), sizes(*tensor.strides)
    described.shape = ctypes.addressof(tensor.arrays[0])
    described.strides = ctypes.addressof(tensor.arrays[1]) if tensor.strides else None
    return 0


def capsule(api: ExchangeAPI, name: bytes = b"dlpack_exchange_api") -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(api), name, None)


API = ExchangeAPI(major=1, minor=3, dltensor_from_py_object_no_sync=describe)
NAME = b"dlpack_exchange_api"  # a capsule does not copy it


class Tensor:
    __dlpack_c_exchange_api__ = capsule(API, NAME)
    address: int
    device: tuple[int, int]
    offset: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # in elements; empty: contiguous
    dtype: tuple[int, int] = (1, 8)  # code and bits
    arrays: tuple[Any, Any]


def exchangeable(
    address: int, *, device: tuple[int, int] = (2, 0), offset: int = 0, kind: type[Tensor] = Tensor
) -> Tensor:
    tensor = kind()
    tensor.address, tensor.device, tensor.offset = address, device, offset
    return tensor
