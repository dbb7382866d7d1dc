"""How the driver loads an image: keywords of the constructors."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ptx import HEADER, ONE, empty

from cudamod import CUDAError, CUDAFileError, Device, ObjectCode, Stream, emulator, handles, launch

NAMES = Path(__file__).parent / "data" / "names"
PTX = (NAMES / "names.sm75.ptx").read_bytes()
ALL: dict[str, Any] = {
    "max_register_count": 32,
    "optimization_level": 2,
    "debug": False,
    "lineinfo": True,
    "verbose": True,
    "cache_mode": "ca",
    "preserve_binary": True,
}


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    gc.collect()
    handles.reclaim()
    yield
    gc.collect()
    handles.reclaim()


@pytest.mark.parametrize("code_type", ["cubin", "ptx", "fatbin", "ltoir", "object", "library"])
def test_every_constructor_takes_them(code_type: str) -> None:
    make: Callable[..., ObjectCode] = getattr(ObjectCode, f"from_{code_type}")
    code = make(b"x", **ALL)
    assert code.load_options == ALL
    code.load_options["debug"] = True
    assert code.load_options == ALL
    assert make(b"x").load_options == make(b"x", debug=None, verbose=None).load_options == {}
    for twin in (copy.copy(code), copy.deepcopy(code), pickle.loads(pickle.dumps(code))):
        assert twin == code
        assert twin.load_options == ALL
    assert make(b"x", lineinfo=True) != make(b"x")


@pytest.mark.parametrize("name", ALL)
def test_each_alone_loads(stream: Stream, name: str) -> None:
    options = {name: ALL[name]}
    for code in (
        ObjectCode.from_ptx(PTX, **options),
        ObjectCode.from_ptx(NAMES / "names.sm75.ptx", **options),
        ObjectCode.from_fatbin(NAMES / "names.zstd.fatbin", **options),
    ):
        assert code.get_kernel("plain").num_arguments == 1
        assert isinstance(code.log, str)


def test_all_together_load(stream: Stream) -> None:
    code = ObjectCode.from_ptx(empty("k"), **ALL)
    launch(stream, ONE, code.get_kernel("k"))
    stream.sync()


def test_registers_are_bounded(device: Device) -> None:
    def registers(**options: Any) -> int:
        values = "".join(f"add.u64 %r{i}, %r{i + 1}, %r{i + 2};\n" for i in range(60))
        loads = "".join(f"ld.volatile.global.u64 %r{i}, [%p+{8 * i}];\n" for i in range(62))
        stores = "".join(f"st.volatile.global.u64 [%p+{8 * i}], %r{i};\n" for i in range(62))
        text = f"""{HEADER}.visible .entry k(.param .u64 p)
{{
.reg .b64 %p, %r<70>;
ld.param.u64 %p, [p];
{loads}{values}{stores}ret;
}}
"""
        code = ObjectCode.from_ptx(text.encode(), **options)
        return code.get_kernel("k").attributes.num_regs

    free = registers()
    assert registers(max_register_count=32) <= 32 < free
    assert registers(max_register_count=255) == free


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unknown": 1}, TypeError, "unexpected load option 'unknown' .known: max_register_count,"),
        ({"max_register_count": "32"}, TypeError, "max_register_count must be a int"),
        ({"max_register_count": True}, TypeError, "max_register_count"),
        ({"max_register_count": 1.0}, TypeError, "max_register_count"),
        ({"max_register_count": 0}, ValueError, r"max_register_count=0 is out of range \[1, 255\]"),
        ({"max_register_count": 256}, ValueError, "max_register_count=256"),
        ({"max_register_count": -1}, ValueError, "max_register_count=-1"),
        ({"optimization_level": 5}, ValueError, r"optimization_level=5 is out of range \[0, 4\]"),
        ({"optimization_level": -1}, ValueError, "optimization_level=-1"),
        ({"debug": 1}, TypeError, "debug must be a bool"),
        ({"lineinfo": "yes"}, TypeError, "lineinfo must be a bool"),
        ({"verbose": 0}, TypeError, "verbose must be a bool"),
        ({"preserve_binary": 1}, TypeError, "preserve_binary must be a bool"),
        ({"cache_mode": 1}, TypeError, "cache_mode must be a str"),
        ({"cache_mode": "l1"}, ValueError, "cache_mode='l1' is unknown .known: none, cg, ca"),
    ],
)
def test_what_is_no_option(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ObjectCode.from_ptx(PTX, **options)


def mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "image.fatbin"
    path.write_bytes((NAMES / "names.zstd.fatbin").read_bytes())
    return path


def test_a_file_is_mapped_until_its_library_is_unloaded(device: Device, file: Path) -> None:
    code = ObjectCode.from_fatbin(file, preserve_binary=True)
    assert not mapped(file)
    kernel = code.get_kernel("plain")
    assert mapped(file)
    del code
    gc.collect()
    assert mapped(file)
    del kernel
    gc.collect()
    assert handles.retired().libraries == 1
    assert mapped(file)  # the driver may still read it
    handles.reclaim()
    assert not mapped(file)


def test_without_the_option_nothing_is_mapped(device: Device, file: Path) -> None:
    code = ObjectCode.from_fatbin(file).load()
    assert not mapped(file)
    file.write_bytes(b"")
    assert code.get_kernel("plain").name == "plain"


@pytest.mark.emulated
def test_the_driver_is_told(device: Device, file: Path) -> None:
    for source in (file, file.read_bytes()):
        for preserve in (False, True):
            with emulator.recording():
                ObjectCode.from_fatbin(source, preserve_binary=preserve).load()
            (call,) = [c for c in emulator.journal() if c.name == "cuLibraryLoadData"]
            assert str(call.arguments[-1]) == str(int(preserve))


def test_a_mapped_file_that_is_replaced_stays_what_it_was(device: Device, file: Path) -> None:
    code = ObjectCode.from_fatbin(file, preserve_binary=True).load()
    other = file.with_name("other")
    other.write_bytes(b"something else")
    other.replace(file)
    assert code.get_kernel("ns::axpy<float, 4>").num_arguments == 4
    file.unlink()
    assert code.get_kernel("ns::over").num_arguments == 1


@pytest.mark.parametrize("size", [4096, 8192, 4095, 4097])
def test_ptx_that_ends_with_a_page(device: Device, tmp_path: Path, size: int) -> None:
    path = tmp_path / "page.ptx"
    path.write_bytes(empty("k").ljust(size, b"\n"))
    assert ObjectCode.from_ptx(path, preserve_binary=True).get_kernel("k").name == "k"


def test_bad_files_are_refused_mapped_too(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "image"
    for content in (b"", b"\xde\xad\xbe\xef" * 64, (NAMES / "names.zstd.fatbin").read_bytes()[:99]):
        path.write_bytes(content)
        with pytest.raises(CUDAError, match="fatbin file") as caught:
            ObjectCode.from_fatbin(path, preserve_binary=True).load()
        assert caught.value.status == 200
        assert not mapped(path)
    with pytest.raises(CUDAFileError) as unreadable:
        ObjectCode.from_fatbin(tmp_path, preserve_binary=True).load()
    assert unreadable.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError):
        ObjectCode.from_fatbin(tmp_path / "gone", preserve_binary=True).load()
    device_file = Path("/dev/null")
    with pytest.raises(CUDAFileError, match="/dev/null"):
        ObjectCode.from_fatbin(device_file, preserve_binary=True).load()
    before = len(os.listdir("/proc/self/fd"))
    ObjectCode.from_ptx(NAMES / "names.sm75.ptx", preserve_binary=True).load()
    assert len(os.listdir("/proc/self/fd")) == before
