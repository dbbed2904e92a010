"""Another build of the project, measured beside this one."""

import math
import pathlib
from dataclasses import dataclass

from .places import COMMAND, OURS
from .runner import Runner
from .suites import SUITES
from .text import table

NAME = "other build"
SAME = [1.0, 1.0, 1.0]
"""The ratio of a kernel whose code is the same in both builds."""


def programs(path):
    """The folder with the programs of a build: of a checkout, of a folder, or beside one of them; `None` if there is
    none."""
    folders = [path.parent] if path.is_file() else [path, path / "target" / "release"]
    return next((folder for folder in folders if (folder / OURS.name).exists()), None)


@dataclass(frozen=True)
class OtherBuild:
    """The other build, as a peer in the same rounds."""

    folder: pathlib.Path
    name: str = NAME
    build_limit: float = 300.0

    @property
    def command(self):
        return self.folder / COMMAND.name

    def db(self, settings):
        """Its tuning records."""
        return settings.out / "other-records.sqlite3"

    def wants(self, _workload):
        return True

    def runner(self, threads, settings):
        # Our first column is of the same precision.
        precision = "fast" if settings.precision == "fast" else "exact"
        command = [self.folder / OURS.name, "--threads", threads, "--db", self.db(settings), "--precision", precision]
        if settings.target:
            command += ["--target", settings.target]
        if settings.mode[0] == "untuned":
            command.append("--untuned")
        return Runner(self.name, command, threads, settings.out / "logs" / f"other-build-{threads}.log")


def is_same_code(mine, other):
    """Whether two builds made the same code from the same schedule. Builds before this question do not say."""
    return bool(mine.get("code")) and all(mine[name] == other.get(name) for name in ("code", "schedule"))


def ratio_of(record):
    """The other build's time divided by ours, with quartiles; `None` if it was not measured."""
    if record.get("unchanged"):
        return SAME
    return next((p["ratio"] for p in record.get("peers", ()) if p["name"].startswith(NAME) and p["ratio"]), None)


def mean(ratios):
    """The geometric mean of medians."""
    return math.exp(sum(math.log(ratio[1]) for ratio in ratios) / len(ratios))


def table_of(records):
    """A row per suite and number of threads."""
    rows = [["suite", "threads", "workloads", "same code", "mean", "least", "not compared"]]
    for suite in SUITES:
        for threads in sorted({r["threads"] for r in records}):
            found = [r for r in records if (r["suite"], r["threads"]) == (suite.name, threads)]
            ratios = {r["workload"]: ratio for r in found if (ratio := ratio_of(r))}
            if not found:
                continue
            same, missing = sum(bool(r.get("unchanged")) for r in found), len(found) - len(ratios)
            row = [suite.name, str(threads), str(len(ratios)), str(same), "", "", str(missing)]
            if ratios:
                least = min(ratios, key=lambda name: ratios[name][1])
                row[4:6] = [f"{mean(ratios.values()):.3f}", f"{ratios[least][1]:.3f} ({least})"]
            rows.append(row)
    return table(rows)


TEXT = (
    "The time of the other build divided by ours, sampled in turns: above 1, this build is faster. Kernels whose "
    "schedule and code are the same in both builds were not measured and count as 1."
)
