"""Tuning a workload by the command, unless the records have enough trials already."""

import json
import signal
import subprocess

from .places import ROOT
from .run import output
from .runner import end_with_driver, take_priority


def of(workload, threads, run):
    """The options that name a workload and what it is computed on."""
    named = [workload["file"], "--def", workload["def"], "--size", workload["size"]]
    return [*named, "--target", run.target] if run.target else [*named, "--threads", threads]


def has_fast(workload, threads, run):
    """Whether there are algorithms that need `--precision fast`."""

    def algorithms(precision):
        text = output(run.command, "space", *of(workload, threads, run), "--precision", precision, "--format", "json")
        return json.loads(text).get("algorithms") if text else None

    return algorithms("fast") != algorithms("exact")


def tune(suite, workload, threads, kernel, run, settings, runner, command, db):
    """Tunes by the command of a build, and gives the trials and seconds that its records now hold."""
    known = runner.ask("records", workload=workload)
    if "error" in known:
        return {"trials": 0, "seconds": 0.0, "error": known["error"]}
    trials, time = run.about["trials"], run.seconds(suite.name)
    # The modes that measure little have an end of their own.
    done = known["trials"] >= trials or known["seconds"] >= 0.95 * time
    if done if kernel.mode == "autotune" else known["trials"] > 0:
        return known
    # The runner holds the schedule of its last build only, so it may keep running; it sleeps.
    left = trials - known["trials"]
    seconds = max(1, round(time - known["seconds"]))
    line = [
        command, "tune", *of(workload, threads, run), "--mode", kernel.mode, "--trials", left, "--time", f"{seconds}s",
        "--db", db, "--precision", kernel.precision,
    ]  # fmt: skip
    code = execute(line, settings.out / "logs" / "tune.log")
    now = runner.ask("records", workload=workload)
    if code != 0:
        now["error"] = f"tensorwright tune ended with {code}; see logs/tune.log"
    return now


def execute(command, path):
    """Runs the command with the priority of a measurement; when interrupted, it may still end its run properly."""

    def prepare():
        end_with_driver(signal.SIGINT)  # else it would go on, beside whoever holds the common lock by then
        take_priority()

    with open(path, "ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command], cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=prepare,
        )  # fmt: skip
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
