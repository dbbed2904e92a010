"""Whether the machine was left alone during a measurement: what other processes and other machines took of it."""

import os
import time

TICKS = os.sysconf("SC_CLK_TCK")

NOISE = 0.05
"""Up to this share of one processor, for others and for steal together, is taken for quiet."""

ATTEMPTS = 4
"""A measurement that was not quiet is taken again, up to three times."""

PAUSE = 2.0
"""Seconds to wait before it is taken again, and twice and three times as long before the next ones."""


def machine_ticks():
    """Ticks of all processors that were used, and that the host gave to other machines."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
    return user + nice + system + irq + softirq, steal


def own_ticks(sessions):
    """Ticks of this process and of all in the sessions of the runners, children that have ended included."""
    total = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/stat") as file:
                # The name of a program may hold anything, brackets and blanks included.
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(entry.name) == os.getpid() or int(fields[3]) in sessions:
            total += sum(map(int, fields[11:15]))
    return total


class Watch:
    """Watches from its making to `busy`."""

    def __init__(self, sessions):
        self.sessions = sessions
        self.start = (time.monotonic(), *machine_ticks(), own_ticks(sessions()))

    def busy(self):
        """What others used, and what was stolen, as shares of one processor."""
        began, used, stolen, own = self.start
        seconds = max(time.monotonic() - began, 1e-3)
        now_used, now_stolen = machine_ticks()
        others = (now_used - used) - (own_ticks(self.sessions()) - own)
        share = lambda ticks: round(max(0.0, ticks / TICKS / seconds), 3)  # noqa: E731
        return {"others": share(others), "steal": share(now_stolen - stolen)}


def is_quiet(busy):
    return busy["others"] + busy["steal"] <= NOISE


def quietest(measure, sessions):
    """Measures until the machine is quiet meanwhile, at most `ATTEMPTS` times: the quietest result, with what was
    going on and how often it was tried."""
    best = None
    for attempt in range(1, ATTEMPTS + 1):
        watch = Watch(sessions)
        result = measure()
        busy = watch.busy()
        if best is None or sum(busy.values()) < sum(best[1].values()):
            best = (result, busy)
        if is_quiet(busy):
            break
        if attempt < ATTEMPTS:
            time.sleep(PAUSE * attempt)
    result, busy = best
    return result, {**busy, "attempts": attempt, "quiet": is_quiet(busy)}
