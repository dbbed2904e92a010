#!/usr/bin/env python3
"""Tunes the examples, and measures them against their peers.

    python examples/gallery/measure.py                   # all, 20 seconds of tuning each
    python examples/gallery/measure.py --time 8 heat     # some; the results of the others stay
    python examples/gallery/tables.py                    # the guide's tables again

Ours and all peers run in this process on one thread, and take turns: in every round each is called for about 30 ms, and
the fastest call counts. Before anything is timed, all results are compared. `results.json` has medians and quartiles
over the rounds, and for each peer those of its time divided by ours of the same round: above 1, ours is faster. Peers
that are four times slower than the best after five rounds are not measured further. `const` inputs of ours are frozen:
laid out once, ahead of all calls.
"""

import argparse
import json
import os
import pathlib
import platform
import runpy
import statistics
import time

# Libraries read these once when they are loaded.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORWRIGHT_THREADS"):
    os.environ[_name] = "1"

import check  # noqa: E402
import numpy  # noqa: E402
import tables  # noqa: E402
import tensorwright as tw  # noqa: E402
import torch  # noqa: E402

TURN = 0.03
FEW, SLOW = 5, 4.0
OURS = "tensorwright"


def contenders(example, op, given):
    """The contenders: ours, the peers, and the first peer compiled; and failures."""
    peers = example["peers"](**given)
    first = next(iter(peers))
    found, failed = {OURS: lambda: op(**without_constants(op, given))} | peers, {}
    try:
        compiled = torch.compile(peers[first])
        compiled()
        found["torch.compile"] = compiled
    except Exception as error:
        failed["torch.compile"] = str(error).strip().splitlines()[0]
    return found, failed


def without_constants(op, given):
    return {name: value for name, value in given.items() if name not in op.frozen}


def compared(functions, tolerance):
    """Fails if a peer's result differs from ours."""
    ours = functions[OURS]()
    for name, function in functions.items():
        torch.testing.assert_close(function(), ours, **tolerance, msg=lambda text, name=name: f"{name}: {text}")


def turn(function):
    """The fastest call of a turn: least disturbed on a busy machine."""
    fastest, end = float("inf"), time.perf_counter() + TURN
    while True:
        start = time.perf_counter()
        function()
        done = time.perf_counter()
        fastest = min(fastest, done - start)
        if done > end:
            return fastest


def measured(functions, rounds):
    """The samples of each contender, in turns. Stops measuring those far behind."""
    samples = {name: [] for name in functions}
    for place in range(rounds):
        best = min(map(min, samples.values())) if place else 0
        for name, function in functions.items():
            if place < FEW or name == OURS or min(samples[name]) < SLOW * best:
                samples[name].append(turn(function))
    return samples


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive")


def result(name, seconds, rounds):
    """Tunes and measures one example."""
    example = runpy.run_path(str(check.HERE / name / "run.py"))
    given = example["inputs"](torch.Generator().manual_seed(0), **example["SIZES"])
    constants = {param for param, _, _, is_const in example["op"].parameters() if is_const}
    op = example["op"].freeze(**{param: given[param] for param in constants})
    tuned = example["op"].tune(**given, time=seconds)
    functions, failed = contenders(example, op, given)
    compared(functions, example["TOLERANCE"])
    samples = measured(functions, rounds)
    return {
        "sizes": example["SIZES"],
        "tuned": {
            "seconds": tuned.elapsed,
            "trials": tuned.trials,
            "speedup": tuned.speedup,
            "gflops": tuned.gflops,
        },
        "times": {name: quartiles(values) for name, values in samples.items()},
        "ratios": {
            name: quartiles([theirs / ours for theirs, ours in zip(values, samples[OURS], strict=False)])
            for name, values in samples.items()
            if name != OURS
        },
        "failed": failed,
    }


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="EXAMPLE", help="all, if none is named")
    parser.add_argument("--time", type=float, default=20, help="seconds of tuning per example (20)")
    parser.add_argument("--rounds", type=int, default=21, help="turns of each (21)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = tables.read()
    for name in args.names or check.names():
        print(f"{name}: tuning for {args.time:g} s", flush=True)
        with torch.inference_mode():
            found = result(name, args.time, args.rounds)
        found |= {
            "rounds": args.rounds,
            "tuning": args.time,
            "machine": f"{processor()}, {os.cpu_count()} processors",
            "versions": {
                "tensorwright": tw.__version__,
                "torch": torch.__version__,
                "numpy": numpy.__version__,
                "python": platform.python_version(),
            },
        }
        results[name] = found
        # Saved at once, in case a later example fails.
        tables.RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
        print(tables.table(found), flush=True)
    tables.write(results)


if __name__ == "__main__":
    main()
