"""``cudamod emulate``: programs that don't know the library, on the emulated driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_command import command_line, run

# What a program does that knows nothing but the CUDA driver's name.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** arguments) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return puts(dlerror()), 9;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*name)(char*, int, int) = (int (*)(char*, int, int))dlsym(driver, "cuDeviceGetName");
    int (*devices)(int*) = (int (*)(int*))dlsym(driver, "cuDeviceGetCount");
    int (*total)(size_t*, int) = (int (*)(size_t*, int))dlsym(driver, "cuDeviceTotalMem_v2");
    int (*stream)(void**, unsigned) = (int (*)(void**, unsigned))dlsym(driver, "cuStreamCreate");
    int (*retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*current)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
    char text[100] = "";
    int number = 0;
    size_t bytes = 0;
    void* pointer = NULL;
    if (init(0) || devices(&number) || total(&bytes, number - 1)) return 8;
    for (int device = 0; device < number; ++device)
        if (!name(text, 100, device)) puts(text);
    printf("%zu bytes\n", bytes);
    if (retain(&pointer, 0) || current(pointer)) return 7;
    printf("streams answer %d", stream(&pointer, 0));
    printf(" %d\n", stream(&pointer, 0));
    for (int index = 1; index < count; ++index) puts(arguments[index]);
    return count > 1 ? atoi(arguments[1]) : 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory, cxx: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("program")
    source, built = folder / "program.cpp", folder / "program"
    source.write_text(PROGRAM)
    subprocess.run([*cxx, str(source), "-o", str(built), "-ldl"], check=True)
    return built


def python(code: str) -> list[str]:
    # The current folder may be the checkout, whose package has no extension module.
    return ["--", sys.executable, "-c", f"import sys\nsys.path[:] = filter(None, sys.path)\n{code}"]


def test_a_program_in_c(program: Path) -> None:
    done = run("emulate", "--", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("cudamod emulate: an emulated CUDA driver, not a GPU")
    name, total, streams = done.stdout.splitlines()
    assert "emulated" in name
    assert (total, streams) == (f"{16 << 30} bytes", "streams answer 0 0")
    assert len(done.stderr.splitlines()) == 1  # said once


def test_arguments_and_exit_status_are_passed_on(program: Path) -> None:
    done = run("emulate", "--", str(program), "37", "--", "--devices", "")
    assert done.returncode == 37
    assert done.stdout.splitlines()[-4:] == ["37", "--", "--devices", ""]


def test_options(program: Path, tmp_path: Path) -> None:
    options = ["--devices", "sm_80,sm_120", "--memory", "2G", "--leaks", "--fail"]
    options += ["cuStreamCreate:2:2", "--journal", str(tmp_path / "calls.%p"), "--seed", "7"]
    options += ["--manner", "faithful", "--threads", "2", "--driver-version", "12040"]
    done = run("emulate", *options, "--", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(sm_80,sm_120)" in done.stderr.splitlines()[0]
    assert "A100 (emulated)" in done.stdout.splitlines()[0]
    assert "RTX 5090 (emulated)" in done.stdout.splitlines()[1]
    assert done.stdout.splitlines()[2:] == [f"{2 << 30} bytes", "streams answer 0 2"]
    assert "still alive at exit: 1 primary_context, 1 stream" in done.stderr
    (journal,) = tmp_path.iterdir()
    assert int(journal.suffix[1:]) > 0
    assert " cuInit(0) = 0" in journal.read_text()


def test_every_option_reaches_the_driver() -> None:
    options = ["--devices", "sm_80", "--memory", "5M", "--driver-version", "12080", "--threads"]
    options += ["3", "--seed", "4", "--manner", "faithful", "--journal", "/a/%p", "--leaks"]
    options += ["--fail", "cuInit:5:1", "--fail", "*:900:2", "--null-launch"]
    code = "import os; print(*(f'{n}={v}' for n, v in os.environ.items()), sep='\\n')"
    expected = {
        "DEVICES=sm_80",
        "DRIVER_VERSION=12080",
        "FAIL=cuInit:5:1,*:900:2",
        "JOURNAL=/a/%p",
        "LEAKS=1",
        "MANNER=faithful",
        "MEMORY=5M",
        "NULL_LAUNCH=1",
        "QUIET=1",
        "SEED=4",
        "THREADS=3",
    }
    given = run("emulate", *options, *python(code)).stdout.splitlines()
    assert {f"CUDAMOD_EMULATOR_{setting}" for setting in expected} <= set(given)


def test_this_library_runs_on_it_too() -> None:
    code = "from cudamod import Device; print(Device().name)"
    done = run("emulate", "--devices", "sm_86", *python(code), CUDAMOD_DRIVER="/nothing.so")
    assert done.returncode == 0, done.stderr
    assert "RTX 3090 (emulated)" in done.stdout


def test_both_ways_lead_to_one_driver() -> None:
    code = """
import ctypes, cudamod.emulator
shared = ctypes.CDLL("libcuda.so.1")
device = cudamod.Device()
device.set_current()
before = cudamod.emulator.counts()["stream"]
stream = ctypes.c_void_p()
assert shared.cuStreamCreate(ctypes.byref(stream), 0) == 0
assert cudamod.emulator.counts()["stream"] == before + 1
"""
    done = run("emulate", *python(code))
    assert done.returncode == 0, done.stderr


def test_the_library_path_is_private_and_goes(tmp_path: Path) -> None:
    code = "import os; print(os.environ['LD_LIBRARY_PATH'])"
    done = run("emulate", *python(code), LD_LIBRARY_PATH="/somewhere", TMPDIR=str(tmp_path))
    folder, _, rest = done.stdout.strip().partition(":")
    assert Path(folder).parent == tmp_path
    assert rest == "/somewhere"
    assert list(tmp_path.iterdir()) == []
    before = os.environ.get("LD_LIBRARY_PATH")
    assert folder not in (before or "")
    without = run("emulate", *python(code), LD_LIBRARY_PATH="").stdout.strip()
    assert ":" not in without  # an empty entry would mean the current folder


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(number: signal.Signals, tmp_path: Path) -> None:
    code = f"""
import signal, sys, time
signal.signal({int(number)}, lambda *_: (print("got it", flush=True), sys.exit(5)))
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        command_line("emulate", *python(code)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        assert process.stdout.readline() == "got it\n"
        assert process.wait(30) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_a_signal_ends(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = run("emulate", *python(code), TMPDIR=str(tmp_path))
    assert done.returncode == 128 + signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_python_s_own_signal_settings_are_not_inherited() -> None:
    settings = {
        line.split(":")[0]: int(line.split()[1], 16)
        for line in run("emulate", "--", "grep", "Sig[BI]", "/proc/self/status").stdout.splitlines()
    }
    assert settings["SigBlk"] == 0
    assert not settings["SigIgn"] >> (signal.SIGPIPE - 1) & 1


def test_programs_that_cannot_run(tmp_path: Path) -> None:
    done = run("emulate", "--", "no-such-program-at-all")
    assert done.returncode == 127
    assert "no-such-program-at-all: No such file or directory" in done.stderr
    (tmp_path / "text").write_text("")
    done = run("emulate", "--", str(tmp_path / "text"))
    assert done.returncode == 126
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "a program to run is needed"),
        (["--"], "a program to run is needed"),
        (["--devices", "h100", "--", "true"], "'h100' is not architectures"),
        (["--memory", "8GB", "--", "true"], "'8GB' is not a number of bytes"),
        (["--threads", "0", "--", "true"], "'0' is not a positive number"),
        (["--fail", "cuMemAlloc", "--", "true"], "'cuMemAlloc' is not call:nth:status"),
        (["--manner", "polite", "--", "true"], "invalid choice: 'polite'"),
        (["true"], "unrecognized arguments: true"),
    ],
)
def test_wrong_command_lines(arguments: list[str], complaint: str) -> None:
    done = run("emulate", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "not a GPU" not in done.stderr


def test_programs_side_by_side(program: Path) -> None:
    processes = [
        subprocess.Popen(
            command_line("emulate", "--", str(program), str(number)), stdout=subprocess.DEVNULL
        )
        for number in range(4)
    ]
    assert [process.wait(60) for process in processes] == [0, 1, 2, 3]
