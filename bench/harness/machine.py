"""The machine and the options of a run, for the report."""

import json
import platform
import subprocess
import time

from .places import COMMAND, ROOT


def output(*command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def describe(settings):
    """Writes machine.json: the processor, what it can do at the moment, and how it is measured."""
    text = output(COMMAND, "machine", "--format", "json")
    found = json.loads(text) if text else {}
    found.update(
        system=f"{platform.system()} {platform.release()}",
        revision=output("git", "describe", "--always", "--dirty"),
        date=time.strftime("%Y-%m-%d"),
        rounds=settings.rounds,
        sample_s=settings.sample,
        trials=settings.trials,
        time_s=settings.time,
    )
    (settings.out / "machine.json").write_text(json.dumps(found, indent=1) + "\n")
