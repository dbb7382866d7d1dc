"""Objects come whole from where they are made, or not at all; what can't travel says so."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from ptx import empty

import cudamod
from cudamod import Device, EventOptions, LaunchConfig, Stream, StreamOptions
from cudamod._compiler_library import NVJITLINK

# Classes whose objects only other objects make.
MADE_ELSEWHERE = [
    cudamod.Buffer,
    cudamod.Context,
    cudamod.Event,
    cudamod.Graph,
    cudamod.Kernel,
    cudamod.KernelAttributes,
    cudamod.KernelOccupancy,
    cudamod.Launcher,
    cudamod.MemoryPoolAttributes,
    cudamod.ObjectCode,
    cudamod.Prepared,
    cudamod.Stream,
    cudamod.TensorMap,
]
NATIVE = [kind for kind in MADE_ELSEWHERE if kind is not cudamod.ObjectCode]
COMPILING = [cudamod.CompileCache, cudamod.Linker, cudamod.Program]
RESOURCES = [
    cudamod.DeviceMemoryResource,
    cudamod.LegacyPinnedMemoryResource,
    cudamod.ManagedMemoryResource,
    cudamod.PinnedMemoryResource,
]
NATIVE += [Device, LaunchConfig, cudamod.LaunchSequence, *RESOURCES]
OPTIONS = [
    EventOptions,
    StreamOptions,
    cudamod.DeviceMemoryResourceOptions,
    cudamod.LinkerOptions,
    cudamod.ManagedMemoryResourceOptions,
    cudamod.PinnedMemoryResourceOptions,
    cudamod.ProgramOptions,
]
MADE_BY_CALL = [
    Device,
    LaunchConfig,
    cudamod.LaunchSequence,
    cudamod.AccessPolicyWindow,
    cudamod.LaunchCompletionEvent,
    cudamod.MemoryResource,
    cudamod.ProgrammaticEvent,
    *COMPILING,
    *OPTIONS,
    *RESOURCES,
]
EXCEPTIONS = [
    value
    for value in vars(cudamod).values()
    if isinstance(value, type) and issubclass(value, BaseException)
]


def test_every_public_class_is_in_one_of_the_lists() -> None:
    public = {getattr(cudamod, name) for name in cudamod.__all__}
    classes = {value for value in public if isinstance(value, type)}
    assert classes == {*MADE_ELSEWHERE, *MADE_BY_CALL, *EXCEPTIONS}


@pytest.mark.parametrize("kind", MADE_ELSEWHERE)
def test_a_class_says_where_its_objects_come_from(kind: Any) -> None:
    name = kind.__name__
    for make in (
        kind,
        lambda: kind(1, 2, three=3),
        lambda: kind.__new__(kind),
        lambda: kind.__new__(kind, 1),
    ):
        with pytest.raises((RuntimeError, TypeError), match=f"{name}.* Use |{name}"):
            make()


@pytest.mark.parametrize("kind", NATIVE)
def test_object_makes_no_half_built_object(kind: Any) -> None:
    with pytest.raises((TypeError, RuntimeError), match=kind.__name__):
        object.__new__(kind)


@pytest.mark.parametrize("kind", [kind for kind in NATIVE if kind in MADE_ELSEWHERE])
def test_a_subclass_cannot_be_made_either(kind: Any) -> None:
    try:
        subclass: Any = type("Derived", (kind,), {"__init__": lambda self: None})
    except TypeError:
        return
    for make in (subclass, lambda: subclass.__new__(subclass), lambda: object.__new__(subclass)):
        with pytest.raises((TypeError, RuntimeError), match=f"Derived|{kind.__name__}"):
            make()
    gc.collect()


def test_a_device_class_has_no_subclass() -> None:
    with pytest.raises(TypeError, match="Device"):
        type("Derived", (Device,), {})


def test_a_launch_config_may_have_a_subclass() -> None:
    class Config(LaunchConfig):
        note = "mine"

    config = Config(grid=2, block=3)
    assert (config.grid, config.note) == ((2, 1, 1), "mine")


@pytest.mark.parametrize("kind", OPTIONS)
def test_options_made_without_a_call_have_their_defaults(kind: Any) -> None:
    assert kind.__new__(kind) == kind()
    assert repr(kind.__new__(kind)) == repr(kind())


def test_initialising_again_changes_nothing(device: Device, stream: Stream) -> None:
    event, buffer = device.create_event(), device.allocate(8)
    before = (repr(stream), repr(event), repr(buffer), repr(device))
    for thing in (stream, event, buffer, device, device.context, device.properties):
        for arguments in ((), (1,)):
            with contextlib.suppress(TypeError):
                type(thing).__init__(thing, *arguments)
    assert (repr(stream), repr(event), repr(buffer), repr(device)) == before


def test_what_compiles_is_not_pickled() -> None:
    program = cudamod.Program("", "c++")
    code = cudamod.ObjectCode.from_ptx(b"text")
    things = [program, cudamod.Linker(code)] if NVJITLINK.is_available() else [program]
    for thing in things:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"cannot pickle '{type(thing).__name__}' object"):
                attempt(thing)


Makers = dict[str, Callable[[Device], Any]]


def _captured(stream: Stream) -> cudamod.Graph:
    stream.begin_capture()
    return stream.end_capture()


def _prepared(stream: Stream) -> cudamod.Prepared:
    kernel = cudamod.ObjectCode.from_ptx(empty("nothing")).get_kernel("nothing")
    return kernel.bind(LaunchConfig(grid=1, block=1), stream).prepare()


CANNOT_TRAVEL: Makers = {
    "Stream": Device.create_stream,
    "default stream": lambda device: device.default_stream,
    "Event": Device.create_event,
    "Event for other processes": lambda device: device.create_event({"ipc_enabled": True}),
    "Buffer": lambda device: device.allocate(8),
    "Context": lambda device: device.context,
    "DeviceProperties": lambda device: device.properties,
    "Graph": lambda device: _captured(device.create_stream()),
    "Prepared": lambda device: _prepared(device.create_stream()),
    "LaunchSequence": lambda device: cudamod.LaunchSequence([_prepared(device.create_stream())]),
    "DeviceMemoryResource": lambda device: device.memory_resource,
    "MemoryPoolAttributes": lambda device: device.memory_resource.attributes,
    "LegacyPinnedMemoryResource": lambda device: cudamod.LegacyPinnedMemoryResource(),
}


@pytest.mark.parametrize("kind", CANNOT_TRAVEL)
def test_what_belongs_to_this_process_is_not_pickled(device: Device, kind: str) -> None:
    thing = CANNOT_TRAVEL[kind](device)
    attempts: list[Callable[[], object]] = [
        lambda: copy.copy(thing),
        lambda: copy.deepcopy(thing),
        lambda: copy.deepcopy({"inside": [thing]}),
    ]
    attempts += [
        lambda protocol=protocol: pickle.dumps(thing, protocol)  # type: ignore[misc]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match=f"cannot pickle '.*{type(thing).__name__}' object"):
            attempt()


TRAVELS: Makers = {
    "Device": lambda device: device,
    "StreamOptions": lambda device: StreamOptions(False, -1),
    "EventOptions": lambda device: EventOptions(blocking_sync=True),
    "LinkerOptions": lambda device: cudamod.LinkerOptions(arch="sm_90", kernels_used=["k"]),
    "ProgramOptions": lambda device: cudamod.ProgramOptions(define_macro=["A", ("B", "1")]),
    "LaunchConfig": lambda device: LaunchConfig(grid=(1, 2, 3), block=4, shmem_size=5),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", TRAVELS)
def test_what_is_only_a_value_is_pickled(device: Device, kind: str, protocol: int) -> None:
    thing = TRAVELS[kind](device)
    again = pickle.loads(pickle.dumps(thing, protocol))
    assert again == thing
    assert type(again) is type(thing)
    assert hash(again) == hash(thing)
    assert copy.deepcopy(thing) == copy.copy(thing) == thing


@pytest.mark.parametrize("kind", NATIVE)
def test_no_slot_of_a_class_trusts_its_argument(kind: Any) -> None:
    """The methods of a class refuse objects of another one."""
    for name, member in vars(kind).items():
        if name.startswith("__") or type(member).__name__ != "nb_method":
            continue
        for wrong in (object(), None, 5):
            with pytest.raises(TypeError):
                member(wrong)


@pytest.mark.parametrize("kind", [*MADE_ELSEWHERE, Device, LaunchConfig])
def test_no_special_method_trusts_its_self(kind: Any) -> None:
    skipped = {"__new__", "__init_subclass__", "__subclasshook__", "__class_getitem__"}
    for name, member in vars(kind).items():
        if not name.startswith("__") or not callable(member) or name in skipped:
            continue
        for wrong in (object(), 5, (1,)):
            try:
                answer = member(wrong)
            except (TypeError, AttributeError):
                continue
            assert answer is NotImplemented, name  # as operators answer
