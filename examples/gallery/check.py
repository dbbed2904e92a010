#!/usr/bin/env python3
"""Runs every example at its small size, which compares it with its peers. No timing: for CI.

    python examples/gallery/check.py               # all
    python examples/gallery/check.py heat harris   # some
    python examples/gallery/check.py --tune 4      # all, again after tuning them with four trials

With TENSORWRIGHT_TARGET=opencl:0 they run on that device (`tensorwright machine` lists those that there are). Needs the packages tensorwright, numpy and torch.
"""

import argparse
import os
import pathlib
import runpy
import sys
import tempfile
import traceback

import torch

HERE = pathlib.Path(__file__).parent


def names():
    """All examples."""
    return sorted(path.parent.name for path in HERE.glob("*/run.py"))


def check(name, trials):
    """Compares an example with its peers, and again after tuning."""
    run = HERE / name / "run.py"
    runpy.run_path(str(run), run_name="__main__")
    if not trials:
        return
    example = runpy.run_path(str(run))
    given = example["inputs"](torch.Generator().manual_seed(0), **example["SMALL"])
    tuned = example["op"].tune(**given, trials=trials, progress=False)
    for peer in example["peers"](**given).values():
        torch.testing.assert_close(example["op"](**given), peer(), **example["TOLERANCE"])
    print(f"{name}: the results agree after {tuned.trials} trials")


def main():
    parser = argparse.ArgumentParser(description="Compares the examples of the gallery with their peers.")
    parser.add_argument("names", nargs="*", help="the examples [default: all]")
    parser.add_argument("--tune", type=int, default=0, metavar="N", help="also tune each with so many trials")
    options = parser.parse_args()
    if unknown := set(options.names) - set(names()):
        sys.exit(f"no example {', '.join(sorted(unknown))}: there are {', '.join(names())}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        # Throwaway tuning records.
        os.environ["TENSORWRIGHT_DB"] = str(pathlib.Path(folder) / "records.sqlite3")
        for name in options.names or names():
            try:
                check(name, options.tune)
            except Exception:
                traceback.print_exc()
                failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
