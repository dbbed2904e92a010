#!/usr/bin/env python3
"""Writes the guide's tables from the results of `measure.py`: one per example, and a summary."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results.json"
PAGES = HERE.parents[1] / "guide" / "src" / "gallery" / "measured"


def read():
    """The results so far, by example."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def shown(seconds):
    """A time with three digits."""
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def best_peer(result):
    """The name of the peer with the least median."""
    return min(result["ratios"], key=lambda name: result["times"][name][1])


def table(result):
    """The times of an example and its peers, fastest first."""
    lines = ["| | time | quartiles | times ours (quartiles) |", "| --- | --- | --- | --- |"]
    for name, (low, middle, high) in sorted(result["times"].items(), key=lambda item: item[1][1]):
        ratio = "1"
        if name in result["ratios"]:
            first, second, third = result["ratios"][name]
            ratio = f"**{second:.2f}** ({first:.2f} to {third:.2f})"
        lines.append(f"| {name} | {shown(middle)} | {shown(low)} to {shown(high)} | {ratio} |")
    lines += [f"| {name} | | | failed: {reason} |" for name, reason in result["failed"].items()]
    return "\n".join(lines)


def page(name, result):
    """The table of an example, with the measuring conditions."""
    sizes = ", ".join(f"{size} = {value}" for size, value in result["sizes"].items())
    tuned, versions = result["tuned"], result["versions"]
    return (
        f"{table(result)}\n\n"
        f"{sizes}; medians of {result['rounds']} rounds, one thread. Tuned for {tuned['seconds']:.0f} s "
        f"({tuned['trials']} trials), which made it {tuned['speedup']:.2f} times as fast as without tuning. Printed by "
        f"`python examples/gallery/measure.py --time {result['tuning']:g} {name}` with tensorwright "
        f"{versions['tensorwright']}, torch {versions['torch']}, NumPy {versions['numpy']} on an {result['machine']}.\n"
    )


def overview(results):
    """A line per example: ours and the best peer."""
    lines = ["| example | ours | best peer | its time | times ours (quartiles) |", "| --- | --- | --- | --- | --- |"]
    for name, result in results.items():
        peer = best_peer(result)
        low, middle, high = result["ratios"][peer]
        lines.append(
            f"| [{name}]({name}.md) | {shown(result['times']['tensorwright'][1])} | {peer} | "
            f"{shown(result['times'][peer][1])} | **{middle:.2f}** ({low:.2f} to {high:.2f}) |"
        )
    return "\n".join(lines) + "\n"


def write(results):
    """Writes the files that the guide's pages include."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, result in results.items():
        (PAGES / f"{name}.md").write_text(page(name, result))
    (PAGES / "overview.md").write_text(overview(results))


if __name__ == "__main__":
    write(read())
