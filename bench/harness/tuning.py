"""Tuning a workload by the command, unless the records have enough trials already."""

import signal
import subprocess

from .places import COMMAND, ROOT
from .runner import take_priority


def tune(workload, threads, settings, runner):
    """Tunes, and gives the trials and seconds that the records now hold."""
    known = runner.ask("records", workload=workload)
    if "error" in known:
        return {"trials": 0, "seconds": 0.0, "error": known["error"]}
    if known["trials"] >= settings.trials or known["seconds"] >= 0.95 * settings.time:
        return known
    # The runner holds the schedule of its last build only, so it may keep running; it sleeps.
    left = settings.trials - known["trials"]
    seconds = max(1, round(settings.time - known["seconds"]))
    command = [
        COMMAND, "tune", workload["file"], "--def", workload["def"], "--size", workload["size"],
        "--threads", threads, "--trials", left, "--time", f"{seconds}s", "--db", settings.db,
        "--precision", settings.precision,
    ]  # fmt: skip
    code = run(command, settings.out / "logs" / "tune.log")
    now = runner.ask("records", workload=workload)
    if code != 0:
        now["error"] = f"tensorwright tune ended with {code}; see logs/tune.log"
    return now


def run(command, path):
    """Runs the command with the priority of a measurement; when interrupted, it may still end its run properly."""
    with open(path, "ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command], cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=take_priority,
        )  # fmt: skip
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
