"""Many launches with one call: sequences, with some of their arguments changed in between."""

from __future__ import annotations

import pytest
from interleaved import Interleaved
from workloads import Bench, Loop, loop_over

from cudamod import LaunchSequence, _core


def test_prepared(interleaved: Interleaved, bench: Bench) -> None:
    """A launch whose arguments are converted already."""
    launcher, arguments = bench.kernel(4).bind(bench.config, bench.stream), bench.arguments(4)
    held = bench.kernel(4).bind(bench.config, bench.stream, gil="hold")
    interleaved(
        loop_over(launcher.prepare(*arguments)),
        floor=lambda times: _core.time_driver_call(launcher, times, *arguments),
        peers={"cudamod, GIL held": loop_over(held.prepare(*arguments))},
        arguments=4,
    )


@pytest.mark.parametrize("changed", [0, 1, 10, 100], ids="{} changed".format)
@pytest.mark.parametrize("count", [1, 10, 100, 1000], ids="{} launches".format)
def test_sequence(interleaved: Interleaved, bench: Bench, count: int, changed: int) -> None:
    """Per launch of the sequence: the call alone, and until the device is done."""
    if changed > count:
        pytest.skip("more changes than launches")
    launcher, arguments = bench.kernel(4).bind(bench.config, bench.stream), bench.arguments(4)
    prepared = [launcher.prepare(*arguments) for _ in range(count)]
    sequence = LaunchSequence(prepared)

    def replay(wait: bool) -> Loop:
        def loop(times: int) -> None:
            for turn in range(times):
                for index in range(changed):
                    prepared[index].set_arg(2, turn)
                sequence()
                if wait:
                    bench.stream.sync()

        return loop

    def one_by_one(times: int) -> None:
        for _ in range(times):
            for launch in prepared:
                launch()

    interleaved(
        replay(wait=False),
        floor=lambda times: _core.time_driver_call(launcher, times * count, *arguments) * count,
        peers={
            "cudamod, until done": replay(wait=True),
            "cudamod, prepared, one by one": one_by_one,
        },
        calls=5,
        rounds=20,
        per=count,
        changed=changed,
        mode=sequence.mode,
    )
