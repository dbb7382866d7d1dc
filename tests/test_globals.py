"""Variables of an image, and its module."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ptx import HEADER, ONE, read

from cudamod import Buffer, CUDAError, Device, ObjectCode, Stream, driver, emulator, handles, launch

DATA = Path(__file__).parent / "data"
PTX = (
    HEADER
    + """
.visible .global .align 4 .u32 counter = 7;
.visible .const .align 8 .b8 table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
.visible .global .align 8 .u64 _ZN2ns5outer5innerE = 9;
.visible .entry add(.param .u64 p)
{
    .reg .b64 %p; .reg .b32 %a, %b;
    ld.param.u64 %p, [p];
    ld.const.u8 %a, [table+1];
    ld.global.u32 %b, [%p];
    add.u32 %a, %a, %b;
    st.global.u32 [%p], %a;
    ret;
}
"""
).encode()


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    gc.collect()
    handles.reclaim()
    yield
    gc.collect()
    handles.reclaim()


@pytest.fixture
def code(device: Device) -> ObjectCode:
    return ObjectCode.from_ptx(PTX, symbol_mapping={"mine": "counter"})


def number(buffer: Buffer, stream: Stream) -> int:
    return int.from_bytes(read(buffer, stream), "little")


def test_address_and_size(code: ObjectCode, device: Device) -> None:
    for name, size in (("counter", 4), (b"counter", 4), ("table", 16), ("mine", 4)):
        variable = code.get_global(name)
        assert isinstance(variable, Buffer)
        assert (variable.size, variable.device_id) == (size, device.device_id)
        assert variable.handle > 0
        assert not variable.is_closed
        assert not variable.is_managed
        interface = variable.__cuda_array_interface__
        assert (interface["data"][0], interface["shape"]) == (variable.handle, (size,))
        assert variable.__dlpack_device__() == (2, device.device_id)
    assert code.get_global("mine").handle == code.get_global("counter").handle


def test_a_name_in_namespaces(code: ObjectCode, stream: Stream) -> None:
    for name in ("ns::outer::inner", "::ns::outer::inner", b"_ZN2ns5outer5innerE"):
        assert number(code.get_global(name), stream) == 9


def test_host_code_reads_and_writes_it(code: ObjectCode, stream: Stream) -> None:
    counter = code.get_global("counter")
    assert number(counter, stream) == 7
    counter.copy_from((41).to_bytes(4, "little"), stream=stream)
    assert number(code.get_global("counter"), stream) == 41
    assert read(code.get_global("table"), stream) == bytes(range(1, 17))


def test_kernels_see_what_host_code_wrote(code: ObjectCode, stream: Stream) -> None:
    counter = code.get_global("counter")
    table = code.get_global("table")
    table.copy_from(bytes([100] * 16), stream=stream)
    launch(stream, ONE, code.get_kernel("add"), counter)
    assert number(counter, stream) == 107


def test_it_keeps_the_library(device: Device, stream: Stream) -> None:
    counter = ObjectCode.from_ptx(PTX).get_global("counter")
    gc.collect()
    assert handles.retired().libraries == 0
    handles.reclaim()
    assert number(counter, stream) == 7
    counter.close()
    gc.collect()
    assert handles.retired().libraries == 1


def test_managed_variables(device: Device, stream: Stream) -> None:
    if device.arch != "90":
        pytest.skip("an image for sm_90a")
    code = ObjectCode.from_cubin(DATA / "cubins" / "features.sm90a.cubin")
    for name, managed in {"managed": True, "three": False, "weights": False}.items():
        variable = code.get_global(name)
        assert variable.is_managed is managed
        assert variable.size > 0
        read(variable, stream)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (None, TypeError),
        (3, TypeError),
        (bytearray(b"counter"), TypeError),
        ("", ValueError),
        (b"", ValueError),
        ("counter\0", ValueError),
        (b"\xff", ValueError),
        ("\udcff", ValueError),
    ],
)
def test_names_that_are_none(code: ObjectCode, name: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="variable name"):
        code.get_global(name)


@pytest.mark.parametrize("name", ["gone", "add", "ns::gone", "::", "a::", "💥"])
def test_a_missing_variable(code: ObjectCode, name: str) -> None:
    with pytest.raises(CUDAError, match=f"variable '{name}' in ptx image") as caught:
        code.get_global(name)
    assert (caught.value.status, caught.value.call) == (500, "cuLibraryGetGlobal")


@pytest.mark.parametrize("use", [lambda c: c.get_global("counter"), lambda c: c.get_module()])
def test_both_need_a_context(code: ObjectCode, use: Any) -> None:
    code.load()
    driver.cuCtxSetCurrent(None)
    with pytest.raises(CUDAError, match=r"Device.set_current\(\)") as caught:
        use(code)
    assert caught.value.name == "CUDA_ERROR_INVALID_CONTEXT"
    assert driver.cuCtxGetCurrent() == driver.ffi.NULL


def test_each_context_has_its_own(code: ObjectCode, device: Device, other_context: int) -> None:
    here = code.get_global("counter")
    module = code.get_module()
    driver.cuCtxSetCurrent(other_context)
    assert code.get_global("counter").handle != here.handle
    assert code.get_module() != module
    device.set_current()
    assert code.get_global("counter").handle == here.handle
    assert code.get_module() == module


def test_the_module_is_the_drivers(code: ObjectCode) -> None:
    module = code.get_module()
    assert module == module.handle == int(module) > 0
    assert repr(module) == f"<Module handle={int(module):#x}>"
    raw = driver.ffi.cast("CUmodule", module)
    assert driver.cuModuleGetFunction(raw, b"add")
    address, size = driver.cuModuleGetGlobal(raw, b"counter")
    variable = code.get_global("counter")
    assert (int(address), size) == (variable.handle, variable.size)


def test_the_module_keeps_the_library(device: Device) -> None:
    module = ObjectCode.from_ptx(PTX).get_module()
    gc.collect()
    assert handles.retired().libraries == 0
    assert driver.cuModuleGetFunction(driver.ffi.cast("CUmodule", module), b"add")
    del module
    gc.collect()
    assert handles.retired().libraries == 1


def test_modules_come_from_object_code_and_stay_here(code: ObjectCode) -> None:
    module = code.get_module()
    kind = type(module)
    for make in (kind, lambda: kind(5), lambda: kind.__new__(kind, 5)):
        with pytest.raises(RuntimeError, match="Module objects cannot be instantiated directly"):
            make()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle 'Module'"):
            duplicate(module)


@pytest.mark.parametrize("code_type", ["ltoir", "object", "library"])
def test_code_for_linking_has_neither(device: Device, code_type: str) -> None:
    code: ObjectCode = getattr(ObjectCode, f"from_{code_type}")(b"x")
    for use in (lambda: code.get_global("counter"), code.get_module):
        with pytest.raises(RuntimeError, match="Unsupported code type"):
            use()


@pytest.mark.emulated
def test_a_failure_of_the_driver_names_the_variable(code: ObjectCode) -> None:
    code.load()
    emulator.inject("cuLibraryGetGlobal", status=719)
    with pytest.raises(CUDAError, match="variable 'counter'"):
        code.get_global("counter")
