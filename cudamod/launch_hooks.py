"""Callables around every launch, for profilers and loggers.

::

    with cudamod.launch_hooks.add(enter=lambda info: print(info.kernel.name, info.metadata)):
        launcher(x, y)

``enter(info)`` runs before the launch and ``exit(info)`` after it, with one :class:`LaunchInfo` for
both, in the thread that launches. Hooks enter in the order in which they were added and exit in the
opposite one. A launch that a hook makes is watched by no hook.

An exception in ``enter`` is raised and nothing is launched; an exception in ``exit`` is raised
after the launch. Either way, and when the launch itself fails, ``exit`` of everyone whose ``enter``
has returned is called; of several exceptions the first one is raised, later ones go to
``sys.unraisablehook``. While no hook is added, launches pay nothing.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from cudamod import _core

__all__ = ["LaunchHook", "LaunchInfo", "add", "nvtx_ranges"]

Hook = Callable[["LaunchInfo"], object]


class LaunchInfo:
    """What is launched, as hooks see it.

    Attributes:
        kernel: the ``Kernel``.
        config: the ``LaunchConfig``.
        stream: the ``Stream``.
        arguments: the arguments as they were passed. Keeping them keeps their memory.
        metadata: what ``Kernel.bind`` was given as ``metadata``, else None.
    """

    __slots__ = ("_exits", "arguments", "config", "kernel", "metadata", "stream")

    kernel: _core.Kernel
    config: _core.LaunchConfig
    stream: _core.Stream
    arguments: tuple[Any, ...]
    metadata: Any
    _exits: list[Hook]

    def __init__(
        self,
        kernel: _core.Kernel,
        config: _core.LaunchConfig,
        stream: _core.Stream,
        arguments: tuple[Any, ...],
        metadata: Any,
    ) -> None:
        self.kernel = kernel
        self.config = config
        self.stream = stream
        self.arguments = arguments
        self.metadata = metadata
        self._exits = []

    def __repr__(self) -> str:
        return f"<LaunchInfo {self.kernel.name} {self.config} {self.stream}>"


class LaunchHook:
    """A pair of callables in force until :meth:`remove`, or for a ``with`` block."""

    def __init__(self, enter: Hook | None, exit: Hook | None) -> None:
        self.enter = enter
        self.exit = exit

    def remove(self) -> None:
        """Call them no more. Launches in progress are finished as they began."""
        _change(lambda hooks: tuple(hook for hook in hooks if hook is not self))

    def __enter__(self) -> LaunchHook:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


_lock = threading.Lock()
_hooks: tuple[LaunchHook, ...] = ()


def _change(change: Callable[[tuple[LaunchHook, ...]], tuple[LaunchHook, ...]]) -> None:
    global _hooks
    with _lock:
        _hooks = change(_hooks)
        if _hooks:
            _core.set_launch_hooks(_enter, _exit)
        else:
            _core.set_launch_hooks(None, None)


def add(enter: Hook | None = None, exit: Hook | None = None) -> LaunchHook:
    """Call ``enter(info)`` before and ``exit(info)`` after every launch from now on.

    Raises TypeError when neither is given, or one is not callable.
    """
    if enter is None and exit is None:
        raise TypeError("launch_hooks.add: give enter, exit, or both")
    for name, hook in (("enter", enter), ("exit", exit)):
        if hook is not None and not callable(hook):
            raise TypeError(f"launch_hooks.add: {name} must be callable, not {hook!r}")
    added = LaunchHook(enter, exit)
    _change(lambda hooks: (*hooks, added))
    return added


def nvtx_ranges(domain: str = "cudamod") -> LaunchHook:
    """Put an NVTX range, named as the kernel, around every launch.

    Needs NVIDIA's ``nvtx`` package; raises ImportError without it.
    """
    try:
        nvtx: Any = importlib.import_module("nvtx")
    except ImportError:
        raise ImportError(
            "launch_hooks.nvtx_ranges needs the package nvtx: pip install nvtx"
        ) from None
    return add(
        lambda info: nvtx.push_range(info.kernel.name, domain=domain),
        lambda info: nvtx.pop_range(domain=domain),
    )


def _enter(*parts: Any) -> LaunchInfo:
    info = LaunchInfo(*parts)
    try:
        for hook in _hooks:
            if hook.enter is not None:
                hook.enter(info)
            if hook.exit is not None:
                info._exits.append(hook.exit)
    except BaseException:
        _leave(info, sys.exc_info()[1])
        raise
    return info


def _exit(info: LaunchInfo) -> None:
    raised = _leave(info, None)
    if raised is not None:
        raise raised


def _leave(info: LaunchInfo, raised: BaseException | None) -> BaseException | None:
    """Call every exit that is due; the first exception of all."""
    while info._exits:
        hook = info._exits.pop()
        try:
            hook(info)
        except BaseException as error:
            if raised is None:
                raised = error
            else:
                _report(error, hook)
    return raised


def _report(error: BaseException, hook: Hook) -> None:
    class Unraisable:
        exc_type = type(error)
        exc_value = error
        exc_traceback = error.__traceback__
        err_msg = "Exception ignored in a launch hook"
        object = hook

    sys.unraisablehook(Unraisable)  # type: ignore[arg-type]  # what it reads of its argument
