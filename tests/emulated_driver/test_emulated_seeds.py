"""With a seed work is late and streams are shuffled, so that a missing order is found."""

from __future__ import annotations

import pytest
from emulated_driver_api import EmulatedDriver, run_script, run_seeds

SEEDS = range(1, 9)

START = """
from test_emulated_asynchrony import *
driver.make_current()
kernels = Kernels(driver)
first, second = stream_of(driver, NON_BLOCKING), stream_of(driver, NON_BLOCKING)
memory, (seen, word) = zero(driver), pinned(driver, 0)
event = driver.pointer("cuEventCreate", 2)
"""

#: A program that lacks something, and what it lacks.
PROGRAMS = {
    "an event between streams": (
        """
kernels.put(memory, 5, first)
#
kernels.launch("add_to", seen, memory, stream=second)
driver.call("cuStreamSynchronize", second)
print(word.value == 5)
""",
        'driver.call("cuEventRecord", event, first)\n'
        'driver.call("cuStreamWaitEvent", second, event, 0)',
    ),
    "a synchronisation before the host reads": (
        """
kernels.put(seen, 5, first)
kernels.put(memory, 1, second)
#
print(word.value == 5)
""",
        'driver.call("cuStreamSynchronize", first)',
    ),
    "a synchronisation before the host writes": (
        """
word.value = 5
driver.call("cuMemcpyHtoDAsync_v2", memory, seen, SIZE(4), first)
#
word.value = 6
driver.call("cuStreamSynchronize", first)
print(kernels.word(memory) == 5)
""",
        'driver.call("cuStreamSynchronize", first)',
    ),
    "an event before memory is freed": (
        """
late = driver.pointer("cuMemAlloc", SIZE(4))
kernels.put(late, 5, first)
#
driver.call("cuMemFreeAsync", late, second)
driver.call("cuStreamSynchronize", second)
print(driver.status("cuStreamSynchronize", first) == 0)
""",
        'driver.call("cuEventRecord", event, first)\n'
        'driver.call("cuStreamWaitEvent", second, event, 0)',
    ),
}


def answers(driver: EmulatedDriver, program: str) -> list[bool]:
    return [said == "True\n" for said in run_seeds(driver.path, START + program, SEEDS)]


@pytest.mark.parametrize("lacks", PROGRAMS)
def test_a_seed_finds_what_a_program_lacks(driver: EmulatedDriver, lacks: str) -> None:
    program, remedy = PROGRAMS[lacks]
    assert not all(answers(driver, program))
    assert all(answers(driver, program.replace("#", remedy)))


def test_the_same_seed_runs_in_the_same_order(driver: EmulatedDriver) -> None:
    script = (
        START
        + """
streams = [stream_of(driver, NON_BLOCKING) for _ in range(6)]
for turn in range(3):
    for number, stream in enumerate(streams):
        kernels.put(memory, turn * 10 + number, stream)
driver.call("cuCtxSynchronize")
print(kernels.word(memory))
"""
    )
    # On a busy machine the clock lets work run sooner or later now and then.
    runs = [run_seeds(driver.path, script, SEEDS) for _ in range(4)]
    assert max(runs.count(run) for run in runs) > 1
    assert len(set(runs[0])) > 1


def test_a_program_that_looks_at_memory_goes_on(driver: EmulatedDriver) -> None:
    script = (
        START
        + """
kernels.put(seen, 5, first)
deadline = time.monotonic() + 20
while word.value != 5 and time.monotonic() < deadline:
    pass
word.value = 0
kernels.close_gate(first)
kernels.put(seen, 6, second)  # while another kernel runs for ever
while word.value != 6 and time.monotonic() < deadline:
    pass
kernels.open_gate()
driver.call("cuCtxSynchronize")
print(word.value)
"""
    )
    done = run_script(driver.path, script, CUDAMOD_EMULATOR_SEED="3")
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_asking_again_and_again_makes_work_run(driver: EmulatedDriver) -> None:
    script = (
        START
        + """
for _ in range(5):
    kernels.put(seen, 5, first)
driver.call("cuEventRecord", event, first)
deadline = time.monotonic() + 20
while driver.status("cuEventQuery", event) and time.monotonic() < deadline:
    pass
print(word.value)
"""
    )
    assert run_script(driver.path, script, CUDAMOD_EMULATOR_SEED="3").stdout == "5\n"
