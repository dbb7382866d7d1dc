"""Callables around every launch."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import pytest
from ptx import ONE, Stored, empty, read

import cudamod
from cudamod import CUDAError, Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from cudamod.launch_hooks import LaunchInfo, add, nvtx_ranges


@pytest.fixture
def kernel(device: Device) -> Kernel:
    return ObjectCode.from_ptx(empty("k", parameters=["u32"])).get_kernel("k")


def test_what_a_hook_sees(kernel: Kernel, stream: Stream) -> None:
    class Config(LaunchConfig):
        pass

    config, metadata = Config(grid=2, block=3), {"flops": 7}
    launcher = kernel.bind(config, stream, metadata=metadata)
    entered: list[LaunchInfo] = []
    exited: list[LaunchInfo] = []
    with add(entered.append, exited.append):
        launcher(5)
        launcher(6, grid=4)
        launch(stream, ONE, kernel, 7)
        kernel[8, 1, stream](9)
    launcher(10)
    stream.sync()
    assert [info.arguments for info in entered] == [(5,), (6,), (7,), (9,)]
    assert all(a is b for a, b in zip(entered, exited, strict=True))
    assert [info.kernel for info in entered] == [kernel] * 4
    assert [info.stream for info in entered] == [stream] * 4
    assert [info.metadata for info in entered] == [metadata, metadata, None, None]
    assert entered[0].config is config
    assert entered[1].config == LaunchConfig(grid=4, block=3)
    assert entered[2].config is ONE
    assert entered[3].config.grid == (8, 1, 1)
    assert "k" in repr(entered[0])


def test_several_hooks_nest(kernel: Kernel, stream: Stream) -> None:
    said: list[str] = []

    def say(text: str) -> Any:
        return lambda info: said.append(text)

    launcher = kernel.bind(ONE, stream)
    with add(say("a"), say("A")), add(say("b")), add(exit=say("C")) as last, add(say("d")):
        launcher(1)
        last.remove()
        last.remove()
        said.append("|")
        launcher(1)
    launcher(1)
    assert said == ["a", "b", "d", "C", "A", "|", "a", "b", "d", "A"]


def test_what_is_no_hook() -> None:
    with pytest.raises(TypeError, match="enter, exit, or both"):
        add()
    for wrong in ({"enter": 1}, {"exit": "x"}):
        with pytest.raises(TypeError, match="must be callable"):
            add(**wrong)  # type: ignore[arg-type]


def failing(info: LaunchInfo) -> None:
    raise LookupError("a hook failed")


def test_an_enter_that_fails_launches_nothing(stored: Stored, stream: Stream) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    launcher(out, 1)
    left: list[str] = []
    with (
        add(exit=lambda info: left.append("first")),
        add(failing, lambda info: left.append("never")),
        add(exit=lambda info: left.append("never")),
        pytest.raises(LookupError, match="a hook failed"),
    ):
        launcher(out, 2)
    assert left == ["first"]
    assert read(out, stream) == b"\1\0\0\0"


def test_an_exit_that_fails_comes_after_the_launch(
    stored: Stored, stream: Stream, monkeypatch: Any
) -> None:
    launcher = stored.kernel("u32").bind(ONE, stream)
    out = stream.device.allocate(4, stream=stream)
    left: list[str] = []
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: ignored.append(told.exc_type))

    def other(info: LaunchInfo) -> None:
        raise KeyError("another")

    with (
        add(exit=lambda info: left.append("outer")),
        add(exit=other),
        add(exit=failing),
        pytest.raises(LookupError, match="a hook failed"),
    ):
        launcher(out, 3)
    assert left == ["outer"]
    assert ignored == [KeyError]
    assert read(out, stream) == b"\3\0\0\0"


def test_a_launch_that_fails_is_left_too(kernel: Kernel, stream: Stream, monkeypatch: Any) -> None:
    launcher = kernel.bind(ONE, stream)
    left: list[str] = []
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: ignored.append(told.exc_type))
    with add(exit=lambda info: left.append("left")):
        with pytest.raises(TypeError, match="takes 1 argument"):
            launcher()
        with pytest.raises(CUDAError, match="block x"):
            launcher(1, block=1025)
        with pytest.raises(OverflowError):
            launcher(2**40)
    assert left == ["left"] * 3
    with add(exit=failing), pytest.raises(OverflowError):
        launcher(2**40)
    assert ignored == [LookupError]


def test_launches_of_a_hook_are_not_watched(kernel: Kernel, stream: Stream) -> None:
    launcher = kernel.bind(ONE, stream)
    seen: list[Any] = []

    def launching(info: LaunchInfo) -> None:
        seen.append(info.arguments)
        launcher(100)
        info.kernel[1, 1, stream](101)

    with add(launching, launching):
        launcher(1)
        launcher(2)
    assert seen == [(1,), (1,), (2,), (2,)]
    stream.sync()


def test_a_hook_may_close_what_is_launched_with(kernel: Kernel, device: Device) -> None:
    for when in ("enter", "exit"):
        stream = device.create_stream()
        launcher = kernel.bind(ONE, stream)
        left: list[Any] = []
        with add(**{when: lambda info: info.stream.close()}), add(exit=left.append):
            if when == "enter":
                with pytest.raises(RuntimeError, match="Stream has been closed by a launch hook"):
                    launcher(1)
            else:
                launcher(1)
        assert len(left) == 1
    kernel = ObjectCode.from_ptx(empty("p", parameters=["u64"])).get_kernel("p")
    stream = device.create_stream()
    buffer = device.allocate(8, stream=stream)
    launcher = kernel.bind(ONE, stream)
    with (
        add(lambda info: info.arguments[0].close()),
        pytest.raises(RuntimeError, match="Buffer has been closed"),
    ):
        launcher(buffer)


def test_a_hook_may_add_and_remove_hooks(kernel: Kernel, stream: Stream) -> None:
    launcher = kernel.bind(ONE, stream)
    said: list[str] = []
    hooks: list[Any] = []

    def enter(info: LaunchInfo) -> None:
        said.append("enter")
        hooks.pop().remove()
        hooks.append(add(lambda info: said.append("new")))

    hooks.append(add(enter, lambda info: said.append("exit")))
    launcher(1)
    launcher(1)
    hooks.pop().remove()
    launcher(1)
    assert said == ["enter", "exit", "new"]


def test_a_launch_on_current(device: Device) -> None:
    from test_current_stream import Framework

    framework = Framework()
    stream = device.create_stream()
    framework.current = stream.handle
    tensor = framework.tensor(device.allocate(8, stream=stream).handle)
    kernel = ObjectCode.from_ptx(empty("p", parameters=["u64"])).get_kernel("p")
    seen: list[LaunchInfo] = []
    with add(seen.append):
        kernel[1, 1](tensor)
        launch(cudamod.CURRENT, ONE, kernel, tensor)
    stream.sync()
    assert [info.stream for info in seen] == [stream] * 2


def test_hooks_in_many_threads(stored: Stored, device: Device) -> None:
    launcher = stored.kernel("u32").bind(ONE, device.default_stream)
    barrier = threading.Barrier(8)
    wrong: list[Any] = []

    def use(number: int) -> None:
        try:
            stream = device.create_stream()
            out = device.allocate(4, stream=stream)
            barrier.wait()
            for turn in range(50):
                mine: list[Any] = []
                with add(lambda info: mine.append(info.arguments[1])):  # noqa: B023
                    launcher(out, number * 1000 + turn, stream=stream)
                if read(out, stream) != (number * 1000 + turn).to_bytes(4, "little"):
                    wrong.append((number, turn))
                if number * 1000 + turn not in mine:
                    wrong.append("unseen")
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_nvtx(kernel: Kernel, stream: Stream, monkeypatch: Any) -> None:
    ranges: list[Any] = []
    stand_in = types.SimpleNamespace(
        push_range=lambda message, domain: ranges.append((message, domain)),
        pop_range=lambda domain: ranges.append(domain),
    )
    monkeypatch.setitem(sys.modules, "nvtx", stand_in)
    with nvtx_ranges(), nvtx_ranges("mine"):
        kernel.bind(ONE, stream)(1)
    assert ranges == [("k", "cudamod"), ("k", "mine"), "mine", "cudamod"]
    monkeypatch.setitem(sys.modules, "nvtx", None)
    with pytest.raises(ImportError, match="pip install nvtx"):
        nvtx_ranges()
