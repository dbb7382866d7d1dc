"""A stand-in for torch: tensors laid out as its are, and the C functions that read them.

For child processes, since what is learnt of torch holds for a process.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from exchange import NAME, DLTensor, ExchangeAPI, FromObject, capsule

# A slot is the first thing in the object, where torch has its C++ tensor; it holds a bytes object,
# whose bytes begin behind its header of 32.
SOURCE = r"""
#include <stdint.h>
struct tensor { void* data; int32_t kind, index; };
static struct tensor* innards(char** place) { return (struct tensor*)(*place + 32); }
int32_t calls;
int32_t aoti_torch_device_type_cuda(void) { return 1; }
int32_t aoti_torch_get_device_type(char** place, int32_t* kind) {
    ++calls;
    *kind = innards(place)->kind;
    return 0;
}
int32_t aoti_torch_get_device_index(char** place, int32_t* index) {
    *index = innards(place)->index;
    return 0;
}
int32_t aoti_torch_get_data_ptr(char** place, void** data) {
    *data = innards(place)->data;
    return innards(place)->index == 77;
}
"""


def build(folder: Path, compiler: Sequence[str]) -> Path:
    """The library of the C functions, under the name of torch's."""
    source, library = folder / "torch.c", folder / "libtorch_cpu.so"
    source.write_text(SOURCE)
    options = ("-x", "c", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{library.name}")
    subprocess.run([*compiler, *options, "-o", str(library), str(source)], check=True)
    return library


class Torch:
    """``torch``, ``torch._C`` and their Tensor in this process; ``described`` counts DLPack."""

    def __init__(self, library: str) -> None:
        self.functions = ctypes.CDLL(library)
        self.described = 0
        self.lie = 0  # added to what DLPack says
        self._describe = FromObject(self._answer)
        self._api = ExchangeAPI(major=1, minor=3, dltensor_from_py_object_no_sync=self._describe)

        class TensorBase:
            __slots__ = ("innards",)
            innards: bytes

            @property
            def _cdata(self) -> int:
                return id(self.innards)

        namespace = {
            "__dlpack_c_exchange_api__": capsule(self._api, NAME),
            "__slots__": (),
            "__module__": "torch",
        }
        self.Tensor: Any = type("Tensor", (TensorBase,), namespace)
        inner, outer = ModuleType("torch._C"), ModuleType("torch")
        vars(inner)["TensorBase"] = TensorBase
        vars(outer).update(Tensor=self.Tensor, _C=inner)
        sys.modules.update({"torch": outer, "torch._C": inner})

    def _answer(self, tensor: Any, out: Any) -> int:
        self.described += 1
        described: DLTensor = out.contents
        ctypes.memset(ctypes.addressof(described), 0, ctypes.sizeof(described))
        words = memoryview(tensor.innards)
        described.data = words[:8].cast("Q")[0] + self.lie
        kind, index = words[8:16].cast("i")
        described.device_type, described.device_id = (2 if kind == 1 else kind), index
        if tensor.innards[16:]:  # the sizes
            self.shape = (ctypes.c_int64 * 1)(tensor.innards[16])
            described.ndim, described.shape = 1, ctypes.addressof(self.shape)
        return 0

    @property
    def read(self) -> int:
        """How many tensors were read by the C functions."""
        return ctypes.c_int32.in_dll(self.functions, "calls").value

    def tensor(
        self, address: int, kind: int = 1, index: int = 0, of: Any = None, sizes: bytes = b""
    ) -> Any:
        made = (of or self.Tensor)()
        made.innards = (
            address.to_bytes(8, "little")
            + kind.to_bytes(4, "little", signed=True)
            + index.to_bytes(4, "little", signed=True)
            + sizes
        )
        return made
