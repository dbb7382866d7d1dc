"""Launch attributes of LaunchConfig: what it takes, and that the driver is given it."""

from __future__ import annotations

import copy
import itertools
import pickle
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ptx import CLUSTER_HEADER, HEADER, ONE, empty, read

import cudamod
from cudamod import (
    AccessPolicyWindow,
    CUDAError,
    Device,
    Kernel,
    LaunchConfig,
    ObjectCode,
    Stream,
    emulator,
    launch,
)

# Every attribute that is a plain value: what is given, what the property answers, the driver's
# number, and the beginning of its bytes.
PLAIN: list[tuple[str, Any, Any, int, bytes]] = [
    ("cluster_scheduling_policy_preference", "default", "default", 5, struct.pack("i", 0)),
    ("cluster_scheduling_policy_preference", "spread", "spread", 5, struct.pack("i", 1)),
    ("cluster_scheduling_policy_preference", 2, "load_balancing", 5, struct.pack("i", 2)),
    ("priority", 0, 0, 8, struct.pack("i", 0)),
    ("priority", -1, -1, 8, struct.pack("i", -1)),
    ("mem_sync_domain", "default", "default", 10, struct.pack("i", 0)),
    ("mem_sync_domain", "remote", "remote", 10, struct.pack("i", 1)),
    ("mem_sync_domain", 1, "remote", 10, struct.pack("i", 1)),
    ("mem_sync_domain_map", (0, 1), (0, 1), 9, bytes([0, 1])),
    ("mem_sync_domain_map", (1, 0), (1, 0), 9, bytes([1, 0])),
    ("preferred_shared_memory_carveout", 0, 0, 14, struct.pack("I", 0)),
    ("preferred_shared_memory_carveout", 100, 100, 14, struct.pack("I", 100)),
    ("attributes", {8: b"\xff\xff\xff\xff"}, ((8, b"\xff\xff\xff\xff"),), 8, b"\xff" * 4),
    ("attributes", [(14, bytearray(b"\x32"))], ((14, b"\x32"),), 14, b"\x32"),
    ("attributes", ((8, b""),), ((8, b""),), 8, bytes(4)),
]
WINDOW = AccessPolicyWindow(4096, 8192, 0.5, "streaming", "normal")


def config(**attributes: Any) -> LaunchConfig:
    return LaunchConfig(**{"grid": 1, "block": 32, **attributes})


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k")).get_kernel("k")


@pytest.fixture
def cluster_kernel(device: Device) -> Kernel:
    if device.compute_capability.major < 9:
        pytest.skip("needs thread block clusters")
    return ObjectCode.from_ptx(empty("k", header=CLUSTER_HEADER)).get_kernel("k")


@pytest.fixture
def recorded() -> Iterator[Callable[[], dict[int, bytes]]]:
    """The attributes of the last launch, which only the emulated driver tells."""
    with emulator.recording():
        yield lambda: emulator.launches()[-1].attributes


# Values.


@pytest.mark.parametrize(("name", "given", "kept", "number", "data"), PLAIN)
def test_an_attribute_is_kept(name: str, given: Any, kept: Any, number: int, data: bytes) -> None:
    made = config(**{name: given})
    assert getattr(made, name) == kept
    assert f", {name}=" in repr(made)
    for other in ("programmatic_event", "priority", "mem_sync_domain", "access_policy_window"):
        if other != name:
            assert getattr(made, other) is None


@pytest.mark.emulated
@pytest.mark.parametrize(("name", "given", "kept", "number", "data"), PLAIN)
def test_an_attribute_arrives(
    stream: Stream,
    kernel: Kernel,
    recorded: Callable[[], dict[int, bytes]],
    name: str,
    given: Any,
    kept: Any,
    number: int,
    data: bytes,
) -> None:
    made = config(**{name: given})
    expected = {number: data.ljust(64, b"\0")}
    launch(stream, made, kernel)
    assert recorded() == expected
    launcher = kernel.bind(made, stream)
    launcher()
    assert recorded() == expected
    launcher(grid=2, block=64, shmem_size=8)
    assert recorded() == expected
    launcher.on(stream.device.create_stream())()
    assert recorded() == expected


@pytest.mark.parametrize(("name", "given", "kept", "number", "data"), PLAIN)
def test_the_driver_takes_an_attribute(
    stream: Stream, kernel: Kernel, name: str, given: Any, kept: Any, number: int, data: bytes
) -> None:
    launch(stream, config(**{name: given}), kernel)
    kernel.bind(config(**{name: given}), stream)(grid=2)
    stream.sync()


def test_nothing_is_given_unless_asked_for() -> None:
    plain = LaunchConfig(grid=1, block=32)
    given = dict.fromkeys({name for name, *_ in PLAIN} - {"attributes"})
    assert config(**given, attributes=None, access_policy_window=None) == plain
    assert config(attributes=()) == config(attributes={}) == plain
    assert plain.attributes == ()
    assert plain.preferred_cluster is None
    assert "priority" not in repr(plain)


@pytest.mark.emulated
def test_a_plain_launch_has_no_attributes(
    stream: Stream, kernel: Kernel, recorded: Callable[[], dict[int, bytes]]
) -> None:
    launch(stream, ONE, kernel)
    assert recorded() == {}


def test_attributes_are_keywords() -> None:
    with pytest.raises(TypeError):
        LaunchConfig(1, None, 1, 0, False, False, (1, 1))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "value", "error", "said"),
    [
        (
            "cluster_scheduling_policy_preference",
            "fast",
            ValueError,
            "'load_balancing' .got 'fast'",
        ),
        ("cluster_scheduling_policy_preference", 3, ValueError, r"in 0 \.\. 2 \(got 3\)"),
        ("cluster_scheduling_policy_preference", -1, ValueError, r"in 0 \.\. 2"),
        ("cluster_scheduling_policy_preference", 1.0, TypeError, "one of 'default', 'spread'"),
        ("priority", 2**31, ValueError, r"in -2147483648 \.\. 2147483647 \(got 2147483648\)"),
        ("priority", 2**70, ValueError, r"in -2147483648"),
        ("priority", 1.5, TypeError, r"an int \(got 1\.5\)"),
        ("priority", True, TypeError, "an int"),
        ("priority", "1", TypeError, "an int"),
        ("mem_sync_domain", "far", ValueError, "one of 'default', 'remote'"),
        ("mem_sync_domain", 2, ValueError, r"in 0 \.\. 1"),
        ("mem_sync_domain", b"remote", TypeError, "one of"),
        ("mem_sync_domain_map", 1, TypeError, r"a tuple \(default, remote\)"),
        ("mem_sync_domain_map", (1,), TypeError, "a tuple"),
        ("mem_sync_domain_map", (1, 2, 3), TypeError, "a tuple"),
        ("mem_sync_domain_map", (0, 256), ValueError, r"in 0 \.\. 255 \(got 256\)"),
        ("mem_sync_domain_map", (-1, 0), ValueError, r"in 0 \.\. 255"),
        ("mem_sync_domain_map", (0, None), TypeError, "an int"),
        ("preferred_shared_memory_carveout", 101, ValueError, r"in 0 \.\. 100 \(got 101\)"),
        ("preferred_shared_memory_carveout", -1, ValueError, r"in 0 \.\. 100"),
        ("preferred_shared_memory_carveout", 0.5, TypeError, "an int"),
        ("programmatic_event", 5, TypeError, "an Event or a ProgrammaticEvent"),
        ("programmatic_event", {}, TypeError, r"programmatic_event.event must be an Event"),
        ("launch_completion_event", "e", TypeError, "an Event or a LaunchCompletionEvent"),
        ("launch_completion_event", {"event": None}, TypeError, "must be an Event"),
        ("access_policy_window", 5, TypeError, "an AccessPolicyWindow or a dict"),
        ("access_policy_window", {}, TypeError, "base_ptr must be an int"),
        ("access_policy_window", {"base_ptr": 1}, TypeError, "num_bytes must be an int"),
        ("access_policy_window", {"base": 1}, TypeError, "no option 'base'"),
        ("access_policy_window", {"base_ptr": -1, "num_bytes": 1}, ValueError, "base_ptr must be"),
        ("access_policy_window", {"base_ptr": 2**64, "num_bytes": 1}, ValueError, r"2\*\*64"),
        ("access_policy_window", {"base_ptr": 1, "num_bytes": -1}, ValueError, "num_bytes must be"),
        ("preferred_cluster", 2, ValueError, "takes effect only with a cluster"),
        ("preferred_cluster", 0, ValueError, r"preferred_cluster value must be >= 1"),
        ("preferred_cluster", "2", ValueError, r"preferred_cluster must be an int, or a tuple"),
        ("attributes", 5, TypeError, "a dict or pairs"),
        ("attributes", [5], TypeError, r"pairs \(id, bytes\) \(got 5\)"),
        ("attributes", [(1, b"", 1)], TypeError, "pairs"),
        ("attributes", [(-1, b"")], ValueError, "an id must be in 0"),
        ("attributes", [(2**31, b"")], ValueError, "an id must be in 0"),
        ("attributes", [("8", b"")], TypeError, "an id must be an int"),
        ("attributes", [(20, 5)], TypeError, "the value of id 20 must be bytes"),
        ("attributes", {20: bytes(65)}, ValueError, "id 20 has 65 bytes, more than 64"),
        ("attributes", [(20, b""), (20, b"")], ValueError, "id 20 is given twice"),
    ],
)
def test_what_is_refused(name: str, value: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        config(**{name: value})
    assert name in str(caught.value) or "option" in str(caught.value)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (2, "is_cooperative"),
        (4, "cluster"),
        (7, "programmatic_event"),
        (11, "preferred_cluster"),
        (12, "launch_completion_event"),
    ],
)
def test_what_must_be_given_by_name(number: int, name: str) -> None:
    with pytest.raises(ValueError, match=rf"id {number} can't be given raw; use .* {name}$"):
        config(attributes={number: b"\1"})


@pytest.mark.parametrize(
    ("number", "given"),
    [
        (1, {"access_policy_window": WINDOW}),
        (5, {"cluster_scheduling_policy_preference": 1}),
        (6, {"programmatic_stream_serialization": True}),
        (8, {"priority": 0}),
        (9, {"mem_sync_domain_map": (0, 1)}),
        (10, {"mem_sync_domain": 0}),
        (14, {"preferred_shared_memory_carveout": 1}),
    ],
)
def test_raw_and_named_at_once(number: int, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ValueError, match=rf"id {number} is given twice, as the parameter {name}"):
        config(**given, attributes={number: b"\1"})
    assert config(attributes={number: b"\1"}).attributes == ((number, b"\1"),)


def test_more_attributes_than_there_is_room_for() -> None:
    numbers = range(100, 116)
    assert len(config(attributes=dict.fromkeys(numbers, b"")).attributes) == 16
    with pytest.raises(ValueError, match="has 17 attributes; at most 16"):
        config(attributes=dict.fromkeys(numbers, b""), priority=0)


def test_raw_attributes_are_copied_and_sorted() -> None:
    data = bytearray(b"\1\2")
    made = config(attributes=[(30, data), (20, memoryview(b"\3"))])
    data[0] = 9
    assert made.attributes == ((20, b"\3"), (30, b"\1\2"))
    assert made == config(attributes=[(20, b"\3"), (30, b"\1\2")])
    assert hash(made) == hash(config(attributes={30: b"\1\2", 20: b"\3"}))


# A value like LaunchConfig's other fields.


def variants() -> list[LaunchConfig]:
    made = [ONE, LaunchConfig(grid=4, cluster=2, block=1)]
    made += [config(**{name: kept}) for name, _, kept, _, _ in PLAIN]
    made += [
        LaunchConfig(grid=4, cluster=2, block=1, preferred_cluster=p) for p in (2, 4, (8, 1), (2,))
    ]
    for field, value in (
        ("base_ptr", 1),
        ("num_bytes", 1),
        ("hit_ratio", 0.25),
        ("hit_prop", "normal"),
        ("miss_prop", "streaming"),
    ):
        values = {name: getattr(WINDOW, name) for name in AccessPolicyWindow.__slots__}
        made.append(config(access_policy_window={**values, field: value}))
    made.append(config(access_policy_window=WINDOW))
    made.append(config(priority=0, mem_sync_domain=0))
    made.append(config(attributes={100: b"\0"}))
    made.append(config(attributes={100: b""}))
    return made


def test_equality_and_hash_use_the_attributes() -> None:
    made = variants()
    assert len(set(made)) == len(made) - 2  # preferred clusters 2 and (2,), the domain's two names
    for a, b in itertools.combinations(made, 2):
        assert (a == b) == (repr(a) == repr(b))
        assert a != b or hash(a) == hash(b)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_can_be_pickled(protocol: int) -> None:
    for made in variants():
        again = pickle.loads(pickle.dumps(made, protocol))
        assert again == made
        assert repr(again) == repr(made)


def test_it_can_be_copied_and_written() -> None:
    for made in variants():
        assert copy.copy(made) == made == copy.deepcopy(made)
        names = {"LaunchConfig": LaunchConfig, "AccessPolicyWindow": AccessPolicyWindow}
        assert eval(repr(made), names) == made


def test_it_is_frozen() -> None:
    made = config(priority=-1)
    for name in ("priority", "attributes", "programmatic_event", "preferred_cluster"):
        with pytest.raises(AttributeError):
            setattr(made, name, 1)


# Access policy windows.


def test_a_window_of_a_buffer(stream: Stream) -> None:
    buffer = stream.device.allocate(1 << 16, stream=stream)
    made = config(access_policy_window=AccessPolicyWindow(buffer))
    assert made.access_policy_window == AccessPolicyWindow(buffer.handle, 1 << 16)
    part = config(access_policy_window={"base_ptr": buffer, "num_bytes": 100, "hit_ratio": 0})
    assert part.access_policy_window is not None
    assert part.access_policy_window.num_bytes == 100
    assert part.access_policy_window.hit_ratio == 0.0
    with pytest.raises(ValueError, match=r"num_bytes must be at most the buffer's 65536"):
        config(access_policy_window=AccessPolicyWindow(buffer, (1 << 16) + 1))
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer has been closed"):
        config(access_policy_window=AccessPolicyWindow(buffer))


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("hit_ratio", 1.5, ValueError),
        ("hit_ratio", -0.1, ValueError),
        ("hit_ratio", float("nan"), ValueError),
        ("hit_ratio", "1", TypeError),
        ("hit_prop", "sticky", ValueError),
        ("hit_prop", 3, ValueError),
        ("miss_prop", "persisting", ValueError),
        ("miss_prop", 2, ValueError),
        ("miss_prop", None, TypeError),
    ],
)
def test_windows_that_are_refused(field: str, value: Any, error: type[Exception]) -> None:
    given = {"base_ptr": 4096, "num_bytes": 4096, field: value}
    with pytest.raises(error, match=rf"LaunchConfig\.access_policy_window\.{field} must be"):
        config(access_policy_window=given)


def test_a_window_on_the_driver(stream: Stream, kernel: Kernel) -> None:
    buffer = stream.device.allocate(1 << 16, stream=stream)
    for hit, miss in itertools.product(("normal", "streaming", "persisting"), ("normal", 1)):
        window = AccessPolicyWindow(buffer, hit_ratio=0.5, hit_prop=hit, miss_prop=miss)  # type: ignore[arg-type]
        launch(stream, config(access_policy_window=window), kernel)
    stream.sync()


@pytest.mark.emulated
def test_a_window_arrives(
    stream: Stream, kernel: Kernel, recorded: Callable[[], dict[int, bytes]]
) -> None:
    launch(stream, config(access_policy_window=WINDOW), kernel)
    assert recorded() == {1: struct.pack("QQfii", 4096, 8192, 0.5, 1, 0).ljust(64, b"\0")}


@pytest.mark.emulated
def test_a_window_larger_than_the_device_has(stream: Stream, kernel: Kernel) -> None:
    made = config(access_policy_window=AccessPolicyWindow(4096, 1 << 40))
    with pytest.raises(CUDAError, match="access policy window of 1099511627776 bytes exceeds"):
        launch(stream, made, kernel)


# The driver's age, and what else it refuses.


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("given", "name", "needed", "version"),
    [
        ("grid=1, launch_completion_event=event", "launch_completion_event", "12.3", "12020"),
        (
            "grid=1, preferred_shared_memory_carveout=1",
            "preferred_shared_memory_carveout",
            "12.5",
            "12040",
        ),
        ("grid=1, attributes={14: b'1'}", "preferred_shared_memory_carveout", "12.5", "12040"),
        ("grid=2, cluster=1, preferred_cluster=2", "preferred_cluster", "12.8", "12060"),
    ],
)
@pytest.mark.parametrize("how", ["launch", "bind", "occupancy"])
def test_an_attribute_newer_than_the_driver(
    run_python: Callable[..., str], given: str, name: str, needed: str, version: str, how: str
) -> None:
    code = f"""
import cudamod
from cudamod import *
device = Device(0)
device.set_current()
stream = device.create_stream()
event = device.create_event()
text = b".version 8.0\\n.target sm_90\\n.address_size 64\\n.visible .entry k() {{ ret; }}"
kernel = ObjectCode.from_ptx(text).get_kernel("k")
config = LaunchConfig(block=1, {given})
try:
    if {how!r} == "launch":
        launch(stream, config, kernel)
    elif {how!r} == "bind":
        kernel.bind(config, stream)
    else:
        kernel.occupancy.max_active_clusters(config, stream=stream)
except DriverTooOldError as error:
    print(error)
    print(error.needed, error.found)
"""
    found = f"{version[:2]}.{int(version[3])}"
    number = int(needed[:2]) * 1000 + int(needed[3:]) * 10
    assert run_python(
        code, CUDAMOD_EMULATOR_DRIVER_VERSION=version, CUDAMOD_EMULATOR_QUIET="1"
    ) == (
        f"launch attribute '{name}' needs a CUDA {needed} driver; this one supports CUDA {found}\n"
        f"{number} {version}\n"
    )


def test_a_number_that_no_driver_knows(stream: Stream, kernel: Kernel) -> None:
    with pytest.raises(CUDAError, match=r"launch attribute 1000 may be unknown to this driver"):
        launch(stream, config(attributes={1000: b"\1"}), kernel)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"priority": -100}, r"priority -100 is outside the device's -5 \.\. 0"),
        ({"mem_sync_domain_map": (0, 200)}, r"domains \(0, 200\) must be below the device's 4"),
    ],
)
def test_values_that_the_device_refuses(
    stream: Stream, kernel: Kernel, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(CUDAError, match=said):
        launch(stream, config(**given), kernel)


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("number", "data"),
    [
        (1, struct.pack("QQfii", 0, 1, 2.0, 0, 0)),
        (1, struct.pack("QQfii", 0, 1, 0.5, 3, 0)),
        (1, struct.pack("QQfii", 0, 1, 0.5, 0, 2)),
        (5, struct.pack("i", 3)),
        (9, bytes([0, 4])),
        (10, struct.pack("i", 2)),
        (14, struct.pack("i", 101)),
    ],
)
def test_the_emulated_driver_checks_raw_values(
    stream: Stream, kernel: Kernel, number: int, data: bytes
) -> None:
    with pytest.raises(CUDAError, match=rf"Launch attribute {number}: ") as caught:
        launch(stream, config(attributes={number: data}), kernel)
    assert caught.value.status == 1


# Occupancy.


def test_occupancy_queries_with_attributes(stream: Stream, cluster_kernel: Kernel) -> None:
    occupancy = cluster_kernel.occupancy
    plain = LaunchConfig(grid=4, cluster=2, block=32)
    many = LaunchConfig(
        grid=4,
        cluster=2,
        block=32,
        priority=-1,
        mem_sync_domain="remote",
        cluster_scheduling_policy_preference="spread",
        preferred_shared_memory_carveout=0,
    )
    for query in (occupancy.max_active_clusters, occupancy.max_potential_cluster_size):
        assert query(many, stream=stream) > 0
    assert occupancy.max_potential_cluster_size(
        many, stream=stream
    ) == occupancy.max_potential_cluster_size(plain, stream=stream)


def test_threads_share_a_config(stream: Stream, kernel: Kernel) -> None:
    import threading

    made = config(
        priority=-1,
        mem_sync_domain="remote",
        preferred_shared_memory_carveout=10,
        access_policy_window=AccessPolicyWindow(
            stream.device.allocate(1 << 16, stream=stream), hit_ratio=0.5
        ),
    )
    failures: list[BaseException] = []

    def work() -> None:
        try:
            mine = cudamod.Device(0).create_stream()
            launcher = kernel.bind(made, mine)
            for _ in range(200):
                launcher()
                launch(mine, made, kernel)
            mine.sync()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_stream_serialization_overlaps_or_not(stream: Stream, kernel: Kernel) -> None:
    text = (
        HEADER + ".visible .entry add(.param .u64 out) {\n.reg .b64 %out; .reg .b32 %v;\n"
        "ld.param.u64 %out, [out];\natom.global.add.u32 %v, [%out], 1;\nret;\n}"
    )
    add = ObjectCode.from_ptx(text.encode()).get_kernel("add")
    out = stream.device.allocate(4, stream=stream)
    out.fill(0, stream=stream)
    made = LaunchConfig(grid=3, block=5, programmatic_stream_serialization=True, priority=-1)
    for _ in range(4):
        launch(stream, made, add, out)
    assert struct.unpack("I", read(out, stream)) == (60,)
