"""Runners: long-lived processes that build workloads and take samples."""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import time

from .places import ROOT

PR_SET_PDEATHSIG = 1
PRIORITY = -10


class RunnerFailed(Exception):
    """The process ended or timed out."""


def processors(threads):
    """The processors of a measurement: the last ones, because the first ones handle more interrupts."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def environment(threads, extra):
    """Variables to set before libraries are loaded: the number of threads, and keeping memory."""
    variables = dict(os.environ)
    names = ("OMP", "MKL", "OPENBLAS", "HL", "TVM")
    variables.update({f"{name}_NUM_THREADS": str(threads) for name in names})
    # Threads that wait for each other on one processor are a hundred times slower. Our pool pins
    # its threads; OpenMP's are told to.
    places = ",".join(f"{{{processor}}}" for processor in processors(threads))
    variables.update(OMP_PROC_BIND="true", OMP_PLACES=places)
    # Otherwise fresh results would fault in their pages on every call.
    variables.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 34), MALLOC_TOP_PAD_=str(1 << 28))
    variables.update(NPROC=str(threads), PYTHONDONTWRITEBYTECODE="1", **extra)
    return variables


def take_priority():
    """Raises the priority of the calling process, a session leader, if permitted.

    On a busy machine, two threads that wait for each other otherwise take a hundred times as long.
    """
    with contextlib.suppress(OSError):
        os.nice(PRIORITY)
    # With session groups, a process's priority only counts within its group.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(PRIORITY))


def end_with_driver(number):
    """Asks for a signal to the calling process when the driver ends."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


class Runner:
    """A process, started by its first request and again after a failure."""

    def __init__(self, name, command, threads, log, extra=None):
        self.name, self.command, self.threads = name, [str(word) for word in command], threads
        self.log, self.extra = log, extra or {}
        self.process = None
        self.pending = b""

    def start(self):
        def prepare():
            end_with_driver(signal.SIGKILL)
            os.sched_setaffinity(0, processors(self.threads))
            take_priority()

        self.pending = b""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, preexec_fn=prepare,
                env=environment(self.threads, self.extra), start_new_session=True, cwd=ROOT,
            )  # fmt: skip

    def ask(self, request, limit=120.0, **fields):
        """The reply to a request; a process that exceeds `limit` seconds is killed."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"request": request, **fields}).encode() + b"\n")
            self.process.stdin.flush()
            return json.loads(self.line(time.monotonic() + limit))
        except (OSError, ValueError, RunnerFailed) as error:
            self.stop()
            raise RunnerFailed(f"{self.name}: {error}") from error

    def line(self, deadline):
        output = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise RunnerFailed("gave no answer within the time limit")
            block = os.read(output, 1 << 20)
            if not block:
                raise RunnerFailed(f"the process ended ({self.process.wait(5)}); see {self.log}")
            self.pending += block
        line, self.pending = self.pending.split(b"\n", 1)
        return line

    def stop(self):
        """Kills the process and its session: compilers and workers."""
        if self.process is None:
            return
        process, self.process = self.process, None
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
