"""PTX that is newer than the driver becomes a cubin, or the error says how."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from compiling import PTX, needs_nvjitlink

from cudamod import CUDAError, ObjectCode, driver
from cudamod.newer_ptx import assemble_newer


def refusal() -> CUDAError:
    return CUDAError("refused", 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "call", "image", "log")


@needs_nvjitlink
@pytest.mark.usefixtures("device")
def test_it_becomes_a_cubin_for_the_current_device() -> None:
    kernel = ObjectCode.from_cubin(assemble_newer(PTX.encode(), "mine", refusal())).get_kernel(
        "nothing"
    )
    assert kernel.num_arguments == 1 or driver.version() < 12040


@needs_nvjitlink
def test_or_for_the_architecture_that_it_insists_on() -> None:
    code = assemble_newer(
        PTX.replace("8.0\n.target sm_90", "8.7\n.target sm_100a").encode(), "", refusal()
    )
    assert code.startswith(b"\x7fELF")


@needs_nvjitlink
def test_ptx_that_nvjitlink_does_not_know_either() -> None:
    with pytest.raises(
        CUDAError, match=r"(?s)refused\. nvJitLink.*Unsupported .version 99\.9"
    ) as caught:
        assemble_newer(PTX.replace("8.0", "99.9").encode(), "", refusal())
    error = caught.value
    assert (error.status, error.subject, error.log) == (222, "image", "log")


def test_without_nvjitlink_the_error_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvjitlink", None)
    with pytest.raises(CUDAError, match=r"refused\. nvJitLink.*pip install cudamod\[compile\]"):
        assemble_newer(PTX.encode(), "", refusal())


@pytest.mark.emulated
@needs_nvjitlink
def test_a_driver_that_is_older_than_the_ptx(run_python: Callable[..., str]) -> None:
    code = f"""
from cudamod import ObjectCode
print(ObjectCode.from_ptx({PTX.replace("8.0", "8.7").encode()!r}).get_kernel("nothing").name)
"""
    assert run_python(code, CUDAMOD_EMULATOR_DRIVER_VERSION="12040") == "nothing\n"
