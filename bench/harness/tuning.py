"""Tunes a workload with the command, unless the records have enough trials."""

import json
import signal
import subprocess

from .places import ROOT
from .run import output
from .runner import end_with_driver, take_priority


def of(workload, threads, run):
    """The options for a workload and its target."""
    named = [workload["file"], "--def", workload["def"], "--size", workload["size"]]
    return [*named, "--target", run.target] if run.target else [*named, "--threads", threads]


def has_fast(workload, threads, run):
    """Whether any algorithm needs `--precision fast`."""

    def algorithms(precision):
        text = output(run.command, "space", *of(workload, threads, run), "--precision", precision, "--format", "json")
        return json.loads(text).get("algorithms") if text else None

    return algorithms("fast") != algorithms("exact")


def tune(suite, workload, threads, kernel, run, settings, runner, command, db):
    """Tunes with the command of a build, and returns the trials and seconds in its records."""
    known = runner.ask("records", workload=workload)
    if "error" in known:
        return {"trials": 0, "seconds": 0.0, "error": known["error"]}
    trials, time = run.about["trials"], run.seconds(suite.name)
    # Modes with few measurements stop by themselves.
    done = known["trials"] >= trials or known["seconds"] >= 0.95 * time
    if done if kernel.mode == "autotune" else known["trials"] > 0:
        return known
    # The runner only holds the schedule of its last build, so it may keep running; it sleeps.
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
    """Runs the command with measurement priority; an interrupt lets it finish properly."""

    def prepare():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a driver in the background of a shell ignores it
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
