"""What images say of themselves, without a driver: fatbins, objects, archives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ptx import ONE, empty, read

from cudamod import CUDAError, CUDAFileError, Device, ObjectCode, Stream, launch

DATA = Path(__file__).parent / "data"
Row = tuple[str, "str | None", "tuple[str, ...] | None", bool, "str | None", "str | None"]

SINGLE = ("_Z6singlePi",)
IMAGES: dict[str, list[Row]] = {
    "h200/saxpy.sm90.cubin": [("cubin", "sm_90", ("saxpy",), False, None, None)],
    "h200/saxpy.sm90.ptx": [("ptx", "compute_90", ("saxpy",), False, None, None)],
    "fatbins/saxpy.zstd.fatbin": [
        ("cubin", "sm_90", ("saxpy",), False, "zstd", None),
        ("ptx", "compute_90", ("saxpy",), False, "zstd", None),
        ("cubin", "sm_75", ("saxpy",), False, "zstd", None),
    ],
    "fatbins/saxpy.lz4_all.fatbin": [
        ("cubin", "sm_90a", ("saxpy",), False, "lz4", None),
        ("ptx", "compute_90a", ("saxpy",), False, "lz4", None),
    ],
    "fatbins/saxpy.lto.fatbin": [("ltoir", "compute_90", None, False, "zstd", None)],
    "fatbins/saxpy.ltoir": [("ltoir", None, None, False, None, None)],
    "objects/single.o": [
        ("cubin", "sm_80", SINGLE, False, "zstd", None),
        ("cubin", "sm_90", SINGLE, False, "zstd", None),
        ("ptx", "compute_90", SINGLE, False, "zstd", None),
    ],
    "objects/part.o": [
        ("cubin", "sm_80", ("part",), True, "lz4", None),
        ("cubin", "sm_90", ("part",), True, "lz4", None),
        ("ptx", "compute_90", ("part",), False, "lz4", None),
    ],
    "objects/parts.a": [
        ("cubin", "sm_80", ("part",), True, "lz4", "part.o"),
        ("cubin", "sm_90", ("part",), True, "lz4", "part.o"),
        ("ptx", "compute_90", ("part",), False, "lz4", "part.o"),
        ("cubin", "sm_80", (), True, "zstd", "a_member_with_a_long_name.o"),
        ("cubin", "sm_90", (), True, "zstd", "a_member_with_a_long_name.o"),
        ("ptx", "compute_90", (), False, "zstd", "a_member_with_a_long_name.o"),
    ],
}


def is_read_or_refused(image: bytes, said: str) -> None:
    code = ObjectCode.from_library(image)
    try:
        code.images()
    except ValueError as error:
        if said not in str(error):
            raise


def any_type(source: bytes | Path) -> ObjectCode:
    return ObjectCode.from_library(source)


@pytest.mark.parametrize("name", IMAGES)
def test_each_piece_of_code(name: str) -> None:
    for source in (DATA / name, (DATA / name).read_bytes()):
        infos = any_type(source).images()
        rows = [(i.kind, i.arch, i.kernels, i.relocatable, i.compression, i.member) for i in infos]
        assert rows == IMAGES[name]
        assert all(0 < info.size <= (DATA / name).stat().st_size for info in infos)


def test_every_type_of_code_can_be_read() -> None:
    for code_type in ("cubin", "ptx", "fatbin", "ltoir", "object", "library"):
        code: ObjectCode = getattr(ObjectCode, f"from_{code_type}")(empty("a", "b"))
        assert [info.kernels for info in code.images()] == [("a", "b")]


def test_suffixes_are_part_of_the_architecture() -> None:
    for name, arch in (("sm90a", "sm_90a"), ("sm100f", "sm_100f"), ("sm75", "sm_75")):
        (info,) = any_type(DATA / "cubins" / f"features.{name}.cubin").images()
        assert info.arch == arch


def test_no_driver_is_opened(run_python: Callable[..., str]) -> None:
    path = DATA / "objects" / "parts.a"
    code = f"""
from cudamod import ObjectCode
print(len(ObjectCode.from_library({str(path)!r}).images()))
maps = open("/proc/self/maps").read()
assert "libcuda" not in maps
"""
    assert run_python(code, CUDAMOD_DRIVER="/nowhere/libcuda.so.1") == "6\n"


def test_a_host_object_without_device_code_has_none() -> None:
    archive = (DATA / "objects" / "parts.a").read_bytes()
    at = archive.index(b"host_only.o/")
    size = int(archive[at + 48 : at + 58])
    host = archive[at + 60 : at + 60 + size]
    assert host[:4] == b"\x7fELF"
    assert ObjectCode.from_object(host).images() == []
    assert ObjectCode.from_library(b"!<arch>\n").images() == []


@pytest.mark.parametrize(
    "image",
    [b"", b"x", b"text", b"\x7fELF", b"!<arch>\nx", b"!<thin>\n", b"!<arch>\n" + b"y" * 60],
    ids=repr,
)
def test_bytes_that_are_no_image(image: bytes) -> None:
    with pytest.raises(ValueError, match="library image 'it' of"):
        ObjectCode.from_library(image, name="it").images()


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(CUDAFileError, match="gone"):
        ObjectCode.from_object(tmp_path / "gone").images()


@pytest.mark.parametrize("name", ["objects/parts.a", "objects/single.o", "names/names.zstd.fatbin"])
def test_cut_and_damaged_files_are_refused_or_read(name: str) -> None:
    image = (DATA / name).read_bytes()
    for size in range(0, len(image), 97):
        is_read_or_refused(image[:size], f"library image of {size} bytes")
    for at in range(0, len(image), 61):
        damaged = bytearray(image)
        damaged[at] ^= 0xFF
        is_read_or_refused(bytes(damaged), "library image")


@pytest.mark.parametrize(
    ("path", "kernel"),
    [
        ("fatbins/saxpy.zstd.fatbin", "saxpy"),
        ("fatbins/saxpy.lz4_all.fatbin", "saxpy"),
        ("fatbins/saxpy.none.fatbin", "saxpy"),
        ("names/names.zstd.fatbin", "plain"),
    ],
)
def test_compressed_fatbins_are_loaded(device: Device, path: str, kernel: str) -> None:
    if device.arch not in ("75", "90"):
        pytest.skip("images for sm_75 and sm_90")
    code = ObjectCode.from_fatbin(DATA / path)
    assert code.get_kernel(kernel).num_arguments > 0
    (machine,) = [
        info
        for info in code.images()
        if info.kind == "cubin" and info.arch in (f"sm_{device.arch}", f"sm_{device.arch}a")
    ]
    assert set(machine.kernels or ()) == set(code.kernels())


def test_embedded_fatbins_are_object_code(device: Device, stream: Stream) -> None:
    for source in (DATA / "objects" / "single.o", (DATA / "objects" / "single.o").read_bytes()):
        code = ObjectCode.from_object(
            source, name="it", symbol_mapping={"f": "_Z6singlePi"}, preserve_binary=True
        )
        (fatbin,) = code.fatbins()
        assert (type(fatbin), fatbin.code_type, fatbin.name) == (ObjectCode, "fatbin", "it")
        assert (fatbin.symbol_mapping, fatbin.load_options) == (
            code.symbol_mapping,
            code.load_options,
        )
        assert fatbin.images() == code.images()
        if device.compute_capability >= (8, 0):
            out = device.allocate(4, stream=stream)
            launch(stream, ONE, fatbin.get_kernel("f"), out)
            assert int.from_bytes(read(out, stream), "little") == 1


def test_embedded_fatbins_of_archives_have_their_members_names() -> None:
    fatbins = ObjectCode.from_library(DATA / "objects" / "parts.a").fatbins()
    assert [fatbin.name for fatbin in fatbins] == ["part.o", "a_member_with_a_long_name.o"]


@pytest.mark.emulated  # an H200 takes the load
@pytest.mark.usefixtures("device")
def test_relocatable_fatbins_are_refused() -> None:
    part, _ = ObjectCode.from_library(DATA / "objects" / "parts.a").fatbins()
    assert any(info.relocatable for info in part.images())
    with pytest.raises(CUDAError, match=r"fatbin image 'part\.o'"):
        part.load()


def test_what_embeds_no_fatbin() -> None:
    (itself,) = ObjectCode.from_fatbin(DATA / "names" / "names.zstd.fatbin").fatbins()
    assert itself.code == (DATA / "names" / "names.zstd.fatbin").read_bytes()
    for name in ("h200/saxpy.sm90.cubin", "h200/saxpy.sm90.ptx", "fatbins/saxpy.ltoir"):
        with pytest.raises(ValueError, match="embeds no fatbin"):
            ObjectCode.from_object(DATA / name).fatbins()


@pytest.mark.emulated
def test_old_drivers_tell_no_names_but_images_do(run_python: Callable[..., str]) -> None:
    path = DATA / "names" / "names.zstd.fatbin"
    code = f"""
from cudamod import Device, ObjectCode, driver
Device(0).set_current()
assert not driver.has("cuLibraryEnumerateKernels")
code = ObjectCode.from_fatbin({str(path)!r})
(machine, ptx) = code.images()
assert machine.kernels != ptx.kernels  # anonymous namespaces have another name in each
assert sorted(code.kernels()) == sorted(machine.kernels)
assert code.get_kernel("hidden").name in machine.kernels
print(code.get_kernel("ns::axpy<float, 4>").name, code.get_kernel("plain").signature)
"""
    printed = run_python(code, CUDAMOD_EMULATOR_DRIVER_VERSION="12000")
    assert printed == "_ZN2ns4axpyIfLi4EEEvT_PKS1_PS1_m b64\n"
