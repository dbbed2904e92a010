"""The overhead of a call from Python, and the time to the first result in a new process.

    python crates/python/tests/overhead.py

The kernel adds eight numbers, so that nearly all of a call is overhead. Times are the best of several rounds: on a
shared machine others only add to them.
"""

import os
import subprocess
import sys
import tempfile
import timeit

os.environ.setdefault("TENSORWRIGHT_DB", os.path.join(tempfile.mkdtemp(), "records.sqlite3"))

import numpy as np  # noqa: E402

import tensorwright as tw  # noqa: E402

TEXT = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"
CALLS, ROUNDS = 5000, 40

FIRST = """
import time
begun = time.perf_counter()
import tensorwright as tw
imported = time.perf_counter()
op = tw.define({text!r}).matmul
op(a, b)
print((imported - begun) * 1e3, (time.perf_counter() - begun) * 1e3)
"""


def best(function):
    return min(timeit.repeat(function, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def overheads():
    add = tw.define(TEXT).add
    a, b, out = (np.ones(8, "float32") for _ in range(3))
    yield "tensorwright, NumPy arrays", best(lambda: add(a, b))
    yield "tensorwright, NumPy arrays, out=", best(lambda: add(a, b, out=out))
    yield "numpy.add", best(lambda: np.add(a, b))
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
    x, y = torch.ones(8), torch.ones(8)
    yield "tensorwright, torch tensors", best(lambda: add(x, y))
    yield "torch.add", best(lambda: torch.add(x, y))
    yield "torch.mm of 8 x 8", best(lambda m=torch.ones(8, 8): torch.mm(m, m))
    registered = tw.torch.register(add)
    yield "tensorwright, registered with torch", best(lambda: registered(x, y))


def first_results():
    text = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    op = tw.define(text).matmul
    op.tune(M=256, N=256, K=256, trials=8, progress=False)
    script = "import numpy\na = b = numpy.ones((256, 256), 'float32')\n" + FIRST.format(text=text)
    runs = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        runs.append([float(word) for word in done.stdout.split()])
    return min(runs, key=lambda run: run[1])


if __name__ == "__main__":
    for name, microseconds in overheads():
        print(f"{name:40} {microseconds:7.2f} us a call")
    imported, result = first_results()
    print(f"a second process: import {imported:.0f} ms, first result of a tuned kernel after {result:.0f} ms")
