"""launch(): its arguments, the limits of a launch, and what is handed to the driver."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ptx import HEADER, ONE, Stored, empty, read

from cudamod import (
    CUDAError,
    Device,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Stream,
    driver,
    emulator,
    launch,
)


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


def test_it_runs(stream: Stream, stored: Stored) -> None:
    out = stream.device.allocate(4, stream=stream)
    assert launch(stream, ONE, stored.kernel("u32"), out, 0x01020304) is None
    assert read(out, stream) == b"\x04\x03\x02\x01"


def test_grid_and_block_arrive(stream: Stream) -> None:
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out) {
.reg .b64 %out; .reg .b32 %v;
ld.param.u64 %out, [out];
"""
        + "".join(
            f"mov.u32 %v, %{name}.{axis};\nst.global.u32 [%out+{4 * i}], %v;\n"
            for i, (name, axis) in enumerate((n, a) for n in ("nctaid", "ntid") for a in "xyz")
        )
        + "ret;\n}"
    )
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    out = stream.device.allocate(24, stream=stream)
    launch(stream, LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7)), kernel, out)
    data = read(out, stream)
    assert [int.from_bytes(data[i : i + 4], "little") for i in range(0, 24, 4)] == [
        2,
        3,
        4,
        5,
        6,
        7,
    ]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_arguments_of_its_own(stream: Stream, count: int) -> None:
    with pytest.raises(
        TypeError,
        match=f"launch.. takes a stream, a config, a kernel and its arguments, got {count}",
    ):
        launch(*[stream, ONE][:count])


def test_wrong_kinds(stream: Stream, kernel: Kernel) -> None:
    for config in (None, {"grid": 1, "block": 1}, (1, 1), 1, kernel):
        with pytest.raises(
            TypeError, match=f"config must be a LaunchConfig, not .*{type(config).__name__}"
        ):
            launch(stream, config, kernel)
    for wrong in (None, "k", 7, kernel.handle, stream):
        with pytest.raises(
            TypeError, match=f"kernel must be a Kernel, not .*{type(wrong).__name__}"
        ):
            launch(stream, ONE, wrong)
    with pytest.raises(TypeError):
        launch(stream=stream, config=ONE, kernel=kernel)  # type: ignore[call-arg]


@pytest.mark.parametrize("what", [None, 0, 1, "x", 1.5, object(), ONE], ids=repr)
def test_what_is_no_stream(kernel: Kernel, what: Any) -> None:
    with pytest.raises(TypeError, match=r"[sS]tream"):
        launch(what, ONE, kernel)
    with pytest.raises(TypeError, match=r"[sS]tream"):
        kernel.bind(ONE, what)


class Foreign:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


def test_streams_of_others(stream: Stream, stored: Stored) -> None:
    out = stream.device.allocate(4, stream=stream)
    launch(Foreign((0, stream.handle)), ONE, stored.kernel("u32"), out, 7)
    assert read(out, stream)[0] == 7
    for answer in (None, 3, (), (0,), (0, "x"), (0, None), (1, stream.handle), (0, -1)):
        with pytest.raises((TypeError, ValueError, OverflowError, RuntimeError)):
            launch(Foreign(answer), ONE, stored.kernel("u32"), out, 8)


def test_a_closed_stream(stream: Stream, kernel: Kernel) -> None:
    stream.close()
    for call in (lambda: launch(stream, ONE, kernel), lambda: kernel.bind(ONE, stream)):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            call()


def test_a_wrong_number_of_arguments(stream: Stream, kernel: Kernel, stored: Stored) -> None:
    with pytest.raises(TypeError, match="kernel 'k' takes 0 arguments, got 2"):
        launch(stream, ONE, kernel, 1, 2)
    with pytest.raises(TypeError, match="kernel 'store' takes 2 arguments, got 1"):
        launch(stream, ONE, stored.kernel("u32"), 1)


LIMITS = [
    ({"grid": (1, 65536, 1)}, "grid y = 65536 exceeds the device's limit of 65535"),
    ({"grid": (1, 1, 65536)}, "grid z = 65536 exceeds the device's limit of 65535"),
    ({"grid": 2**31}, "grid x = 2147483648 exceeds the device's limit of 2147483647"),
    ({"block": 1025}, "block x = 1025 exceeds the device's limit of 1024"),
    ({"block": (1, 1025, 1)}, "block y = 1025 exceeds the device's limit of 1024"),
    ({"block": (1, 1, 65)}, "block z = 65 exceeds the device's limit of 64"),
    (
        {"block": (32, 32, 2)},
        r"block \(32, 32, 2\) = 2048 threads exceeds the kernel's limit of 1024",
    ),
    ({"block": (1024, 1024, 64)}, "67108864 threads exceeds the kernel's limit of 1024"),
]


@pytest.mark.parametrize(("shape", "said"), LIMITS, ids=lambda v: str(v)[:24])
@pytest.mark.parametrize("shmem_size", [0, 100 << 10])
def test_the_error_names_the_limit(
    stream: Stream, kernel: Kernel, shape: dict[str, Any], said: str, shmem_size: int
) -> None:
    if stream.device.properties.max_shared_memory_per_block_optin < shmem_size:
        pytest.skip("less shared memory")
    config = LaunchConfig(**{"grid": 1, "block": 1, "shmem_size": shmem_size, **shape})
    for call in (lambda: launch(stream, config, kernel), kernel.bind(config, stream)):
        with pytest.raises(CUDAError, match=said) as caught:
            call()
        assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
        assert "kernel 'k', grid (" in str(caught.value)
        assert "shared" not in str(caught.value).split(": ")[-1]
    launch(stream, ONE, kernel)
    stream.sync()


@pytest.mark.emulated  # so many blocks take a while on a card
def test_the_limits_themselves_pass(stream: Stream, kernel: Kernel) -> None:
    emulator.null_launch(True)
    try:
        for shape in (
            {"grid": (1, 65535, 65535)},
            {"grid": 2**31 - 1},
            {"block": (16, 1, 64)},
            {"block": 1024},
        ):
            launch(stream, LaunchConfig(**{"grid": 1, "block": 1, **shape}), kernel)
    finally:
        emulator.null_launch(False)


# The current context.


def test_the_callers_context_stays(device: Device, stream: Stream, kernel: Kernel) -> None:
    before = driver.cuCtxGetCurrent()
    launch(stream, ONE, kernel)
    launch(device.default_stream, ONE, kernel)
    assert driver.cuCtxGetCurrent() == before
    device.sync()


def test_a_thread_without_a_context(device: Device, stream: Stream, stored: Stored) -> None:
    out = device.allocate(4, stream=stream)
    stream.sync()
    failed: list[BaseException] = []

    def use() -> None:
        try:
            launch(stream, ONE, stored.kernel("u32"), out, 5)
            stored.kernel("u32").bind(ONE, stream)(out, 6)
            stream.sync()  # the default stream does not wait for it
            launch(device.default_stream, ONE, stored.kernel("u32"), out, 6)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert failed == []
    device.sync()
    assert read(out, stream) == b"\6\0\0\0"


def test_a_subclass_of_a_configuration(stream: Stream, stored: Stored) -> None:
    class Mine(LaunchConfig):
        pass

    out = stream.device.allocate(4, stream=stream)
    launch(stream, Mine(grid=1, block=1), stored.kernel("u32"), out, 7)
    stored.kernel("u32").bind(Mine(grid=1, block=1), stream)(out, 8)
    assert read(out, stream) == b"\x08\0\0\0"


def test_a_default_stream_belongs_to_its_device(run_python: Any) -> None:
    code = f"""
from cudamod import Device, LaunchConfig, ObjectCode, driver, launch
from cudamod import emulator
if Device.count() < 2:
    raise SystemExit
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
first, second = Device(0), Device(1)
second.set_current()
there = second.default_stream
first.set_current()
here = driver.cuCtxGetCurrent()
with emulator.recording():
    launch(there, LaunchConfig(grid=1, block=1), kernel)
    launch(first.default_stream, LaunchConfig(grid=1, block=1), kernel)
    kernel.bind(LaunchConfig(grid=1, block=1), there)()
    launch(second.create_stream(), LaunchConfig(grid=1, block=1), kernel)
assert [s.device for s in emulator.launches()] == [1, 0, 1, 1], emulator.launches()
assert driver.cuCtxGetCurrent() == here
print("ok")
"""
    if "emulated" in driver.describe():
        assert run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80").strip() == "ok"
