"""Kernel: names, parameters, identity, and kernels that come from a raw handle."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ptx import HEADER, ONE, Stored, empty

import cudamod
from cudamod import (
    CUDAError,
    Device,
    Kernel,
    ObjectCode,
    Stream,
    driver,
    emulator,
    handles,
    launch,
)

DATA = Path(__file__).parent / "data" / "h200"


@pytest.fixture
def code(device: Device) -> ObjectCode:
    return ObjectCode.from_ptx(
        empty("k", "other", parameters=["u8", "u64", "u16", "bytes[12]", "f32"])
    )


def test_name_and_handle(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    assert (kernel.name, code.get_kernel(b"other").name) == ("k", "other")
    assert isinstance(kernel.handle, int)
    assert kernel.handle > 0
    assert repr(kernel) == f"<Kernel handle={kernel.handle:#x} name='k'>"


def test_parameters(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    assert kernel.num_arguments == 5
    info = kernel.arguments_info
    assert [tuple(i) for i in info] == [(0, 1), (8, 8), (16, 2), (24, 12), (36, 4)]
    assert (info[1].offset, info[1].size) == (8, 8)
    assert kernel.signature == "b8, b64, b16, bytes[12], f32"


def test_a_kernel_without_parameters(device: Device) -> None:
    kernel = ObjectCode.from_ptx(empty("k")).get_kernel("k")
    assert (kernel.num_arguments, kernel.arguments_info, kernel.signature) == (0, [], "")


def test_parameters_of_images(device: Device) -> None:
    if device.arch != "90":
        pytest.skip("images for sm_90")
    saxpy = ObjectCode.from_cubin(DATA / "saxpy.sm90.cubin").get_kernel("saxpy")
    assert (saxpy.num_arguments, saxpy.signature) == (4, None)
    templated = ObjectCode.from_cubin(DATA / "templated.sm90.cubin")
    signatures = {templated.get_kernel(name).signature for name in templated.kernels()}
    assert signatures == {f"{t}, ptr, ptr, u64" for t in ("f32", "f64", "i32", "u64")}


@pytest.mark.parametrize("packed", ["none", "lz4", "zstd"])
def test_parameters_of_the_ptx_in_a_fatbin(device: Device, packed: str) -> None:
    if device.arch != "90":
        pytest.skip("images for sm_90")
    path = DATA.parent / "fatbins" / f"saxpy.{packed}.fatbin"
    for options in ({}, {"preserve_binary": True}):
        saxpy = ObjectCode.from_fatbin(path, **options).get_kernel("saxpy")
        assert saxpy.signature == "b32, f32, b64, b64"


@pytest.mark.parametrize("read", ["num_arguments", "arguments_info", "signature"])
def test_parameters_need_a_context_once(code: ObjectCode, read: str) -> None:
    kernel = code.get_kernel("k")
    driver.cuCtxSetCurrent(None)
    with pytest.raises(CUDAError, match=r"'k'; call Device.set_current\(\)") as caught:
        getattr(kernel, read)
    assert caught.value.name == "CUDA_ERROR_INVALID_CONTEXT"


def test_equality_and_hash(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    again = Kernel.from_handle(kernel.handle)
    assert kernel == again
    assert hash(kernel) == hash(again)
    assert len({kernel, again}) == 1
    assert kernel != code.get_kernel("other")
    assert kernel != kernel.handle
    assert kernel != "k"
    assert (kernel is None) is False
    with pytest.raises(TypeError):
        _ = kernel < again  # type: ignore[operator]


def test_no_other_way_to_one(code: ObjectCode) -> None:
    for make in (Kernel, lambda: Kernel.__new__(Kernel), lambda: Kernel(1)):  # type: ignore[call-arg]
        with pytest.raises(RuntimeError, match="Kernel objects cannot be instantiated directly"):
            make()
    kernel = code.get_kernel("k")
    assert weakref.ref(kernel)() is kernel
    for name in ("name", "handle", "attributes"):
        with pytest.raises(AttributeError):
            setattr(kernel, name, 1)


def test_parameters_that_are_known_need_no_context(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    assert kernel.num_arguments == 5
    driver.cuCtxSetCurrent(None)
    assert (kernel.num_arguments, len(kernel.arguments_info)) == (5, 5)
    assert kernel.signature == "b8, b64, b16, bytes[12], f32"


@pytest.mark.emulated
def test_the_driver_is_asked_for_parameters_once(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    with emulator.recording():
        for _ in range(3):
            _ = kernel.num_arguments, kernel.arguments_info, kernel.signature
    assert [c.name for c in emulator.journal()].count("cuKernelGetParamInfo") == 6


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_travels_with_its_image(stream: Stream, protocol: int) -> None:
    code = ObjectCode.from_ptx(empty("k", "l", parameters=["u32"]), symbol_mapping={"f<int>": "k"})
    kernel = code.get_kernel("f<int>")
    alone = pickle.loads(pickle.dumps(kernel, protocol))
    assert type(alone) is Kernel
    assert (alone.name, alone.num_arguments, alone.signature) == ("k", 1, kernel.signature)
    assert alone != kernel  # of another library
    launch(stream, ONE, alone, 5)
    # Together they stay together: one image, one library.
    twin, first, again = pickle.loads(pickle.dumps((code, kernel, kernel), protocol))
    assert twin == code
    assert first == again == twin.get_kernel("f<int>")
    launch(stream, ONE, first, 5)
    stream.sync()


def test_every_kernel_of_an_image_travels(code: ObjectCode, stream: Stream) -> None:
    kernel = code.get_kernel("k")
    for same in (
        kernel.bind(ONE, stream).kernel,
        Kernel.from_handle(kernel.handle, code),
        pickle.loads(pickle.dumps(kernel)),
    ):
        assert pickle.loads(pickle.dumps(same)).name == "k"


def test_a_kernel_of_a_raw_handle_alone_does_not(code: ObjectCode) -> None:
    kernel = Kernel.from_handle(code.get_kernel("k").handle)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot pickle Kernel 'k': it came from a raw handle"):
            pickle.dumps(kernel, protocol)


def test_a_copy_is_the_kernel_itself(code: ObjectCode) -> None:
    kernel = code.get_kernel("k")
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy([kernel, kernel]) == [kernel, kernel]
    assert copy.deepcopy(kernel) is kernel


def test_what_pickles_it_is_let_go_with_it(device: Device) -> None:
    code = ObjectCode.from_ptx(empty("k"))
    image = weakref.ref(code._image)
    kernel = code.get_kernel("k")
    del code
    gc.collect()
    assert image() is not None
    assert pickle.loads(pickle.dumps(kernel)).name == "k"
    attributes = kernel.attributes
    del kernel
    gc.collect()
    assert image() is not None  # the view's
    del attributes
    gc.collect()
    assert image() is None


@pytest.mark.parametrize("value", ["1", 1.0, None, b"1", [1], True, object()], ids=repr)
def test_from_handle_takes_an_int_only(device: Device, value: Any) -> None:
    with pytest.raises(TypeError, match=f"handle must be an integer, got {type(value).__name__}"):
        Kernel.from_handle(value)


def test_from_handle_checks_what_can_be_checked(device: Device) -> None:
    with pytest.raises(ValueError):
        Kernel.from_handle(0)
    for value in (-1, 2**64, 2**70, 10**5000):
        with pytest.raises(OverflowError, match="CUkernel"):
            Kernel.from_handle(value)
    for mod in ("x", 3, object()):
        with pytest.raises(TypeError, match="mod must be an ObjectCode"):
            Kernel.from_handle(1, mod)


def test_from_handle_finds_our_own_library_again(device: Device, stream: Stream) -> None:
    gc.collect()
    handles.reclaim()
    code = ObjectCode.from_ptx(empty("k"))
    kernel = code.get_kernel("k")
    again = Kernel.from_handle(kernel.handle)
    assert again.name == "k"
    del code, kernel
    gc.collect()
    assert handles.reclaim() == 0
    launch(stream, ONE, again)
    stream.sync()
    del again
    gc.collect()
    assert handles.reclaim() == 1


def test_from_handle_finds_the_library_of_a_kernel_that_is_gone(
    device: Device, stream: Stream
) -> None:
    gc.collect()
    handles.reclaim()
    code = ObjectCode.from_ptx(empty("k", "l"))
    raw = {name: code.get_kernel(name).handle for name in ("k", "l")}
    code._kernels.clear()
    code._kernels_by_symbol.clear()
    gc.collect()
    again = {name: Kernel.from_handle(handle) for name, handle in raw.items()}
    assert {name: kernel.name for name, kernel in again.items()} == {"k": "k", "l": "l"}
    del code
    gc.collect()
    assert handles.reclaim() == 0
    launch(stream, ONE, again["k"])
    stream.sync()
    again.clear()
    gc.collect()
    assert handles.reclaim() == 1
    gone = Kernel.from_handle(raw["k"])  # nobody's any more: only the value is left
    assert gone.name.startswith("kernel 0x")


def test_from_handle_of_a_foreign_kernel(stored: Stored, stream: Stream) -> None:
    image = driver.ffi.new("char[]", empty("foreign", parameters=["u32"]))
    library = driver.cuLibraryLoadData(
        image, driver.ffi.NULL, driver.ffi.NULL, 0, driver.ffi.NULL, driver.ffi.NULL, 0
    )
    raw = driver.cuLibraryGetKernel(library, b"foreign")
    gc.collect()
    handles.reclaim()
    kernel = Kernel.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    assert kernel.num_arguments == 1
    launch(stream, ONE, kernel, 5)
    with pytest.raises(TypeError, match="takes 1 argument, got 0"):
        launch(stream, ONE, kernel)
    stream.sync()
    del kernel
    gc.collect()
    assert handles.reclaim() == 0  # it is not ours
    driver.cuLibraryUnload(library)


def test_from_handle_with_another_library_warns(device: Device) -> None:
    kernel = ObjectCode.from_ptx(empty("k")).get_kernel("k")
    other = ObjectCode.from_ptx(empty("other"))
    with pytest.warns(UserWarning, match="does not match the library"):
        again = Kernel.from_handle(kernel.handle, other)
    assert again == kernel


def test_the_kernel_keeps_its_library(stored: Stored) -> None:
    kernel = stored.kernel("u32")
    before = stored(["u32"], 7)
    stored._kernels.clear()
    out = stored.stream.device.allocate(4, stream=stored.stream)
    gc.collect()
    handles.reclaim()
    launch(stored.stream, ONE, kernel, out, 7)
    data = bytearray(4)
    out.copy_to(data, stream=stored.stream)
    stored.stream.sync()
    assert [bytes(data)] == before


def test_load_makes_it_resident(code: ObjectCode, device: Device, stream: Stream) -> None:
    kernel = code.get_kernel("k")
    for where in (None, device, device.device_id, stream, device.context):
        kernel.load(where)
    driver.cuCtxSetCurrent(None)
    kernel.load()
    kernel.load(device)
    assert driver.cuCtxGetCurrent() == driver.ffi.NULL
    for where in ("x", 1.5, object()):
        with pytest.raises(TypeError):
            kernel.load(where)
    for where in (-1, 1000):
        with pytest.raises(ValueError):
            kernel.load(where)


SPIN = (
    HEADER
    + """.visible .entry spin(.param .u64 p)
{
.reg .b64 %a; .reg .b32 %v; .reg .pred %p;
ld.param.u64 %a, [p];
again:
ld.volatile.global.u32 %v, [%a];
setp.eq.u32 %p, %v, 0;
@%p bra again;
ret;
}
"""
)


def test_a_resident_kernel_begins_beside_one_that_does_not_end(
    device: Device, stream: Stream
) -> None:
    spin = ObjectCode.from_ptx(SPIN.encode()).get_kernel("spin")
    ahead = ObjectCode.from_ptx(empty("k")).get_kernel("k")
    ahead.load()
    flag = cudamod.LegacyPinnedMemoryResource().allocate(4, stream=stream)
    flag.fill(0, stream=stream)
    stream.sync()
    launch(stream, ONE, spin, flag)
    other = device.create_stream()
    try:
        ahead.bind(ONE, other)()
        other.sync()
        assert not stream.record().is_done
    finally:
        ctypes.c_uint32.from_address(flag.handle).value = 1
    stream.sync()


@pytest.mark.emulated  # a card takes any number for a kernel's
def test_a_function_is_no_kernel(code: ObjectCode, stream: Stream) -> None:
    kernel = code.get_kernel("k")
    kernel.load()
    function = driver.cuKernelGetFunction(driver.ffi.cast("CUkernel", kernel.handle))
    wrong = Kernel.from_handle(int(driver.ffi.cast("uintptr_t", function)))
    # Where the driver takes either, the answer is right.
    both = [k.occupancy.max_active_blocks_per_multiprocessor(32, 0) for k in (wrong, kernel)]
    assert both[0] == both[1] > 0
    uses: list[Callable[[], Any]] = [lambda: wrong.attributes.num_regs, wrong.load]
    for use in uses:
        with pytest.raises(CUDAError, match="INVALID_HANDLE"):
            use()


def test_a_kernel_is_not_called_without_a_configuration(code: ObjectCode) -> None:
    with pytest.raises(TypeError):
        code.get_kernel("k")(1, 2, 3)  # type: ignore[operator]
