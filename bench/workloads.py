"""What is measured, written once: each workload is one loop over one call, its arguments in locals.

The kernel does nothing, so that what is timed is the path to it. Own Buffers, Python ints and
floats are what our own users pass; the NumPy scalars are what cuda.core's must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cudamod
from cudamod import _core

_TYPES = ("u64", "u64", "u32", "f32")

Loop = Callable[[int], object]
"""Makes that many calls."""

ARGUMENT_COUNTS = (0, 4, 8, 16)

NAMES = (
    *(f"launcher, {n} args, {gil}" for n in ARGUMENT_COUNTS for gil in ("release", "hold")),
    "launch(), 4 args",
    "launcher, 4 args, NumPy scalars",
    "launch(), 4 args, NumPy scalars",
    "get_kernel again",
    "attributes.num_regs again",
    "occupancy, active blocks",
)


def empty_kernel(count: int, types: Sequence[str] = _TYPES) -> bytes:
    """PTX of the kernel ``empty``, which takes ``count`` parameters (types in turn) and returns."""
    parameters = ", ".join(f".param .{types[i % len(types)]} p{i}" for i in range(count))
    text = (
        ".version 7.0\n.target sm_52\n.address_size 64\n"
        f".visible .entry empty({parameters})\n{{\n    ret;\n}}\n"
    )
    return text.encode()


def loop_over(call: Callable[..., object], *arguments: object) -> Loop:
    """A function that calls ``call(*arguments)`` so often, with everything in locals."""
    names = ", ".join(f"a{i}" for i in range(len(arguments)))
    scope: dict[str, Any] = {}
    exec(
        f"def make(call, {names}):\n"
        "    def loop(times):\n"
        "        for _ in range(times):\n"
        f"            call({names})\n"
        "    return loop\n",
        scope,
    )
    made: Loop = scope["make"](call, *arguments)
    return made


class Bench:
    """A device, a stream and the things that are launched on it."""

    def __init__(self) -> None:
        self.device = cudamod.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.buffer = self.device.allocate(64, stream=self.stream)
        self.config = cudamod.LaunchConfig(grid=1, block=1)
        self.codes = {n: cudamod.ObjectCode.from_ptx(empty_kernel(n)) for n in ARGUMENT_COUNTS}
        self.kernels = {n: code.get_kernel("empty") for n, code in self.codes.items()}

    def kernel(self, count: int) -> cudamod.Kernel:
        """The empty kernel of so many parameters."""
        if count not in self.kernels:
            self.codes[count] = cudamod.ObjectCode.from_ptx(empty_kernel(count))
            self.kernels[count] = self.codes[count].get_kernel("empty")
        return self.kernels[count]

    def arguments(self, count: int) -> tuple[object, ...]:
        """Our own kinds: Buffers, an int, a float."""
        return tuple((self.buffer, self.buffer, 100, 1.5)[i % 4] for i in range(count))

    def numpy_arguments(self, count: int) -> tuple[object, ...]:
        """The same with NumPy scalars."""
        import numpy as np

        kinds = (self.buffer, self.buffer, np.int32(100), np.float32(1.5))
        return tuple(kinds[i % 4] for i in range(count))

    def floor(self, count: int) -> Callable[[int], float]:
        """The driver call alone from C: answers nanoseconds per call."""
        launcher = self.kernels[count].bind(self.config, self.stream)
        arguments = self.arguments(count)
        return lambda times: _core.time_driver_call(launcher, times, *arguments)

    def loops(self) -> Iterator[tuple[str, Loop]]:
        """Every workload by its name, in the order of ``NAMES``."""
        for count in ARGUMENT_COUNTS:
            for gil in ("release", "hold"):
                launcher = self.kernels[count].bind(self.config, self.stream, gil=gil)
                yield f"launcher, {count} args, {gil}", loop_over(launcher, *self.arguments(count))
        four = self.kernels[4]
        plain = (self.stream, self.config, four, *self.arguments(4))
        yield "launch(), 4 args", loop_over(cudamod.launch, *plain)
        numpy = self.numpy_arguments(4)
        launcher = four.bind(self.config, self.stream)
        yield "launcher, 4 args, NumPy scalars", loop_over(launcher, *numpy)
        yield (
            "launch(), 4 args, NumPy scalars",
            loop_over(cudamod.launch, self.stream, self.config, four, *numpy),
        )
        yield "get_kernel again", loop_over(self.codes[4].get_kernel, "empty")
        yield "attributes.num_regs again", _read_registers(four)
        active = four.occupancy.max_active_blocks_per_multiprocessor
        yield "occupancy, active blocks", loop_over(active, 256, 0)


def _read_registers(kernel: cudamod.Kernel) -> Loop:
    def loop(times: int) -> None:
        for _ in range(times):
            kernel.attributes.num_regs  # noqa: B018  # the read is what is measured

    return loop
