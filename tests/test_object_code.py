"""ObjectCode: its constructors, lazy loading, names, equality and copies."""

from __future__ import annotations

import copy
import gc
import mmap
import pickle
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ptx import HEADER, ONE, empty

import cudamod
from cudamod import CUDAError, Device, Kernel, ObjectCode, Stream, emulator, launch

DATA = Path(__file__).parent / "data"
PTX = empty("alpha", "alphabet", "beta")
CONSTRUCTORS = {
    "cubin": ObjectCode.from_cubin,
    "ptx": ObjectCode.from_ptx,
    "fatbin": ObjectCode.from_fatbin,
    "ltoir": ObjectCode.from_ltoir,
    "object": ObjectCode.from_object,
    "library": ObjectCode.from_library,
}


@pytest.mark.parametrize("code_type", CONSTRUCTORS)
def test_constructors_keep_what_they_are_given(code_type: str, tmp_path: Path) -> None:
    make: Callable[..., ObjectCode] = CONSTRUCTORS[code_type]
    for image in (
        b"image",
        bytearray(b"image"),
        memoryview(b"image"),
        memoryview(b"i-m-a-g-e")[::2],
    ):
        code = make(image, name="it", symbol_mapping={"f": "g"})
        assert (code.code, code.code_type, code.name) == (b"image", code_type, "it")
        assert code.symbol_mapping == {"f": "g"}
    for path in (tmp_path / "x", str(tmp_path / "x")):
        assert make(path).code == str(tmp_path / "x")
    assert (make(b"").name, make(b"").symbol_mapping) == ("", {})


@pytest.mark.parametrize("code_type", CONSTRUCTORS)
@pytest.mark.parametrize("image", [None, 3, 1.5, ["x"], object(), ...], ids=repr)
def test_constructors_refuse_what_is_no_image(code_type: str, image: Any) -> None:
    with pytest.raises(TypeError):
        CONSTRUCTORS[code_type](image)


def test_constructors_check_name_and_mapping() -> None:
    for name in (None, 3, b"x"):
        with pytest.raises(TypeError, match="name must be a str"):
            ObjectCode.from_ptx(PTX, name=name)  # type: ignore[arg-type]
    for mapping in ([("a", "b")], "ab", 3):
        with pytest.raises(TypeError, match="symbol_mapping must be a mapping"):
            ObjectCode.from_ptx(PTX, symbol_mapping=mapping)  # type: ignore[arg-type]
    for bad, error in (
        ({"a": 3}, TypeError),
        ({3: "a"}, TypeError),
        ({"a": ""}, ValueError),
        ({"a": "b\0"}, ValueError),
    ):
        with pytest.raises(error):
            ObjectCode.from_ptx(PTX, symbol_mapping=bad)


def test_there_is_no_object_code_without_an_image() -> None:
    for make in (
        ObjectCode,
        lambda: ObjectCode.__new__(ObjectCode),
        lambda: ObjectCode(PTX, "ptx"),
    ):
        with pytest.raises(RuntimeError, match="cannot be instantiated directly"):
            make()
    gc.collect()


class Mine(ObjectCode):
    pass


def test_a_subclass_makes_its_own_objects(device: Device) -> None:
    mine = Mine.from_ptx(PTX)
    for code in (mine, copy.copy(mine), pickle.loads(pickle.dumps(mine))):
        assert type(code) is Mine
    assert mine.get_kernel("alpha").name == "alpha"


def test_objects_have_no_other_attributes_and_can_be_referred_to_weakly() -> None:
    code = ObjectCode.from_ptx(PTX)
    with pytest.raises(AttributeError):
        code.other = 1  # type: ignore[attr-defined]
    reference = weakref.ref(code)
    assert reference() is code
    del code
    gc.collect()
    assert reference() is None


@pytest.mark.emulated
def test_nothing_is_loaded_before_it_is_needed(device: Device) -> None:
    with emulator.recording():
        code = ObjectCode.from_ptx(PTX, name="n", symbol_mapping={"a": "alpha"})
        _ = (code.code, code.code_type, code.name, code.symbol_mapping, repr(code), hash(code))
        assert code == copy.copy(code)
        assert pickle.loads(pickle.dumps(code)) == code
    assert emulator.journal() == []
    for use in (
        ObjectCode.load,
        lambda c: c.handle,
        ObjectCode.kernels,
        lambda c: c.get_kernel("a"),
        lambda c: c.log,
    ):
        fresh = copy.copy(code)
        with emulator.recording():
            use(fresh)
            use(fresh)
        assert [c.name for c in emulator.journal()].count("cuLibraryLoadData") == 1


def test_load_answers_the_object(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    assert code.load() is code
    assert code.load().handle == code.handle != 0


def test_loading_needs_no_current_context() -> None:
    assert ObjectCode.from_ptx(PTX).get_kernel("beta").name == "beta"


def test_the_callers_bytes_are_copied(device: Device) -> None:
    for wrap in (bytearray, lambda image: memoryview(bytearray(image))):
        image = wrap(PTX)
        code = ObjectCode.from_ptx(image)
        image[:] = b"x" * len(image)
        assert code.get_kernel("alpha").name == "alpha"
        assert code.code == PTX


def test_files(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "a file.ptx"
    path.write_bytes(PTX)
    odd = tmp_path / "\udcff\udce9.ptx"  # a name that is no UTF-8
    odd.write_bytes(PTX)
    for place in (path, str(path), odd, str(odd)):
        code = ObjectCode.from_ptx(place)
        assert sorted(code.kernels()) == ["alpha", "alphabet", "beta"]
        assert pickle.loads(pickle.dumps(code)).get_kernel("beta").name == "beta"


def test_ptx_at_the_end_of_a_page(device: Device) -> None:
    # Without a NUL of its own, whoever reads on meets memory that is not there.
    image = PTX.ljust(-(-len(PTX) // mmap.PAGESIZE) * mmap.PAGESIZE, b"\n")
    with mmap.mmap(-1, len(image)) as pages:
        pages[:] = image
        view = memoryview(pages)
        assert ObjectCode.from_ptx(view).get_kernel("beta").name == "beta"
        view.release()
    for end in (b"", b"\0", b"\n\0\0"):
        assert ObjectCode.from_ptx(PTX + end).get_kernel("beta").name == "beta"


def test_a_kernel_by_name_is_the_same_object(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    kernel = code.get_kernel("alpha")
    assert code.get_kernel("alpha") is kernel
    assert code.get_kernel(b"alpha") is kernel
    assert code.get_kernel(b"alpha") is kernel
    assert code.get_kernel("beta") is not kernel
    assert sorted(code.kernels()) == ["alpha", "alphabet", "beta"]


def test_names_that_are_none(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    for name, error in [
        (None, TypeError),
        (3, TypeError),
        (["alpha"], TypeError),
        (bytearray(b"alpha"), TypeError),
        ("", ValueError),
        (b"", ValueError),
        ("alpha\0", ValueError),
        (b"al\0pha", ValueError),
        (b"\xff", ValueError),
        ("\udcff", ValueError),
    ]:
        with pytest.raises(error, match="kernel name"):
            code.get_kernel(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("alhpa", "did you mean 'alpha'"),
        (b"betta", "did you mean 'beta'"),
        ("kernel_é", "'alpha' or 'alphabet' or 'beta'"),
    ],
)
def test_a_missing_kernel(device: Device, name: str | bytes, suggested: str) -> None:
    code = ObjectCode.from_ptx(PTX, name="greek")
    with pytest.raises(CUDAError) as caught:
        code.get_kernel(name)
    text = name if isinstance(name, str) else name.decode()
    error = caught.value
    assert (error.status, error.name, error.call) == (
        500,
        "CUDA_ERROR_NOT_FOUND",
        "cuLibraryGetKernel",
    )
    assert f"kernel '{text}' in ptx image 'greek' of {len(PTX)} bytes" in str(error)
    assert suggested in str(error)


def test_symbol_mapping(device: Device) -> None:
    mapping: dict[Any, Any] = {"f<int>": "alpha", b"g": b"beta", "alpha": "alphabet"}
    code = ObjectCode.from_ptx(PTX, symbol_mapping=mapping)
    mapping["f<int>"] = "beta"
    code.symbol_mapping["f<int>"] = "beta"
    for name, symbol in (
        ("f<int>", "alpha"),
        (b"f<int>", "alpha"),
        ("g", "beta"),
        (b"g", "beta"),
        ("alpha", "alphabet"),
        ("beta", "beta"),
    ):
        assert code.get_kernel(name).name == symbol, name
    assert code.get_kernel("f<int>") is code.get_kernel(b"f<int>")
    assert copy.copy(code).get_kernel("g").name == "beta"
    with pytest.raises(CUDAError, match="kernel 'gone'"):
        ObjectCode.from_ptx(PTX, symbol_mapping={"x": "gone"}).get_kernel("x")


def test_equality_and_hash(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    same = ObjectCode.from_ptx(bytearray(PTX))
    assert code == same
    assert hash(code) == hash(same)
    code.load()
    assert code == same
    assert hash(code) == hash(same)
    assert code.handle != same.handle
    for other in (
        ObjectCode.from_cubin(PTX),
        ObjectCode.from_ptx(PTX + b"\n"),
        ObjectCode.from_ptx(PTX, symbol_mapping={"a": "b"}),
        PTX,
        None,
    ):
        assert code != other
    assert len({code, same}) == 1


def test_repr(tmp_path: Path) -> None:
    assert repr(ObjectCode.from_cubin(b"1234")) == "<ObjectCode code_type='cubin' code=4 bytes>"
    assert (
        repr(ObjectCode.from_ptx("/x/y", name="n"))
        == "<ObjectCode name='n' code_type='ptx' code='/x/y'>"
    )


def test_pickle_and_copy(device: Device, stream: Stream) -> None:
    code = ObjectCode.from_ptx(PTX, name="n", symbol_mapping={"a": "alpha"}).load()
    pickled = [
        pickle.loads(pickle.dumps(code, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for twin in [*pickled, copy.copy(code), copy.deepcopy(code)]:
        assert twin == code
        assert (twin.name, twin.symbol_mapping) == ("n", {"a": "alpha"})
        assert twin.handle != code.handle
        launch(stream, ONE, twin.get_kernel("a"))


@pytest.mark.parametrize("code_type", ["ltoir", "object", "library"])
def test_code_for_linking_is_not_loaded(code_type: str, tmp_path: Path) -> None:
    code = CONSTRUCTORS[code_type](tmp_path / "missing")
    for use in (
        ObjectCode.load,
        lambda c: c.handle,
        ObjectCode.kernels,
        lambda c: c.get_kernel("k"),
        lambda c: c.log,
    ):
        with pytest.raises(RuntimeError, match=f'Unsupported code type "{code_type}"') as caught:
            use(code)
        assert not isinstance(caught.value, CUDAError)


def test_cubins_and_fatbins(device: Device) -> None:
    if device.arch != "90":
        pytest.skip("images for sm_90")
    saxpy = ObjectCode.from_cubin(DATA / "h200" / "saxpy.sm90.cubin")
    assert saxpy.kernels() == ["saxpy"]
    assert saxpy.log == ""
    assert (
        ObjectCode.from_fatbin(DATA / "fatbins" / "saxpy.none.fatbin")
        .get_kernel("saxpy")
        .num_arguments
        == 4
    )


def test_what_the_compiler_wrote(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    assert isinstance(code.log, str)


def test_threads_load_once(device: Device) -> None:
    code = ObjectCode.from_ptx(PTX)
    barrier = threading.Barrier(16)
    found: list[tuple[int, Kernel]] = []

    def use() -> None:
        barrier.wait()
        kernel = code.get_kernel("beta")
        found.append((code.handle, kernel))

    threads = [threading.Thread(target=use) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert {handle for handle, _ in found} == {code.handle}
    assert all(kernel is code.get_kernel("beta") for _, kernel in found)


def test_the_package_tells_what_it_has() -> None:
    assert cudamod.ObjectCode is ObjectCode
    assert "ObjectCode" in cudamod.__all__
    assert HEADER.startswith(".version")
