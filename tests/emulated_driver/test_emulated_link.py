"""The driver's linker: PTX in, PTX out."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from emulated_driver_api import EmulatedDriver, Pointer

SIZE = ctypes.c_size_t
PTX_INPUT, CUBIN_INPUT = 1, 0
INVALID_VALUE, NO_CONTEXT, INVALID_PTX, INVALID_HANDLE = 1, 201, 218, 400
NOT_SUPPORTED, FILE_NOT_FOUND, NOT_FOUND = 801, 301, 500

HEAD = b".version 8.0\n.target sm_90\n.address_size 64\n"
CALLEE = b""".visible .global .u32 base = 40;
.visible .func (.reg .u32 out) plus_two(.reg .u32 in) { add.u32 out, in, 2; ret; }
"""
CALLER = b""".extern .global .u32 base;
.extern .func (.reg .u32 out) plus_two(.reg .u32 in);
.visible .entry k(.param .u64 p) {
  .reg .u64 %a; .reg .u32 %x;
  ld.param.u64 %a, [p];
  ld.global.u32 %x, [base];
  call (%x), plus_two, (%x);
  st.global.u32 [%a], %x;
  ret;
}
"""
ALONE = b".visible .entry alone() { ret; }\n"


class Link:
    """A link with its two logs."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver = driver
        self.info, self.error = (ctypes.create_string_buffer(4096) for _ in range(2))
        self.options = (ctypes.c_int * 4)(3, 4, 5, 6)
        self.values = (Pointer * 4)(
            ctypes.addressof(self.info), 4096, ctypes.addressof(self.error), 4096
        )
        self.handle = Pointer()
        driver.call("cuLinkCreate_v2", 4, self.options, self.values, ctypes.byref(self.handle))

    def add(self, data: bytes | None, kind: int = PTX_INPUT, size: int | None = None) -> int:
        length = SIZE(len(data or b"") if size is None else size)
        return self.driver.status(
            "cuLinkAddData_v2", self.handle, kind, data, length, b"name", 0, None, None
        )

    def complete(self) -> tuple[int, bytes]:
        image, size = Pointer(), SIZE()
        status = self.driver.status(
            "cuLinkComplete", self.handle, ctypes.byref(image), ctypes.byref(size)
        )
        return status, ctypes.string_at(image, size.value) if image else b""

    def destroy(self) -> int:
        return self.driver.status("cuLinkDestroy", self.handle)


@pytest.mark.parametrize("order", [(CALLER, CALLEE), (CALLEE, CALLER)])
def test_modules_become_one_that_runs(current: EmulatedDriver, order: tuple[bytes, bytes]) -> None:
    link = Link(current)
    newer = HEAD.replace(b"8.0", b"9.0")
    assert [link.add(HEAD + order[0]), link.add(newer + order[1] + b"\0")] == [0, 0]
    status, image = link.complete()
    assert status == 0
    assert image.startswith(b".version 9.0\n.target sm_90\n")
    assert image.endswith(b"\0")
    assert link.complete() == (0, image)
    memory = current.allocate(4)
    kernel = current.kernel(current.load(image), b"k")
    assert link.destroy() == 0  # the image was copied when it was loaded
    assert current.launch(kernel, [memory]) == 0
    assert current.download(memory, 4) == (42).to_bytes(4, "little")


def test_files_are_read(current: EmulatedDriver, tmp_path: Path) -> None:
    path = tmp_path / "code.ptx"
    path.write_bytes(HEAD + ALONE)
    link = Link(current)
    for name, status in ((path, 0), (tmp_path / "missing", FILE_NOT_FOUND)):
        found = current.status(
            "cuLinkAddFile_v2", link.handle, PTX_INPUT, str(name).encode(), 0, None, None
        )
        assert found == status
    assert link.complete()[1] == HEAD + ALONE + b"\0"
    link.destroy()


@pytest.mark.parametrize(
    ("data", "kind", "status", "log"),
    [
        (HEAD + b".visible .entry k() { rett; }", PTX_INPUT, INVALID_PTX, b"rett"),
        (b"junk", PTX_INPUT, 200, b""),
        (HEAD + ALONE, CUBIN_INPUT, NOT_SUPPORTED, b"links PTX alone"),
        (b"\x7fELF", CUBIN_INPUT, NOT_SUPPORTED, b"links PTX alone"),
        (None, PTX_INPUT, INVALID_VALUE, b""),
    ],
)
def test_inputs_that_are_refused(
    current: EmulatedDriver, data: bytes | None, kind: int, status: int, log: bytes
) -> None:
    link = Link(current)
    assert link.add(data, kind) == status
    assert log in link.error.value
    assert link.complete()[0] == INVALID_VALUE  # nothing was added
    link.destroy()


@pytest.mark.parametrize(
    ("modules", "log"),
    [
        ([CALLER], b"base"),
        ([CALLER, CALLER, CALLEE], b"Duplicate definition"),
        ([CALLER, b".extern .global .u32 more"], b""),
    ],
)
def test_modules_that_do_not_fit(current: EmulatedDriver, modules: list[bytes], log: bytes) -> None:
    link = Link(current)
    for module in modules:
        assert link.add(HEAD + module) == 0
    assert link.complete() == (INVALID_PTX, b"")
    assert log in link.error.value
    assert link.error.value
    assert link.values[3] == len(link.error.value) + 1
    link.destroy()


def test_texts_without_a_header(current: EmulatedDriver) -> None:
    link = Link(current)
    assert link.add(HEAD + ALONE) == 0
    assert link.add(b".extern .func f();") == 0
    assert link.complete()[0] == INVALID_PTX
    link.destroy()


def test_sizes_are_believed(current: EmulatedDriver) -> None:
    link = Link(current)
    text = HEAD + ALONE
    assert link.add(text + b"junk", size=len(text)) == 0
    assert link.complete()[1] == text + b"\0"
    link.destroy()


def test_handles_and_contexts(current: EmulatedDriver) -> None:
    link = Link(current)
    assert link.add(HEAD + ALONE) == 0
    assert link.complete()[0] == 0
    assert link.add(HEAD + ALONE) == INVALID_VALUE
    assert link.destroy() == 0
    assert link.destroy() == INVALID_HANDLE
    assert link.add(HEAD + ALONE) == INVALID_HANDLE
    assert link.complete()[0] == INVALID_HANDLE
    state = Pointer()
    for arguments in ((1, None, None, ctypes.byref(state)), (0, None, None, None)):
        assert current.status("cuLinkCreate_v2", *arguments) == INVALID_VALUE
    current.call("cuCtxSetCurrent", None)
    assert current.status("cuLinkCreate_v2", 0, None, None, ctypes.byref(state)) == NO_CONTEXT
