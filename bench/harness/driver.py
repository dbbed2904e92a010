"""The loop over workloads and threads."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import sys
import tempfile
import time

from . import inputs, peers, report, suites
from .against import OtherBuild
from .contest import Contest
from .journal import Journal
from .modes import Kernel
from .run import Run
from .runner import RunnerFailed
from .settings import parse
from .tuning import has_fast, tune


@contextlib.contextmanager
def locked():
    """Holds the lock file in BENCH_LOCK, for machines with other benchmarks."""
    path = os.environ.get("BENCH_LOCK")
    if not path:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Progress:
    """A status line; the last one of each workload stays."""

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


def builds(ours, others, run, settings):
    """The builds to tune, ours and another one that takes part: `(name, runner, kernel, command,
    records)`."""
    tuned = [(name, runner, run.kernels[name]) for name, runner in ours.items() if run.kernels[name].tuned]
    found = [(name, runner, kernel, run.command, kernel.db(settings)) for name, runner, kernel in tuned]
    first = Kernel("exact", settings.mode[0])
    for peer, runner in others:
        if isinstance(peer, OtherBuild) and first.tuned:
            found.append((peer.name, runner, first, peer.command, peer.db(settings)))
    return found


def measure(suite, workload, threads, runners, run, settings, say):
    """The record of one workload at one number of threads."""
    ours, others = runners
    start = time.time()
    record = {"suite": suite.name, "workload": workload["name"], "threads": threads, "family": workload["family"]}
    record.update(flops=workload["flops"], bytes=workload["bytes"])
    # Without algebraic rewrites, one kernel serves both precisions.
    if set(ours) == {"exact", "fast"} and not has_fast(workload, threads, run):
        ours = {"exact": ours["exact"]}
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="inputs-", dir=settings.out))
    try:
        inputs.write(workload, scratch)
        prefix = f"{workload['name']}, {threads} threads: "
        with locked():
            for name, runner, kernel, command, db in builds(ours, others, run, settings):
                say(f"{prefix}tuning, {name}")
                cost = tune(suite, workload, threads, kernel, run, settings, runner, command, db)
                record.setdefault("tuning", {})[name] = cost
            entered = [(peer, runner) for peer, runner in others if peer.wants(workload)]
            contest = Contest(workload, ours, entered, settings, scratch, lambda text: say(prefix + text))
            record.update(contest.run())
    except RunnerFailed as failure:
        record["failed"] = str(failure)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    record["seconds"] = round(time.time() - start, 1)
    return record


def all_workloads(run, settings, journal):
    chosen = suites.chosen(settings.suite, settings.only, settings.full_size, bool(settings.target))
    entered, missing = peers.chosen(settings.peers, bool(settings.target))
    if settings.against:
        entered.append(OtherBuild(run.other))
    if missing:
        print(f"not installed, so left out: {', '.join(missing)}", file=sys.stderr)
    # Threads are the outer loop: a peer's process has a fixed number of threads.
    jobs = [(threads, suite, workload) for threads in settings.threads for suite, workload in chosen]
    jobs = [job for job in jobs if not journal.has(job[1].name, job[2]["name"], job[0])]
    progress = Progress(len(jobs))
    for threads in settings.threads:
        ours = {column: peers.ours(threads, column, run, settings) for column in run.kernels}
        others = [(peer, peer.runner(threads, settings)) for peer in entered]
        try:
            for _, suite, workload in (job for job in jobs if job[0] == threads):
                record = measure(suite, workload, threads, (ours, others), run, settings, progress.say)
                journal.add(record)
                progress.finish(report.headline(record))
        finally:
            for runner in (*ours.values(), *(runner for _, runner in others)):
                runner.stop()


def main(arguments=None):
    settings = parse(arguments)
    (settings.out / "logs").mkdir(parents=True, exist_ok=True)
    run = Run.read(settings.out) if settings.report else Run.resume_or_start(settings)
    if run is None:
        sys.exit(f"bench/run: there is no run in {settings.out}")
    journal = Journal(settings.out / "results.jsonl")
    interrupted = False
    if not settings.report:
        try:
            all_workloads(run, settings, journal)
        except KeyboardInterrupt:
            interrupted = True
            print("\ninterrupted; the same command resumes from here", file=sys.stderr)
    report.write(journal.records(), run, settings)
    return 130 if interrupted else 0
