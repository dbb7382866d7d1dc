"""Stream.add_callback: Python functions that the driver calls."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import cudamod
from cudamod import Buffer, Device, Stream


def test_after_earlier_work(device: Device, stream: Stream) -> None:
    buffer = device.allocate(4, stream=stream)
    calls: list[int] = []
    buffer.fill(1, stream=stream)
    for number in range(3):
        stream.add_callback(lambda number=number: calls.append(number))
    stream.sync()
    assert calls == [0, 1, 2]


def test_on_a_default_stream(device: Device) -> None:
    called = threading.Event()
    device.default_stream.add_callback(called.set)
    device.sync()
    assert called.is_set()


def test_in_a_graph(stream: Stream) -> None:
    calls: list[int] = []

    class Function:
        def __call__(self) -> None:
            calls.append(len(calls))

    function = Function()
    kept = weakref.ref(function)
    stream.begin_capture()
    stream.add_callback(function)
    graph = stream.end_capture()
    del function
    for _ in range(3):
        graph.launch(stream)
    stream.sync()
    assert calls == [0, 1, 2]
    assert kept() is not None
    graph.close()
    stream.sync()
    for _ in range(1000):  # the driver releases it on a thread of its own
        stream.record().sync()
        gc.collect()
        if kept() is None:
            break
    assert kept() is None


def test_exceptions_are_unraisable(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", caught.append)

    def fails() -> None:
        raise ValueError("on purpose")

    stream.add_callback(fails)
    stream.sync()
    (unraisable,) = caught
    assert str(unraisable.exc_value) == "on purpose"
    assert unraisable.object is fails
    caught.clear()  # a traceback keeps frames, and they the stream
    del unraisable


def test_the_driver_is_out_of_reach(device: Device, stream: Stream) -> None:
    seen: list[str] = []

    def asks() -> None:
        try:
            stream.record()
        except cudamod.CUDAError as error:
            seen.append(error.name)

    stream.add_callback(asks)
    stream.sync()
    assert seen == ["CUDA_ERROR_NOT_PERMITTED"]


def test_wrong_callbacks(device: Device) -> None:
    stream = device.create_stream()
    bad: Any
    for bad in (None, 5, "name"):
        with pytest.raises(TypeError, match="must be callable"):
            stream.add_callback(bad)
    stream.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        stream.add_callback(print)


@pytest.mark.emulated
def test_a_refused_callback_is_let_go(stream: Stream) -> None:
    class Function:
        def __call__(self) -> None: ...

    for call in ("cuLaunchHostFunc", "cuStreamGetCaptureInfo"):
        function = Function()
        kept = weakref.ref(function)
        cudamod.emulator.inject(call, status=2)
        with pytest.raises(cudamod.CUDAOutOfMemoryError):
            stream.add_callback(function)
        del function
        assert kept() is None
    stream.begin_capture()
    function = Function()
    kept = weakref.ref(function)
    cudamod.emulator.inject("cuUserObjectCreate", status=2)
    with pytest.raises(cudamod.CUDAOutOfMemoryError):
        stream.add_callback(function)
    del function
    assert kept() is None
    stream.end_capture()


def test_functions_go_at_a_later_call(device: Device, stream: Stream) -> None:
    """What a function holds may be a buffer, which must not end on the driver's thread."""
    buffer = device.allocate(4, stream=stream)
    kept = weakref.ref(buffer)

    def function(held: Buffer = buffer) -> None: ...

    stream.add_callback(function)
    del buffer, function
    stream.sync()
    stream.record()
    stream.sync()
    assert kept() is None


def test_threads_and_the_interpreter_lock(device: Device) -> None:
    """The function needs the lock while other threads launch and wait."""
    done = threading.Semaphore(0)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            stream = device.create_stream()
            for _ in range(50):
                stream.add_callback(done.release)
                stream.record()
            stream.sync()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(done.acquire(blocking=False) for _ in range(200))


ENDS = {
    "pending work": "for _ in range(20): stream.add_callback(lambda: calls.append(1))",
    "a slow one": "stream.add_callback(lambda: time.sleep(0.2))",
    "in a graph": (
        "stream.begin_capture(); stream.add_callback(lambda: None); graph = stream.end_capture()\n"
        "graph.launch(stream)"
    ),
    "from a thread": (
        "def work():\n"
        "    while True: stream.add_callback(lambda: None)\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.05)"
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_none_runs_after_the_end(run_python: Callable[..., str], end: str) -> None:
    out = run_python(
        "import threading, time\n"
        "from cudamod import Device\n"
        "device = Device(0); device.set_current(); stream = device.create_stream(); calls = []\n"
        f"{ENDS[end]}\nprint('end')\n"
    )
    assert out.strip() == "end"


def test_fork(run_python: Callable[..., str]) -> None:
    out = run_python(
        "import os\n"
        "from cudamod import Device\n"
        "device = Device(0); device.set_current(); stream = device.create_stream()\n"
        "stream.add_callback(lambda: None); stream.sync()\n"
        "child = os.fork()\n"
        "if child: print(os.waitpid(child, 0)[1])\n",
        PYTHONWARNINGS="ignore",
    )
    assert out.strip() == "0"
