"""Paths."""

import os
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
WORKLOADS = BENCH / "workloads"
PEERS = BENCH / "peers"
HOME = pathlib.Path(os.environ.get("BENCH_HOME", ROOT / "target" / "bench"))
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAMS = pathlib.Path(os.environ.get("BENCH_PROGRAMS", TARGET / "release"))
COMMAND = PROGRAMS / "tensorwright"
OURS = PROGRAMS / "tensorwright-bench"


def python(environment):
    """The interpreter of a peer's environment; this one as a fallback for NumPy."""
    path = HOME / environment / "bin" / "python"
    return pathlib.Path(sys.executable) if environment == "numpy" and not path.exists() else path
