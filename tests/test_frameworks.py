"""Launches on CURRENT beside torch, CuPy and Numba themselves, where they are installed."""

from __future__ import annotations

from typing import Any

import pytest
from ptx import HEADER, ONE

from cudamod import CURRENT, Device, Kernel, ObjectCode

INCREMENT = HEADER + (
    ".visible .entry increment(.param .u64 p)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [p];\nld.global.u32 %v, [%a];\nadd.u32 %v, %v, 1;\n"
    "st.global.u32 [%a], %v;\nret;\n}\n"
)


@pytest.fixture
def increment(pytestconfig: pytest.Config, device: Device) -> Kernel:
    if pytestconfig.getoption("--driver") != "hardware":
        pytest.skip("frameworks need a card")
    return ObjectCode.from_ptx(INCREMENT.encode()).get_kernel("increment")


def test_torch_streams(increment: Kernel) -> None:
    torch: Any = pytest.importorskip("torch")
    tensor = torch.zeros(4, dtype=torch.int32, device="cuda")
    launcher = increment.bind(ONE, CURRENT)
    for stream in [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(3))]:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(10):
                tensor += 1
                launcher(tensor)
                increment[1, 1](torch.nn.Parameter(tensor, requires_grad=False))
        stream.synchronize()
    torch.cuda.synchronize()
    assert tensor.tolist() == [120, 40, 40, 40]


def test_a_torch_graph(increment: Kernel) -> None:
    torch: Any = pytest.importorskip("torch")
    tensor = torch.zeros(1, dtype=torch.int32, device="cuda")
    launcher = increment.bind(ONE, CURRENT, gil="auto")
    launcher(tensor)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            launcher(tensor)
            tensor *= 2
    torch.cuda.synchronize()
    assert tensor.item() == 1
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert tensor.item() == 3070  # (v + 1) * 2, ten times from 1


def test_cupy_streams(increment: Kernel) -> None:
    cupy: Any = pytest.importorskip("cupy")
    array = cupy.zeros(1, dtype=cupy.int32)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(10):
            array += 1
            increment[1, 1](array)
        stream.synchronize()
    increment[1, 1](array)
    assert array.get().tolist() == [21]


def test_numba_arrays(increment: Kernel) -> None:
    numba: Any = pytest.importorskip("numba.cuda")
    import numpy as np

    array = numba.to_device(np.zeros(1, np.int32))
    for _ in range(10):
        increment[1, 1](array)
    assert array.copy_to_host().tolist() == [10]
