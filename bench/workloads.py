"""What is measured, written once: each workload is one loop over one call, its arguments in locals.

The kernel does nothing, so that what is timed is the path to it. Own Buffers, Python ints and
floats are what our own users pass; the NumPy scalars are what cuda.core's must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import exchange

import cudamod
from cudamod import _core, driver, launch_hooks

_TYPES = ("u64", "u64", "u32", "f32")

Loop = Callable[[int], object]
"""Makes that many calls."""

ARGUMENT_COUNTS = (0, 4, 8, 16)

GIL_MANNERS = ("release", "hold", "auto")


def empty_kernel(count: int, types: Sequence[str] = _TYPES) -> bytes:
    """PTX of the kernel ``empty``, which takes ``count`` parameters (types in turn) and returns."""
    parameters = ", ".join(f".param .{types[i % len(types)]} p{i}" for i in range(count))
    text = (
        ".version 7.0\n.target sm_52\n.address_size 64\n"
        f".visible .entry empty({parameters})\n{{\n    ret;\n}}\n"
    )
    return text.encode()


def loop_over(
    call: object, *arguments: object, how: str = "call", after: str = "", stream: object = None
) -> Loop:
    """A function that calls ``call(*arguments)`` so often, with everything in locals.

    ``how`` is what is called instead, ``after`` what follows the arguments; both may name
    ``{stream}``.
    """
    names = ", ".join(f"a{i}" for i in range(len(arguments)))
    scope: dict[str, Any] = {}
    exec(
        f"def make(call, stream, {names}):\n"
        "    def loop(times):\n"
        "        for _ in range(times):\n"
        f"            {how}({names}{after})\n".format(stream="stream")
        + "    return loop\n",
        scope,
    )
    made: Loop = scope["make"](call, stream, *arguments)
    return made


class Bench:
    """A device, a stream and the things that are launched on it."""

    def __init__(self) -> None:
        self.device = cudamod.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        # Of another owner, as a framework's are.
        raw = int(driver.ffi.cast("uintptr_t", driver.cuStreamCreate(1)))
        self.other_stream = cudamod.Stream.from_handle(raw)
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
        """Every workload by its name."""
        for count in ARGUMENT_COUNTS:
            for gil in GIL_MANNERS:
                launcher = self.kernels[count].bind(self.config, self.stream, gil=gil)
                yield f"launcher, {count} args, {gil}", loop_over(launcher, *self.arguments(count))
        four = self.kernels[4]
        for gil in ("release", "hold"):
            prepared = four.bind(self.config, self.stream, gil=gil).prepare(*self.arguments(4))
            yield f"prepared, 4 args, {gil}", loop_over(prepared)
        plain = (self.stream, self.config, four, *self.arguments(4))
        yield "launch(), 4 args", loop_over(cudamod.launch, *plain)
        numpy = self.numpy_arguments(4)
        launcher = four.bind(self.config, self.stream)
        yield "launcher, 4 args, NumPy scalars", loop_over(launcher, *numpy)
        yield (
            "launch(), 4 args, NumPy scalars",
            loop_over(cudamod.launch, self.stream, self.config, four, *numpy),
        )
        yield (
            "kernel[grid, block, stream], 4 args",
            loop_over(four, *self.arguments(4), how="call[2, 64, {stream}]", stream=self.stream),
        )
        plain_arguments = self.arguments(4)
        launcher = four.bind(self.config, self.stream)
        yield "launcher, 4 args, grid=", loop_over(launcher, *plain_arguments, after=", grid=7")
        yield (
            "launcher, 4 args, stream=",
            loop_over(launcher, *plain_arguments, after=", stream={stream}", stream=self.stream),
        )
        yield "launcher, 4 args, watched by a hook", _watched(loop_over(launcher, *plain_arguments))
        yield from self.tensor_loops(four)
        yield "LaunchConfig(grid, block, shmem_size)", _configure
        yield "get_kernel again", loop_over(self.codes[4].get_kernel, "empty")
        yield "attributes.num_regs again", _read_registers(four)
        active = four.occupancy.max_active_blocks_per_multiprocessor
        yield "occupancy, active blocks", loop_over(active, 256, 0)

    def tensor_loops(self, four: cudamod.Kernel) -> Iterator[tuple[str, Loop]]:
        """Two tensors of another framework, an int, a float; nothing without a C compiler."""
        other = self.other_stream
        tensor = exchange.tensor(self.buffer.handle, other.handle)
        if tensor is None:
            return
        arguments = (tensor, tensor, 100, 1.5)
        launcher = four.bind(self.config, self.stream)
        yield "launcher, 4 args of which 2 are tensors", loop_over(launcher, *arguments)
        launcher = four.bind(self.config, cudamod.CURRENT)
        yield "launcher on CURRENT, 4 args of which 2 are tensors", loop_over(launcher, *arguments)
        yield (
            "kernel[grid, block], CURRENT, 4 args of which 2 are tensors",
            loop_over(four, *arguments, how="call[2, 64]"),
        )

    def torch_loop(self) -> Iterator[tuple[str, Loop]]:
        """The same with torch's tensors: its stand-in, so only where torch itself never comes."""
        tensor = exchange.torch_tensor(self.buffer.handle, self.other_stream.handle)
        if tensor is None:
            return
        launcher = self.kernels[4].bind(self.config, self.stream)
        arguments = (tensor, tensor, 100, 1.5)
        yield "launcher, 4 args of which 2 are torch's tensors", loop_over(launcher, *arguments)
        launcher = self.kernels[4].bind(self.config, cudamod.CURRENT)
        yield (
            "launcher on CURRENT, 4 args of which 2 are torch's tensors",
            loop_over(launcher, *arguments),
        )


def _watched(loop: Loop) -> Loop:
    """The loop under a hook that does nothing."""

    def watched(times: int) -> None:
        with launch_hooks.add(lambda info: None, lambda info: None):
            loop(times)

    return watched


def _configure(times: int) -> None:
    for _ in range(times):
        cudamod.LaunchConfig(grid=(64, 1, 1), block=(256, 1, 1), shmem_size=1024)


def _read_registers(kernel: cudamod.Kernel) -> Loop:
    def loop(times: int) -> None:
        for _ in range(times):
            kernel.attributes.num_regs  # noqa: B018  # the read is what is measured

    return loop
