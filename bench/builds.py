#!/usr/bin/env python3
"""Compares two builds of the command on the schedules of bench/cases.json, interleaved.

    bench/builds.py OLD NEW [--rounds 7] [--only NAME]

In every round each case is timed once by each build, the first of them alternating. A ratio is the time of the
new build by that of the old one: above 1, the new one is slower. What is printed is the median over the rounds
of the ratios of the fastest samples, with quartiles, and the geometric mean.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def seconds(command: str, case: dict) -> float:
    """The fastest sample of a run, in seconds."""
    arguments = [command, "run", f"examples/kernels/{case['file']}", "--def", case["def"], "--size", case["size"]]
    arguments += ["--schedule", f"examples/schedules/{case['name']}.sched", "--time", "--format", "json"]
    run = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["min_ns"] * 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only")
    options = parser.parse_args()
    cases = json.loads((ROOT / "bench/cases.json").read_text())
    cases = [case for case in cases if options.only in (None, case["name"])]
    builds = {"old": str(pathlib.Path(options.old).resolve()), "new": str(pathlib.Path(options.new).resolve())}
    print(f"{'case':22} {'old':>10} {'new':>10} {'ratio':>7}  quartiles")
    medians = []
    for case in cases:
        times = {"old": [], "new": []}
        for turn in range(options.rounds):
            for build in sorted(builds, reverse=turn % 2 == 0):
                times[build].append(seconds(builds[build], case))
        ratios = [new / old for new, old in zip(times["new"], times["old"], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4)
        medians.append(median)
        old, new = (1e3 * min(times[build]) for build in ("old", "new"))
        print(f"{case['name']:22} {old:7.3f} ms {new:7.3f} ms {median:7.3f}  {low:.3f} to {high:.3f}", flush=True)
    mean = math.exp(statistics.mean(map(math.log, medians)))
    print(f"{'geometric mean':22} {'':10} {'':10} {mean:7.3f}")


if __name__ == "__main__":
    main()
