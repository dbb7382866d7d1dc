"""What is run by hand, each as one command: ``nox -s sanitize``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nox

nox.options.sessions = ["tests"]
BUILD = {"CMAKE_BUILD_PARALLEL_LEVEL": "2"}


@nox.session
def tests(session: nox.Session) -> None:
    """The suite, on the emulated driver unless the arguments say otherwise."""
    session.install(".[test]", env=BUILD)
    session.run("pytest", *session.posargs)


def library(name: str) -> str:
    """A library of the compiler's own."""
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@nox.session
def sanitize(session: nox.Session) -> None:
    """The suite with everything under AddressSanitizer and UndefinedBehaviorSanitizer (g++).

    Python itself is not built with them: its own leaks are not asked for.
    """
    # The build imports the module once, for its stub, without the sanitizer preloaded.
    building = {**BUILD, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0", "CXX": "g++"}
    session.install(
        ".[test]",
        "-Ccmake.define.CUDAMOD_SANITIZE=address,undefined",
        "-Ccmake.build-type=RelWithDebInfo",
        "-Cinstall.strip=false",
        env=building,
    )
    running = {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')} {library('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    # The tests of the build and of the native layers build for themselves.
    where = session.posargs or [
        "tests",
        "--ignore=tests/native",
        "--ignore=tests/test_build.py",
        "--ignore=tests/test_typing.py",
    ]
    session.run("pytest", *where, env=running)


@nox.session
def threads(session: nox.Session) -> None:
    """The tests of threads with the extension and the emulated driver under ThreadSanitizer (g++).

    Python itself is not built with it: what the interpreter lock orders is seen by its mutex.
    """
    session.install(
        ".[test]",
        "-Ccmake.define.CUDAMOD_SANITIZE=thread",
        "-Ccmake.build-type=RelWithDebInfo",
        "-Cinstall.strip=false",
        env={**BUILD, "CXX": "g++"},
    )
    where = session.posargs or [
        "tests/test_threads.py",
        "tests/test_shared_objects.py",
        "tests/test_unloading.py",
        "tests/test_gil.py",
        "tests/test_callback.py",
        "tests/test_sequence.py",
    ]
    suppressions = Path("tests/thread_sanitizer.supp").resolve()
    running = {
        "LD_PRELOAD": library("libtsan.so"),
        "TSAN_OPTIONS": f"suppressions={suppressions} halt_on_error=1 die_after_fork=0",
    }
    session.run("pytest", *where, env=running)
