"""Control over the emulated driver: its calls and launches, what shall fail, what is alive.

Everything here concerns the emulated driver that ``cudamod.driver`` opened in this process (it is
opened by the first call); with another driver every function raises :class:`NotEmulatedError`.
What has to be known before the driver starts is chosen by environment variables:

``CUDAMOD_EMULATOR_DEVICES`` (``sm_90,sm_80``), ``CUDAMOD_EMULATOR_MEMORY`` (bytes per device, with
K, M or G), ``CUDAMOD_EMULATOR_DRIVER_VERSION`` (13000), ``CUDAMOD_EMULATOR_MANNER`` (``strict`` or
``faithful``), ``CUDAMOD_EMULATOR_NULL_LAUNCH=1``, ``CUDAMOD_EMULATOR_SEED``,
``CUDAMOD_EMULATOR_THREADS``, ``CUDAMOD_EMULATOR_QUEUE_DEPTH`` (1024),
``CUDAMOD_EMULATOR_LAUNCH_SECONDS`` (a kernel that runs longer ends with a fault),
``CUDAMOD_EMULATOR_INTERRUPT=0`` (Ctrl-C ends no kernel),
``CUDAMOD_EMULATOR_FAIL`` (``cuMemAlloc:2:2``: the second call answers 2),
``CUDAMOD_EMULATOR_JOURNAL`` (1, or a file for the calls at exit),
``CUDAMOD_EMULATOR_CHECKS`` (as :func:`checks`, with commas), ``CUDAMOD_EMULATOR_LEAKS=1`` and
``CUDAMOD_EMULATOR_QUIET=1``.

::

    with cudamod.emulator.recording():
        launch(stream, config, kernel, buffer, 3)
    assert cudamod.emulator.launches()[-1].kernel == "saxpy"
    cudamod.emulator.inject("cuMemAlloc", nth=1, status=2)
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Behaviour",
    "Call",
    "EmulatedDevice",
    "Finding",
    "Launch",
    "NotEmulatedError",
    "behaviours",
    "checks",
    "counts",
    "devices",
    "findings",
    "inject",
    "injections_left",
    "journal",
    "launches",
    "null_launch",
    "null_launches",
    "open_control",
    "profiles",
    "recording",
    "reset",
    "start_recording",
    "stop_recording",
]

_CONTROL_VERSION = 1

_DECLARATIONS = """
int cudamodEmulatorControlVersion(void);
typedef struct {
    uint64_t index; uint64_t thread; const char* call; const char* arguments; int status;
} CudamodEmulatorCall;
void cudamodEmulatorJournal(int on);
void cudamodEmulatorClearJournal(void);
size_t cudamodEmulatorJournalSize(void);
int cudamodEmulatorReadCall(size_t position, CudamodEmulatorCall* call);
typedef struct {
    uint64_t index; const char* kernel; int device;
    uint32_t grid[3]; uint32_t block[3]; uint32_t cluster[3];
    uint32_t dynamic_shared; int cooperative; uint64_t stream;
    const unsigned char* parameters; size_t parameter_bytes;
    const uint32_t* offsets; const uint32_t* sizes; size_t parameter_count;
} CudamodEmulatorLaunch;
void cudamodEmulatorRecordLaunches(int on);
void cudamodEmulatorClearLaunches(void);
size_t cudamodEmulatorLaunchCount(void);
int cudamodEmulatorReadLaunch(size_t position, CudamodEmulatorLaunch* launch);
int cudamodEmulatorReadLaunchAttribute(
    size_t position, size_t index, int* id, const unsigned char** value);
int cudamodEmulatorInject(const char* call, uint64_t nth, int status);
void cudamodEmulatorClearInjections(void);
size_t cudamodEmulatorInjectionsLeft(void);
int cudamodEmulatorLiveCount(size_t position, const char** family, size_t* count);
void cudamodEmulatorNullLaunch(int on);
uint64_t cudamodEmulatorNullLaunches(void);
int cudamodEmulatorProfile(size_t position, const char** architecture);
typedef struct {
    const char *kind, *kernel, *instruction, *text; int line; uint32_t block[3], thread[3];
    int has_address; uint64_t address;
} CudamodEmulatorFinding;
int cudamodEmulatorReadFinding(size_t position, CudamodEmulatorFinding* finding);
void cudamodEmulatorClearFindings(void);
int cudamodEmulatorChecks(const char* names);
int cudamodEmulatorDevice(size_t ordinal, const char** architecture, const char** name);
void cudamodEmulatorReset(void);
int cudamodEmulatorBehaviour(
    size_t position, const char** topic, const char** basis, const char** behaviour);
"""

_opened: Any = None


class NotEmulatedError(RuntimeError):
    """The driver that is open is not the emulated one."""


@dataclass(frozen=True)
class EmulatedDevice:
    """A device of the emulated driver."""

    ordinal: int
    architecture: str  #: ``"sm_90"``
    name: str


@dataclass(frozen=True)
class Call:
    """One driver call, as the journal has it."""

    index: int  #: counts from 0 since the last clear
    thread: int  #: the operating system's thread id
    name: str  #: without version suffix
    arguments: str
    status: int


@dataclass(frozen=True)
class Launch:
    """One launch that the driver accepted."""

    index: int  #: counts from 0 since the last clear
    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]  #: zeros without a cluster
    dynamic_shared: int
    cooperative: bool
    stream: int  #: as the caller gave it
    parameters: tuple[bytes, ...]  #: the bytes of each parameter, copied at the launch
    attributes: dict[int, bytes]  #: launch attributes by number, 64 bytes each, in their order


@dataclass(frozen=True)
class Finding:
    """What a kernel did wrong: its fault, or what a check found."""

    kind: str  #: ``"illegal address"``, ``"race"``, ``"uninitialized read"`` and so on
    kernel: str
    line: int  #: of the PTX; 0 when no single instruction is at fault
    instruction: str  #: the text of that instruction
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int | None  #: a device address, or an offset in shared memory
    text: str  #: all of it as a sentence, with what it concerns


@dataclass(frozen=True)
class Behaviour:
    """A row of the table that says what the emulated driver does and how that is known."""

    topic: str
    basis: str  #: ``"measured"`` on a card, ``"documented"`` by NVIDIA, or ``"assumed"``
    text: str


@functools.cache
def _ffi() -> Any:
    from cffi import FFI

    ffi: Any = FFI()
    ffi.cdef(_DECLARATIONS)
    return ffi


def open_control(path: str) -> Any:
    """The control functions of the emulated driver at ``path``, as a CFFI library.

    Raises NotEmulatedError when the library there is another driver, or another version of it.
    """
    library: Any = _ffi().dlopen(path)
    try:
        found = library.cudamodEmulatorControlVersion()
    except AttributeError:
        raise NotEmulatedError(f"the driver {path} is not the emulated driver") from None
    if found != _CONTROL_VERSION:
        raise NotEmulatedError(
            f"the emulated driver {path} has control interface {found}, needed {_CONTROL_VERSION}"
        )
    return library


def _control() -> Any:
    global _opened
    if _opened is None:
        from cudamod import _core

        _opened = open_control(_core.driver_open()["path"])
    return _opened


def _text(value: Any) -> str:
    text: bytes = _ffi().string(value)
    return text.decode(errors="replace")


def profiles(control: Any = None) -> list[str]:
    """The architectures that a device may have: ``"sm_90"`` and so on."""
    architecture = _ffi().new("const char**")
    found: list[str] = []
    control = control or _control()
    while control.cudamodEmulatorProfile(len(found), architecture):
        found.append(_text(architecture[0]))
    return found


def devices() -> list[EmulatedDevice]:
    """The devices, as ``CUDAMOD_EMULATOR_DEVICES`` chose them."""
    architecture, name = _ffi().new("const char**"), _ffi().new("const char**")
    found: list[EmulatedDevice] = []
    while _control().cudamodEmulatorDevice(len(found), architecture, name):
        found.append(EmulatedDevice(len(found), _text(architecture[0]), _text(name[0])))
    return found


def start_recording(*, clear: bool = True) -> None:
    """Start the journal of calls and the launch recorder; both are off otherwise.

    They keep the newest million calls and 65,536 launches; ``clear=False`` keeps what is there.
    """
    control = _control()
    if clear:
        control.cudamodEmulatorClearJournal()
        control.cudamodEmulatorClearLaunches()
    control.cudamodEmulatorJournal(1)
    control.cudamodEmulatorRecordLaunches(1)


def stop_recording() -> None:
    """Stop the journal and the launch recorder; what they have stays readable."""
    control = _control()
    control.cudamodEmulatorJournal(0)
    control.cudamodEmulatorRecordLaunches(0)


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Record the calls and launches of a ``with`` block."""
    start_recording()
    try:
        yield
    finally:
        stop_recording()


def journal() -> list[Call]:
    """The recorded driver calls, oldest first."""
    control, entry = _control(), _ffi().new("CudamodEmulatorCall*")
    calls: list[Call] = []
    while control.cudamodEmulatorReadCall(len(calls), entry):
        calls.append(
            Call(entry.index, entry.thread, _text(entry.call), _text(entry.arguments), entry.status)
        )
    return calls


def launches() -> list[Launch]:
    """The recorded launches, oldest first. Null launches are not among them."""
    control, entry = _control(), _ffi().new("CudamodEmulatorLaunch*")
    found: list[Launch] = []
    while control.cudamodEmulatorReadLaunch(len(found), entry):
        data = bytes(_ffi().buffer(entry.parameters, entry.parameter_bytes))
        spans = [
            (entry.offsets[index], entry.sizes[index]) for index in range(entry.parameter_count)
        ]
        found.append(
            Launch(
                index=entry.index,
                kernel=_text(entry.kernel),
                device=entry.device,
                grid=_triple(entry.grid),
                block=_triple(entry.block),
                cluster=_triple(entry.cluster),
                dynamic_shared=entry.dynamic_shared,
                cooperative=bool(entry.cooperative),
                stream=entry.stream,
                parameters=tuple(data[offset : offset + size] for offset, size in spans),
                attributes=_attributes(len(found)),
            )
        )
    return found


def _attributes(position: int) -> dict[int, bytes]:
    number, value = _ffi().new("int*"), _ffi().new("const unsigned char**")
    found: dict[int, bytes] = {}
    index = 0
    while _control().cudamodEmulatorReadLaunchAttribute(position, index, number, value):
        found[number[0]] = bytes(_ffi().buffer(value[0], 64))
        index += 1
    return found


def _triple(values: Any) -> tuple[int, int, int]:
    return values[0], values[1], values[2]


def inject(call: str, nth: int = 1, status: int = 999) -> None:
    """Make the ``nth`` call of ``call`` from now on answer ``status`` without running.

    ``call`` is a driver function's name without version suffix (``"cuMemAlloc"``), or ``"*"`` for
    any call. Raises ValueError for an empty name, ``nth`` below 1 or a ``status`` that is no error,
    TypeError where ``call`` is no string or ``nth`` or ``status`` no integer.
    """
    if not isinstance(call, str):
        raise TypeError(f"call must be the name of a driver function, not {call!r}")
    for name, value in (("nth", nth), ("status", status)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, not {value!r}")
    if not _control().cudamodEmulatorInject(call.encode(), max(nth, 0), status):
        raise ValueError(f"cannot inject {call!r}, nth={nth}, status={status}")


def injections_left() -> int:
    """How many injected failures have not happened yet."""
    return int(_control().cudamodEmulatorInjectionsLeft())


def counts() -> dict[str, int]:
    """Live objects by family: contexts, streams, events, libraries, memory and so on."""
    family, count = _ffi().new("const char**"), _ffi().new("size_t*")
    found: dict[str, int] = {}
    while _control().cudamodEmulatorLiveCount(len(found), family, count):
        found[_text(family[0])] = count[0]
    return found


def checks(*names: str) -> None:
    """Check "uninitialized", "races", "barriers", "streams" or "all" from now on.

    Without a name nothing is checked beyond what always is: bounds, alignment and use after free.
    "uninitialized": reads of global and shared memory that nobody wrote (of global memory, only
    what was allocated while this check was on); "races": two threads of a block access a byte of
    shared memory, one of them writes, and no barrier lies between; "barriers": threads of a warp
    that don't wait in the same barrier instruction; "streams": launches, copies, fills, frees and
    nodes of graphs that access the same byte of memory, one of them writing, where neither streams,
    events, edges nor the host's waiting order the two. Kernels run two to ten times slower.

    In the strict manner the first finding is a fault of the context (719), whose CUDAError tells
    it; in the faithful manner the kernel goes on. All are in :func:`findings` and on stderr.

    Raises ValueError for an unknown name.
    """
    if not _control().cudamodEmulatorChecks(",".join(names).encode()):
        raise ValueError(
            f"unknown among {names!r}: the checks are uninitialized, races, barriers, streams, all"
        )


def findings(*, clear: bool = False) -> list[Finding]:
    """What kernels did wrong, oldest first: faults, and what :func:`checks` found.

    The newest 10,000 are kept; each instruction is reported once per launch and kind.
    """
    control, entry = _control(), _ffi().new("CudamodEmulatorFinding*")
    found: list[Finding] = []
    while control.cudamodEmulatorReadFinding(len(found), entry):
        found.append(
            Finding(
                kind=_text(entry.kind),
                kernel=_text(entry.kernel),
                line=entry.line,
                instruction=_text(entry.instruction),
                block=_triple(entry.block),
                thread=_triple(entry.thread),
                address=entry.address if entry.has_address else None,
                text=_text(entry.text),
            )
        )
    if clear:
        control.cudamodEmulatorClearFindings()
    return found


def null_launch(on: bool) -> None:
    """Swallow launches: they are counted and return at once.

    This works on a driver that is open already, at the cost of its ordinary call. Benchmarks set
    ``CUDAMOD_EMULATOR_NULL_LAUNCH=1`` instead: an entry point that does nothing else.
    """
    _control().cudamodEmulatorNullLaunch(int(on))


def null_launches() -> int:
    """How many launches were swallowed."""
    return int(_control().cudamodEmulatorNullLaunches())


def reset() -> None:
    """Back to a fresh start: recording off and empty, nothing injected, faults forgotten.

    Findings are gone, and checks are as the environment has them. Objects stay alive. A real
    context cannot be healed after a fault; this is for tests.
    """
    _control().cudamodEmulatorReset()


def behaviours() -> list[Behaviour]:
    """The table of behaviours and their basis, which the documentation prints."""
    topic, basis, text = (_ffi().new("const char**") for _ in range(3))
    found: list[Behaviour] = []
    while _control().cudamodEmulatorBehaviour(len(found), topic, basis, text):
        found.append(Behaviour(_text(topic[0]), _text(basis[0]), _text(text[0])))
    return found
