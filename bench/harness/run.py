"""A run: programs, budget and machine. It may take several sessions."""

import json
import pathlib
import platform
import shutil
import subprocess
import sys
import time

from .modes import kernels
from .places import COMMAND, OURS, ROOT
from .suites import SUITES


def output(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def budget(settings):
    """Settings that must be equal for all results of a run."""
    seconds = {suite.name: settings.time or suite.seconds for suite in SUITES}
    return {
        "rounds": settings.rounds,
        "sample_s": settings.sample,
        "modes": settings.mode,
        "trials": settings.trials,
        "time_s": seconds,
        "precision": settings.precision,
        "target": settings.target,
        "against": settings.against and str(settings.against),
    }


def machine(command):
    """The processor and its current peaks."""
    text = output(command, "machine", "--format", "json")
    found = json.loads(text) if text else {}
    found["system"] = f"{platform.system()} {platform.release()}"
    return found


class Run:
    """A run, as described by `run.json`. It copies its programs, so that later sessions measure the same
    ones."""

    def __init__(self, out, about):
        self.out, self.about = out, about
        self.command, self.ours = out / "bin" / COMMAND.name, out / "bin" / OURS.name
        self.other = out / "bin" / "other"

    @property
    def precisions(self):
        return ("exact", "fast") if self.about["precision"] == "both" else (self.about["precision"],)

    @property
    def kernels(self):
        """Our kernels by column; the first column's results count."""
        return kernels(self.precisions, self.about["modes"])

    @property
    def target(self):
        """The measured device; `None` for the processor."""
        return self.about.get("target")

    def seconds(self, suite):
        """The tuning time per workload of a suite."""
        return self.about["time_s"][suite]

    @classmethod
    def read(cls, out):
        """The run in a directory; `None` if there is none."""
        path = out / "run.json"
        if not path.exists():
            return None
        about = json.loads(path.read_text())
        if "tuned" in about:  # as it was written before there were modes
            about["modes"] = ["autotune" if about.pop("tuned") else "untuned"]
        return cls(out, about)

    @classmethod
    def start(cls, settings):
        """A new run."""
        for program in (COMMAND, OURS):
            if not program.exists():
                sys.exit(f"bench/run: {program} is missing; run bench/install ours first")
        run = cls(settings.out, {})
        run.command.parent.mkdir(parents=True, exist_ok=True)
        for program, copy in ((COMMAND, run.command), (OURS, run.ours)):
            shutil.copy2(program, copy)
        if settings.against:
            run.other.mkdir(exist_ok=True)
            for program in (COMMAND.name, OURS.name):
                # Without tuning, the runner is enough.
                if (settings.against / program).exists():
                    shutil.copy2(settings.against / program, run.other / program)
        run.about = {
            **budget(settings),
            "started": time.strftime("%Y-%m-%d"),
            "revision": output("git", "describe", "--always", "--dirty"),
            "machine": machine(run.command),
        }
        (settings.out / "run.json").write_text(json.dumps(run.about, indent=1) + "\n")
        return run

    @classmethod
    def resume_or_start(cls, settings):
        """The run in the directory, if its settings match."""
        if settings.fresh:
            forget(settings.out)
        run = cls.read(settings.out)
        if run is None:
            return cls.start(settings)
        differing = [name for name, value in budget(settings).items() if run.about.get(name) != value]
        if differing:
            listed = ", ".join(differing)
            sys.exit(
                f"bench/run: {settings.out} holds a run with other options ({listed}), and results of two budgets do "
                "not belong into one table; name another directory with --out, or start over with --fresh"
            )
        return run


def forget(out):
    """Removes a run: its results, programs and tuning records."""
    records = pathlib.Path(out).glob("*records.sqlite3*")
    for path in (out / "bin", out / "run.json", out / "results.jsonl", *records):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
