"""``cudamod emulate``: an unmodified program on the emulated driver.

The program finds ``libcuda.so.1`` in a folder made for it alone, which is first on its library
path and goes when it ends. Nobody else's search for a driver sees that folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cudamod import _core
from cudamod.emulator import open_control, profiles

__all__ = ["run"]

_DRIVER_NAMES = ("libcuda.so.1", "libcuda.so")
_LINKER_NAMES = ("libnvJitLink.so.12", "libnvJitLink.so.13")
_AWAITED = {
    signal.SIGCHLD,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
}
_VERSION = "13050"  # programs bring compilers of their own, whose PTX an older driver refuses
_FROM_THE_TERMINAL = 0x80  # SI_KERNEL: the program, in the same process group, has it too


def run(program: Sequence[str], settings: Mapping[str, str], *, hide_linker: bool = False) -> int:
    """Run the program on the emulated driver; answer its exit status, 128 + n after signal n.

    ``settings`` are the emulated driver's environment variables without their common prefix
    (``{"DEVICES": "sm_80"}``); the rest of the environment is the program's as it is. Signals are
    passed on. The status is 127 for a program that is not found, 126 for one that cannot run.
    With ``hide_linker``, who looks for nvJitLink finds a library without its functions.
    """
    (driver,) = _core.driver_places("emulated")
    known = profiles(open_control(driver))
    for device in settings.get("DEVICES", "none").split(","):
        if device not in (*known, "none"):
            message = f"no profile of a device {device!r}: there are {', '.join(known)}"
            print(f"cudamod emulate: {message}", file=sys.stderr)
            return 2
    chosen = f" ({settings['DEVICES']})" if "DEVICES" in settings else ""
    print(
        f"cudamod emulate: an emulated CUDA driver, not a GPU{chosen}: for tests and learning, "
        "its timings mean nothing",
        file=sys.stderr,
        flush=True,
    )
    names = _DRIVER_NAMES + (_LINKER_NAMES if hide_linker else ())
    with _signals_held() as before, _library_path(driver, names) as folder:
        try:
            return _wait_for(program, _environment(folder, settings), before)
        except OSError as error:
            print(f"cudamod emulate: {program[0]}: {error.strerror}", file=sys.stderr)
            return 127 if isinstance(error, FileNotFoundError) else 126


@contextmanager
def _library_path(driver: str, names: Sequence[str]) -> Iterator[str]:
    """A folder in which a program finds the driver under the names that it looks for."""
    folder = tempfile.mkdtemp(prefix="cudamod-emulate-")
    try:
        for name in names:
            (Path(folder) / name).symlink_to(driver)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: str, settings: Mapping[str, str]) -> dict[str, str]:
    known = os.environ.get("LD_LIBRARY_PATH")
    package = "CUDAMOD"
    emulator = f"{package}_EMULATOR_"
    return {
        # The first line was ours: the driver need not say it again in every process.
        f"{emulator}QUIET": "1",
        f"{emulator}DRIVER_VERSION": _VERSION,
        **os.environ,
        **{f"{emulator}{name}": value for name, value in settings.items()},
        f"{package}_DRIVER": "emulated",
        # An empty entry would stand for the current folder.
        "LD_LIBRARY_PATH": os.pathsep.join([folder, known] if known else [folder]),
        # Triton asks ldconfig, which knows of no private path.
        "TRITON_LIBCUDA_PATH": folder,
    }


@contextmanager
def _signals_held() -> Iterator[set[int]]:
    """Block the signals that are awaited: none is lost before the wait, and no folder is left."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        yield {int(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_for(program: Sequence[str], environment: Mapping[str, str], mask: set[int]) -> int:
    """Start the program, pass signals on to it until it ends, and answer its status."""
    process = os.posix_spawnp(
        program[0],
        list(program),
        environment,
        setsigmask=mask,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
    )
    while True:
        received = signal.sigwaitinfo(_AWAITED)
        if received.si_signo != signal.SIGCHLD:
            if received.si_code != _FROM_THE_TERMINAL:
                os.kill(process, received.si_signo)
            continue
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
