"""The check of streams: accesses of the same bytes that no event or synchronisation orders."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from emulated_driver_api import EmulatedDriver, Pointer
from graph_api import Graphs
from test_emulated_asynchrony import NON_BLOCKING, SIZE
from test_emulated_control import control, sentences  # noqa: F401 -- fixtures

#: `gate` waits until *flag is not 0; `put` and `read` a word; `each` stores a word per thread of a
#: grid; `bump` adds with an atomic; `byte` stores one byte; `vector` reads 16 bytes; `paste` copies
#: 16 bytes by cp.async.
KERNELS = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry gate(.param .u64 flag)
{
    .reg .b64 %m; .reg .b32 %x; .reg .pred %p;
    ld.param.u64 %m, [flag];
AGAIN:
    ld.volatile.global.u32 %x, [%m];
    setp.eq.u32 %p, %x, 0;
    @%p bra AGAIN;
    ret;
}
.visible .entry put(.param .u64 to)
{
    .reg .b64 %m;
    ld.param.u64 %m, [to];
    st.global.u32 [%m], 7;
    ret;
}
.visible .entry read(.param .u64 from)
{
    .reg .b64 %m; .reg .b32 %x;
    ld.param.u64 %m, [from];
    ld.global.u32 %x, [%m];
    ret;
}
.visible .entry each(.param .u64 to)
{
    .reg .b64 %m; .reg .b32 %x<4>;
    ld.param.u64 %m, [to];
    mov.u32 %x0, %tid.x;
    mov.u32 %x1, %ctaid.x;
    mov.u32 %x2, %ntid.x;
    mad.lo.u32 %x0, %x1, %x2, %x0;
    mad.wide.u32 %m, %x0, 4, %m;
    st.global.u32 [%m], %x0;
    ret;
}
.visible .entry bump(.param .u64 to)
{
    .reg .b64 %m;
    ld.param.u64 %m, [to];
    red.global.add.u32 [%m], 1;
    ret;
}
.visible .entry byte(.param .u64 to)
{
    .reg .b64 %m; .reg .b32 %x;
    ld.param.u64 %m, [to];
    mov.u32 %x, 3;
    st.global.u8 [%m], %x;
    ret;
}
.visible .entry vector(.param .u64 from)
{
    .reg .b64 %m; .reg .b32 %x<4>;
    ld.param.u64 %m, [from];
    ld.global.v4.u32 {%x0, %x1, %x2, %x3}, [%m];
    ret;
}
.visible .entry paste(.param .u64 from)
{
    .shared .align 16 .b8 s[16];
    .reg .b64 %m; .reg .b32 %a;
    ld.param.u64 %m, [from];
    mov.u32 %a, s;
    cp.async.ca.shared.global [%a], [%m], 16;
    cp.async.wait_all;
    ret;
}
"""
LINES = KERNELS.decode().splitlines()
LAUNCH_FAILED = 719


class Programs:
    """Two streams that nothing orders, memory, and short names for what is done in them."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver, self.graphs = driver, Graphs(driver)
        library = driver.load(KERNELS)
        names = ("gate", "put", "read", "each", "bump", "byte", "vector", "paste")
        self.kernels = {name: driver.kernel(library, name.encode()) for name in names}
        self.memory = driver.upload(bytes(4096))
        self.one, self.two = (driver.pointer("cuStreamCreate", NON_BLOCKING) for _ in range(2))
        self.event = driver.pointer("cuEventCreate", 2)

    def run(
        self, name: str, stream: Pointer | None, at: int = 0, grid: int = 1, block: int = 1
    ) -> None:
        argument = ctypes.c_uint64((self.memory.value or 0) + at)
        kernel, shape = self.kernels[name], {"grid": (grid, 1, 1), "block": (block, 1, 1)}
        status = self.driver.launch(kernel, [argument], **shape, stream=stream)  # type: ignore[arg-type]
        assert status in (0, LAUNCH_FAILED)

    def call(self, name: str, *arguments: Any) -> None:
        assert self.driver.status(name, *arguments) in (0, LAUNCH_FAILED)

    @contextmanager
    def first_stream_first(self) -> Iterator[None]:
        """What is enqueued runs in the first stream before the second, which nothing orders.

        That the host waits for the first stream comes after all of it was enqueued.
        """
        flag = self.driver.pointer("cuMemAllocHost", SIZE(4))
        word = ctypes.c_uint32.from_address(flag.value or 0)
        word.value = 0
        assert self.driver.launch(self.kernels["gate"], [flag], stream=self.two) == 0
        try:
            yield
            self.call("cuStreamSynchronize", self.one)
        finally:
            word.value = 1

    def at(self, offset: int) -> Pointer:
        return Pointer((self.memory.value or 0) + offset)

    def fill(self, stream: Pointer | None, count: int = 1024) -> None:
        self.call("cuMemsetD32Async", self.memory, 9, SIZE(count), stream)

    def order(self, first: Pointer | None, then: Pointer | None) -> None:
        self.call("cuEventRecord", self.event, first)
        self.call("cuStreamWaitEvent", then, self.event, 0)

    def pooled(self, stream: Pointer, size: int = 64) -> Pointer:
        address = ctypes.c_uint64()
        self.driver.call("cuMemAllocAsync", ctypes.byref(address), SIZE(size), stream)
        return Pointer(address.value)


@pytest.fixture
def programs(current: EmulatedDriver, control: Any) -> Programs:  # noqa: F811
    control.checks("streams")
    opened = Programs(current)
    current.call("cuCtxSynchronize")
    return opened


def event(p: Programs) -> None:
    p.order(p.one, p.two)


def stream_wait(p: Programs) -> None:
    p.call("cuStreamSynchronize", p.one)


def context_wait(p: Programs) -> None:
    p.call("cuCtxSynchronize")


def event_wait(p: Programs) -> None:
    p.call("cuEventRecord", p.event, p.one)
    p.call("cuEventSynchronize", p.event)


def poll_event(p: Programs) -> None:
    p.call("cuEventRecord", p.event, p.one)
    while p.driver.status("cuEventQuery", p.event) == 600:
        time.sleep(0.001)


def poll_stream(p: Programs) -> None:
    while p.driver.status("cuStreamQuery", p.one) == 600:
        time.sleep(0.001)


def reached_event(p: Programs) -> None:
    """The event was reached before anybody waits for it."""
    p.call("cuEventRecord", p.event, p.one)
    time.sleep(0.02)
    p.call("cuStreamWaitEvent", p.two, p.event, 0)


def chain(p: Programs) -> None:
    """Through a third stream that does nothing."""
    third = p.driver.pointer("cuStreamCreate", NON_BLOCKING)
    p.order(p.one, third)
    p.order(third, p.two)


def context_event(p: Programs) -> None:
    context = p.driver.pointer("cuCtxGetCurrent")
    p.call("cuCtxRecordEvent", context, p.event)
    p.call("cuStreamWaitEvent", p.two, p.event, 0)


def callback(p: Programs) -> None:
    """A function of the host behind the first tells the host's thread."""
    reached: list[bool] = []
    function = ctypes.CFUNCTYPE(None, Pointer)(lambda _: reached.append(True))
    p.graphs.kept.append(function)
    p.call("cuLaunchHostFunc", p.one, function, None)
    while not reached:
        time.sleep(0.001)


def copied_back(p: Programs) -> None:
    """A copy to pageable memory returns when it is done."""
    p.call("cuMemcpyDtoHAsync_v2", bytes(4), p.memory, SIZE(4), p.one)


ORDERS = [
    event,
    stream_wait,
    context_wait,
    event_wait,
    poll_event,
    poll_stream,
    reached_event,
    chain,
    context_event,
    callback,
    copied_back,
]

Step = Callable[[Programs], None]

#: Two pieces of work that conflict, in streams `one` and `two`, and how a finding names the first.
CONFLICTS: dict[str, tuple[Step, Step, str]] = {
    "write, read": (
        lambda p: p.run("put", p.one),
        lambda p: p.run("read", p.two),
        "write by kernel 'put'",
    ),
    "read, write": (
        lambda p: p.run("read", p.one),
        lambda p: p.run("put", p.two),
        "read by kernel 'read'",
    ),
    "write, write": (
        lambda p: p.run("put", p.one),
        lambda p: p.run("put", p.two),
        "write by kernel 'put'",
    ),
    "fill, read": (lambda p: p.fill(p.one), lambda p: p.run("read", p.two), "write by fill"),
    "read, fill": (lambda p: p.run("read", p.one), lambda p: p.fill(p.two), "read by kernel"),
    "fill, atomic": (lambda p: p.fill(p.one), lambda p: p.run("bump", p.two), "write by fill"),
    "atomic, read": (
        lambda p: p.run("bump", p.one),
        lambda p: p.run("read", p.two),
        "write by kernel 'bump'",
    ),
    "byte, vector": (
        lambda p: p.run("byte", p.one, 13),
        lambda p: p.run("vector", p.two),
        "write by kernel 'byte'",
    ),
    "write, cp.async": (
        lambda p: p.run("put", p.one, 4),
        lambda p: p.run("paste", p.two),
        "write by kernel 'put'",
    ),
    "write, copy from": (
        lambda p: p.run("put", p.one, 2048),
        lambda p: p.call("cuMemcpyDtoDAsync_v2", p.at(3072), p.at(2000), SIZE(64), p.two),
        "write by kernel 'put'",
    ),
    "copy to, read": (
        lambda p: p.call("cuMemcpyHtoDAsync_v2", p.memory, bytes(64), SIZE(64), p.one),
        lambda p: p.run("read", p.two, 60),
        "write by copy",
    ),
}


@pytest.mark.parametrize("how", CONFLICTS)
def test_what_nothing_orders_is_found(programs: Programs, control: Any, how: str) -> None:  # noqa: F811
    first, second, text = CONFLICTS[how]
    with programs.first_stream_first():
        first(programs)
        second(programs)
    assert programs.driver.status("cuCtxSynchronize") == LAUNCH_FAILED
    (finding,) = control.findings()
    assert finding.kind == "stream conflict"
    assert text in finding.text
    assert "no event, stream or synchronization orders the two" in finding.text


@pytest.mark.parametrize("how", CONFLICTS)
def test_an_event_orders_it(programs: Programs, control: Any, how: str) -> None:  # noqa: F811
    first, second, _ = CONFLICTS[how]
    first(programs)
    event(programs)
    second(programs)
    context_wait(programs)
    assert control.findings() == []


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)
def test_what_orders_streams(programs: Programs, control: Any, order: Step) -> None:  # noqa: F811
    for _ in range(2):
        programs.run("put", programs.one)
        order(programs)
        programs.run("put", programs.two)
        context_wait(programs)
    assert control.findings() == []


def wrong_event(p: Programs) -> None:
    p.call("cuEventRecord", p.event, p.one)
    p.call("cuStreamWaitEvent", p.one, p.event, 0)


def early_event(p: Programs) -> None:
    p.call("cuEventRecord", p.event, p.two)
    p.call("cuStreamWaitEvent", p.two, p.event, 0)


def other_stream(p: Programs) -> None:
    p.call("cuStreamSynchronize", p.two)


def time_passes(p: Programs) -> None:
    time.sleep(0.05)


@pytest.mark.parametrize(
    "order", [wrong_event, early_event, other_stream, time_passes], ids=lambda order: order.__name__
)
def test_what_orders_nothing(programs: Programs, control: Any, order: Step) -> None:  # noqa: F811
    programs.run("put", programs.one)
    order(programs)
    programs.run("put", programs.two)
    assert programs.driver.status("cuCtxSynchronize") == LAUNCH_FAILED
    assert [finding.kind for finding in control.findings()] == ["stream conflict"]


def test_what_is_said(programs: Programs, control: Any, sentences: list[str]) -> None:  # noqa: F811
    with programs.first_stream_first():
        programs.run("each", programs.one, grid=3, block=64)
        programs.run("read", programs.two, at=4 * 70)
        programs.run("put", programs.two, at=4 * 70)
    assert programs.driver.status("cuStreamSynchronize", programs.two) == LAUNCH_FAILED
    (finding,) = control.findings()
    address = (programs.memory.value or 0) + 280
    assert (finding.kind, finding.kernel, finding.address) == ("stream conflict", "read", address)
    assert (finding.block, finding.thread) == ((0, 0, 0), (0, 0, 0))
    assert finding.instruction == LINES[finding.line - 1].strip() == "ld.global.u32 %x, [%m];"
    stored = "st.global.u32 [%m], %x0;"
    line = next(n for n, text in enumerate(LINES, 1) if stored in text)
    assert (
        f"read of 4 bytes at {address:#x} (stream {programs.two.value:#x}, its work 2) conflicts "
        f"at {address:#x} with the write by kernel 'each', line {line} '{stored}', block (1,0,0), "
        f"thread (6,0,0) (stream {programs.one.value:#x}, its work 1): no event, stream or "
        "synchronization orders the two"
    ) in finding.text
    assert any(sentence.endswith(finding.text) for sentence in sentences)


def test_bytes_are_told_apart(programs: Programs, control: Any) -> None:  # noqa: F811
    for at in range(64):
        programs.run("byte", programs.two if at % 2 else programs.one, at)
    assert programs.driver.status("cuCtxSynchronize") == 0
    assert control.findings() == []
    programs.run("byte", programs.one, 20)
    programs.run("byte", programs.two, 21)
    programs.run("byte", programs.two, 20)
    assert programs.driver.status("cuCtxSynchronize") == LAUNCH_FAILED
    assert control.findings()[0].address == (programs.memory.value or 0) + 20


def test_readers_and_atomics_do_not_conflict(programs: Programs, control: Any) -> None:  # noqa: F811
    for stream in (programs.one, programs.two):
        programs.run("read", stream)
        programs.run("vector", stream, 16)
        programs.run("bump", stream, 64)
    assert programs.driver.status("cuCtxSynchronize") == 0
    assert control.findings() == []


def test_every_reader_is_remembered(programs: Programs, control: Any) -> None:  # noqa: F811
    streams = [programs.driver.pointer("cuStreamCreate", NON_BLOCKING) for _ in range(5)]
    streams[0] = programs.one
    with programs.first_stream_first():
        for stream in streams:
            programs.run("read", stream)
        for stream in streams[1:]:
            programs.order(stream, programs.two)
        programs.run("put", programs.two)
    assert programs.driver.status("cuCtxSynchronize") == LAUNCH_FAILED
    assert f"(stream {streams[0].value:#x}, its work 1)" in control.findings()[0].text


@pytest.mark.parametrize("blocking", [True, False])
def test_the_legacy_stream(programs: Programs, control: Any, blocking: bool) -> None:  # noqa: F811
    """It orders itself with blocking streams, both ways, and with no others."""
    stream = programs.driver.pointer("cuStreamCreate", 0 if blocking else NON_BLOCKING)
    for first, second in ((stream, None), (None, stream)):
        programs.run("put", first)
        time.sleep(0.005)
        programs.run("put", second)
    status = programs.driver.status("cuCtxSynchronize")
    assert (status, bool(control.findings())) == ((0, False) if blocking else (719, True))


@pytest.mark.parametrize("edges", ["none", "an edge", "through an empty node", "child"])
def test_edges_of_a_graph(programs: Programs, control: Any, edges: str) -> None:  # noqa: F811
    graphs, graph = programs.graphs, programs.graphs.create()
    parameters = graphs.kernel_params(
        programs.kernels["put"], [ctypes.c_uint64(programs.memory.value or 0)]
    )
    if edges == "child":
        inner = graphs.create()
        graphs.add_kernel(inner, [], parameters)
        before = graphs.add("cuGraphAddChildGraphNode", graph, [], inner)
    else:
        before = graphs.add_kernel(graph, [], parameters)
    if edges == "through an empty node":
        before = graphs.add("cuGraphAddEmptyNode", graph, [before])
    graphs.add_memset(graph, [] if edges == "none" else [before], programs.memory, 1, 16)
    executable = graphs.instantiate(graph)
    programs.call("cuGraphLaunch", executable, programs.one)
    programs.call("cuGraphLaunch", executable, programs.two)  # waits for the first
    programs.order(programs.two, programs.one)
    programs.run("put", programs.one)
    status = programs.driver.status("cuCtxSynchronize")
    assert (status, bool(control.findings())) == ((719, True) if edges == "none" else (0, False))


@pytest.mark.parametrize("joined", [True, False])
def test_captured_branches(programs: Programs, control: Any, joined: bool) -> None:  # noqa: F811
    one, two = programs.one, programs.two
    with programs.graphs.capture(one) as captured:
        programs.run("put", one)
        programs.order(one, two)
        programs.run("read", two)
        programs.run("read", one)
        if joined:
            programs.order(two, one)
        programs.run("put", one)
        programs.order(two, one)
    executable = programs.graphs.instantiate(captured[0])
    for _ in range(2):
        programs.call("cuGraphLaunch", executable, one)
    status = programs.driver.status("cuCtxSynchronize")
    assert (status, bool(control.findings())) == ((0, False) if joined else (719, True))


@pytest.mark.parametrize("ordered", [True, False])
def test_memory_freed_too_early(programs: Programs, control: Any, ordered: bool) -> None:  # noqa: F811
    """However the streams run: here the kernel is long over when the memory is freed."""
    memory = programs.memory = programs.pooled(programs.one)
    programs.run("put", programs.one)
    programs.call("cuStreamSynchronize", programs.one)
    with programs.first_stream_first():
        programs.run("read", programs.one)
        if ordered:
            event(programs)
        programs.call("cuMemFreeAsync", memory, programs.two)
    status = programs.driver.status("cuCtxSynchronize")
    if ordered:
        assert (status, control.findings()) == (0, [])
    else:
        assert status == LAUNCH_FAILED
        assert control.findings()[0].text.startswith("free: write of 64 bytes at")


@pytest.mark.parametrize("ordered", [True, False])
def test_memory_used_before_it_is_there(programs: Programs, control: Any, ordered: bool) -> None:  # noqa: F811
    with programs.first_stream_first():
        programs.memory = programs.pooled(programs.one)
        if ordered:
            event(programs)
        programs.run("put", programs.two)
    status = programs.driver.status("cuCtxSynchronize")
    assert status == (0 if ordered else LAUNCH_FAILED)
    if not ordered:
        assert "with the write by allocation (stream" in control.findings()[0].text


def test_the_check_begins_when_it_is_asked_for(programs: Programs, control: Any) -> None:  # noqa: F811
    for names in ((), ("streams",), ("races",)):
        programs.run("put", programs.one)
        control.checks(*names)
        programs.run("put", programs.two)
        assert programs.driver.status("cuCtxSynchronize") == 0
    assert control.findings() == []


def test_all_has_it(programs: Programs, control: Any) -> None:  # noqa: F811
    control.checks("all")
    programs.run("put", programs.one)
    programs.run("put", programs.two)
    assert programs.driver.status("cuCtxSynchronize") == LAUNCH_FAILED
