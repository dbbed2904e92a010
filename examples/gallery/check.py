#!/usr/bin/env python3
"""Runs every example at its small size, which compares it with its peers. No timing: for CI.

    python examples/gallery/check.py               # all
    python examples/gallery/check.py heat harris   # some

Needs the packages tensorwright, numpy and torch.
"""

import pathlib
import runpy
import sys
import traceback

HERE = pathlib.Path(__file__).parent


def names():
    """The examples there are."""
    return sorted(path.parent.name for path in HERE.glob("*/run.py"))


def main(wanted):
    if unknown := set(wanted) - set(names()):
        sys.exit(f"no example {', '.join(sorted(unknown))}: there are {', '.join(names())}")
    failed = []
    for name in wanted or names():
        try:
            runpy.run_path(str(HERE / name / "run.py"), run_name="__main__")
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
