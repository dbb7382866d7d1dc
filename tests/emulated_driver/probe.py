"""Asks a CUDA driver the questions whose answers tests/data/h200/driver.json records.

``python probe.py OUT.json [path of libcuda] [trap | null | misaligned]``: on a machine with a card
it makes such a record, on the emulated driver it makes one to hold against it. The last question
makes the context unusable, so one run asks about one fault.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "data" / "h200"
SIZE, INT, Pointer = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
BLOCK_SIZES = (1, 32, 64, 96, 128, 256, 512, 768, 1024)
DYNAMIC_SIZES = (0, 1000, 40000, 60000)
FAULTS = {
    "trap": b"trap;",
    "null": b"st.global.u32 [%rd2], %r1;",
    "misaligned": b"st.global.u32 [%rd2+1], %r1;",
}
FAULT_HEAD = (
    b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {"
    b" .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p];"
    b" cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, 7;\n"
)
HOST_ELF = (
    (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\x3e\0\1\0\0\0" + bytes(28))
    + b"\x40\0\x38\0\0\0\x40\0\0\0\0\0"
    + bytes(200)
)
BAD_PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry f(){ frob.u32 %r1; }\0"


class Probe:
    """One driver, and the record of its answers."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.errors: dict[str, Any] = {}

    def call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, name)(*arguments))

    def ask(self, question: str, name: str, *arguments: Any) -> None:
        self.errors[question] = self.call(name, *arguments)

    def value(self, ctype: Any, name: str, *arguments: Any) -> Any:
        """What a call writes through its first argument, or its error as "E1"."""
        out = ctype()
        status = self.call(name, ctypes.byref(out), *arguments)
        return f"E{status}" if status else out.value

    def load(self, image: bytes) -> tuple[int, Pointer]:
        library = Pointer()
        status = self.call(
            "cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0
        )
        return status, library

    def kernel(self, library: Pointer, name: bytes) -> Pointer:
        kernel = Pointer()
        self.call("cuLibraryGetKernel", ctypes.byref(kernel), library, name)
        return kernel

    def allocate(self, size: int) -> Pointer:
        memory = Pointer()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), SIZE(size))
        return memory

    def start(self) -> tuple[int, dict[str, Any]]:
        """Initialises; the driver's version and the attributes of device 0."""
        scratch = Pointer()
        out = ctypes.byref(scratch)
        self.ask("before init: cuDeviceGetCount", "cuDeviceGetCount", out)
        self.ask("cuInit(1)", "cuInit", 1)
        self.ask("cuInit(0)", "cuInit", 0)
        self.ask("no ctx: cuMemAlloc", "cuMemAlloc_v2", out, SIZE(16))
        self.ask("no ctx: cuCtxGetDevice", "cuCtxGetDevice", out)
        self.ask("no ctx: cuCtxPopCurrent", "cuCtxPopCurrent_v2", out)
        self.ask("no ctx: cuStreamCreate", "cuStreamCreate", out, 0)
        self.ask("cuDeviceGet(99)", "cuDeviceGet", out, 99)
        self.ask("primary release without retain", "cuDevicePrimaryCtxRelease_v2", 0)
        attributes = {
            str(number): self.value(INT, "cuDeviceGetAttribute", number, 0)
            for number in range(1, 170)
        }
        context = Pointer()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        return self.value(INT, "cuDriverGetVersion"), attributes

    def describe(self, kernel: Pointer) -> dict[str, Any]:
        """Attributes, parameters and occupancy of a kernel."""
        about: dict[str, Any] = {
            f"attr{number}": self.value(INT, "cuKernelGetAttribute", number, kernel, 0)
            for number in range(19)
        }
        parameters, offset, size = [], SIZE(), SIZE()
        while True:
            where = SIZE(len(parameters)), ctypes.byref(offset), ctypes.byref(size)
            status = self.call("cuKernelGetParamInfo", kernel, *where)
            if status:
                break
            parameters.append([offset.value, size.value])
        about["params"], about["param_end_error"] = parameters, status
        function = Pointer()
        self.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        active = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        about["occ"] = {
            f"{block},{dynamic}": self.value(INT, active, function, block, SIZE(dynamic))
            for block in BLOCK_SIZES
            for dynamic in DYNAMIC_SIZES
        }
        grid, block = INT(), INT()
        sizes = ctypes.byref(grid), ctypes.byref(block)
        potential = "cuOccupancyMaxPotentialBlockSize"
        status = self.call(potential, *sizes, function, None, SIZE(0), 0)
        about["potential"] = f"E{status}" if status else [grid.value, block.value]
        available = "cuOccupancyAvailableDynamicSMemPerBlock"
        about["avail_dyn"] = {
            str(blocks): self.value(SIZE, available, function, blocks, 128) for blocks in (1, 2, 8)
        }
        return about

    def describe_image(self, path: Path) -> dict[str, Any]:
        status, library = self.load(path.read_bytes() + b"\0")
        about: dict[str, Any] = {"load": status}
        if status:
            return about
        count = ctypes.c_uint()
        self.call("cuLibraryGetKernelCount", ctypes.byref(count), library)
        handles = (Pointer * count.value)()
        self.call("cuLibraryEnumerateKernels", handles, count, library)
        about["kernels"] = {}
        for handle in handles:
            name = ctypes.c_char_p()
            self.call("cuKernelGetName", ctypes.byref(name), Pointer(handle))
            assert name.value
            about["kernels"][name.value.decode()] = self.describe(Pointer(handle))
        if path.name == "saxpy.sm90.cubin":
            self.ask_about_launches(library)
            self.ask_about_objects()
        if path.name == "cluster.sm90.cubin":
            self.ask_about_clusters(library)
        return about

    def ask_about_launches(self, library: Pointer) -> None:
        scratch = Pointer()
        out = ctypes.byref(scratch)
        self.ask("GetKernel missing", "cuLibraryGetKernel", out, library, b"nope")
        kernel, memory = self.kernel(library, b"saxpy"), self.allocate(4096)
        count, factor = INT(0), ctypes.c_float(1)
        values = (count, factor, memory, memory)
        given = (Pointer * 4)(*(ctypes.addressof(value) for value in values))

        def launch(
            question: str,
            grid: tuple[int, int, int] = (1, 1, 1),
            block: tuple[int, int, int] = (1, 1, 1),
            shared: int = 0,
            parameters: Any = given,
        ) -> None:
            shape = (*grid, *block, shared, None)
            self.ask(question, "cuLaunchKernel", kernel, *shape, parameters, None)

        launch("launch ok")
        launch("block 1025", block=(1025, 1, 1))
        launch("block z 65", block=(1, 1, 65))
        launch("grid 0", grid=(0, 1, 1))
        launch("grid y 65536", grid=(1, 65536, 1))
        launch("dyn smem 49153", shared=49153)
        self.ask("set dyn 232448", "cuKernelSetAttribute", 8, 232448, kernel, 0)
        self.ask("set dyn 232449", "cuKernelSetAttribute", 8, 232449, kernel, 0)
        launch("dyn smem 60000 after set", shared=60000)
        launch("null params", parameters=None)
        self.ask("sync", "cuCtxSynchronize")
        self.ask("set attr 4", "cuKernelSetAttribute", 4, 1, kernel, 0)
        self.ask("get attr -1", "cuKernelGetAttribute", out, -1, kernel, 0)
        self.ask("get attr 999", "cuKernelGetAttribute", out, 999, kernel, 0)
        self.ask("get param 99", "cuKernelGetParamInfo", kernel, SIZE(99), out, out)

    def ask_about_objects(self) -> None:
        memory, stream, scratch = self.allocate(4096), Pointer(), Pointer()
        self.call("cuStreamCreate", ctypes.byref(stream), 0)
        self.ask("stream destroy", "cuStreamDestroy_v2", stream)
        self.ask("free null", "cuMemFree_v2", None)
        self.ask("free ok", "cuMemFree_v2", memory)
        self.ask("free twice", "cuMemFree_v2", memory)
        self.ask("alloc 0", "cuMemAlloc_v2", ctypes.byref(scratch), SIZE(0))
        self.ask("alloc 1<<50", "cuMemAlloc_v2", ctypes.byref(scratch), SIZE(1 << 50))
        timed, untimed, time = Pointer(), Pointer(), ctypes.c_float()
        self.call("cuEventCreate", ctypes.byref(timed), 0)
        self.call("cuEventCreate", ctypes.byref(untimed), 2)
        elapsed = "cuEventElapsedTime"
        self.ask("elapsed unrecorded", elapsed, ctypes.byref(time), timed, timed)
        self.call("cuEventRecord", timed, None)
        self.call("cuEventRecord", untimed, None)
        question = "elapsed with disable-timing event"
        self.ask(question, elapsed, ctypes.byref(time), timed, untimed)
        self.ask("event destroy", "cuEventDestroy_v2", timed)

    def ask_about_clusters(self, library: Pointer) -> None:
        kernel, memory = self.kernel(library, b"cluster"), self.allocate(4096)
        given = (Pointer * 1)(ctypes.addressof(memory))
        for grid in (3, 4):
            shape = (grid, 1, 1, 32, 1, 1, 0, None)
            self.ask(f"cluster grid {grid}", "cuLaunchKernel", kernel, *shape, given, None)
        self.ask("sync2", "cuCtxSynchronize")

    def ask_about_bad_images(self) -> None:
        self.errors["bad image"] = self.load(HOST_ELF)[0]
        self.errors["bad ptx"] = self.load(BAD_PTX)[0]
        self.errors["empty image"] = self.load(bytes(64))[0]

    def ask_about_fault(self, name: str) -> None:
        status, library = self.load(FAULT_HEAD + FAULTS[name] + b" ret; }\0")
        address, scratch = ctypes.c_uint64(0x10), Pointer()
        given = (Pointer * 1)(ctypes.addressof(address))
        shape = (1, 1, 1, 1, 1, 1, 0, None)
        kernel = self.kernel(library, b"k")
        self.errors[f"fault {name}"] = [
            status,
            self.call("cuLaunchKernel", kernel, *shape, given, None),
            self.call("cuCtxSynchronize"),
            self.call("cuMemAlloc_v2", ctypes.byref(scratch), SIZE(16)),
        ]


def record(path: str, fault: str) -> dict[str, Any]:
    """All answers of the driver at ``path``."""
    probe = Probe(path)
    version, attributes = probe.start()
    names = sorted(name for name in IMAGES.iterdir() if name.suffix in (".cubin", ".ptx"))
    images = {name.name: probe.describe_image(name) for name in names}
    probe.ask_about_bad_images()
    probe.ask_about_fault(fault)
    return {
        "driver": version,
        "device_attributes": attributes,
        "images": images,
        "errors": probe.errors,
    }


if __name__ == "__main__":
    answers = record(
        sys.argv[2] if len(sys.argv) > 2 else "libcuda.so.1",
        sys.argv[3] if len(sys.argv) > 3 else "trap",
    )
    Path(sys.argv[1]).write_text(json.dumps(answers, indent=1, sort_keys=True))
