"""Detects other load during a measurement: other processes, and time stolen by the host."""

import os
import time

TICKS = os.sysconf("SC_CLK_TCK")

NOISE = 0.05
"""The share of one processor, for other processes and steal together, that counts as quiet."""

ATTEMPTS = 4
"""A disturbed measurement is repeated up to three times."""

PAUSE = 2.0
"""Seconds before the first repetition; the following ones wait two and three times as long."""


def machine_ticks():
    """Used ticks of all processors, and ticks stolen by the host."""
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(int, file.readline().split()[1:])
    return user + nice + system + irq + softirq, steal


def own_ticks(sessions):
    """Ticks of this process and of all processes in the runners' sessions, including ended children."""
    total = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"/proc/{entry.name}/stat") as file:
                # A program name may contain any characters, including brackets and blanks.
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(entry.name) == os.getpid() or int(fields[3]) in sessions:
            total += sum(map(int, fields[11:15]))
    return total


class Watch:
    """Measures other load between its creation and `busy`."""

    def __init__(self, sessions):
        self.sessions = sessions
        self.start = (time.monotonic(), *machine_ticks(), own_ticks(sessions()))

    def busy(self):
        """The load of others and the stolen time, as shares of one processor."""
        began, used, stolen, own = self.start
        seconds = max(time.monotonic() - began, 1e-3)
        now_used, now_stolen = machine_ticks()
        others = (now_used - used) - (own_ticks(self.sessions()) - own)
        share = lambda ticks: round(max(0.0, ticks / TICKS / seconds), 3)  # noqa: E731
        return {"others": share(others), "steal": share(now_stolen - stolen)}


def is_quiet(busy):
    return busy["others"] + busy["steal"] <= NOISE


def quietest(measure, sessions):
    """Repeats a measurement until the machine is quiet, at most `ATTEMPTS` times: returns the quietest result
    with the load and the number of attempts."""
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
