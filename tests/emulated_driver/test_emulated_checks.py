"""Checks of kernels: races on shared memory, divergent barriers, reads of what nobody wrote."""

from __future__ import annotations

import ctypes
import textwrap
from typing import Any

import pytest
from emulated_driver_api import EmulatedDriver, run_script
from test_emulated_control import control, sentences  # noqa: F401 -- fixtures

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(body: str, head: str = ".shared .align 16 .b8 s[1024];") -> bytes:
    """Kernel ``k`` (u64 memory): %t is the thread, %a its place in shared memory, %m memory."""
    return (
        HEAD
        + textwrap.dedent(f"""
        .visible .entry k(.param .u64 memory)
        {{
            {head}
            .reg .pred %p;
            .reg .u32 %t, %a, %b, %x, %y;
            .reg .u64 %m;
            ld.param.u64 %m, [memory];
            mov.u32 %t, %tid.x;
            mov.u32 %a, s;
            mad.lo.u32 %a, %t, 4, %a;
        """)
        + body
        + "\nret;\n}\n"
    ).encode()


# Each thread reads what its neighbour wrote.
NEIGHBOUR = """
st.shared.u32 [%a], %t;
{between}
xor.b32 %x, %t, {distance};
mov.u32 %b, s;
mad.lo.u32 %b, %x, 4, %b;
ld.shared.u32 %y, [%b];
"""


def launch(
    driver: EmulatedDriver, image: bytes, threads: int = 64, bytes_: int = 1024, blocks: int = 1
) -> int:
    """The status of a launch of kernel ``k`` on fresh memory."""
    memory = driver.allocate(bytes_)
    handle = driver.kernel(driver.load(image), b"k")
    argument = ctypes.c_uint64(memory.value or 0)
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    assert driver.launch(handle, [argument], grid=grid, block=block) == 0
    return driver.status("cuCtxSynchronize")


def test_a_race(current: EmulatedDriver, control: Any, sentences: list[str]) -> None:  # noqa: F811
    image = kernel(NEIGHBOUR.format(between="", distance=1))
    assert launch(current, image) == 0  # nobody asked
    assert control.findings() == []
    control.checks("races")
    assert launch(current, image) == 719
    (finding,) = control.findings()
    assert (finding.kind, finding.kernel) == ("race", "k")
    lines = image.decode().splitlines()
    assert finding.instruction == lines[finding.line - 1] == "ld.shared.u32 %y, [%b];"
    assert (finding.block, finding.thread, finding.address) == ((0, 0, 0), (0, 0, 0), 4)
    assert "races with the write by thread (1,0,0) in line" in finding.text
    assert "'st.shared.u32 [%a], %t;'" in finding.text
    assert sentences[0].endswith(finding.text)
    assert current.status("cuCtxSynchronize") == 719  # it sticks


@pytest.mark.parametrize(
    ("between", "distance"),
    [
        ("bar.sync 0;", 33),
        ("barrier.sync 3;", 33),
        ("bar.sync 1, 64;", 33),
        ("bar.arrive 2, 128;\nbar.sync 1, 64;", 33),
        ("bar.warp.sync 0xffffffff;", 1),
        ("barrier.cluster.arrive;\nbarrier.cluster.wait;", 33),
    ],
)
def test_barriers_order_accesses(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    between: str,
    distance: int,
) -> None:
    control.checks("races")
    assert launch(current, kernel(NEIGHBOUR.format(between=between, distance=distance))) == 0
    assert control.findings() == []


@pytest.mark.parametrize(
    ("between", "distance"),
    [
        ("bar.warp.sync 0xffffffff;", 32),  # another warp
        ("membar.cta;", 1),  # no barrier
        ("vote.sync.all.pred %p, %p, 0xffffffff;", 1),  # orders no memory
        ("bar.arrive 2, 128;", 33),  # waits for nobody
    ],
)
def test_what_orders_nothing(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    between: str,
    distance: int,
) -> None:
    control.checks("races")
    assert launch(current, kernel(NEIGHBOUR.format(between=between, distance=distance))) == 719
    assert control.findings()[0].kind == "race"


WRITE_AFTER_READ = """
st.shared.u32 [%a], %t;
bar.sync 0;
xor.b32 %x, %t, 32;
mov.u32 %b, s;
mad.lo.u32 %b, %x, 4, %b;
ld.shared.u32 %y, [%b];
st.shared.u32 [%a], %y;
"""
SAME_PLACE = """
mov.u32 %a, s;
st.shared.u32 [%a], %t;
"""
READ_WHAT_STAYS = """
mov.u32 %b, s;
st.shared.u32 [%a], 0;
bar.sync 0;
ld.shared.u32 %y, [%b];
st.shared.u32 [%b], 0;
"""
ATOMIC = """
mov.u32 %a, s;
setp.eq.u32 %p, %t, 0;
@%p st.shared.u32 [%a], 0;
bar.sync 0;
atom.shared.add.u32 %y, [%a], 1;
{after}
"""
# The writer's flag is read until it is set.
FLAG = """
setp.eq.u32 %p, %t, 0;
mov.u32 %b, s;
@%p st.shared.u32 [%b+8], 0;
bar.sync 0;
setp.ne.u32 %p, %t, 32;
@%p bra READ;
st.shared.u32 [%b+4], 7;
membar.cta;
st{strong}.shared.u32 [%b+8], 1;
READ:
setp.ne.u32 %p, %t, 0;
@%p bra DONE;
WAIT:
ld{strong}.shared.u32 %y, [%b+8];
setp.eq.u32 %p, %y, 0;
@%p bra WAIT;
ld.shared.u32 %y, [%b+4];
DONE:
"""


@pytest.mark.parametrize(
    ("body", "threads", "racing"),
    [
        (WRITE_AFTER_READ, 64, "ld.shared.u32 %y, [%b];"),  # the other warp has written
        (WRITE_AFTER_READ, 32, None),  # nobody else is there
        (SAME_PLACE, 32, None),  # one of a warp's writes wins
        (SAME_PLACE, 64, "st.shared.u32 [%a], %t;"),
        (SAME_PLACE.replace("%t", "7"), 64, None),  # whoever wins
        (ATOMIC.format(after=""), 64, None),
        (ATOMIC.format(after="ld.shared.u32 %x, [%a];"), 64, "ld.shared.u32 %x, [%a];"),
        (ATOMIC.format(after="bar.sync 0;\nld.shared.u32 %x, [%a];"), 64, None),
        (
            ATOMIC.format(after="bar.sync 0;\nst.shared.u8 [%a+3], %t;"),
            33,
            "st.shared.u8 [%a+3], %t;",
        ),
        (READ_WHAT_STAYS, 64, None),
        (READ_WHAT_STAYS.replace("[%b], 0", "[%b], 1"), 64, "st.shared.u32 [%b], 1;"),
        (FLAG.format(strong=".volatile"), 64, None),
        (FLAG.format(strong=""), 64, "ld.shared.u32 %y, [%b+8];"),
    ],
)
def test_kinds_of_races(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    body: str,
    threads: int,
    racing: str | None,
) -> None:
    control.checks("races")
    status = launch(current, kernel(body), threads)
    found = control.findings()
    if racing is None:
        assert (status, found) == (0, [])
    else:
        assert (status, found[0].kind) == (719, "race")
        assert found[0].instruction.endswith(racing)


def test_an_earlier_block_is_no_race(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    control.checks("races", "uninitialized")
    image = kernel(NEIGHBOUR.format(between="bar.sync 0;", distance=1))
    assert launch(current, image, blocks=20) == 0


DIVERGENT = """
and.b32 %x, %t, 1;
setp.eq.u32 %p, %x, 0;
@%p bra EVEN;
{odd}
bra DONE;
EVEN:
{even}
DONE:
"""


def test_divergent_barriers(current: EmulatedDriver, control: Any, sentences: list[str]) -> None:  # noqa: F811
    image = kernel(DIVERGENT.format(odd="bar.sync 0;", even="bar.sync 0;"))
    assert launch(current, image) == 0
    control.checks("barriers")
    assert launch(current, image) == 719
    (finding,) = control.findings()
    assert (finding.kind, finding.instruction) == ("barrier divergence", "bar.sync 0;")
    assert "waits in another barrier instruction than thread" in finding.text
    assert sentences[0].endswith(finding.text)


@pytest.mark.parametrize(
    ("odd", "even"),
    [
        ("", ""),
        ("barrier.sync 0;", "barrier.sync 0;"),  # without .aligned each thread is on its own
        ("exit;", "bar.sync 0;"),  # who has ended is not waited for
    ],
)
def test_barriers_that_do_not_diverge(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    odd: str,
    even: str,
) -> None:
    control.checks("barriers")
    assert launch(current, kernel(DIVERGENT.format(odd=odd, even=even) + "bar.sync 0;")) == 0
    assert control.findings() == []


def test_shared_memory_that_nobody_wrote(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    sentences: list[str],  # noqa: F811
) -> None:
    body = "st.shared.u8 [%a+1], 1;\nld.shared.u32 %y, [%a];"
    assert launch(current, kernel(body)) == 0
    control.checks("uninitialized")
    assert launch(current, kernel(body)) == 719
    (finding,) = control.findings()
    assert (finding.kind, finding.address) == ("uninitialized read", 0)
    assert "of shared memory at 0x0, of which byte 0 was never written" in finding.text
    assert sentences[0].endswith(finding.text)


@pytest.mark.parametrize(
    "body",
    [
        "st.shared.u32 [%a], 1;\nld.shared.u32 %y, [%a];",
        "st.shared.u64 [s], %m;\nbar.sync 0;\nld.shared.v2.u32 {%x, %y}, [s];",
        "st.shared.u32 [%a], 1;\natom.shared.add.u32 %y, [%a], 1;\nld.shared.u32 %y, [%a];",
    ],
)
def test_shared_memory_that_was_written(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    body: str,
) -> None:
    control.checks("uninitialized")
    assert launch(current, kernel(body)) == 0


def test_all_findings_in_the_faithful_manner(driver: EmulatedDriver) -> None:
    image = kernel(
        NEIGHBOUR.format(between="", distance=1) + "ld.shared.u32 %x, [s+1020];\n"
        "st.shared.u32 [%a], %x;"
    )
    script = f"""
driver.make_current()
kernel = driver.kernel(driver.load({image!r}), b"k")
assert driver.launch(kernel, [ctypes.c_uint64(0)], block=(64, 1, 1)) == 0
driver.call("cuCtxSynchronize")
"""
    environment = {"CUDAMOD_EMULATOR_MANNER": "faithful", "CUDAMOD_EMULATOR_CHECKS": "all"}
    done = run_script(driver.path, script, **environment)
    assert done.returncode == 0, done.stderr
    kinds = [line.split(": ")[2] for line in done.stderr.splitlines()]
    assert sorted(kinds) == ["race", "race", "uninitialized read"]
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_CHECKS="speed,races")
    assert "CUDAMOD_EMULATOR_CHECKS='speed' ignored" in done.stderr


def test_names_of_checks(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    with pytest.raises(ValueError, match="unknown among"):
        control.checks("race")
    control.checks("all")
    assert launch(current, kernel(NEIGHBOUR.format(between="", distance=1))) == 719
    control.reset()
    assert control.findings() == []
    assert launch(current, kernel(NEIGHBOUR.format(between="", distance=1))) == 0


def test_faults_are_findings(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    body = "mul.wide.u32 %m, %t, 4;\nld.param.u64 %m, [memory];\nld.global.u32 %x, [%m+4096];"
    assert launch(current, kernel(body)) == 700
    (finding,) = control.findings(clear=True)
    assert (finding.kind, finding.kernel) == ("illegal address", "k")
    assert finding.instruction == "ld.global.u32 %x, [%m+4096];"
    assert finding.address
    assert hex(finding.address) in finding.text
    assert control.findings() == []
    control.reset()
    assert launch(current, kernel("ld.global.u32 %x, [%m+2];")) == 716
    assert control.findings()[0].kind == "misaligned address"


def element(instruction: str, head: str = "") -> bytes:
    """Kernel ``k``: %m is the address of each thread's element, of 4 bytes."""
    body = f"""
.reg .u64 %d;
mul.wide.u32 %d, %t, 4;
add.u64 %m, %m, %d;
{instruction}
"""
    return kernel(body, ".shared .align 16 .b8 s[1024];" + head)


def run_on(driver: EmulatedDriver, memory: Any, image: bytes, threads: int = 64) -> int:
    handle = driver.kernel(driver.load(image), b"k")
    argument = ctypes.c_uint64(memory.value or 0)
    assert driver.launch(handle, [argument], block=(threads, 1, 1)) == 0
    return driver.status("cuCtxSynchronize")


READ = "ld.global.u32 %x, [%m];"
WRITE = "st.global.u32 [%m], %t;"


def test_global_memory_that_nobody_wrote(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    sentences: list[str],  # noqa: F811
) -> None:
    control.checks("uninitialized")
    memory = current.allocate(2048)
    address = memory.value or 0
    assert run_on(current, memory, element(WRITE), threads=30) == 0
    assert run_on(current, memory, element(READ), threads=30) == 0
    assert run_on(current, memory, element(READ), threads=31) == 719
    (finding,) = control.findings()
    assert (finding.kind, finding.address) == ("uninitialized read", address + 120)
    assert (finding.thread, finding.instruction) == ((30, 0, 0), READ)
    assert f"lies 120 bytes into memory of 2048 bytes at {address:#x}" in finding.text
    assert sentences[0].endswith(finding.text)


@pytest.mark.parametrize(
    "instruction",
    [
        "ld.global.v2.u16 {%x, %y}, [%m];",
        "ld.u32 %x, [%m];",
        "atom.global.add.u32 %x, [%m], 1;",
        "red.global.add.u32 [%m], 1;",
    ],
)
def test_kinds_of_reads(current: EmulatedDriver, control: Any, instruction: str) -> None:  # noqa: F811
    control.checks("uninitialized")
    memory = current.allocate(1024)
    assert run_on(current, memory, element(instruction)) == 719
    control.reset()
    control.checks("uninitialized")
    current.call("cuMemsetD8", memory, 1, ctypes.c_size_t(1024))
    assert run_on(current, memory, element(instruction)) == 0


def test_copies_carry_what_was_written(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    control.checks("uninitialized")
    size = ctypes.c_size_t
    first, second = current.allocate(1024), current.allocate(1024)
    current.call("cuMemcpyHtoD", first, bytes(512), size(512))
    current.call("cuMemcpyDtoD_v2", second, first, size(1024))
    current.call("cuCtxSynchronize")
    assert run_on(current, second, element(READ), threads=128) == 0
    assert run_on(current, second, element(READ), threads=129) == 719
    assert control.findings()[0].thread == (128, 0, 0)


def test_pools_and_other_memory(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    control.checks("uninitialized")
    pinned = current.pointer("cuMemAllocHost", ctypes.c_size_t(1024))
    assert run_on(current, pinned, element(READ)) == 0  # the host may have written it
    variable = element("mov.u64 %m, v;\n" + READ).replace(
        b".visible .entry", b".global .u32 v[64];\n.visible .entry"
    )
    assert run_on(current, pinned, variable) == 0  # zero from the start
    memory = current.pointer("cuMemAllocAsync", ctypes.c_size_t(1024), None)
    assert run_on(current, memory, element(READ)) == 719
    control.reset()
    current.call("cuMemFreeAsync", memory, None)


def test_memory_from_before_the_check_is_not_watched(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
) -> None:
    memory = current.allocate(1024)
    control.checks("uninitialized")
    assert run_on(current, memory, element(READ)) == 0


PIPELINE = """
.reg .u64 %state;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [s+512], {count};
bar.sync 0;
setp.ge.u32 %p, %t, 32;
@%p bra READER;
st.shared.u32 [%a], %t;
{arrive}
bra DONE;
READER:
{wait}
sub.u32 %a, %a, 128;
ld.shared.u32 %y, [%a];
DONE:
"""
ARRIVE = "mbarrier.arrive.shared.b64 %state, [s+512];"
WAIT = """
mbarrier.test_wait.parity.shared.b64 %p, [s+512], 0;
@!%p bra READER;
"""


@pytest.mark.parametrize(
    ("arrive", "wait", "kinds"),
    [
        (ARRIVE, WAIT, set()),
        (ARRIVE, "", {"race"}),
        ("bar.arrive 1, 64;", "bar.sync 1, 64;", set()),
    ],
)
def test_one_warp_writes_for_another(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    arrive: str,
    wait: str,
    kinds: set[str],
) -> None:
    control.checks("races")
    launch(current, kernel(PIPELINE.format(count=32, arrive=arrive, wait=wait)))
    assert {finding.kind for finding in control.findings()} == kinds


CLUSTER = """
.reg .u32 %rank;
mov.u32 %rank, %cluster_ctarank;
{write}
barrier.cluster.arrive;
barrier.cluster.wait;
xor.b32 %rank, %rank, 1;
mapa.shared::cluster.u32 %b, %a, %rank;
ld.shared::cluster.u32 %y, [%b];
barrier.cluster.arrive;
barrier.cluster.wait;
"""


@pytest.mark.parametrize(("write", "status"), [("st.shared.u32 [%a], %t;", 0), ("", 719)])
def test_memory_of_another_block_of_the_cluster(
    current: EmulatedDriver,
    control: Any,  # noqa: F811
    write: str,
    status: int,
) -> None:
    control.checks("all")
    image = kernel(CLUSTER.format(write=write)).replace(
        b"memory)\n{", b"memory)\n.reqnctapercluster 2\n{"
    )
    assert launch(current, image, blocks=4) == status
    assert [finding.kind for finding in control.findings()] == ["uninitialized read"] * (status > 0)


def test_copies_of_a_kernel_write(current: EmulatedDriver, control: Any) -> None:  # noqa: F811
    control.checks("all")
    memory = current.upload(bytes(1024))
    body = """
mul.lo.u32 %a, %t, 16;
mov.u32 %b, s;
add.u32 %a, %a, %b;
cp.async.ca.shared.global [%a], [%m], 16;
cp.async.wait_all;
bar.sync 0;
ld.shared.u32 %x, [s+1020];
"""
    assert run_on(current, memory, kernel(body)) == 0
    body = """
.reg .u64 %to;
st.shared.u32 [%a], %t;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%m], [s], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
"""
    fresh = current.allocate(1024)
    assert run_on(current, fresh, kernel(body)) == 0
    assert run_on(current, fresh, element(READ)) == 0
    assert run_on(current, fresh, element(READ), threads=65) == 719
