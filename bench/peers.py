#!/usr/bin/env python3
"""Kernels of examples/schedules against PyTorch and NumPy's OpenBLAS, interleaved in one process.

Every kernel is exported as a shared library by the command and called through its C interface, so
one process times all of them in turn and the noise of the machine meets them alike. Reported is the
median of the ratios of neighbouring samples: above 1, the kernel is faster than the peer.

    pip install numpy torch
    cargo build --release
    OPENBLAS_CORETYPE=SkylakeX python3 bench/peers.py [NAME...] [--command target/release/tensorwright]
    python3 bench/peers.py --default

With --default, the default schedule is the only peer; the last line is the geometric mean of its speed as
a share of the speed of the written schedules.

OPENBLAS_CORETYPE is for builds of OpenBLAS that do not know the processor. One thread throughout.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  (the number of threads is read when it is imported)

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


def aligned(shape):
    """Random numbers in cache-line-aligned memory."""
    count = int(np.prod(shape))
    raw = np.empty(count * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + count * 4].view(np.float32).reshape(shape)
    array[...] = np.random.default_rng(count).standard_normal(shape, np.float32)
    return array


def sizes(case):
    return {name: int(value) for name, value in (pair.split("=") for pair in case["size"].split(","))}


def problem(case):
    """Inputs, the shape of the result, and a function per peer."""
    s = sizes(case)
    peers = {}
    if case["def"] == "gemm":
        a, b = aligned((s["M"], s["K"])), aligned((s["K"], s["N"]))
        out = aligned((s["M"], s["N"]))
        peers["openblas"] = lambda: np.matmul(a, b, out=out)
        inputs, shape = [a, b], (s["M"], s["N"])
        if torch:
            ta, tb, to = torch.from_numpy(a), torch.from_numpy(b), torch.empty(shape)
            peers["torch"] = lambda: torch.mm(ta, tb, out=to)
    elif case["def"] == "gemv":
        a, x = aligned((s["M"], s["K"])), aligned((s["K"],))
        peers["openblas"] = lambda: np.matmul(a, x)
        inputs, shape = [a, x], (s["M"],)
        if torch:
            ta, tx = torch.from_numpy(a), torch.from_numpy(x)
            peers["torch"] = lambda: torch.mv(ta, tx)
    elif case["def"] == "fc_bias_relu":
        x, w, bias = aligned((s["B"], s["I"])), aligned((s["O"], s["I"])), aligned((s["O"],))
        peers["openblas"] = lambda: np.maximum(x @ w.T + bias, 0)
        inputs, shape = [x, w, bias], (s["B"], s["O"])
        if torch:
            tx, tw, tb = map(torch.from_numpy, (x, w, bias))
            peers["torch"] = lambda: torch.relu(torch.nn.functional.linear(tx, tw, tb))
    elif case["def"] == "conv2d_two_stage":
        x = aligned((1, s["IP"], s["H"], s["W"]))
        w = aligned((s["OP"], s["IP"], 3, 3))
        inputs, shape = [x, w], (1, s["OP"], s["H"], s["W"])
        if torch:
            tx, tw = torch.from_numpy(x), torch.from_numpy(w)
            peers["torch"] = lambda: torch.nn.functional.conv2d(tx, tw, padding=1)
    elif case["def"] == "maxpool2x2":
        x = aligned((1, s["C"], s["H"], s["W"]))
        inputs, shape = [x], (1, s["C"], s["H"] // 2, s["W"] // 2)
        if torch:
            tx = torch.from_numpy(x)
            peers["torch"] = lambda: torch.nn.functional.max_pool2d(tx, 2)
    elif case["def"] == "stencil":
        inputs, shape = [aligned((s["H"], s["W"]))], (s["H"] - 2, s["W"] - 2)
    else:
        x, w = aligned((1, s["C"], s["H"], s["W"])), aligned((s["K"], 3, 3))
        inputs, shape = [x, w], (1, s["K"], s["H"], s["W"])
        if torch:
            tx, tw = torch.from_numpy(x), torch.from_numpy(w).reshape(s["K"], 1, 3, 3)
            peers["torch"] = lambda: torch.nn.functional.conv2d(tx, tw, padding=1, groups=s["C"])
    return inputs, shape, peers


class Kernel:
    """A kernel in a shared library, called through the functions of its header."""

    def __init__(self, command, case, directory, inputs, shape, written=True):
        suffix = "" if written else "_default"
        name, library = case["def"], pathlib.Path(directory) / f"{case['name']}{suffix}.so"
        schedule = ["--schedule", ROOT / f"examples/schedules/{case['name']}.sched"] if written else []
        subprocess.run(
            [command, "compile", ROOT / "examples/kernels" / case["file"], "--def", name]
            + ["--size", case["size"], "--emit", "shared", "-o", library]
            + schedule,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.library = ctypes.CDLL(str(library))
        self.out = aligned(shape)
        buffers = inputs + [self.out]
        has_prepare = hasattr(self.library, f"{name}_prepared_bytes")
        if has_prepare:
            size = getattr(self.library, f"{name}_prepared_bytes")
            size.restype = ctypes.c_int64
            buffers.append(aligned((size() // 4,)))
        workspace = getattr(self.library, f"{name}_workspace_bytes")
        workspace.restype = ctypes.c_int64
        self.workspace = aligned((workspace(1) // 4 + 16,))
        self.buffers = buffers
        self.arguments = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
        self.function = getattr(self.library, name)
        pointer = ctypes.c_void_p
        self.function.argtypes = [pointer, pointer, pointer]
        self.call_arguments = (ctypes.addressof(self.arguments), self.workspace.ctypes.data, None)
        if has_prepare:
            prepare = getattr(self.library, f"{name}_prepare")
            prepare.argtypes = [pointer, pointer, pointer]
            prepare(*self.call_arguments)

    def __call__(self):
        status = self.function(*self.call_arguments)
        assert status == 0, status


def sample(function, seconds=0.004):
    """Seconds per call, over enough calls for the clock."""
    calls, start = 0, time.perf_counter()
    while True:
        function()
        calls += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return elapsed / calls


def compare(kernel, peers, rounds):
    """The time of the kernel and of each peer, and the median ratio of neighbouring samples."""
    for function in (kernel, *peers.values()):
        sample(function, 0.05)
    own, others, ratios = [], {name: [] for name in peers}, {name: [] for name in peers}
    for _ in range(rounds):
        for name, function in (peers or {"itself": kernel}).items():
            mine = sample(kernel)
            theirs = sample(function)
            own.append(mine)
            if name in peers:
                others[name].append(theirs)
                ratios[name].append(theirs / mine)
    middle = statistics.median
    return middle(own), {n: middle(t) for n, t in others.items()}, {n: middle(r) for n, r in ratios.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--command", default=str(ROOT / "target/release/tensorwright"))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--default", action="store_true", help="compare with the default schedule only")
    arguments = parser.parse_args()
    cases = json.loads((HERE / "cases.json").read_text())
    shares = []
    with tempfile.TemporaryDirectory() as directory:
        for case in cases:
            if arguments.names and case["name"] not in arguments.names:
                continue
            inputs, shape, peers = problem(case)
            kernel = Kernel(arguments.command, case, directory, inputs, shape)
            kernel()
            if arguments.default:
                default = Kernel(arguments.command, case, directory, inputs, shape, written=False)
                peers = {"default": lambda: default() or default.out}
            for name, peer in peers.items():
                expected = np.asarray(peer())
                error = np.abs(kernel.out - expected.reshape(shape)).max() / np.abs(expected).max()
                assert error < 1e-4, f"{case['name']} differs from {name} by {error}"
            own, times, ratios = compare(kernel, peers, arguments.rounds)
            line = f"{case['name']:22} {own * 1e6:10.1f} us"
            for name in peers:
                line += f"   {name} {times[name] * 1e6:10.1f} us, ratio {ratios[name]:.2f}"
            print(line, flush=True)
            shares += [1 / ratios["default"]] if arguments.default else []
    if shares:
        print(f"geometric mean of the default schedule's share: {statistics.geometric_mean(shares):.2f}")


if __name__ == "__main__":
    main()
