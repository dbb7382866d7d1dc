"""Every driver call fails once, in every public operation: an error, no leak, and then all is well.

No call is listed by hand: the emulated driver's journal tells which ones an operation makes, and
the operation then runs once for each of them with that one failing. The operations are those of
``public_calls.py``, which knows the whole API.
"""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
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
    is_property,
    members,
    with_context,
)

import cudamod
from cudamod import Device, LegacyPinnedMemoryResource, driver, emulator, handles

pytestmark = pytest.mark.emulated

#: How often a call of one name is failed within one operation, from its first on.
MOST = 4

#: The calls that end an object. When one fails, its object stays in the driver: a warning says so.
ENDING = {
    "cuEventDestroy": "event",
    "cuGraphDestroy": "graph",
    "cuGraphExecDestroy": "graph_exec",
    "cuLibraryUnload": "library",
    "cuLinkDestroy": "link",
    "cuMemFree": "device_memory",
    "cuMemFreeAsync": "device_memory",
    "cuMemFreeHost": "host_memory",
    "cuMemPoolDestroy": "pool",
    "cuStreamDestroy": "stream",
}

#: Calls whose failure is an answer, and why.
ANSWERS = {
    "cuThreadExchangeStreamCaptureMode": "an object is destroyed in the thread's own mode then",
    "cuStreamIsCapturing": "a stream that doesn't tell is taken for one that does not capture",
    "cuGetErrorName": "an error without its name is told by its number",
    "cuGetErrorString": "an error without its explanation is told without it",
}


@dataclass
class Outcome:
    """How an operation ended."""

    error: BaseException | None
    told: list[str]  #: the warnings
    reached: bool  #: the injected failure happened

    def tells_of(self, call: str) -> bool:
        error = self.error
        if isinstance(error, cudamod.CUDAError) and error.status == INJECTED:
            return call in str(error)
        return any(call in text for text in self.told)


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

    def __call__(self, call: str = "", nth: int = 0, *, record: bool = False) -> Outcome:
        state = self.prepare()
        kept: object = None
        error: BaseException | None = None
        driver.cuCtxSetCurrent(self.context)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if record:
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
            emulator.reset() if call else None
            assert call or current() == (self.context or 0)
            del state, kept
            settled(self.device)
        return Outcome(error, [str(warning.message) for warning in caught], reached)

    def calls(self) -> list[str]:
        """The calls that the operation makes."""
        self(record=True)
        return [call.name for call in emulator.journal()]


@pytest.fixture(autouse=True)
def _short_collections() -> Iterator[None]:
    """What the other tests left is no garbage of these."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def check(trial: Trial, only: Callable[[str], bool] = lambda call: True) -> set[str]:
    """Fail each call once; the names of the calls."""
    trial()
    calls = trial.calls()
    usual = type(trial().error)
    before = settled(trial.device)
    for call, nth in failing(calls):
        if not only(call):
            continue
        where = f"{call}, {nth}"
        outcome = trial(call, nth)
        assert outcome.reached, where
        told = outcome.tells_of(call)
        assert told or call in ANSWERS, f"{where}: {outcome}"
        if not isinstance(outcome.error, cudamod.CUDAError):
            assert type(outcome.error) is usual, f"{where}: {outcome}"
        after = settled(trial.device)
        if call in ENDING:
            assert after[0][ENDING[call]] == before[0][ENDING[call]] + 1, where
            assert all(count >= before[0][family] for family, count in after[0].items()), where
            before = after
        assert after == before, f"{where}: {outcome}"
        assert type(trial().error) is usual, where
    return set(calls)


def check_in_contexts(
    device: Device, prepare: Callable[[], Any], run: Callable[[Any], object]
) -> None:
    """With no context current, which takes the most calls, and what only one that is current has."""
    seen = check(Trial(device, prepare, run, None))
    check(Trial(device, prepare, run, device.context.handle), lambda call: call not in seen)


@pytest.mark.parametrize("name", CALLS)
def test_a_failing_call(device: Device, name: str, tmp_path: Path) -> None:
    check_in_contexts(device, lambda: a_scene(device, str(tmp_path)), CALLS[name])


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
    for read in reads.values():
        check(Trial(device, prepare, read, device.context.handle))


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
    "a launcher": lambda s: s.unloaded().get_kernel("k").bind(cudamod.LaunchConfig(1, 1), s.stream),
    "a graph": a_graph,
    "an executable graph": lambda s: a_graph(s).instantiate(),
    "a sequence": lambda s: with_context(s, a_sequence(s)),
    "all": lambda s: a_scene(s.device, s.folder),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_failing_end(device: Device, name: str, tmp_path: Path) -> None:
    def prepare() -> Any:
        scene = a_scene(device, str(tmp_path))
        return scene, [ENDS[name](scene)]

    check_in_contexts(device, prepare, lambda made: (made[1].clear(), gc.collect()))
