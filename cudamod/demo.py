"""``cudamod demo``: one kernel from its PTX to a checked result."""

from __future__ import annotations

import sys
import time
from array import array
from pathlib import Path

from cudamod import _core, driver
from cudamod._core import Device, Kernel, LaunchConfig, launch
from cudamod.errors import CUDAError, DriverNotFoundError
from cudamod.object_code import ObjectCode
from cudamod.stream import Stream

__all__ = ["run"]

_SAXPY = Path(__file__).with_name("kernels") / "saxpy.ptx"
_SCALE = 2.0


def run(*, driver_choice: str | None = None, elements: int = 1_000_000) -> int:
    """Run the demonstration and print what it does; answer the exit status.

    With the choice ``auto``, which is the default, it uses the installed driver, or else the
    emulated one, and says why on its first line.
    """
    if elements < 1:
        print(f"cudamod demo: --elements must be at least 1, not {elements}", file=sys.stderr)
        return 2
    try:
        _choose_driver(driver_choice)
        return _run(elements)
    except (CUDAError, DriverNotFoundError) as error:
        print(f"cudamod demo: {error}", file=sys.stderr)
        return 1


def _choose_driver(choice: str | None) -> None:
    if choice is not None:
        driver.use(choice)
    if _core.driver_selection() == "auto":
        try:
            driver.version()
        except DriverNotFoundError as error:
            reasons = "; ".join(f"{where}: {reason}" for where, reason in error.searched)
            print(f"no CUDA driver here ({reasons}): using the emulated driver")
            driver.use("emulated")


def _run(elements: int) -> int:
    device = Device()
    print(f"driver   {driver.describe()}")
    major, minor = device.compute_capability
    print(f"device   {device.device_id}: {device.name}, compute capability {major}.{minor}")
    device.set_current()
    stream = device.create_stream()

    kernel = ObjectCode.from_ptx(_SAXPY, name="saxpy").get_kernel("saxpy")
    attributes = kernel.attributes
    print(f"kernel   {kernel.name}({kernel.signature}), {kernel.num_arguments} parameters")
    print(
        f"         {attributes.num_regs} registers, {attributes.shared_size_bytes} bytes of shared "
        f"memory, up to {attributes.max_threads_per_block} threads per block"
    )
    grid_for_device, block = kernel.occupancy.max_potential_block_size(0, 0)
    print(
        f"block    {block} threads for the best occupancy; {grid_for_device} blocks fill the device"
    )

    wrong, seconds = _saxpy(kernel, stream, elements, block)
    print(f"launch   {elements:,} elements in {seconds * 1e3:.1f} ms, copies included")
    if wrong:
        index, got, wanted = wrong
        print(f"check    WRONG: element {index} is {got}, not {wanted}")
        return 1
    print(f"check    all {elements:,} elements are right")
    _print_cost(kernel, stream)
    return 0


def _saxpy(
    kernel: Kernel, stream: Stream, elements: int, block: int
) -> tuple[tuple[int, float, float] | None, float]:
    """``y = a x + y`` once: the first wrong element, if any, and the seconds it took."""
    # Small whole numbers: single precision holds every result exactly.
    x = array("f", (float(i % 4096) for i in range(elements)))
    y = array("f", (float(i % 1024) for i in range(elements)))
    result = array("f", bytes(4 * elements))
    begin = time.perf_counter()
    device = stream.device
    x_buffer = device.allocate(4 * elements, stream=stream)
    y_buffer = device.allocate(4 * elements, stream=stream)
    x_buffer.copy_from(x, stream=stream)
    y_buffer.copy_from(y, stream=stream)
    config = LaunchConfig(grid=(elements + block - 1) // block, block=block)
    launch(stream, config, kernel, elements, _SCALE, x_buffer, y_buffer)
    y_buffer.copy_to(result, stream=stream)
    stream.sync()
    seconds = time.perf_counter() - begin
    if result == (wanted := array("f", (_SCALE * a + b for a, b in zip(x, y, strict=True)))):
        return None, seconds
    index = next(i for i in range(elements) if result[i] != wanted[i])
    return (index, result[index], wanted[index]), seconds


def _print_cost(kernel: Kernel, stream: Stream, batches: int = 40, launches: int = 100) -> None:
    """What one launch of an empty grid costs the CPU, in interleaved batches."""
    config = LaunchConfig(grid=1, block=1)
    buffer = stream.device.allocate(4, stream=stream)
    arguments = (0, _SCALE, buffer, buffer)
    bound = kernel.bind(config, stream)
    times: dict[str, list[float]] = {"driver call": [], "bound launcher": [], "launch()": []}
    for _ in range(batches):
        times["driver call"].append(_core.time_driver_call(bound, launches, *arguments))
        stream.sync()
        begin = time.perf_counter_ns()
        for _ in range(launches):
            bound(*arguments)
        times["bound launcher"].append((time.perf_counter_ns() - begin) / launches)
        stream.sync()
        begin = time.perf_counter_ns()
        for _ in range(launches):
            launch(stream, config, kernel, *arguments)
        times["launch()"].append((time.perf_counter_ns() - begin) / launches)
        stream.sync()
    median = {name: sorted(values)[batches // 2] for name, values in times.items()}
    floor = median.pop("driver call")
    print(f"cost     the driver call alone {floor:,.0f} ns (from C, 4 arguments)")
    for name, value in median.items():
        print(f"         {name} {value:,.0f} ns: {value - floor:+,.0f} ns")
