"""Object code and kernels in other processes, and the examples that show it."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE, read, storing

from cudamod import Buffer, Device, Kernel, ObjectCode, Stream, launch

EXAMPLES = Path(__file__).parents[1] / "examples"


def stored(kernel: Kernel, number: int) -> int:
    """What the kernel stores of a number, on this process's device."""
    device = Device(0)
    stream = device.create_stream()
    out = device.allocate(4, stream=stream)
    launch(stream, ONE, kernel, out, number)
    return int.from_bytes(read(out, stream), "little")


def of_code(code: ObjectCode, number: int) -> int:
    return stored(code.get_kernel("f<int>"), number)


def of_both(both: tuple[ObjectCode, Kernel], number: int) -> tuple[int, bool, int]:
    code, kernel = both
    return stored(kernel, number), code.get_kernel("f<int>") == kernel, os.getpid()


@pytest.fixture(scope="module")
def pool() -> Any:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def code(device: Device) -> ObjectCode:
    return ObjectCode.from_ptx(storing(["u32"]), symbol_mapping={"f<int>": "store"}, verbose=True)


def test_code_travels(pool: Any, code: ObjectCode) -> None:
    assert list(pool.map(of_code, [code] * 4, range(4))) == [0, 1, 2, 3]
    assert of_code(code, 5) == 5


def test_loaded_code_and_its_kernels_travel(pool: Any, code: ObjectCode) -> None:
    kernel = code.load().get_kernel("f<int>")
    assert list(pool.map(stored, [kernel] * 4, range(4))) == [0, 1, 2, 3]
    for number, same, process in pool.map(of_both, [(code, kernel)] * 4, range(4)):
        assert same
        assert 0 <= number < 4
        assert process != os.getpid()


def test_files_travel_by_their_path(pool: Any, device: Device, tmp_path: Path) -> None:
    path = tmp_path / "store.ptx"
    path.write_bytes(storing(["u32"], "f"))
    code = ObjectCode.from_ptx(path, symbol_mapping={"f<int>": "f"})
    assert pool.submit(of_code, code, 7).result() == 7
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"store\.ptx"):
        pool.submit(of_code, code, 7).result()


def test_errors_travel_back(pool: Any) -> None:
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_IMAGE"):
        pool.submit(of_code, ObjectCode.from_ptx(b"bad"), 0).result()


def test_what_belongs_to_a_process_does_not_travel(
    pool: Any, device: Device, stream: Stream
) -> None:
    for thing in (stream, device.allocate(4, stream=stream), device.context):
        assert not isinstance(thing, Buffer) or thing.size == 4
        with pytest.raises(TypeError, match="cannot pickle"):
            pool.submit(repr, thing).result()


@pytest.mark.parametrize(
    ("name", "needs"), [("worker_processes", "cudamod"), ("dask_cluster", "distributed")]
)
def test_examples(name: str, needs: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "0 1 4 9 16 25 36 49"
