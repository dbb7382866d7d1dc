"""Runs the kernels of ``data/ptx``; numbers of bfloat16 and fp8 for comparing with NumPy.

The PTX lies beside the scripts and sources that it was made from.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudamod import Buffer, Kernel, LaunchConfig, ObjectCode, Stream, launch

DATA = Path(__file__).parent / "data" / "ptx"
Array = NDArray[Any]


class Bench:
    """Runs kernels of ``data/ptx`` on a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.random = np.random.default_rng(5)

    def kernel(self, file: str, name: str | None = None) -> Kernel:
        text = (DATA / f"{file}.ptx").read_bytes()
        target = re.search(rb"\.target sm_(\d+)", text)
        assert target
        major, minor = self.stream.device.compute_capability
        if int(target[1]) > 10 * major + minor:
            pytest.skip(f"needs sm_{target[1].decode()}")
        return ObjectCode.from_ptx(text).get_kernel(name or file)

    def upload(self, array: Array) -> Buffer:
        buffer = self.stream.device.allocate(array.nbytes, stream=self.stream)
        buffer.copy_from(np.ascontiguousarray(array).tobytes(), stream=self.stream)
        return buffer

    def zeros(self, count: int, dtype: Any = np.float32) -> Buffer:
        return self.upload(np.zeros(count, dtype))

    def download(self, buffer: Buffer, dtype: Any = np.float32) -> Array:
        data = bytearray(buffer.size)
        buffer.copy_to(data, stream=self.stream)
        self.stream.sync()
        return np.frombuffer(bytes(data), dtype)

    def run(
        self,
        kernel: Kernel,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        cluster: int | None = None,
        cooperative: bool = False,
    ) -> None:
        config = LaunchConfig(
            grid=grid,
            block=block,
            shmem_size=shared,
            cluster=cluster,
            is_cooperative=cooperative,
        )
        launch(self.stream, config, kernel, *arguments)
        self.stream.sync()

    def triton(
        self,
        file: str,
        programs: int | tuple[int, ...],
        *arguments: Any,
        shared: int = 0,
        name: str | None = None,
    ) -> None:
        """Four warps; two scratch pointers that only profiling uses come last."""
        kernel = self.kernel(file, name)
        self.run(kernel, programs, 128, *arguments, None, None, shared=shared)

    def floats(self, *shape: int) -> Array:
        return self.random.standard_normal(shape).astype(np.float32)

    def integers(self, low: int, high: int, count: int, dtype: Any = np.int32) -> Array:
        return self.random.integers(low, high, count).astype(dtype)


def bfloat(values: Array) -> Array:
    """Round to nearest even; the upper halves of float32."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded: Array = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def from_bfloat(values: Array) -> Array:
    widened: Array = (values.astype(np.uint32) << 16).view(np.float32)
    return widened


def fp8_values(exponent_bits: int, finite_only: bool) -> Array:
    """What the 128 codes without a sign stand for; NaN and infinity are infinite."""
    mantissa_bits = 7 - exponent_bits
    bias = 2 ** (exponent_bits - 1) - 1
    codes = np.arange(128)
    exponents, mantissas = codes >> mantissa_bits, codes & (2**mantissa_bits - 1)
    values: Array = np.where(
        exponents == 0,
        mantissas * 2.0 ** (1 - bias - mantissa_bits),
        (1 + mantissas / 2**mantissa_bits) * 2.0 ** (exponents - float(bias)),
    )
    values[127 if finite_only else 124 :] = np.inf
    return values


def to_fp8(values: Array, exponent_bits: int, finite_only: bool) -> Array:
    """Codes, rounded to the nearest even one and saturated."""
    table = fp8_values(exponent_bits, finite_only)
    table = table[np.isfinite(table)]
    magnitude = np.minimum(np.abs(values.astype(np.float64)), table[-1])
    above = np.searchsorted(table, magnitude)
    above = np.clip(above, 1, len(table) - 1)
    low, high = table[above - 1], table[above]
    middle = (low + high) / 2
    up = (magnitude > middle) | ((magnitude == middle) & (above % 2 == 0))
    code = np.where(up, above, above - 1)
    signed: Array = (code | (np.signbit(values).astype(np.int64) << 7)).astype(np.uint8)
    return signed


def from_fp8(codes: Array, exponent_bits: int, finite_only: bool) -> Array:
    values = fp8_values(exponent_bits, finite_only)[codes & 127]
    signed: Array = np.where(codes & 128, -values, values)
    return signed
