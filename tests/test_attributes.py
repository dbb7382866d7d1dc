"""KernelAttributes: the driver's figures, per device; what may change is read anew."""

from __future__ import annotations

import gc
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from ptx import empty

from cudamod import (
    Device,
    Kernel,
    KernelAttributes,
    LaunchConfig,
    ObjectCode,
    Stream,
    driver,
    emulator,
    launch,
)

DATA = Path(__file__).parent / "data" / "h200"
#: Names in the order of CUfunction_attribute, and those that are truth values.
NAMES = [
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
    "cluster_size_must_be_set",
    "required_cluster_width",
    "required_cluster_height",
    "required_cluster_depth",
    "non_portable_cluster_size_allowed",
    "cluster_scheduling_policy_preference",
]
BOOLS = {"cache_mode_ca", "cluster_size_must_be_set", "non_portable_cluster_size_allowed"}
FACTS: dict[str, Any] = json.loads((DATA / "driver.json").read_text())["images"]
CUBINS = sorted(name for name in FACTS if name.endswith(".sm90.cubin"))


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


@pytest.mark.parametrize("image", CUBINS)
def test_they_are_those_of_the_card(device: Device, image: str) -> None:
    if device.arch != "90":
        pytest.skip("images for sm_90")
    code = ObjectCode.from_cubin(DATA / image)
    assert sorted(code.kernels()) == sorted(FACTS[image]["kernels"])
    for name, facts in FACTS[image]["kernels"].items():
        kernel = code.get_kernel(name)
        for view in (kernel.attributes, kernel.attributes[0], kernel.attributes[device]):
            for number, attribute in enumerate(NAMES):
                value = getattr(view, attribute)
                assert value == facts[f"attr{number}"], (name, attribute)
                assert type(value) is (bool if attribute in BOOLS else int)
        assert [list(info) for info in kernel.arguments_info] == facts["params"]


#: What the driver lets be set, with values to set.
SETTABLE: dict[str, list[Any]] = {
    "max_dynamic_shared_size_bytes": [60_000, 1000, 0],
    "preferred_shared_memory_carveout": [50, 100, 0, -1],
    "required_cluster_width": [2, 0],
    "required_cluster_height": [1, 0],
    "required_cluster_depth": [1, 0],
    "non_portable_cluster_size_allowed": [True, False],
    "cluster_scheduling_policy_preference": [1, 2, 0],
}
CLUSTERS = [name for name in SETTABLE if "cluster" in name]


def test_there_are_sixteen_and_most_can_not_be_set(kernel: Kernel) -> None:
    attributes = kernel.attributes
    assert sorted(NAMES) == sorted(n for n in dir(attributes) if not n.startswith("_"))
    for name in NAMES:
        if name not in SETTABLE:
            with pytest.raises(AttributeError):
                setattr(attributes, name, 1)


@pytest.mark.parametrize("name", SETTABLE)
def test_setting(kernel: Kernel, device: Device, name: str) -> None:
    if name in CLUSTERS and device.compute_capability < (9, 0):
        pytest.skip("the device has no clusters")
    for view in (kernel.attributes, kernel.attributes[0], kernel.attributes[device]):
        for value in SETTABLE[name]:
            setattr(view, name, value)
            raw = driver.ffi.cast("CUkernel", kernel.handle)
            assert driver.cuKernelGetAttribute(NAMES.index(name), raw, 0) == value
            for other in (kernel.attributes, kernel.attributes[0]):
                assert getattr(other, name) == value
                assert type(getattr(other, name)) is type(value)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_dynamic_shared_size_bytes", 1 << 30, ValueError),
        ("max_dynamic_shared_size_bytes", -1, RuntimeError),
        ("max_dynamic_shared_size_bytes", 1 << 40, ValueError),
        ("max_dynamic_shared_size_bytes", -(1 << 70), ValueError),
        ("max_dynamic_shared_size_bytes", 1.0, TypeError),
        ("max_dynamic_shared_size_bytes", True, TypeError),
        ("max_dynamic_shared_size_bytes", None, TypeError),
        ("max_dynamic_shared_size_bytes", "1", TypeError),
        ("preferred_shared_memory_carveout", 101, RuntimeError),
        ("preferred_shared_memory_carveout", -2, RuntimeError),
        ("non_portable_cluster_size_allowed", 1, TypeError),
        ("non_portable_cluster_size_allowed", None, TypeError),
    ],
)
def test_what_can_not_be_set(kernel: Kernel, name: str, value: Any, error: type[Exception]) -> None:
    before = getattr(kernel.attributes, name)
    with pytest.raises(error) as caught:
        setattr(kernel.attributes, name, value)
    assert name in str(caught.value) or "dynamic shared memory" in str(caught.value)
    assert getattr(kernel.attributes, name) == before
    with pytest.raises(AttributeError):
        delattr(kernel.attributes, name)


def test_a_launch_raises_what_was_lowered(kernel: Kernel, stream: Stream) -> None:
    config = LaunchConfig(grid=1, block=1, shmem_size=50_000)
    launch(stream, config, kernel)
    assert kernel.attributes.max_dynamic_shared_size_bytes == 50_000
    kernel.attributes.max_dynamic_shared_size_bytes = 1000
    assert kernel.attributes.max_dynamic_shared_size_bytes == 1000
    launch(stream, config, kernel)
    stream.sync()
    assert kernel.attributes.max_dynamic_shared_size_bytes == 50_000


def test_the_view_is_made_once(kernel: Kernel) -> None:
    assert kernel.attributes is kernel.attributes
    assert isinstance(kernel.attributes[0], KernelAttributes)
    assert kernel.attributes[0].num_regs == kernel.attributes.num_regs
    assert "'k'" in repr(kernel.attributes)
    assert "current" in repr(kernel.attributes)
    assert "device=0" in repr(kernel.attributes[0])


def test_no_other_way_to_one(kernel: Kernel) -> None:
    for make in (KernelAttributes, lambda: KernelAttributes.__new__(KernelAttributes)):
        with pytest.raises(RuntimeError, match="cannot be instantiated directly"):
            make()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="KernelAttributes"):
            pickle.dumps(kernel.attributes, protocol)


@pytest.mark.parametrize("number", [-1, 64, 2**31, 2**40, 2**70])
def test_a_device_that_is_not_there(kernel: Kernel, number: int) -> None:
    with pytest.raises(ValueError):
        kernel.attributes[number]


@pytest.mark.parametrize("what", ["0", 1.0, None, (0,), b"0"], ids=repr)
def test_what_is_no_device(kernel: Kernel, what: Any) -> None:
    with pytest.raises(TypeError):
        kernel.attributes[what]


def test_without_a_current_context_it_is_device_0(kernel: Kernel) -> None:
    expected = [getattr(kernel.attributes, name) for name in NAMES]
    driver.cuCtxSetCurrent(None)
    assert [getattr(kernel.attributes, name) for name in NAMES] == expected
    assert driver.cuCtxGetCurrent() == driver.ffi.NULL


def test_settable_ones_are_read_anew(kernel: Kernel, device: Device) -> None:
    attributes = kernel.attributes
    raw = driver.ffi.cast("CUkernel", kernel.handle)
    for name, value in (
        ("max_dynamic_shared_size_bytes", 60_000),
        ("preferred_shared_memory_carveout", 50),
    ):
        before = getattr(attributes, name)
        assert before != value
        driver.cuKernelSetAttribute(NAMES.index(name), value, raw, device.device_id)
        assert getattr(attributes, name) == value
        assert getattr(attributes[0], name) == value


@pytest.mark.emulated
def test_the_others_are_asked_once(kernel: Kernel) -> None:
    other = [
        name
        for name in NAMES
        if name.startswith(
            ("max_threads", "shared", "const", "local", "num", "ptx", "binary", "cache")
        )
    ]
    for name in other:
        getattr(kernel.attributes, name)
    with emulator.recording():
        for name in other:
            getattr(kernel.attributes[0], name)
    assert "cuKernelGetAttribute" not in [call.name for call in emulator.journal()]


def test_the_view_outlives_kernel_and_code(device: Device) -> None:
    attributes = ObjectCode.from_ptx(empty("k")).get_kernel("k").attributes[0]
    gc.collect()
    assert attributes.max_threads_per_block == 1024
    assert attributes.max_dynamic_shared_size_bytes == 49152


@pytest.mark.emulated
def test_failures_name_the_kernel(kernel: Kernel) -> None:
    emulator.inject("cuKernelGetAttribute", status=719)
    with pytest.raises(RuntimeError, match="'k', attribute 4"):
        _ = kernel.attributes.num_regs
    assert kernel.attributes.num_regs > 0


def test_each_device_has_its_own(run_python: Any) -> None:
    code = f"""
import pytest
from cudamod import Device, ObjectCode, driver
if Device.count() < 2:
    print("one device"); raise SystemExit
kernel = ObjectCode.from_ptx({empty("k")!r}).get_kernel("k")
view = kernel.attributes
for device in Device.get_all_devices()[:2]:
    device.set_current()
    arch = int(device.arch)
    assert view.binary_version == kernel.attributes[device].binary_version == arch, arch
    assert kernel.attributes[device.device_id].binary_version == arch
assert view.binary_version == int(Device(1).arch)
assert kernel.attributes[0].binary_version == int(Device(0).arch)
raw = driver.ffi.cast("CUkernel", kernel.handle)
driver.cuKernelSetAttribute(8, 50000, raw, 1)
assert [view[i].max_dynamic_shared_size_bytes for i in (0, 1)] == [49152, 50000]
view[0].max_dynamic_shared_size_bytes = 60000
assert [view[i].max_dynamic_shared_size_bytes for i in (0, 1)] == [60000, 50000]
Device(1).set_current()
view.max_dynamic_shared_size_bytes = 0
assert [view[i].max_dynamic_shared_size_bytes for i in (0, 1)] == [60000, 0]
with pytest.raises(ValueError):
    view[Device.count()]
print("two devices")
"""
    assert run_python(code, CUDAMOD_EMULATOR_DEVICES="sm_90,sm_80").strip() in (
        "one device",
        "two devices",
    )
