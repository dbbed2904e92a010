"""The options of bench/run."""

import argparse
import os
import pathlib
import re

from . import against
from .modes import MODES
from .peers import PEER_LIST
from .places import HOME
from .suites import SUITES


def listed(text):
    return [word for word in text.split(",") if word]


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/run", description="Measures kernels and peers in turns.")
    suites, peers = [suite.name for suite in SUITES], [peer.name for peer in PEER_LIST]
    parser.add_argument("--suite", type=listed, default=["all"], help=f"all, or some of {', '.join(suites)}")
    said = f"all, none, or some of {', '.join(peers)} [default: all, and none of --untuned]"
    parser.add_argument("--peers", type=listed, help=said)
    parser.add_argument("--threads", type=listed, default=["1", "2"], help="numbers of threads, such as 1,2")
    said = "measure on a device, such as opencl:0, with the suites and the peers that are for devices"
    parser.add_argument("--target", metavar="NAME", help=said)
    parser.add_argument("--only", default="", metavar="REGEX", help="workloads whose name matches")
    parser.add_argument("--full-size", action="store_true", help="also those of a published size that takes long")
    parser.add_argument("--trials", type=int, default=1_000_000, help="the most trials of tuning for each workload")
    parser.add_argument("--time", type=float, help="seconds of tuning for each workload [default: 30, and 10 of ops]")
    said = f"how our kernels are scheduled: some of {', '.join(MODES)}, each a column of its own [default: autotune]"
    parser.add_argument("--mode", type=listed, help=said)
    said = "measure the default schedules: --mode untuned --peers none"
    parser.add_argument("--untuned", action="store_true", help=said)
    said = "of our kernels: sums as they are written, algorithms such as Winograd's allowed, or a column of each"
    said += " [default: both, and exact of --against]"
    parser.add_argument("--precision", choices=["exact", "fast", "both"], help=said)
    parser.add_argument("--rounds", type=int, default=15, help="samples of every runner")
    parser.add_argument("--sample", type=float, default=0.03, help="seconds of a sample")
    parser.add_argument("--peer-trials", type=int, default=200, help="trials of TVM's tuning")
    parser.add_argument("--peer-seconds", type=int, default=600, help="seconds of CLBlast's tuning")
    parser.add_argument("--db", type=pathlib.Path, help="records of tuning [default: OUT/records.sqlite3]")
    parser.add_argument("--out", type=pathlib.Path, default=HOME / "results", help="where results go")
    parser.add_argument("--fresh", action="store_true", help="start over: forget the results and records of OUT")
    said = "another build, which takes part as a peer: a checkout with a release build, a folder with tensorwright and "
    said += "tensorwright-bench, or one of these programs"
    parser.add_argument("--against", type=pathlib.Path, metavar="BUILD", help=said)
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md and its plot")
    parser.add_argument("--report", action="store_true", help="measure nothing, only report what is there")
    settings = parser.parse_args(arguments)
    settings.peers = settings.peers or (["none"] if settings.untuned else ["all"])
    settings.precision = settings.precision or ("exact" if settings.against else "both")
    settings.mode = ["untuned"] if settings.untuned else settings.mode or ["autotune"]
    for name, known in (("suite", suites), ("peers", [*peers, "none"]), ("mode", MODES)):
        anything = () if name == "mode" else ("all",)
        unknown = [word for word in getattr(settings, name) if word not in (*anything, *known)]
        if unknown:
            parser.error(f"--{name}: there is no {', '.join(unknown)}; there are {', '.join(known)}")
    if len(settings.mode) > 1 and settings.precision == "both":
        parser.error("--mode: several modes are columns of one precision; name it with --precision")
    if not all(word.isdigit() and int(word) > 0 for word in settings.threads):
        parser.error("--threads takes numbers, such as 1,2")
    settings.threads = [int(word) for word in settings.threads]
    if settings.target:
        if not re.fullmatch(r"opencl:\d+", settings.target):
            parser.error(f"--target: {settings.target} is not a device; it is written opencl:0")
        # A device has its own threads; the host's processors stay free.
        settings.threads = [len(os.sched_getaffinity(0))]
    for_devices = {known.name for known in (*SUITES, *PEER_LIST) if known.device}
    mixed = [word for word in (*settings.suite, *settings.peers) if word in for_devices and not settings.target]
    if mixed:
        parser.error(f"{', '.join(mixed)}: for devices only; name one with --target, such as opencl:0")
    settings.out = settings.out.resolve()
    if settings.against:
        named, settings.against = settings.against.resolve(), against.programs(settings.against.resolve())
        if settings.against is None:
            parser.error(f"--against: there is no {against.OURS.name} in {named}")
    settings.db = (settings.db or settings.out / "records.sqlite3").resolve()
    return settings
