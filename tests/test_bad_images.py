"""Images that don't load: which error, with which log, and that nothing stays behind."""

from __future__ import annotations

import copy
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from ptx import HEADER, empty

from cudamod import (
    CUDAError,
    CUDAFileError,
    CUDAFileNotFoundError,
    Device,
    ObjectCode,
    emulator,
    handles,
)

DATA = Path(__file__).parent / "data" / "h200"
GOOD = empty("k")
CUBIN = (DATA / "saxpy.sm90.cubin").read_bytes()

USES: dict[str, Callable[[ObjectCode], object]] = {
    "load": ObjectCode.load,
    "get_kernel": lambda code: code.get_kernel("k"),
    "kernels": ObjectCode.kernels,
    "handle": lambda code: code.handle,
    "log": lambda code: code.log,
}


def ptx(text: str) -> bytes:
    return text.encode()


#: Image, status, name, and what the log must contain; as an H200 answered (data/h200/driver.json).
IMAGES: dict[str, tuple[bytes, int, str, str]] = {
    "syntax error": (
        ptx(HEADER + "\n.visible .entry k() { this is no PTX; }"),
        218,
        "CUDA_ERROR_INVALID_PTX",
        "line 5",
    ),
    "newer PTX": (
        ptx(HEADER.replace("8.1", "99.9") + ".entry k() { ret; }"),
        222,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "Unsupported .version 99.9",
    ),
    "unknown target": (
        ptx(HEADER.replace("sm_75", "sm_999") + ".entry k() { ret; }"),
        218,
        "CUDA_ERROR_INVALID_PTX",
        ".target",
    ),
    "too much static shared memory": (
        ptx(
            HEADER + "\n.visible .entry k()\n{\n.shared .b8 area[49153];\n.reg .b32 a;\n"
            "mov.u32 a, area;\nst.shared.u8 [a+49152], 1;\nret;\n}"
        ),
        218,
        "CUDA_ERROR_INVALID_PTX",
        "uses too much shared data (0xc001 bytes, 0xc000 max)",
    ),
    "another architecture": (
        (DATA / "saxpy.sm120.cubin").read_bytes(),
        209,
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "",
    ),
    "truncated cubin": (CUBIN[: len(CUBIN) // 2], 200, "CUDA_ERROR_INVALID_IMAGE", ""),
    "garbage": (b"\xde\xad\xbe\xef" * 64, 200, "CUDA_ERROR_INVALID_IMAGE", "not recognized"),
    "zeros": (bytes(256), 200, "CUDA_ERROR_INVALID_IMAGE", "not recognized"),
    "plain text": (
        b"This is no image at all, but a text.\n" * 4,
        200,
        "CUDA_ERROR_INVALID_IMAGE",
        "not recognized",
    ),
    "empty": (b"", 200, "CUDA_ERROR_INVALID_IMAGE", ""),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "make",
    [ObjectCode.from_ptx, ObjectCode.from_cubin, ObjectCode.from_fatbin],
    ids=lambda m: m.__name__,
)
@pytest.mark.parametrize("what", IMAGES)
def test_a_bad_image(device: Device, what: str, make: Callable[..., ObjectCode], use: str) -> None:
    image, status, name, log = IMAGES[what]
    if what == "another architecture" and device.compute_capability >= (12, 0):
        pytest.skip("it is this device's")
    code = make(image, name="image x")
    for _ in range(2):  # the next use tries again
        with pytest.raises(CUDAError) as caught:
            USES[use](code)
        error = caught.value
        assert (error.status, error.name) == (status, name)
        assert type(error) is CUDAError
        assert f"{code.code_type} image 'image x' of {len(image)} bytes" in str(error)
        assert log in error.log
        assert log in str(error)


def test_an_image_without_code_for_the_device_says_what_it_has(device: Device) -> None:
    if device.compute_capability >= (12, 0):
        pytest.skip("it is this device's")
    image = IMAGES["another architecture"][0]
    with pytest.raises(CUDAError, match=r"; the image has code for sm_120$") as caught:
        ObjectCode.from_cubin(image).load()
    assert caught.value.status == 209
    twin = pickle.loads(pickle.dumps(caught.value))
    assert str(twin) == str(caught.value)


def test_a_target_above_the_device(device: Device) -> None:
    major, _ = device.compute_capability
    above = {7: "80", 8: "90", 9: "100", 10: "120"}.get(major)
    if above is None:
        pytest.skip("no target is known above this device")
    image = f".version 9.0\n.target sm_{above}\n.address_size 64\n.visible .entry k() {{ ret; }}"
    with pytest.raises(CUDAError) as caught:
        ObjectCode.from_ptx(image.encode()).load()
    assert (caught.value.status, caught.value.name) == (218, "CUDA_ERROR_INVALID_PTX")
    assert ".target" in caught.value.log
    assert "higher" in caught.value.log


def test_the_error_survives_pickling(device: Device) -> None:
    with pytest.raises(CUDAError) as caught:
        ObjectCode.from_ptx(IMAGES["newer PTX"][0]).load()
    for twin in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(twin) is CUDAError
        assert str(twin) == str(caught.value)
        assert (twin.status, twin.name, twin.log) == (222, caught.value.name, caught.value.log)


def test_a_long_log_arrives(device: Device) -> None:
    body = "".join(f"    wrong instruction {i};\n" for i in range(2000))
    with pytest.raises(CUDAError) as caught:
        ObjectCode.from_ptx(ptx(f"{HEADER}.entry k() {{\n{body}}}\n")).load()
    assert caught.value.status == 218
    assert "line" in caught.value.log
    assert "\0" not in caught.value.log


@pytest.mark.parametrize("use", USES)
def test_a_missing_file(device: Device, tmp_path: Path, use: str) -> None:
    for path in (tmp_path / "missing.cubin", tmp_path / "no" / "folder", Path(__file__) / "x"):
        code = ObjectCode.from_cubin(path)
        with pytest.raises(CUDAFileNotFoundError) as caught:
            USES[use](code)
        error = caught.value
        assert isinstance(error, FileNotFoundError)
        assert isinstance(error, CUDAError)
        assert (error.status, error.name) == (301, "CUDA_ERROR_FILE_NOT_FOUND")
        assert error.filename == str(path)
        assert repr(str(path)) in str(error)
    path = tmp_path / "missing.cubin"
    path.write_bytes(GOOD)
    assert ObjectCode.from_ptx(path).get_kernel("k").name == "k"


def test_files_that_can_not_be_read(device: Device, tmp_path: Path) -> None:
    with pytest.raises(CUDAFileError) as caught:
        ObjectCode.from_ptx(tmp_path).load()
    assert isinstance(caught.value, OSError)
    assert not isinstance(caught.value, FileNotFoundError)
    assert "directory" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    locked = tmp_path / "locked.ptx"
    locked.write_bytes(GOOD)
    locked.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(CUDAFileError, match=r"(?i)permission") as caught:
            ObjectCode.from_ptx(locked).load()
        assert caught.value.filename == str(locked)


def test_a_text_is_taken_for_a_path(device: Device) -> None:
    for text in (GOOD.decode(), "k" * 10_000):
        with pytest.raises(CUDAFileError) as caught:
            ObjectCode.from_ptx(text).load()
        assert len(str(caught.value)) < 600
    with pytest.raises(CUDAFileError, match=r"a str is a path.*encode"):
        ObjectCode.from_ptx(GOOD.decode()).load()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "path is empty"),
        ("a\0b", r"path 'a\\x00b' has an embedded NUL; a str is a path"),
        (GOOD.decode() + "\0", r"has an embedded NUL; a str is a path: encode\(\) a text"),
        ("\ud800", r"path '\\ud800' can't be encoded"),
    ],
)
def test_a_path_that_is_none(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        ObjectCode.from_ptx(path)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 600


def test_a_bad_file_is_named(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "bad.ptx"
    path.write_bytes(b"")
    with pytest.raises(CUDAError, match="ptx file ") as caught:
        ObjectCode.from_ptx(path).load()
    assert str(path) in str(caught.value)
    assert caught.value.status == 200


@pytest.mark.emulated
def test_nothing_stays_behind(device: Device) -> None:
    handles.reclaim()
    before = emulator.counts()["library"]
    for image, *_ in IMAGES.values():
        for make in (ObjectCode.from_ptx, ObjectCode.from_cubin):
            with pytest.raises(CUDAError):
                make(image).load()
            assert handles.retired().libraries == 0  # nothing waits for a bad image's unloading
    assert emulator.counts()["library"] == before


@pytest.mark.emulated
def test_a_bad_image_is_unloaded_with_its_capture_mode_relaxed(device: Device) -> None:
    with emulator.recording(), pytest.raises(CUDAError):
        ObjectCode.from_ptx(IMAGES["newer PTX"][0]).load()
    names = [call.name for call in emulator.journal()]
    assert names.count("cuLibraryUnload") == 1
    at = names.index("cuLibraryUnload")
    exchange = "cuThreadExchangeStreamCaptureMode"
    assert names[at - 1] == names[at + 1] == exchange


@pytest.mark.emulated
@pytest.mark.parametrize(("manner", "left"), [("deferred", 0), ("now", 0), ("never", 1)])
def test_the_manner_of_unloading_counts_for_bad_images(
    run_python: Callable[..., str], manner: str, left: int
) -> None:
    code = f"""
from cudamod import CUDAError, ObjectCode, emulator
try:
    ObjectCode.from_ptx({IMAGES["newer PTX"][0]!r}).load()
except CUDAError:
    print(emulator.counts()["library"])
"""
    assert run_python(code, CUDAMOD_UNLOAD=manner) == f"{left}\n"


@pytest.mark.parametrize("cut", [1, 4, 16, 63, 64, 100, 1000, len(CUBIN) - 1])
def test_truncated_cubins(device: Device, cut: int) -> None:
    # The driver is told no length: what the headers point to beyond the end, it would read.
    code = ObjectCode.from_cubin(CUBIN[:cut])
    with pytest.raises(CUDAError, match=f"cubin image of {cut} bytes") as caught:
        code.load()
    assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


@pytest.mark.parametrize("cut", [4, 15, 16, 63, 64, 100, 1000])
def test_truncated_fatbins(device: Device, cut: int) -> None:
    image = (DATA.parent / "fatbins" / "saxpy.none.fatbin").read_bytes()
    with pytest.raises(CUDAError, match=f"fatbin image of {cut} bytes") as caught:
        ObjectCode.from_fatbin(image[:cut]).load()
    assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


def test_tables_beyond_the_end(device: Device) -> None:
    # Offset and number of the section headers.
    for offset, packed in (
        (40, struct.pack("<Q", 2**63)),
        (40, struct.pack("<Q", len(CUBIN) - 1)),
        (60, b"\xff\xff"),
    ):
        image = bytearray(CUBIN)
        image[offset : offset + len(packed)] = packed
        with pytest.raises(CUDAError, match="beyond the end") as caught:
            ObjectCode.from_cubin(image).load()
        assert caught.value.status == 200


def test_a_pointer_of_another_process_is_not_followed(device: Device) -> None:
    wrapper = struct.pack("<IIQQ", 0x466243B1, 1, 0xDEAD0000, 0)
    with pytest.raises(CUDAError, match="a fatbin's wrapper holds no code") as caught:
        ObjectCode.from_fatbin(wrapper).load()
    assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


@pytest.mark.emulated  # the compiler of driver 580 loads it
@pytest.mark.parametrize("space", [".global", ".shared"])
def test_an_array_larger_than_any_memory(space: str) -> None:
    text = f"{HEADER}{space} .b64 q[4294967296][4294967296];\n.entry k() {{ ret; }}"
    with pytest.raises(CUDAError) as raised:
        ObjectCode.from_ptx(text.encode()).load()
    assert raised.value.name in ("CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_INVALID_IMAGE")


@pytest.mark.emulated
def test_a_cubin_with_more_registers_than_there_are() -> None:
    image = bytearray((DATA / "reduce_shared.sm90.cubin").read_bytes())
    image[1476:1480] = b"\xff" * 4
    kernel = ObjectCode.from_cubin(bytes(image)).get_kernel("reduce_shared")
    assert kernel.attributes.max_threads_per_block == 0
