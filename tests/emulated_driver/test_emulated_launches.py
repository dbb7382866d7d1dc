"""Launches: what is refused and how, which context they run in, what they do, and their faults."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest
from emulated_driver_api import DATA, EmulatedDriver, Pointer, run_script

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_SUPPORTED = 1, 201, 400, 801
OUT_OF_RESOURCES, TOO_LARGE, INVALID_CLUSTER = 701, 720, 912
SIZE = ctypes.c_size_t

HEADER = b".version 8.0\n.target sm_90\n.address_size 64\n"
#: Adds its second parameter to each of the words that the first one points to, one per thread.
ADD = (
    HEADER
    + b""".visible .entry add(.param .u64 words, .param .u32 addend)
{
    .reg .b32 %r<7>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r1, [addend];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r6, [%rd3];
    add.u32 %r6, %r6, %r1;
    st.global.u32 [%rd3], %r6;
    ret;
}
"""
)
EMPTY = HEADER + b".visible .entry k() { ret; }\n"


def words(driver: EmulatedDriver, memory: Pointer, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}I", driver.download(memory, 4 * count))


@pytest.fixture
def add(current: EmulatedDriver) -> Pointer:
    return current.kernel(current.load(ADD), b"add")


def test_a_kernel_runs(current: EmulatedDriver, add: Pointer) -> None:
    memory = current.upload(struct.pack("8I", *range(8)))
    arguments = [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(100)]
    assert current.launch(add, arguments, grid=(2, 1, 1), block=(4, 1, 1)) == 0
    assert words(current, memory, 8) == tuple(range(100, 108))


def test_parameters_in_one_buffer(current: EmulatedDriver, add: Pointer) -> None:
    memory = current.upload(bytes(4))
    packed = struct.pack("QI", memory.value or 0, 5)
    size = SIZE(len(packed))
    buffer = ctypes.create_string_buffer(packed, len(packed))
    extra = (Pointer * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)

    def launch() -> int:
        return current.status("cuLaunchKernel", add, 1, 1, 1, 1, 1, 1, 0, None, None, extra)

    assert launch() == 0
    assert words(current, memory, 1) == (5,)
    size.value = 8
    assert launch() == INVALID_VALUE


REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "block 1025": ({"block": (1025, 1, 1)}, INVALID_VALUE),
    "block z 65": ({"block": (1, 1, 65)}, INVALID_VALUE),
    "block too many": ({"block": (64, 32, 1)}, INVALID_VALUE),
    "block 0": ({"block": (1, 0, 1)}, INVALID_VALUE),
    "grid 0": ({"grid": (0, 1, 1)}, INVALID_VALUE),
    "grid y": ({"grid": (1, 65536, 1)}, INVALID_VALUE),
    "shared": ({"shared": 49153}, INVALID_VALUE),
    "stream": ({"stream": Pointer(0x1000)}, INVALID_HANDLE),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_launches(current: EmulatedDriver, add: Pointer, case: str) -> None:
    keywords, status = REFUSED[case]
    memory = current.upload(bytes(4))
    arguments = [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(1)]
    assert current.launch(add, arguments, **keywords) == status
    assert current.launch(add, None) == INVALID_VALUE
    current.call("cuCtxSynchronize")
    assert words(current, memory, 1) == (0,)


def test_missing_parameter_pointer(current: EmulatedDriver, add: Pointer) -> None:
    addend = ctypes.c_uint32(1)
    parameters = (Pointer * 2)(None, ctypes.addressof(addend))
    status = current.status("cuLaunchKernel", add, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
    assert status == INVALID_VALUE


def test_more_dynamic_shared_memory_after_opting_in(current: EmulatedDriver) -> None:
    kernel = current.kernel(current.load(EMPTY), b"k")
    assert current.launch(kernel, [], shared=60000) == INVALID_VALUE
    current.call("cuKernelSetAttribute", 8, 60000, kernel, 0)
    assert current.launch(kernel, [], shared=60000) == 0


def test_launch_bounds(current: EmulatedDriver) -> None:
    bounded = current.load(HEADER + b".visible .entry k() .maxntid 64, 1, 1 { ret; }\n")
    kernel = current.kernel(bounded, b"k")
    assert current.launch(kernel, [], block=(64, 1, 1)) == 0
    assert current.launch(kernel, [], block=(65, 1, 1)) == OUT_OF_RESOURCES
    required = current.load(HEADER + b".visible .entry k() .reqntid 64, 1, 1 { ret; }\n")
    kernel = current.kernel(required, b"k")
    assert current.launch(kernel, [], block=(64, 1, 1)) == 0
    assert current.launch(kernel, [], block=(32, 1, 1)) == INVALID_VALUE


class Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", Pointer),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


def config(grid: int, block: int, **attributes: tuple[int, ...]) -> Config:
    """Attributes by number: ``_4=(2, 1, 1)``."""
    array = (Attribute * max(len(attributes), 1))()
    for entry, (name, value) in zip(array, attributes.items(), strict=False):
        entry.id = int(name[1:])
        entry.value[: len(value)] = value
    made = Config(shared=0, attributes=array, count=len(attributes))
    made.grid[:] = (grid, 1, 1)
    made.block[:] = (block, 1, 1)
    return made


def launch_ex(driver: EmulatedDriver, kernel: Pointer, made: Config) -> int:
    return driver.status("cuLaunchKernelEx", ctypes.byref(made), kernel, None, None)


def test_launch_attributes(current: EmulatedDriver) -> None:
    assert ctypes.sizeof(Config) == 56
    kernel = current.kernel(current.load(EMPTY), b"k")
    assert launch_ex(current, kernel, config(4, 32)) == 0
    assert launch_ex(current, kernel, config(4, 32, _4=(2, 1, 1), _8=(0,), _6=(1,))) == 0
    assert launch_ex(current, kernel, config(3, 32, _4=(2, 1, 1))) == INVALID_CLUSTER
    assert launch_ex(current, kernel, config(16, 32, _4=(16, 1, 1))) == INVALID_CLUSTER
    assert launch_ex(current, kernel, config(4, 32, _4=(0, 1, 1))) == INVALID_VALUE
    assert launch_ex(current, kernel, config(4, 32, _77=(1,))) == INVALID_VALUE
    assert launch_ex(current, kernel, config(132, 1024, _2=(1,))) == 0
    assert launch_ex(current, kernel, config(1000, 1024, _2=(1,))) == TOO_LARGE
    cooperative = (265, 1, 1, 1024, 1, 1, 0, None, None)
    assert current.status("cuLaunchCooperativeKernel", kernel, *cooperative) == TOO_LARGE
    assert current.status("cuLaunchKernelEx", None, kernel, None, None) == INVALID_VALUE


def test_clusters_need_a_device_that_has_them(current: EmulatedDriver) -> None:
    script = """
from test_emulated_launches import *
driver.make_current()
kernel = driver.kernel(driver.load(EMPTY.replace(b"sm_90", b"sm_75")), b"k")
print(launch_ex(driver, kernel, config(4, 32, _4=(2, 1, 1))))
"""
    done = run_script(current.path, script, CUDAMOD_EMULATOR_DEVICES="sm_80")
    assert done.stdout.strip() == "801", done.stderr


def test_cluster_occupancy(current: EmulatedDriver) -> None:
    kernel = current.kernel(current.load_file("cluster.sm90.cubin"), b"cluster_lb")
    size = ctypes.c_int()
    name = "cuOccupancyMaxPotentialClusterSize"
    current.call(name, ctypes.byref(size), kernel, ctypes.byref(config(8, 128)))
    assert size.value == 8
    made = config(8, 128, _4=(2, 1, 1))
    name = "cuOccupancyMaxActiveClusters"
    assert current.status(name, ctypes.byref(size), kernel, ctypes.byref(made)) == INVALID_CLUSTER
    current.call(name, ctypes.byref(size), kernel, ctypes.byref(config(8, 128, _4=(4, 1, 1))))
    assert 0 < size.value <= 132 * 16 // 4


def test_potential_block_size_asks_the_caller(current: EmulatedDriver) -> None:
    kernel = current.kernel(current.load_file("saxpy.sm90.cubin"), b"saxpy")
    asked: list[int] = []

    @ctypes.CFUNCTYPE(SIZE, ctypes.c_int)
    def shared(block: int) -> int:
        asked.append(block)
        return block * 100

    grid, block = ctypes.c_int(), ctypes.c_int()
    name = "cuOccupancyMaxPotentialBlockSize"
    current.call(name, ctypes.byref(grid), ctypes.byref(block), kernel, shared, SIZE(0), 0)
    assert asked
    assert 0 < block.value * 100 <= 49152


def test_sass_is_never_executed(current: EmulatedDriver) -> None:
    kernel = current.kernel(current.load_file("saxpy.sm90.cubin"), b"saxpy")
    assert current.launch(kernel, [ctypes.c_uint64()] * 4) == NOT_SUPPORTED
    assert current.launch(kernel, None) == INVALID_VALUE


def test_a_fatbin_has_attributes_from_its_cubin_and_runs_its_ptx(current: EmulatedDriver) -> None:
    library = current.load((DATA / "fatbins" / "saxpy.none.fatbin").read_bytes())
    kernel = current.kernel(library, b"saxpy")
    x, y = (
        current.upload(struct.pack("4f", 1, 2, 3, 4)),
        current.upload(struct.pack("4f", *[1] * 4)),
    )
    arguments = [
        ctypes.c_int(4),
        ctypes.c_float(2),
        ctypes.c_uint64(x.value or 0),
        ctypes.c_uint64(y.value or 0),
    ]
    assert current.launch(kernel, arguments, block=(32, 1, 1)) == 0
    assert struct.unpack("4f", current.download(y, 16)) == (3, 5, 7, 9)


def test_variables(current: EmulatedDriver) -> None:
    image = (
        HEADER
        + b""".visible .global .align 4 .u32 counter[2] = {5, 6};
.visible .global .align 8 .u64 address = counter;
.visible .entry k() {
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.global.u64 %rd1, [address];
    ld.global.u32 %r1, [%rd1+4];
    st.global.u32 [counter], %r1;
    ret;
}
"""
    )
    library = current.load(image)
    address, size = Pointer(), SIZE()
    out = ctypes.byref(address), ctypes.byref(size)
    current.call("cuLibraryGetGlobal", *out, library, b"counter")
    assert size.value == 8
    assert words(current, address, 2) == (5, 6)
    assert current.launch(current.kernel(library, b"k"), []) == 0
    assert words(current, address, 2) == (6, 6)
    assert current.status("cuLibraryGetGlobal", *out, library, b"nothing") == 500
    assert current.status("cuLibraryGetManaged", *out, library, b"counter") == 500
    assert current.status("cuMemFree", address) == INVALID_VALUE
    current.call("cuLibraryUnload", library)
    assert current.status("cuMemcpyDtoH", ctypes.create_string_buffer(4), address, SIZE(4)) == 1


# Which context a launch uses: the table of the recorded facts.


def test_contexts_of_launches(current: EmulatedDriver) -> None:
    own = Pointer(current.get("cuCtxGetCurrent", Pointer))
    kernel = current.kernel(current.load(EMPTY), b"k")
    function = current.pointer("cuKernelGetFunction", kernel)
    stream = current.pointer("cuStreamCreate", 0)
    other = current.pointer("cuCtxCreate", 0, 0)
    assert [current.launch(what, [], stream=stream) for what in (kernel, function)] == [0, 0]
    assert current.get("cuCtxGetCurrent", Pointer) == other.value
    for default in (None, Pointer(1), Pointer(2)):
        assert current.launch(kernel, [], stream=default) == 0
        assert current.launch(function, [], stream=default) == INVALID_HANDLE
    current.call("cuCtxDestroy", other)
    for what in (kernel, function):
        current.call("cuCtxSetCurrent", None)
        for default in (None, Pointer(1), Pointer(2)):
            assert current.launch(what, [], stream=default) == INVALID_CONTEXT
        assert current.launch(what, [], stream=stream) == 0
        assert current.get("cuCtxGetCurrent", Pointer) == own.value


def test_a_kernel_survives_a_reset_of_its_context(current: EmulatedDriver) -> None:
    library = current.load(EMPTY)
    kernel = current.kernel(library, b"k")
    assert current.launch(kernel, []) == 0
    current.call("cuDevicePrimaryCtxReset", 0)
    current.make_current()
    assert current.launch(kernel, []) == 0
    current.call("cuLibraryUnload", library)
    current.call("cuDevicePrimaryCtxRelease", 0)


BODY = b""".visible .entry k(.param .u64 p) {
    .reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p]; %s ret;
}
"""
FAULTS = {
    "trap": (b"trap;", 719),
    "null": (b"mov.u64 %rd1, 16; st.global.u32 [%rd1], 1;", 700),
    "past the end": (b"st.global.u32 [%rd1+64], 1;", 700),
    "across the end": (b"st.global.u64 [%rd1+60], 1;", 716),
    "misaligned": (b"st.global.u32 [%rd1+1], 1;", 716),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_stick(current: EmulatedDriver, fault: str) -> None:
    instruction, status = FAULTS[fault]
    kernel = current.kernel(current.load(HEADER + BODY.replace(b"%s", instruction)), b"k")
    memory = current.allocate(64)
    assert current.launch(kernel, [ctypes.c_uint64(memory.value or 0)]) == 0
    assert current.status("cuCtxSynchronize") == status
    assert current.status("cuMemAlloc", ctypes.byref(Pointer()), SIZE(16)) == status
    assert current.status("cuStreamSynchronize", None) == status
    assert current.launch(kernel, [ctypes.c_uint64(memory.value or 0)]) == status
    assert current.status("cuDeviceGetCount", ctypes.byref(ctypes.c_int())) == 0


def test_use_after_free_is_a_fault(current: EmulatedDriver, add: Pointer) -> None:
    memory = current.upload(bytes(4))
    current.call("cuMemFree", memory)
    assert current.launch(add, [ctypes.c_uint64(memory.value or 0), ctypes.c_uint32(1)]) == 0
    assert current.status("cuStreamSynchronize", None) == 700


def test_host_memory_is_a_fault_unless_it_is_pinned(current: EmulatedDriver, add: Pointer) -> None:
    pinned = current.pointer("cuMemAllocHost", SIZE(4))
    assert current.launch(add, [ctypes.c_uint64(pinned.value or 0), ctypes.c_uint32(1)]) == 0
    current.call("cuCtxSynchronize")
    assert struct.unpack("I", ctypes.string_at(pinned.value or 0, 4)) == (0,)  # poison is -1
    host = ctypes.create_string_buffer(4)
    address = ctypes.c_uint64(ctypes.addressof(host))
    assert current.launch(add, [address, ctypes.c_uint32(1)]) == 0
    assert current.status("cuCtxSynchronize") == 700


def test_peer_memory(driver: EmulatedDriver) -> None:
    script = """
from test_emulated_launches import *
driver.make_current(1)
memory = driver.upload(bytes(4))
peer = Pointer(driver.get("cuCtxGetCurrent", Pointer))
driver.make_current(0)
kernel = driver.kernel(driver.load(ADD), b"add")
arguments = [ctypes.c_uint64(memory.value), ctypes.c_uint32(1)]
driver.call("cuCtxEnablePeerAccess", peer, 0)
assert driver.status("cuCtxEnablePeerAccess", peer, 0) == 704
assert driver.launch(kernel, arguments) == 0
driver.call("cuCtxSynchronize")
driver.call("cuCtxDisablePeerAccess", peer)
assert driver.launch(kernel, arguments) == 0
assert driver.status("cuCtxSynchronize") == 700
driver.call("cuCtxSetCurrent", peer)
assert words(driver, memory, 1) == (1,)
"""
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_90")
    assert done.returncode == 0, done.stderr


def test_null_launches_are_fast_and_counted(driver: EmulatedDriver) -> None:
    script = """
driver.make_current()
address = Pointer()
out = ctypes.byref(address), 13000, ctypes.c_uint64(0), None
driver.call("cuGetProcAddress", b"cuLaunchKernelEx", *out)
launch = ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Pointer, Pointer, Pointer)(address.value)
assert launch(None, None, None, None) == 0
assert driver.launch(Pointer(5), None) == 0
count = driver.library.cudamodEmulatorNullLaunches
count.restype = ctypes.c_uint64
assert count() == 2
"""
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_NULL_LAUNCH="1")
    assert done.returncode == 0, done.stderr


def test_several_threads_launch_at_once(current: EmulatedDriver, add: Pointer) -> None:
    import threading

    context = Pointer(current.get("cuCtxGetCurrent", Pointer))
    memory = current.upload(bytes(4 * 64))
    failed: list[int] = []

    def work(index: int) -> None:
        current.call("cuCtxSetCurrent", context)
        stream = current.pointer("cuStreamCreate", 1)
        address = ctypes.c_uint64((memory.value or 0) + 64 * index)
        for _ in range(200):
            status = current.launch(
                add, [address, ctypes.c_uint32(1)], block=(16, 1, 1), stream=stream
            )
            if status:
                failed.append(status)
        current.call("cuStreamDestroy", stream)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    current.call("cuCtxSynchronize")
    assert failed == []
    assert words(current, memory, 64) == (200,) * 64
