"""Launch sequences: order, replays, changed arguments, threads, what is refused, what is kept."""

from __future__ import annotations

import gc
import itertools
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ptx import ONE, empty, stepping

import cudamod
from cudamod import Buffer, Device, Kernel, LaunchConfig, LaunchSequence, ObjectCode, Stream, driver


@pytest.fixture
def step(device: Device) -> Kernel:
    return ObjectCode.from_ptx(stepping()).get_kernel("step")


@pytest.fixture
def counter(device: Device, stream: Stream) -> Buffer:
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    return buffer


def word(buffer: Buffer, stream: Stream) -> int:
    return int(struct.unpack("I", buffer.copy_to(bytearray(4), stream=stream))[0])


def mode(sequence: LaunchSequence) -> str:
    return sequence.mode  # a call, since a checker takes a property for constant


def expected(steps: Sequence[tuple[int, int]], start: int = 0) -> int:
    value = start
    for factor, addend in steps:
        value = (value * factor + addend) % 2**32
    return value


STEPS = [(3, 1), (5, 2), (7, 4)]


def test_launches_follow_one_another(step: Kernel, stream: Stream, counter: Buffer) -> None:
    launcher = step.bind(ONE, stream)
    launches = [launcher.prepare(counter, *values) for values in STEPS]
    sequence = LaunchSequence(launches)
    assert (len(sequence), sequence.launches, mode(sequence)) == (3, tuple(launches), "graph")
    assert (sequence.stream, sequence.gil) == (stream, "release")
    for replays in range(1, 4):
        sequence()
        assert word(counter, stream) == expected(STEPS * replays)
    assert mode(sequence) == "graph"
    assert "launches=3" in repr(sequence)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_after_says_the_order(
    step: Kernel, stream: Stream, counter: Buffer, order: tuple[int, ...]
) -> None:
    launcher = step.bind(ONE, stream)
    launches = [launcher.prepare(counter, *values) for values in STEPS]
    after = {later: [earlier] for earlier, later in itertools.pairwise(order)}
    sequence = LaunchSequence(launches, after=after)
    assert mode(sequence) == "graph"
    sequence()
    assert word(counter, stream) == expected([STEPS[i] for i in order])


def test_a_diamond(device: Device, step: Kernel, stream: Stream) -> None:
    """Two independent launches between two: each has its own memory."""
    left, right = (device.allocate(4, stream=stream) for _ in range(2))
    for buffer in (left, right):
        buffer.fill(0, stream=stream)
    launcher = step.bind(ONE, stream)
    launches = [
        launcher.prepare(left, 1, 2),
        launcher.prepare(left, 10, 1),
        launcher.prepare(right, 10, 3),
        launcher.prepare(left, 100, 5),
    ]
    sequence = LaunchSequence(launches, {1: [0, 0], 2: (0,), 3: [1, 2]})
    sequence()
    assert (word(left, stream), word(right, stream)) == (2105, 3)


@pytest.mark.parametrize("gil", ["release", "auto", "hold"])
def test_changed_arguments_are_patched(
    step: Kernel, stream: Stream, counter: Buffer, gil: Any
) -> None:
    launcher = step.bind(ONE, stream)
    steps = [(1, i) for i in range(100)]
    launches = [launcher.prepare(counter, *values) for values in steps]
    sequence = LaunchSequence(launches, gil=gil)
    sequence()
    total = expected(steps)
    for changed in (0, 1, 10, 100):
        for i in range(changed):
            launches[i].set_arg(2, 1000 + i)
            launches[i].set_arg(1, 3)
            steps[i] = (3, 1000 + i)
        sequence()
        total = expected(steps, total)
        assert word(counter, stream) == total
    launches[5]()  # by itself as well
    assert word(counter, stream) == expected([steps[5]], total)


def test_two_sequences_of_the_same_launches(step: Kernel, stream: Stream, counter: Buffer) -> None:
    launch = step.bind(ONE, stream).prepare(counter, 1, 1)
    first, second = LaunchSequence([launch]), LaunchSequence([launch, launch])
    first()
    second()
    assert word(counter, stream) == 3
    launch.set_arg(2, 10)
    first()
    second()
    assert word(counter, stream) == 33


def test_earlier_replays_keep_their_arguments(
    step: Kernel, stream: Stream, counter: Buffer
) -> None:
    """A change concerns later replays only, however many wait in the stream."""
    launch = step.bind(ONE, stream).prepare(counter, 10, 0)
    sequence = LaunchSequence([launch])
    for digit in (1, 2, 3, 4, 5):
        launch.set_arg(2, digit)
        sequence()
    assert word(counter, stream) == 12345


def test_another_stream(device: Device, step: Kernel, stream: Stream, counter: Buffer) -> None:
    launches = [step.bind(ONE, stream).prepare(counter, *values) for values in STEPS]
    sequence = LaunchSequence(launches)
    stream.sync()
    others = [device.create_stream() for _ in range(3)]
    for other in (*others, device.default_stream):
        sequence(stream=other)  # one after the other all the same
    device.sync()
    assert word(counter, stream) == expected(STEPS * 4)
    own = LaunchSequence(launches, stream=others[0])
    assert own.stream == others[0]
    own()
    others[0].sync()
    assert word(counter, stream) == expected(STEPS * 5)


def test_threads_replay_one_sequence(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    launches = [step.bind(ONE, stream).prepare(counter, 1, 1) for _ in range(10)]
    sequence = LaunchSequence(launches)
    stream.sync()
    threads, rounds = 4, 25
    errors: list[BaseException] = []

    def replay(index: int) -> None:
        try:
            own = device.create_stream()
            for _ in range(rounds):
                launches[index].set_arg(2, 1)
                sequence(stream=own)
            own.sync()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=replay, args=(index,)) for index in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert errors == []
    assert word(counter, stream) == 10 * threads * rounds


def test_into_a_capture(step: Kernel, stream: Stream, counter: Buffer) -> None:
    launches = [step.bind(ONE, stream).prepare(counter, *values) for values in STEPS]
    sequence = LaunchSequence(launches)
    stream.sync()
    stream.begin_capture()
    sequence()
    assert mode(sequence) == "launches"
    graph = stream.end_capture()
    assert graph.num_nodes == 3
    assert word(counter, stream) == 0
    graph.launch(stream)
    sequence()
    assert mode(sequence) == "graph"
    assert word(counter, stream) == expected(STEPS * 2)


def test_attributes_that_a_graph_lacks(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    if device.compute_capability < (9, 0):
        pytest.skip("needs programmatic stream serialization")
    config = LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True)
    launches = [step.bind(config, stream).prepare(counter, *values) for values in STEPS]
    sequence = LaunchSequence(launches)
    assert mode(sequence) == "launches"
    sequence()
    assert mode(sequence) == "launches"


def test_attributes_that_a_graph_has(
    device: Device, step: Kernel, stream: Stream, counter: Buffer
) -> None:
    config = LaunchConfig(grid=1, block=1, priority=0, is_cooperative=True)
    launches = [step.bind(config, stream).prepare(counter, *values) for values in STEPS]
    sequence = LaunchSequence(launches)
    assert mode(sequence) == "graph"
    sequence()
    launches[1].set_arg(2, 9)
    sequence()
    changed = [STEPS[0], (STEPS[1][0], 9), STEPS[2]]
    assert word(counter, stream) == expected(STEPS + changed)
    launches[0]()
    assert word(counter, stream) == expected([*STEPS, *changed, STEPS[0]])


def test_clusters_and_cooperative_launches(device: Device, stream: Stream) -> None:
    kernel = ObjectCode.from_ptx(empty("nothing")).get_kernel("nothing")
    configs = [LaunchConfig(grid=2, block=32, is_cooperative=True)]
    if device.compute_capability >= (9, 0):
        configs.append(LaunchConfig(grid=2, cluster=2, block=32))
    sequence = LaunchSequence([kernel.bind(config, stream).prepare() for config in configs])
    assert mode(sequence) == "graph"
    sequence()
    stream.sync()


@pytest.mark.emulated
@pytest.mark.parametrize(
    "call", ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags"]
)
def test_a_driver_without_graphs(step: Kernel, stream: Stream, counter: Buffer, call: str) -> None:
    launches = [step.bind(ONE, stream).prepare(counter, *values) for values in STEPS]
    cudamod.emulator.inject(call, status=801)
    sequence = LaunchSequence(launches, {0: [2], 1: [0]})
    assert cudamod.emulator.injections_left() == 0
    assert mode(sequence) == "launches"
    sequence()
    assert word(counter, stream) == expected([STEPS[2], STEPS[0], STEPS[1]])


@pytest.mark.emulated
@pytest.mark.parametrize("call", ["cuGraphLaunch", "cuGraphExecKernelNodeSetParams"])
def test_a_failed_replay_loses_nothing(
    step: Kernel, stream: Stream, counter: Buffer, call: str
) -> None:
    launches = [step.bind(ONE, stream).prepare(counter, 1, 1) for _ in range(3)]
    sequence = LaunchSequence(launches)
    for launch in launches:
        launch.set_arg(2, 10)
    cudamod.emulator.inject(call, status=719)
    with pytest.raises(cudamod.CUDAError, match=f"{call}: .*(launch 0, kernel 'step'|3 launches)"):
        sequence()
    sequence()
    assert word(counter, stream) == 30


def test_wrong_sequences(device: Device, step: Kernel, stream: Stream, counter: Buffer) -> None:
    launcher = step.bind(ONE, stream)
    launches = [launcher.prepare(counter, *values) for values in STEPS]
    bad: Any
    with pytest.raises(ValueError, match="there are no launches"):
        LaunchSequence([])
    for bad in (None, 3, launches[0]):
        with pytest.raises(TypeError):
            LaunchSequence(bad)
    with pytest.raises(TypeError, match=r"launch 1 must be a Prepared, not .*Launcher"):
        LaunchSequence([launches[0], launcher])  # type: ignore[list-item]
    for bad in ({0: [1], 1: [0]}, {0: [0]}, {0: [1], 1: [2], 2: [0]}):
        with pytest.raises(ValueError, match="after has a cycle: launches 0"):
            LaunchSequence(launches, after=bad)
    for bad in ({3: [0]}, {0: [3]}, {-1: [0]}, {0: [-1]}, {0: [1 << 80]}):
        with pytest.raises(IndexError):
            LaunchSequence(launches, after=bad)
    for bad in ({"a": [0]}, {0: ["a"]}, {0: 1}, {True: [0]}, {0: [True]}, [[0]], {0: None}):
        with pytest.raises(TypeError, match="after"):
            LaunchSequence(launches, after=bad)
    with pytest.raises(TypeError):
        LaunchSequence()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        LaunchSequence(launches, stream=5)
    with pytest.raises(ValueError, match="gil must be"):
        LaunchSequence(launches, gil="never")  # type: ignore[arg-type]
    sequence = LaunchSequence(launches)
    with pytest.raises(TypeError, match="takes no arguments but the keyword stream"):
        sequence(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes no arguments but the keyword stream"):
        sequence(grid=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="None"):
        sequence(stream=None)
    closed = device.create_stream()
    closed.close()
    for call in (lambda: sequence(stream=closed), lambda: LaunchSequence(launches, stream=closed)):
        with pytest.raises(RuntimeError, match="Stream has been closed"):
            call()
    assert word(counter, stream) == 0


def test_a_refused_launch_is_named(step: Kernel, stream: Stream, counter: Buffer) -> None:
    good = step.bind(ONE, stream).prepare(counter, 1, 1)
    bad = step.bind(LaunchConfig(grid=1, block=1025), stream).prepare(counter, 1, 1)
    with pytest.raises(cudamod.CUDAError, match=r"launch 1, kernel 'step', .*block \(1025"):
        LaunchSequence([good, bad])


def test_other_contexts_are_refused(
    device: Device, step: Kernel, stream: Stream, counter: Buffer, other_context: int
) -> None:
    driver.cuCtxPushCurrent(driver.ffi.cast("CUcontext", other_context))
    raw = driver.cuStreamCreate(1)
    driver.cuCtxPopCurrent()
    elsewhere = Stream.from_handle(int(driver.ffi.cast("uintptr_t", raw)))
    here = step.bind(ONE, stream).prepare(counter, 1, 1)
    there = step.bind(ONE, elsewhere).prepare(None, 1, 1)
    with pytest.raises(ValueError, match=r"launch 1.* runs in another context .*than launch 0"):
        LaunchSequence([here, there])
    with pytest.raises(ValueError, match="stream is of another context"):
        LaunchSequence([here], stream=elsewhere)
    sequence = LaunchSequence([here])
    with pytest.raises(ValueError, match="stream is of another context"):
        sequence(stream=elsewhere)


def test_kernels_and_arguments_are_kept(device: Device, stream: Stream) -> None:
    counter = device.allocate(4, stream=stream)
    counter.fill(0, stream=stream)
    address = counter.handle
    kernel = ObjectCode.from_ptx(stepping()).get_kernel("step")
    sequence = LaunchSequence([kernel.bind(ONE, stream).prepare(counter, 1, 7)])
    del kernel, counter
    gc.collect()
    cudamod.handles.reclaim()
    for _ in range(20):  # other code where the kernel's would have been
        ObjectCode.from_ptx(empty("other")).get_kernel("other").bind(ONE, stream)()
    sequence()
    assert word(Buffer.from_handle(address, 4, owner=sequence), stream) == 7


def test_dropped_while_it_runs(device: Device, step: Kernel, stream: Stream) -> None:
    counter = device.allocate(4, stream=stream)
    counter.fill(0, stream=stream)
    for _ in range(50):
        LaunchSequence([step.bind(ONE, stream).prepare(counter, 1, 1)] * 5)()
    assert word(counter, stream) == 250


def test_nothing_is_left(device: Device, stream: Stream) -> None:
    gc.collect()
    before = {(handle.kind, handle.value) for handle in cudamod.handles.live()}
    counter = device.allocate(4, stream=stream)
    kernel = ObjectCode.from_ptx(stepping()).get_kernel("step")
    launches = [kernel.bind(ONE, stream).prepare(counter, 1, 1)]
    sequence = LaunchSequence(launches)
    kinds = [handle.kind for handle in cudamod.handles.live()]
    assert kinds.count("graph") >= 1
    assert kinds.count("executable graph") >= 1
    launches.append(sequence)  # type: ignore[arg-type]
    del counter, kernel, launches, sequence
    gc.collect()
    after = {(handle.kind, handle.value) for handle in cudamod.handles.live()}
    assert after <= before


ENDS = ["pass", "sequence(); sequence()", "import os; os._exit(0)", "del sequence, launch"]


@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends_with_a_live_sequence(run_python: Callable[..., str], end: str) -> None:
    run_python(
        "import sys\nsys.path.insert(0, " + repr(os.path.dirname(__file__)) + ")\n"
        "from ptx import ONE, stepping\n"
        "from cudamod import Device, LaunchSequence, ObjectCode\n"
        "device = Device(0); device.set_current(); stream = device.create_stream()\n"
        "kernel = ObjectCode.from_ptx(stepping()).get_kernel('step')\n"
        "launch = kernel.bind(ONE, stream).prepare(device.allocate(4, stream=stream), 1, 1)\n"
        "sequence = LaunchSequence([launch] * 3)\n"
        "sequence()\n"
        "cycle = [sequence]; cycle.append(cycle); sys.modules['kept'] = cycle\n" + end
    )


def test_after_a_fork(run_python: Callable[..., str]) -> None:
    out = run_python(
        "import os, sys, threading\nsys.path.insert(0, " + repr(os.path.dirname(__file__)) + ")\n"
        "from ptx import ONE, stepping\n"
        "import cudamod\n"
        "from cudamod import Device, LaunchSequence, ObjectCode\n"
        "device = Device(0); device.set_current(); stream = device.create_stream()\n"
        "kernel = ObjectCode.from_ptx(stepping()).get_kernel('step')\n"
        "launch = kernel.bind(ONE, stream).prepare(device.allocate(4, stream=stream), 1, 1)\n"
        "sequence = LaunchSequence([launch] * 3)\n"
        "sequence(); stream.sync()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try:\n"
        "        sequence()\n"
        "    except cudamod.CUDAError as error:\n"
        "        print(error.name, flush=True)\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "sequence(); stream.sync()\n",
        PYTHONWARNINGS="ignore",
    )
    assert out.split() == ["CUDA_ERROR_NOT_INITIALIZED", "0"]
