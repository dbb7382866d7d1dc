"""Turns the results of ``pytest bench --benchmark-json=FILE`` into a Markdown page and plots.

    python bench/report.py FILE... [--to FOLDER]

Several files are parts of one run. Writes FOLDER/benchmarks.md, and beside it overhead.png
(overhead by peer) and arguments.png (cost by number of arguments) where matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

FLOOR, OURS = "C", "cudamod"
Result = dict[str, Any]


def head(results: Result) -> str:
    """What the figures were measured on."""
    machine, commit = results["machine_info"], results["commit_info"]
    ours = machine["cudamod"]
    dirty = ", changed" if commit.get("dirty") else ""
    driver = re.sub(r"/\S*/", "", ours["driver"])  # which file, not where
    return (
        f"Driver: {driver}; device: {ours['device']}; "
        f"{machine['python_implementation']} {machine['python_version']}; "
        f"cudamod {ours['version']}, commit {str(commit['id'])[:10]}{dirty}; "
        f"{results['datetime'][:10]}.\n"
    )


def calls(benchmarks: list[Result]) -> list[str]:
    """Each interleaved benchmark: one line per way to do it."""
    lines = ["| benchmark | way | minimum, ns | median, ns | over C, ns |", "|---|---|---|---|---|"]
    for result in benchmarks:
        rows = result["extra_info"].get("ns per call")
        if rows is None:
            continue
        for way in sorted(rows, key=lambda way: (way != FLOOR, not way.startswith(OURS), way)):
            row = rows[way]
            times = f"{row['minimum']:,.0f} | {row['median']:,.0f}"
            over = f"{row['over C']:+,.0f}" if "over C" in row else ""
            lines.append(f"| {result['name']} | {way} | {times} | {over} |")
    return lines


def threads(benchmarks: list[Result]) -> list[str]:
    """Launches per second by threads."""
    lines = ["| threads | launches per second | median, ns | p99, ns |", "|---|---|---|---|"]
    for result in benchmarks:
        info = result["extra_info"]
        if "launches per second" in info:
            lines.append(
                f"| {result['name']} | {info['launches per second']:,.0f} "
                f"| {info['median, ns']:,.0f} | {info['p99, ns']:,.0f} |"
            )
    return lines


def programs(benchmarks: list[Result]) -> list[str]:
    """Whole processes, and what they add to one that does nothing."""
    times = {
        result["params"]["program"]: result["stats"]["median"] * 1e3
        for result in benchmarks
        if (result["params"] or {}).get("program")
    }
    lines = ["| process | median, ms | over nothing, ms |", "|---|---|---|"]
    for name, value in times.items():
        lines.append(f"| {name} | {value:.1f} | {value - times.get('nothing', 0):.1f} |")
    return lines


def plot_overhead(benchmarks: list[Result], path: Path) -> bool:
    """Nanoseconds over the C loop with four arguments, by library."""
    from matplotlib import pyplot

    over: dict[str, float] = {}
    for result in benchmarks:
        if not result["name"].startswith(("test_peer", "test_arguments[mixed-4]")):
            continue
        if result["extra_info"].get("arguments") != 4:
            continue
        for way, row in result["extra_info"]["ns per call"].items():
            if "over C" in row and (way != OURS or "mixed" in result["name"]):
                over[way] = row["over C"]
    # The axis has no place for what drift makes negative.
    ways = sorted((way for way in over if over[way] > 0), key=over.__getitem__)
    if not ways:
        return False
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(ways) + 1.2), layout="constrained")
    colours = ["tab:green" if way.startswith(OURS) else "tab:grey" for way in ways]
    bars = axes.barh(ways, [over[way] for way in ways], color=colours)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set(xscale="log", xlabel="ns per launch over the C loop, 4 arguments (log)")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def plot_arguments(benchmarks: list[Result], path: Path) -> bool:
    """Nanoseconds over the C loop by number of arguments."""
    from matplotlib import pyplot

    series: dict[str, dict[int, float]] = defaultdict(dict)
    for result in benchmarks:
        mixed = result["name"].startswith("test_arguments[mixed")
        if not mixed and not result["name"].startswith("test_peer"):
            continue
        for way, row in result["extra_info"]["ns per call"].items():
            if "over C" in row and (way != OURS or mixed):
                series[way][result["extra_info"]["arguments"]] = row["over C"]
    if not any(value > 0 for points in series.values() for value in points.values()):
        return False
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for way, points in sorted(series.items()):
        counts = sorted(points)
        style = "o-" if way.startswith(OURS) else "s--"
        axes.plot(counts, [points[count] for count in counts], style, label=way)
    axes.set(xlabel="arguments", ylabel="ns per launch over the C loop (log)", yscale="log")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def main() -> int:
    """Write the page and the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--to", type=Path, default=Path("."), dest="folder")
    options = parser.parse_args()
    # A part that was ended before its first benchmark leaves an empty file.
    parts = [json.loads(text) for path in options.results if (text := path.read_text())]
    benchmarks: list[Result] = [result for part in parts for result in part["benchmarks"]]
    options.folder.mkdir(parents=True, exist_ok=True)
    page = ["# Benchmarks\n", *dict.fromkeys(head(part) for part in parts)]
    plots = {"overhead.png": plot_overhead, "arguments.png": plot_arguments}
    try:
        for name, plot in plots.items():
            if plot(benchmarks, options.folder / name):
                page.append(f"![{plot.__doc__}]({name})\n")
    except ImportError as error:
        print(f"no plots: {error}", file=sys.stderr)
    for title, lines in {
        "Calls": calls(benchmarks),
        "Threads": threads(benchmarks),
        "Processes": programs(benchmarks),
    }.items():
        if len(lines) > 2:
            page += [f"## {title}\n", *lines, ""]
    (options.folder / "benchmarks.md").write_text("\n".join(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
