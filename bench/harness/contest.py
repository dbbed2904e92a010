"""One workload at one number of threads: build, verify, then sample our kernels and the peers in turns."""

import statistics
import time
from dataclasses import dataclass, field

import numpy as np

from . import against, inputs, quiet
from .runner import RunnerFailed

PAUSE = 0.02
"""Seconds between samples, so that the threads of a runner go to sleep: OpenMP's spin for up to 17 ms on
processors with a slow pause instruction."""
SCREEN_ROUNDS = 3
SCREEN_FACTOR = 1.5
"""Variants slower than the best peer by this factor are dropped after the first rounds."""
SCREENED = "screened"
SHORT = 50e-6
"""Call overhead is reported for workloads shorter than this, in seconds."""


@dataclass
class Contender:
    """A variant of a runner, with the medians of its samples."""

    runner: object
    variant: str
    extra: dict = field(default_factory=dict)
    error: float = 0.0
    times: list = field(default_factory=list)
    dropped: str = ""

    @property
    def name(self):
        if self.variant == self.runner.name:
            return self.variant
        return f"{self.runner.name} {self.variant}".strip()

    def sample(self, seconds):
        reply = self.runner.ask("sample", variant=self.variant, seconds=seconds, limit=60 + 20 * seconds)
        if "ns" not in reply:
            raise RunnerFailed(reply.get("error", "no samples"))
        self.times.append(statistics.median(reply["ns"]))
        time.sleep(PAUSE)

    @property
    def median(self):
        return statistics.median(self.times)


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    return [round(float(q), 4) for q in np.quantile(values, (0.25, 0.5, 0.75))]


class Contest:
    """Our kernels against all peers on one workload. `ours` are runners by column; the first column's results
    count."""

    def __init__(self, workload, ours, peers, settings, scratch, say):
        self.workload, self.our_runners, self.peers = workload, ours, peers
        self.settings, self.scratch, self.say = settings, scratch, say
        self.troubles, self.versions, self.contenders = {}, {}, []
        self.ours = {}
        self.built = {}
        self.denials = 0

    @property
    def first(self):
        """Our kernel that all are compared with."""
        return next(iter(self.ours.values()))

    def build(self, runner, limit):
        """The variants of a runner; its errors are recorded."""
        self.say(f"building {runner.name}")
        try:
            reply = runner.ask("build", workload=self.workload, inputs=str(self.scratch), limit=limit)
        except RunnerFailed as failure:
            self.troubles[runner.name] = str(failure)
            return []
        if "variants" not in reply:
            self.troubles[runner.name] = reply.get("unsupported") or reply.get("error", "?")
            return []
        self.versions[runner.name] = reply["version"]
        self.built[runner.name] = reply
        extra = reply.get("extra", {})
        return [Contender(runner, variant, extra.get(variant, {})) for variant in reply["variants"]]

    def result_of(self, contender):
        path = self.scratch / "result.npy"
        reply = contender.runner.ask("output", variant=contender.variant, path=str(path))
        if "error" in reply:
            raise RunnerFailed(reply["error"])
        return np.load(path)

    def enter(self):
        """Builds all variants and compares their results before timing."""
        allowed, result = inputs.tolerance(self.workload), None
        for column, runner in self.our_runners.items():
            mine = self.build(runner, 300.0)
            if not mine:
                return
            found = self.result_of(mine[0])
            result = found if result is None else result
            mine[0].error = inputs.difference(found, result)
            if mine[0].error > allowed:
                self.troubles[runner.name] = f"differs from exact sums by {mine[0].error:.1e} of the largest value"
                return
            self.ours[column] = mine[0]
        for peer, runner in self.peers:
            for contender in self.build(runner, peer.build_limit):
                try:
                    contender.error = inputs.difference(self.result_of(contender), result)
                except (RunnerFailed, OSError, ValueError) as failure:
                    self.troubles[contender.name] = str(failure)
                    continue
                if contender.error <= allowed:
                    self.contenders.append(contender)
                else:
                    self.denials += 1
                    self.troubles[contender.name] = f"differs from ours by {contender.error:.1e} of the largest value"

    def rounds(self):
        """Samples in turns and returns all samples. Each sample of a peer lies between two of ours."""
        for contender in self.everybody():
            contender.times = []
            if contender.dropped == SCREENED:
                contender.dropped = ""
        for number in range(self.settings.rounds):
            self.say(f"round {number + 1} of {self.settings.rounds}, {len(self.alive())} peers")
            self.sample_ours()
            order = self.alive()
            turn = number % max(1, len(order))
            for contender in order[turn:] + order[:turn]:
                try:
                    contender.sample(self.settings.sample)
                except RunnerFailed as failure:
                    contender.dropped = self.troubles[contender.name] = str(failure)
            if number + 1 == SCREEN_ROUNDS:
                self.screen()
        self.sample_ours()
        return [(contender, contender.times, contender.dropped) for contender in self.everybody()]

    def sample_ours(self):
        for contender in self.ours.values():
            contender.sample(self.settings.sample)

    def everybody(self):
        return [*self.ours.values(), *self.contenders]

    def sessions(self):
        """The process groups of the runners."""
        runners = (*self.our_runners.values(), *(runner for _, runner in self.peers))
        return {runner.process.pid for runner in runners if runner.process}

    def alive(self):
        return [contender for contender in self.contenders if not contender.dropped]

    def screen(self):
        """Drops variants that are far behind, to save time. Compares the fastest samples: a disturbance in an
        early round must not drop a good peer."""
        best = min((min(contender.times) for contender in self.alive()), default=0.0)
        for contender in self.alive():
            if min(contender.times) > SCREEN_FACTOR * best:
                contender.dropped = SCREENED

    def ratios(self, contender, ours):
        """A peer's time divided by ours, round by round: by the mean of ours before and after it."""
        mine = ours.times
        around = [(mine[i] * mine[i + 1]) ** 0.5 for i in range(len(mine) - 1)]
        return [theirs / ours for theirs, ours in zip(contender.times, around, strict=False)]

    def roof(self):
        """The machine's current roofline for this workload: the better of two probes."""
        written = 4 * int(np.prod(self.workload["output"]))
        looks = [self.first.runner.ask("roof", bytes=self.workload["bytes"], written=written) for _ in range(2)]
        best = {key: round(max(look[key] for look in looks), 2) for key in ("gflops", "gbps")}
        return {**best, "bandwidth": looks[0]["bandwidth"]}

    def overheads(self, best):
        """The call overhead of our kernel and the best peer, for short workloads."""
        compared = [contender for contender in (self.first, best) if contender]
        if all(contender.median >= SHORT * 1e9 for contender in compared):
            return {}
        replies = {contender.runner.name: contender.runner.ask("overhead") for contender in compared}
        return {name: round(statistics.median(reply["ns"]), 1) for name, reply in replies.items() if "ns" in reply}

    def standing(self, contender):
        ratio = quartiles(self.ratios(contender, self.first)) if contender.times else None
        return {
            "name": contender.name,
            "median_ns": round(contender.median, 1),
            "min_ns": round(min(contender.times), 1),
            "ratio": ratio,
            "rounds": len(contender.times),
            "error": float(f"{contender.error:.2e}"),
            **contender.extra,
        }

    def own(self, contender, best):
        """The measurements of our kernel and the best peer."""
        built = self.built[contender.runner.name]
        return {
            "median_ns": round(contender.median, 1),
            "quartiles_ns": quartiles(contender.times),
            "min_ns": round(min(contender.times), 1),
            "gflops": round(self.workload["flops"] / contender.median, 2),
            "gbps": round(self.workload["bytes"] / contender.median, 2),
            "ratio": quartiles(self.ratios(best, contender)) if best else None,
            "schedule": built["schedule"],
            "error_growth": built.get("error_growth", 1.0),
            "error": float(f"{contender.error:.2e}"),
            "compile_s": round(built["compile_s"], 3),
        }

    def is_unchanged(self):
        """Whether only another build takes part, and its code is the same without tuning."""
        others = [peer for peer, _ in self.peers]
        if self.settings.mode != ["untuned"] or len(self.ours) > 1 or len(self.contenders) != 1:
            return False
        if not all(isinstance(peer, against.OtherBuild) for peer in others):
            return False
        built = [self.built[contender.runner.name] for contender in self.everybody()]
        return against.is_same_code(*built)

    def run(self):
        """The record of this workload."""
        self.enter()
        if len(self.ours) < len(self.our_runners):
            why = (self.troubles[runner.name] for runner in self.our_runners.values() if runner.name in self.troubles)
            return {"failed": next(why, "?"), "troubles": self.troubles}
        if self.is_unchanged():
            return {"unchanged": True, "troubles": self.troubles, "versions": self.versions}
        if not self.contenders and self.denials:
            # Whether or not the others agree with each other, no reference is known.
            return {"failed": "the result differs from every peer's", "troubles": self.troubles}
        roof = self.roof()
        samples, busy = quiet.quietest(self.rounds, self.sessions)
        for contender, times, dropped in samples:
            contender.times, contender.dropped = times, dropped
        timed = [contender for contender in self.contenders if contender.times]
        final = [contender for contender in timed if not contender.dropped]
        best = min(final, key=lambda contender: contender.median, default=None)
        later = self.roof()
        roof = {**roof, **{key: max(roof[key], later[key]) for key in ("gflops", "gbps")}}
        limit = max(self.workload["flops"] / roof["gflops"], self.workload["bytes"] / roof["gbps"])
        return {
            "ours": {column: self.own(contender, best) for column, contender in self.ours.items()},
            "roof": {
                **roof,
                "bound": "compute" if limit == self.workload["flops"] / roof["gflops"] else "memory",
                "share": round(limit / self.first.median, 4),
            },
            "busy": busy,
            "best": best.name if best else None,
            "peers": [self.standing(contender) for contender in sorted(timed, key=lambda c: c.median)],
            "overhead_ns": self.overheads(best),
            "troubles": self.troubles,
            "versions": self.versions,
            "build_s": {name: reply["build_s"] for name, reply in self.built.items() if "build_s" in reply},
        }
