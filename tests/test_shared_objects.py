"""Every object may be used by several threads at once: the right answer or an error, never a crash.

The uses are those of ``public_calls.py``, so that a class or method that is new is used here, too.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ptx import ONE, empty
from public_calls import CALLS, COMMON, SAMPLES, Scene, a_scene, is_property, members

import cudamod
from cudamod import Device, ObjectCode, driver, handles

THREADS = 4
SECONDS = 0.08
#: What a use may answer that came beside another one: the object is closed, or captures just now.
REFUSALS = (cudamod.CUDAError, RuntimeError, TypeError, ValueError)


@pytest.fixture(autouse=True)
def _hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def uses_of(name: str, scene: Scene, thing: Any, *, closing: bool) -> list[Callable[[], object]]:
    """Every property and method of a class, on objects that all threads share."""
    uses: list[Callable[[], object]] = [
        lambda member=member: getattr(thing, member)  # type: ignore[misc]
        for member, value in members(type(thing)).items()
        if is_property(value)
    ]
    uses += [lambda call=call: call(thing) for call in COMMON.values()]  # type: ignore[misc]
    ending = ("close", "__exit__", "begin_capture", "end_capture")
    uses += [
        lambda call=call: call(scene)  # type: ignore[misc]
        for key, call in CALLS.items()
        if key.split(".")[0].split("(")[0].split(" ")[-1] == name
        and (closing or not any(word in key for word in ending))
    ]
    return uses


def hammer(uses: list[Callable[[], object]]) -> None:
    """All threads at once, each beginning somewhere else, for a while."""
    end = time.monotonic() + SECONDS
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        Device(0).set_current()
        barrier.wait(60)
        first = number * len(uses) // THREADS
        for use in itertools.cycle(uses[first:] + uses[:first]):
            with contextlib.suppress(*REFUSALS):
                use()
            if time.monotonic() > end:
                break
        driver.cuCtxSetCurrent(None)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def settled(device: Device) -> list[tuple[str, int]]:
    gc.collect()
    device.sync()
    handles.reclaim()
    return [(h.kind, h.serial) for h in handles.live() if h.lifetime == "owned"]


@pytest.mark.parametrize("closing", [False, True], ids=["used", "closed"])
@pytest.mark.parametrize("name", SAMPLES)
def test_threads_share(device: Device, name: str, closing: bool, tmp_path: Path) -> None:
    before = settled(device)
    scene = a_scene(device, str(tmp_path))
    thing = SAMPLES[name](scene)
    hammer(uses_of(name, scene, thing, closing=closing))
    del thing, scene
    assert settled(device) == before
    stream = device.create_stream()
    ObjectCode.from_ptx(empty("k")).get_kernel("k").bind(ONE, stream)()
    stream.sync()


def test_the_documentation_tells_of_each_class() -> None:
    page = (Path(__file__).parents[1] / "docs" / "handles.md").read_text()
    section = page.split("## Threads")[1].split("\n## ")[0]
    assert [name for name in SAMPLES if f"`{name}`" not in section] == []
