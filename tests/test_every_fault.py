"""Every driver call fails once, in every public operation: an error, no leak, and then all is well.

No call is listed by hand: the emulated driver's journal tells which ones an operation makes, and
the operation then runs once for each of them with that one failing. The operations are those of
``public_calls.py``, which knows the whole API.
"""

from __future__ import annotations

import gc
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE
from public_calls import (
    CALLS,
    COMMON,
    INJECTED,
    SAMPLES,
    Scene,
    a_graph,
    a_pool,
    a_scene,
    a_sequence,
    a_shared_pool,
    current,
    instantiated,
    is_property,
    members,
    with_context,
)

import cudamod
from cudamod import Device, LegacyPinnedMemoryResource, driver, emulator, handles

pytestmark = pytest.mark.emulated

#: How often a call of one name is failed within one operation, from its first on.
MOST = 4

#: The calls that end an object, and its family. When one fails, its object stays in the driver, and
#: a warning or an error says so.
ENDING = {
    "cuEventDestroy": "event",
    "cuGraphDestroy": "graph",
    "cuGraphExecDestroy": "graph_exec",
    "cuLibraryUnload": "library",
    "cuLinkDestroy": "link",
    "cuMemFreeAsync": "device_memory",
    "cuMemFreeHost": "host_memory",
    "cuMemPoolDestroy": "pool",
    "cuStreamDestroy": "stream",
}

#: Calls whose failure is an answer, and why; where it is one only in an operation, with its name.
ANSWERS = {
    "cuThreadExchangeStreamCaptureMode": "an object is destroyed in the thread's own mode then",
    "cuStreamIsCapturing": "a stream that doesn't tell is taken for one that does not capture",
    "cuGetErrorString": "an error without its explanation is told without it",
    "cuLibraryGetKernelCount": "the library is asked for a kernel instead",
    "cuMemPoolGetAttribute": "a pool that can't tell what is used of it waits for the next attempt",
    "cuEventCreate": "without an event after its last free a pool waits for the context",
    "cuEventRecord": "the same",
    "memory of a pool: cuCtxGetCurrent": "the same",
    "cuEventQuery": "an event that can't tell will never be reached: nothing waits for it",
    "error in launch: cuDeviceGetAttribute": "a limit that is unknown explains no error",
    "TensorMap.im2col_wide: cuDeviceGetAttribute": "the same, where the device can't make the map",
}
#: Calls that are part of another one, by which the error names them.
PARTS = {
    ("cuCtxGetCurrent", "cuLaunchKernelEx"),  # of a launch into a default stream
    ("cuCtxPushCurrent", "cuLaunchKernelEx"),
    ("cuCtxSetCurrent", "cuLaunchKernelEx"),
    ("cuLibraryGetKernel", "cuLibraryLoadData"),  # whether the image is a good one
}


@dataclass
class Outcome:
    """How an operation ended."""

    error: BaseException | None
    told: list[str]  #: the warnings
    reached: bool  #: the injected failure happened
    left: int = 0  #: the object that a failed call did not end

    def tells_of(self, call: str) -> bool:
        error = self.error
        if isinstance(error, cudamod.CUDAError) and error.status == INJECTED:
            return error.call == call or (call, error.call) in PARTS
        return any(text.startswith(f"{call}: CUDA_ERROR_UNKNOWN") for text in self.told)


def settled(device: Device) -> tuple[dict[str, int], set[tuple[str, int]]]:
    """What is alive, as the driver counts it and as the registry does, once everything has run."""
    driver.cuCtxSetCurrent(device.context.handle)
    gc.collect()
    device.sync()
    handles.reclaim()
    return emulator.counts(), {(handle.kind, handle.serial) for handle in handles.live()}


def failing(calls: list[str]) -> Iterator[tuple[str, int]]:
    """Each call of an operation with how many of its name come up to it, from 1."""
    seen: Counter[str] = Counter()
    for call in calls:
        seen[call] += 1
        if seen[call] <= MOST:
            yield call, seen[call]


class Trial:
    """Runs one operation again and again, each time on objects of its own."""

    def __init__(
        self,
        device: Device,
        prepare: Callable[[], Any],
        run: Callable[[Any], object],
        context: int | None,
    ) -> None:
        self.device, self.prepare, self.run, self.context = device, prepare, run, context
        self.calls: list[str] = []  #: those of the last run

    def __call__(self, call: str = "", nth: int = 0) -> Outcome:
        state = self.prepare()
        kept: object = None
        error: BaseException | None = None
        driver.cuCtxSetCurrent(self.context)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            emulator.start_recording()
            if call:
                emulator.inject(call, nth=nth, status=INJECTED)
            try:
                kept = self.run(state)
            except Exception as raised:
                error = raised.with_traceback(None)
                error.__context__ = error.__cause__ = None
            emulator.stop_recording()
            reached = emulator.injections_left() == 0
            journal = emulator.journal()
            emulator.reset()
            assert call or current() == (self.context or 0)
            del state, kept
            settled(self.device)
        self.calls = [entry.name for entry in journal]
        told = [str(warning.message) for warning in caught]
        left = [entry.arguments for entry in journal if entry.status == INJECTED]
        if call == "cuCtxPushCurrent":  # before memory is freed
            left = [text for text in told if "(device memory" in text]
        found = re.search("0x[0-9a-f]+", left[0]) if left else None
        return Outcome(error, told, reached, int(found[0], 16) if found else 0)


def end(call: str, value: int) -> None:
    """End what a failed call left alive."""
    if call in ("cuMemFreeAsync", "cuCtxPushCurrent"):
        host = emulator.counts()["host_memory"]
        driver.lib.cuMemFree(value)
        driver.lib.cuMemFreeHost(driver.ffi.cast("void *", value)) if host else None
    else:
        getattr(driver, call)(value)


def check(name: str, trial: Trial, only: Callable[[str], bool] = lambda call: True) -> set[str]:
    """Fail each call once; the names of the calls."""
    trial()
    usual = type(trial().error)
    calls = trial.calls
    before = settled(trial.device)
    for call, nth in failing(calls):
        if not only(call):
            continue
        outcome = trial(call, nth)
        where = f"{call}, {nth}: {outcome}"
        assert outcome.reached, where
        answer = call in ANSWERS or f"{name}: {call}" in ANSWERS
        assert outcome.tells_of(call) or answer, where
        if not isinstance(outcome.error, cudamod.CUDAError):
            assert type(outcome.error) is usual, where
        if call in ENDING:
            assert emulator.counts()[ENDING[call]] == before[0][ENDING[call]] + 1, where
            end(call, outcome.left)
        elif call == "cuCtxPushCurrent" and outcome.told:
            end(call, outcome.left)
        assert settled(trial.device) == before, where
        assert type(trial().error) is usual, where
    return set(calls)


def check_in_contexts(
    device: Device, name: str, prepare: Callable[[], Any], run: Callable[[Any], object]
) -> None:
    """Without a current context, which takes most calls; then the calls that only one takes."""
    seen = check(name, Trial(device, prepare, run, None))
    check(name, Trial(device, prepare, run, device.context.handle), lambda call: call not in seen)


@pytest.mark.parametrize("name", CALLS)
def test_a_failing_call(device: Device, name: str, tmp_path: Path) -> None:
    check_in_contexts(device, name, lambda: a_scene(device, str(tmp_path)), CALLS[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_failing_call_while_reading(device: Device, name: str, tmp_path: Path) -> None:
    def prepare() -> Any:
        scene = a_scene(device, str(tmp_path))
        return scene, SAMPLES[name](scene)

    sample = prepare()[1]
    reads = {
        member: (lambda made, member=member: getattr(made[1], member))
        for member, value in members(type(sample)).items()
        if is_property(value)
    }
    reads |= {member: (lambda made, call=call: call(made[1])) for member, call in COMMON.items()}
    del sample
    for member, read in reads.items():
        check(f"{name}.{member}", Trial(device, prepare, read, device.context.handle))


FIRST_USE = r"""
import os, sys
import cudamod
from cudamod import Device, driver, emulator, handles

def use():
    stream = Device(0).create_stream()
    buffer = Device(0).allocate(8, stream=stream)
    buffer.fill(7, stream=stream)
    stream.sync()
    assert bytes(buffer.copy_to(bytearray(8), stream=stream)) == bytes([7]) * 8
    default = Device(0).default_stream

def child(failing):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        try:
            if failing:
                os.environ["CUDAMOD_EMULATOR_FAIL"] = failing
            else:
                os.environ["CUDAMOD_EMULATOR_JOURNAL"] = "1"
            try:
                use()
            except (cudamod.CUDAError, cudamod.DriverNotFoundError) as error:
                print(type(error).__name__, str(error).replace("\n", " "))
                use()
            if failing:
                assert emulator.injections_left() == 0
                print("works", len(handles.leaks()))
            else:
                print(*(call.name for call in emulator.journal()))
        except BaseException as error:
            print("FAILED", failing, repr(error))
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.wait()
    return text

calls = child("").split()
for call in dict.fromkeys(calls):
    print(call, "|", child(f"{call}:1:999").replace("\n", "|"))
"""
#: A process without the driver's log callback has shorter errors; without a look-up it looks again.
MAY_LACK = {"cuLogsRegisterCallback", "cuGetProcAddress"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_failing_call_in_the_first_use(run_python: Callable[..., str]) -> None:
    """What happens once in a process: each call fails in a child that has not opened the driver."""
    lines = run_python(FIRST_USE).splitlines()
    assert len(lines) > 20
    for line in lines:
        call, _, said = line.partition(" | ")
        assert said.endswith("works 0|"), line
        told = f"CUDAError {call}: CUDA_ERROR_UNKNOWN" in said or f"{call} answered 999" in said
        silent = call in {*ENDING, *ANSWERS, *MAY_LACK, "cuCtxPopCurrent"}  # warnings are ignored
        assert told or silent, line


#: What ends: each object, and all that it needs, by the last reference.
ENDS: dict[str, Callable[[Scene], object]] = {
    "a stream": lambda s: s.device.create_stream(),
    "an event": lambda s: s.device.create_event(),
    "memory": lambda s: s.device.allocate(8, stream=s.stream),
    "memory of the default stream": lambda s: s.device.allocate(8),
    "memory of a pool": lambda s: a_pool().allocate(8, stream=s.stream),
    "pinned memory": lambda s: LegacyPinnedMemoryResource().allocate(8, stream=s.stream),
    "a pool": lambda s: a_pool(),
    "a shared pool": lambda s: a_shared_pool(),
    "code": lambda s: s.unloaded().load(),
    "a launcher": lambda s: s.unloaded().get_kernel("k").bind(ONE, s.stream),
    "a graph": a_graph,
    "an executable graph": lambda s: instantiated(a_graph(s)),
    "a sequence": lambda s: with_context(s, a_sequence(s)),
    "all": lambda s: a_scene(s.device, s.folder),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_failing_end(device: Device, name: str, tmp_path: Path) -> None:
    def prepare() -> Any:
        scene = a_scene(device, str(tmp_path))
        return scene, [ENDS[name](scene)]

    check_in_contexts(device, name, prepare, lambda made: (made[1].clear(), gc.collect()))
