"""What every runner in Python shares: the protocol with bench/run, and how samples are taken.

A runner is a long-lived process. It answers one line of JSON with one line of JSON:

    build     {workload, inputs: directory with NAME.npy}  -> {variants: [...], version, extra: {variant: {...}}}
    sample    {variant, seconds}                           -> {ns: [per call, ...]}
    output    {variant, path}                              -> {} and the result as .npy, in the workload's layout
    overhead  {}                                           -> {ns: [...]} of a call that computes next to nothing
    quit

What a peer cannot express is `{unsupported: why}`, what fails is `{error: why}`. Samples are taken as in
crates/bench/src/sample.rs.
"""

import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

WARM_UP_NS = 3_000_000
BATCH_NS = 100_000


class Unsupported(Exception):
    """The peer cannot compute this workload."""


@dataclass
class Variant:
    """A way in which a peer computes a workload."""

    call: Callable[[], Any]
    """Computes once."""
    output: Callable[[], np.ndarray]
    """Computes once, and returns the result in the layout of the workload."""
    extra: dict = field(default_factory=dict)
    """Additional information, such as the peer's tuning time."""
    around: Callable = contextlib.nullcontext
    """Entered once around many calls."""
    loop: Callable[[int], int] | None = None
    """Runs this many calls and returns the nanoseconds, where the loop is not in Python."""


def samples(variant, seconds):
    """Nanoseconds per call, over about this many seconds."""
    clock = time.perf_counter_ns
    call, loop = variant.call, variant.loop

    def run(calls):
        if loop:
            return loop(calls)
        start = clock()
        for _ in range(calls):
            call()
        return clock() - start

    with variant.around():
        warm, calls = run(1), 1
        while warm < WARM_UP_NS:  # the caches and the clock rate belong to whoever ran before
            more = max(1, min(calls, int((WARM_UP_NS - warm) * calls / max(warm, 1)) + 1))
            warm, calls = warm + run(more), calls + more
        batch = max(1, int(BATCH_NS * calls // max(warm, 1)))
        found, start = [], clock()
        while not found or clock() - start < seconds * 1e9:
            found.append(run(batch) / batch)
    return found


class Inputs:
    """The inputs of a workload, read lazily."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def __call__(self, name):
        return np.load(self.directory / f"{name}.npy")


class Server:
    """Serves requests with a peer's module: `VERSION`, `build(workload, inputs)`, and `overhead()`, a variant
    that computes almost nothing."""

    def __init__(self, peer):
        self.peer = peer
        self.variants = {}

    def build(self, request):
        self.variants = {}
        started = time.time()
        self.variants = self.peer.build(request["workload"], Inputs(request["inputs"]))
        extra = {name: variant.extra for name, variant in self.variants.items()}
        seconds = round(time.time() - started, 2)
        return {"variants": list(self.variants), "version": self.peer.VERSION, "extra": extra, "build_s": seconds}

    def sample(self, request):
        return {"ns": samples(self.variants[request["variant"]], request["seconds"])}

    def output(self, request):
        variant = self.variants[request["variant"]]
        with variant.around():
            result = np.asarray(variant.output())
        np.save(request["path"], np.ascontiguousarray(result, dtype=np.float32))
        return {}

    def overhead(self, _):
        # Timed like the peer's kernels: in its own loop, if it has one.
        return {"ns": samples(self.peer.overhead(), 0.005)}

    def answer(self, line):
        try:
            request = json.loads(line)
            return getattr(self, request["request"])(request)
        except Unsupported as error:
            return {"unsupported": str(error) or "operator"}
        except Exception as error:  # whatever a peer throws is for the driver to report
            return {"error": f"{type(error).__name__}: {error}"[:500]}


def serve(peer):
    """Serves until the driver quits or disappears."""
    # Libraries may print to standard output: it is redirected to the log, and replies use the
    # original stream.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    server = Server(peer)
    for line in sys.stdin:
        if json.loads(line).get("request") == "quit":
            break
        replies.write(json.dumps(server.answer(line)) + "\n")
    # Thread pools and compilers of peers may hang or crash at exit.
    os._exit(0)


def circulant(block):
    """`[t,k] = (t+k) % b` picks the diagonals of a circulant block, `[r,c] = (c-r) % b` spreads them again."""
    r = np.arange(block)
    return (r[:, None] + r[None, :]) % block, (r[None, :] - r[:, None]) % block


def shift_positions(workload, idx):
    """Flat positions in the zero-padded NHWC image, for the shift of channel c by idx[c]."""
    batch, height, width, channels = workload["inputs"]["X"]
    kernel = workload["kernel"]
    padded = width + kernel - 1
    y = np.arange(height)[:, None, None] + (idx // kernel)[None, None, :]
    x = np.arange(width)[None, :, None] + (idx % kernel)[None, None, :]
    one = (y * padded + x) * channels + np.arange(channels)[None, None, :]
    image = (height + kernel - 1) * padded * channels
    return np.stack([one + n * image for n in range(batch)])
