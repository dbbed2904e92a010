"""NumPy with its OpenBLAS, for workloads in the form of a matrix product."""

import contextlib
import os
import sys

import numpy as np
from protocol import Unsupported, Variant, serve

KNOWS_AVX512 = ("skylakex", "cooperlake", "sapphirerapids")


def blas():
    """Information about the BLAS library."""
    with contextlib.suppress(ImportError):
        from threadpoolctl import threadpool_info

        return next((pool for pool in threadpool_info() if pool["user_api"] == "blas"), {})
    return {}


def use_right_core():
    """Restarts with an explicit core type if the library does not know the processor."""
    core = blas().get("architecture", "skylakex").lower()
    with open("/proc/cpuinfo") as file:
        has_avx512 = "avx512f" in file.read()
    if has_avx512 and core not in KNOWS_AVX512 and "OPENBLAS_CORETYPE" not in os.environ:
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
        os.execv(sys.executable, [sys.executable, *sys.argv])


def bind_threads():
    """Pins each thread of the library to a processor, as OpenMP does for other peers."""
    processors = sorted(os.sched_getaffinity(0))
    for number, task in enumerate(sorted(map(int, os.listdir("/proc/self/task")))):
        os.sched_setaffinity(task, {processors[number % len(processors)]})


use_right_core()
bind_threads()
VERSION = f"numpy {np.__version__} ({blas().get('internal_api')} {blas().get('version')}, {blas().get('architecture')})"


def variant(call):
    return Variant(call, call)


def matmul(workload, inputs):
    a, b = inputs("A"), inputs("B")
    a = a.swapaxes(-1, -2) if workload["transpose_a"] else a
    b = b.swapaxes(-1, -2) if workload["transpose_b"] else b
    out = np.empty(workload["output"], np.float32)
    return {"matmul": variant(lambda: np.matmul(a, b, out=out))}


def mlp(workload, inputs):
    x = inputs("X")
    layers = [(inputs(f"W{i}").T, inputs(f"b{i}")) for i in range(len(workload["sizes"]) - 1)]

    def call():
        y = x
        for weight, bias in layers:
            y = y @ weight
            y += bias
            np.maximum(y, 0, out=y)
        return y

    return {"matmul": variant(call)}


def build(workload, inputs):
    operator = workload["operator"]
    if operator == "gemv":
        a, x, out = inputs("A"), inputs("x"), np.empty(workload["output"], np.float32)
        return {"dot": variant(lambda: np.dot(a, x, out=out))}
    if operator in ("gemm", "bmm"):
        return matmul(workload, inputs)
    if operator in ("bilinear", "mttkrp"):
        a, b, c = inputs("A"), inputs("B"), inputs("C")
        if operator == "bilinear":
            return {"matmul+sum": variant(lambda: (np.matmul(a, b) * c).sum(-1).T)}
        return {"matmul+sum": variant(lambda: (np.matmul(a, c) * b).sum(1))}
    if operator == "mlp":
        return mlp(workload, inputs)
    raise Unsupported


def overhead():
    a, out = np.ones((1, 1), np.float32), np.empty((1, 1), np.float32)
    return Variant(lambda: np.matmul(a, a, out=out), lambda: out)


if __name__ == "__main__":
    serve(sys.modules[__name__])
