"""Libraries, modules, kernels: what loads, what is refused and when."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from emulated_driver_api import DATA, IMAGES, EmulatedDriver, Pointer, run_script

SIZE = ctypes.c_size_t
GOOD = (IMAGES / "saxpy.sm90.ptx").read_bytes()

#: image, status of load, of the first use, a part of the error log. The card's answers.
BAD_IMAGES = {
    "syntax": (GOOD.replace(b"ld.param", b"frobnicate", 1), 0, 218, b"line"),
    "newer": (GOOD.replace(b".version 9.0", b".version 99.9"), 0, 222, b"99.9"),
    "unknown_target": (GOOD.replace(b"sm_90", b"sm_999"), 0, 218, b"sm_999"),
    "higher_target": (GOOD.replace(b"sm_90", b"sm_120"), 0, 218, b""),
    "other_cubin": ((IMAGES / "saxpy.sm75.cubin").read_bytes(), 0, 209, None),
    "newer_cubin": ((IMAGES / "saxpy.sm120.cubin").read_bytes(), 0, 209, None),
    "zeros": (bytes(64), 0, 200, b"not recognized"),
    "text": (b"hello, world", 0, 200, b"not recognized"),
    "truncated": ((IMAGES / "saxpy.sm90.cubin").read_bytes()[:2000], 200, 200, None),
}


def load(driver: EmulatedDriver, image: bytes) -> tuple[int, Pointer, bytes]:
    """Status, library and error log of cuLibraryLoadData."""
    library, log = Pointer(), ctypes.create_string_buffer(8192)
    options = (ctypes.c_int * 2)(5, 6)
    values = (Pointer * 2)(ctypes.addressof(log), len(log))
    status = driver.status(
        "cuLibraryLoadData",
        ctypes.byref(library),
        image + b"\0",
        options,
        values,
        2,
        None,
        None,
        0,
    )
    assert (values[1] or 0) in ({len(log.value) + 1} if log.value else {0, len(log)})
    return status, library, log.value


def kernel_count(driver: EmulatedDriver, library: Pointer) -> int:
    count = ctypes.c_uint(99)
    driver.call("cuLibraryGetKernelCount", ctypes.byref(count), library)
    return count.value


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_bad_images_load_and_fail_later(current: EmulatedDriver, name: str) -> None:
    image, at_load, later, in_log = BAD_IMAGES[name]
    status, library, log = load(current, image)
    assert status == at_load
    if in_log is None:
        assert log == b""
    else:
        assert log
        assert in_log in log
    if not status:
        assert kernel_count(current, library) == 0
        out = Pointer()
        for _ in range(2):
            assert current.status("cuLibraryGetKernel", ctypes.byref(out), library, b"k") == later
            assert current.status("cuLibraryGetModule", ctypes.byref(out), library) == later
        current.call("cuLibraryUnload", library)
    module = Pointer()
    assert current.status("cuModuleLoadData", ctypes.byref(module), image + b"\0") == later


def test_truncated_at_the_end_of_mapped_memory(current: EmulatedDriver) -> None:
    import mmap

    image = (IMAGES / "saxpy.sm90.cubin").read_bytes()[: mmap.PAGESIZE // 2]
    pages = mmap.mmap(-1, mmap.PAGESIZE)
    start = mmap.PAGESIZE - len(image)
    pages[start:] = image
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages, start))
    out = Pointer()
    arguments = (ctypes.byref(out), Pointer(address), None, None, 0, None, None, 0)
    assert current.status("cuLibraryLoadData", *arguments) == 200


def test_files(current: EmulatedDriver, tmp_path: Path) -> None:
    def status(path: Path) -> int:
        out = Pointer()
        arguments = (ctypes.byref(out), str(path).encode(), None, None, 0, None, None, 0)
        return current.status("cuLibraryLoadFromFile", *arguments)

    assert status(tmp_path / "missing") == 301
    assert status(tmp_path) == 301
    assert status(IMAGES / "saxpy.sm90.cubin") == 0


def test_kernels_by_name_and_number(current: EmulatedDriver) -> None:
    library = current.load_file("templated.sm90.cubin")
    count = kernel_count(current, library)
    assert count == 4
    handles = (Pointer * count)()
    current.call("cuLibraryEnumerateKernels", handles, count, library)
    names = set()
    for handle in handles:
        name, owner = ctypes.c_char_p(), Pointer()
        current.call("cuKernelGetName", ctypes.byref(name), Pointer(handle))
        current.call("cuKernelGetLibrary", ctypes.byref(owner), Pointer(handle))
        assert owner.value == library.value
        assert name.value
        assert current.kernel(library, name.value).value == handle
        names.add(name.value)
    assert b"_Z4axpyIfEvT_PKS0_PS0_m" in names
    assert len(names) == 4
    out = Pointer()
    assert current.status("cuLibraryGetKernel", ctypes.byref(out), library, b"zzz") == 500


def test_without_a_context(driver: EmulatedDriver) -> None:
    driver.call("cuInit", 0)
    library = driver.load_file("saxpy.sm90.cubin")
    kernel = driver.kernel(library, b"saxpy")
    value, out = ctypes.c_int(), Pointer()
    driver.call("cuKernelGetAttribute", ctypes.byref(value), 4, kernel, 0)
    assert value.value == 10
    size = ctypes.byref(SIZE())
    assert driver.status("cuKernelGetParamInfo", kernel, SIZE(0), size, size) == 201
    assert driver.status("cuKernelGetFunction", ctypes.byref(out), kernel) == 201
    assert driver.launch(kernel, [ctypes.c_uint64()] * 4) == 201
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    assert driver.status(name, ctypes.byref(value), kernel, 32, SIZE(0)) == 201
    driver.call("cuLibraryUnload", library)


def test_attributes_are_set_within_limits(current: EmulatedDriver) -> None:
    kernel = current.kernel(current.load_file("matmul_tiled.sm90.cubin"), b"matmul_tiled")
    value = ctypes.c_int()

    def read(number: int) -> int:
        current.call("cuKernelGetAttribute", ctypes.byref(value), number, kernel, 0)
        return value.value

    assert (read(1), read(8)) == (2048, 49152 - 2048)
    assert current.status("cuKernelSetAttribute", 8, 232448 - 2047, kernel, 0) == 1
    current.call("cuKernelSetAttribute", 8, 232448 - 2048, kernel, 0)
    assert read(8) == 232448 - 2048
    assert current.status("cuKernelSetAttribute", 4, 1, kernel, 0) == 1
    for number in (-1, 16, 17, 18, 999):
        assert current.status("cuKernelGetAttribute", ctypes.byref(value), number, kernel, 0) == 1
    function = current.pointer("cuKernelGetFunction", kernel)
    current.call("cuFuncSetAttribute", function, 8, 50000)
    assert read(8) == 50000
    assert current.status("cuKernelGetAttribute", ctypes.byref(value), 0, kernel, 5) == 101


def test_functions_and_modules(current: EmulatedDriver) -> None:
    library = current.load_file("saxpy.sm90.cubin")
    kernel = current.kernel(library, b"saxpy")
    function, module = current.pointer("cuKernelGetFunction", kernel), Pointer()
    assert function.value != kernel.value
    current.call("cuFuncGetModule", ctypes.byref(module), function)
    assert module.value == current.pointer("cuLibraryGetModule", library).value
    assert current.status("cuModuleUnload", module) == 800
    name, state = ctypes.c_char_p(), ctypes.c_int(9)
    current.call("cuFuncGetName", ctypes.byref(name), function)
    assert name.value == b"saxpy"
    current.call("cuFuncIsLoaded", ctypes.byref(state), function)
    assert state.value == 0
    current.call("cuFuncLoad", function)
    current.call("cuFuncIsLoaded", ctypes.byref(state), function)
    assert state.value == 1
    own = current.pointer("cuModuleLoadData", (IMAGES / "saxpy.sm90.cubin").read_bytes())
    inside = current.pointer("cuModuleGetFunction", own, b"saxpy")
    assert inside.value == current.pointer("cuModuleGetFunction", own, b"saxpy").value
    assert current.status("cuModuleGetFunction", ctypes.byref(module), own, b"no") == 500
    current.call("cuModuleUnload", own)
    assert current.status("cuFuncGetName", ctypes.byref(name), inside) == 400
    assert current.status("cuModuleUnload", own) == 400


def test_use_after_unload_in_both_manners(driver: EmulatedDriver) -> None:
    script = """
driver.make_current()
library = driver.load_file("saxpy.sm90.cubin")
kernel = driver.kernel(library, b"saxpy")
driver.call("cuLibraryUnload", library)
assert driver.status("cuLibraryUnload", library) == 400
answer = driver.status("cuKernelGetAttribute", ctypes.byref(ctypes.c_int()), 4, kernel, 0)
launched = driver.launch(kernel, [ctypes.c_uint64()] * 4)
print(answer, launched)
"""
    for manner, answers in (("strict", "400 400"), ("faithful", "0 400")):
        done = run_script(driver.path, script, CUDAMOD_EMULATOR_MANNER=manner)
        assert done.stdout.strip() == answers, done.stderr


def test_handles_of_the_wrong_kind(current: EmulatedDriver) -> None:
    library = current.load_file("saxpy.sm90.cubin")
    kernel = current.kernel(library, b"saxpy")
    out = Pointer()
    assert current.status("cuLibraryGetKernel", ctypes.byref(out), kernel, b"saxpy") == 400
    assert current.status("cuKernelGetLibrary", ctypes.byref(out), library) == 400
    assert current.status("cuLibraryUnload", None) == 400
    assert current.status("cuKernelGetFunction", ctypes.byref(out), Pointer(0x10)) == 400


@pytest.mark.parametrize("kind", ["none", "lz4", "lz4_all", "zstd"])
def test_fatbins(current: EmulatedDriver, kind: str) -> None:
    image = (DATA / "fatbins" / f"saxpy.{kind}.fatbin").read_bytes()
    library = current.load(image)
    kernel = current.kernel(library, b"saxpy")
    value = ctypes.c_int()
    current.call("cuKernelGetAttribute", ctypes.byref(value), 5, kernel, 0)
    assert value.value in (75, 80, 90)
    current.call("cuLibraryUnload", library)


def test_each_device_has_its_own_code(driver: EmulatedDriver) -> None:
    script = """
driver.make_current()
library = driver.load_file("saxpy.sm75.cubin")
kernel = driver.kernel(library, b"saxpy")
value = ctypes.c_int()
assert driver.status("cuKernelGetAttribute", ctypes.byref(value), 6, kernel, 0) == 0
assert value.value == 75
assert driver.status("cuKernelGetAttribute", ctypes.byref(value), 6, kernel, 1) == 209
"""
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_DEVICES="sm_75,sm_90")
    assert done.returncode == 0, done.stderr
