"""The loop over workloads and threads."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import sys
import tempfile
import time

from . import inputs, machine, peers, report, suites
from .contest import Contest
from .journal import Journal
from .places import COMMAND, OURS
from .runner import RunnerFailed
from .settings import parse
from .tuning import tune


@contextlib.contextmanager
def locked():
    """Holds the file that BENCH_LOCK names, for machines on which others measure as well."""
    path = os.environ.get("BENCH_LOCK")
    if not path:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Progress:
    """One line that says what is happening; the last of each workload stays."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self.live = sys.stderr.isatty()

    def say(self, text):
        if self.live:
            print(f"\r\x1b[K[{self.done + 1}/{self.total}] {text}", end="", file=sys.stderr, flush=True)

    def finish(self, text):
        self.done += 1
        start = "\r\x1b[K" if self.live else ""
        print(f"{start}[{self.done}/{self.total}] {text}", file=sys.stderr, flush=True)


def measure(suite, workload, threads, runners, settings, say):
    """The record of one workload at one number of threads."""
    ours, others = runners
    start = time.time()
    record = {"suite": suite.name, "workload": workload["name"], "threads": threads, "tuned": not settings.untuned}
    record.update(precision=settings.precision, flops=workload["flops"], bytes=workload["bytes"])
    record["family"] = workload["family"]
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="inputs-", dir=settings.out))
    try:
        inputs.write(workload, scratch)
        with locked():
            if not settings.untuned:
                say(f"{workload['name']}, {threads} threads: tuning")
                record["tuning"] = tune(workload, threads, settings, ours)
            entered = [(peer, runner) for peer, runner in others if peer.wants(workload)]
            prefix = f"{workload['name']}, {threads} threads: "
            contest = Contest(workload, ours, entered, settings, scratch, lambda text: say(prefix + text))
            record.update(contest.run())
            # The runners themselves are a part of it: about as many as there are threads.
            record["load"] = round(os.getloadavg()[0], 2)
    except RunnerFailed as failure:
        record["failed"] = str(failure)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    record["seconds"] = round(time.time() - start, 1)
    return record


def all_workloads(settings, journal):
    chosen = suites.chosen(settings.suite, settings.only, settings.full_size)
    entered, missing = peers.chosen(settings.peers)
    if missing:
        print(f"not installed, so left out: {', '.join(missing)}", file=sys.stderr)
    # Threads outermost: the processes of peers have their number of threads for life.
    jobs = [(threads, suite, workload) for threads in settings.threads for suite, workload in chosen]
    if not settings.fresh:
        jobs = [job for job in jobs if not journal.has(job[1].name, job[2]["name"], job[0], settings)]
    progress = Progress(len(jobs))
    for threads in settings.threads:
        ours = peers.ours(threads, settings)
        others = [(peer, peer.runner(threads, settings)) for peer in entered]
        try:
            for _, suite, workload in (job for job in jobs if job[0] == threads):
                record = measure(suite, workload, threads, (ours, others), settings, progress.say)
                journal.add(record)
                progress.finish(report.headline(record))
        finally:
            for runner in (ours, *(runner for _, runner in others)):
                runner.stop()


def main(arguments=None):
    settings = parse(arguments)
    (settings.out / "logs").mkdir(parents=True, exist_ok=True)
    for program in (COMMAND, OURS):
        if not program.exists() and not settings.report:
            sys.exit(f"bench/run: {program} is missing; run bench/install ours first")
    journal = Journal(settings.out / "results.jsonl")
    interrupted = False
    if not settings.report:
        machine.describe(settings)
        try:
            all_workloads(settings, journal)
        except KeyboardInterrupt:
            interrupted = True
            print("\ninterrupted; the same command goes on from here", file=sys.stderr)
    report.write(journal.records(), settings)
    return 130 if interrupted else 0
