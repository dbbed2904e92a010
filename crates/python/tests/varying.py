"""The time of kernels for sizes that vary, relative to kernels for the sizes of each call.

    python crates/python/tests/varying.py [NAME...]

Calls of both are interleaved, and times are the best of several rounds, on one thread. It fails if a kernel for all
sizes takes more than twice the time in the mean.
"""

import os
import sys
import tempfile
import time

os.environ.setdefault("TENSORWRIGHT_DB", os.path.join(tempfile.mkdtemp(), "records.sqlite3"))

import numpy as np  # noqa: E402

import tensorwright as tw  # noqa: E402

ROUNDS = 9
BATCHES = [1, 2, 5, 16, 33, 100, 128, 300, 1000, 2000]

DENSE = """def dense(float(B,K) x, {const} float(K,N) w, {const} float(N) c) -> (y) {{
  t(b,n) +=! x(b,k) * w(k,n)
  y(b,n) = gelu(t(b,n) + c(n))
}}"""
LINEAR = """def linear(float(B,K) x, const float(N,K) w, const float(N) c) -> (y) {
  t(b,n) +=! x(b,k) * w(n,k)
  y(b,n) = max(t(b,n) + c(n), 0)
}"""
LAYER_NORM = """def norm(float(B,D) x, float(D) g, float(D) c) -> (y) {
  m(b) +=! x(b,d) / D
  v(b) +=! (x(b,d) - m(b)) * (x(b,d) - m(b))
  y(b,d) = (x(b,d) - m(b)) / sqrt(v(b) / D + 1e-5) * g(d) + c(d)
}"""
SOFTMAX = """def softmax(float(N,D) x) -> (y) {
  m(n) max=! x(n,d)
  s(n) +=! exp(x(n,d) - m(n))
  y(n,d) = exp(x(n,d) - m(n)) / s(n)
}"""
ROWS = "def rows(float(N,D) x, float(D) b) -> (y) { y(n,d) = max(x(n,d) + b(d), 0) }"
DECODE = """def decode(float(H,D) q, float(S,H,D) k, float(S,H,D) v) -> (o) {
  s(h,j) +=! q(h,d) * k(j,h,d)
  m(h) max=! s(h,j)
  e(h,j) = exp(s(h,j) - m(h))
  t(h) +=! e(h,j)
  o(h,d) +=! e(h,j) * v(j,h,d)
  o(h,d) = o(h,d) / t(h)
}"""
MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
UNSHARP = """def unsharp(float(H,W) x) -> (y) {
  t(i,j) = x(i, clamp(j - 1, 0, W - 1)) + 2 * x(i,j) + x(i, clamp(j + 1, 0, W - 1)) where i in 0:H, j in 0:W
  u(i,j) = t(clamp(i + 1, 0, H - 1), j) + 2 * t(i,j) + t(clamp(i - 1, 0, H - 1), j) where i in 0:H, j in 0:W
  y(i,j) = 2 * x(i,j) - u(i,j) / 16
}"""

random = np.random.default_rng(0)


def array(*shape):
    return random.standard_normal(shape).astype("float32")


WEIGHTS = {"w": array(512, 512), "c": array(512)}

# The name, the text, the sizes that vary, the frozen arguments, the other arguments for a value, the values.
CASES = [
    ("dense layer with GELU, batch", DENSE.format(const="const"), ["B"], WEIGHTS, lambda n: [array(n, 512)], BATCHES),
    ("the same, weights not frozen", DENSE.format(const=""), ["B"], {}, lambda n: [array(n, 512), *WEIGHTS.values()], BATCHES),
    ("linear layer, batch", LINEAR, ["B"], WEIGHTS, lambda n: [array(n, 512)], BATCHES),
    ("layer norm, batch", LAYER_NORM, ["B"], {}, lambda n: [array(n, 768), array(768), array(768)], BATCHES),
    ("softmax, batch", SOFTMAX, ["N"], {}, lambda n: [array(n, 1000)], BATCHES),
    ("softmax, both sizes", SOFTMAX, True, {}, lambda n: [array(64, n)], [7, 33, 100, 512, 1000, 4000]),
    ("rows, batch", ROWS, ["N"], {}, lambda n: [array(n, 64), array(64)], BATCHES),
    (
        "decoding step, cache of keys",
        DECODE,
        ["S"],
        {},
        lambda n: [array(8, 64), array(n, 8, 64), array(n, 8, 64)],
        [1, 7, 32, 33, 100, 256, 777, 1024, 2000, 4096],
    ),
    ("matrix product, all sizes", MATMUL, True, {}, lambda n: [array(n, n), array(n, n)], [16, 33, 64, 100, 128, 256, 300, 511, 512]),
    (
        "unsharp mask, both sizes",
        UNSHARP,
        True,
        {},
        lambda n: [array(n * 3 // 4, n)],
        [64, 100, 333, 640, 777, 1024, 1920],
    ),
]


def seconds(function):
    begun = time.perf_counter()
    function()
    count = max(1, int(0.004 / max(time.perf_counter() - begun, 1e-7)))
    begun = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - begun) / count


def only(module):
    (name,) = module
    return module[name]


def ratio(name, varying, fixed):
    times = [(seconds(varying), seconds(fixed)) for _ in range(ROUNDS)]
    ours, theirs = (min(column) * 1e6 for column in zip(*times))
    print(f"  {name:<8} {ours:10.1f} us {ours / theirs:6.2f}", flush=True)
    return ours / theirs


def main(names):
    tw.set_num_threads(1)
    failed = False
    for name, text, dynamic, frozen, arguments, values in CASES:
        if names and not any(part in name for part in names):
            continue
        print(name)
        varying, fixed = (only(tw.define(text, dynamic=which)) for which in (dynamic, False))
        if frozen:
            varying, fixed = varying.freeze(**frozen), fixed.freeze(**frozen)
        ratios = []
        for value in values:
            given = arguments(value)
            np.testing.assert_allclose(varying(*given), fixed(*given), rtol=2e-3, atol=1e-4)
            ratios.append(ratio(value, lambda: varying(*given), lambda: fixed(*given)))  # noqa: B023
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"  mean {mean:.2f}, worst {max(ratios):.2f}; {varying.kernels} kernel for all, {fixed.kernels} for each")
        failed |= bool(mean > 2)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
