"""oneDNN called directly, for products and convolutions: PyTorch's library without PyTorch's call overhead.

onednn.cpp is compiled by bench/install into the library that `--library` names.
"""

import argparse
import ctypes
import sys

import numpy as np
from protocol import Unsupported, Variant, serve

OPTIONS = argparse.Namespace(library="", threads=1)
LIBRARY = None
VERSION = "oneDNN"


def setup():
    global LIBRARY, VERSION
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.parse_args(namespace=OPTIONS)
    LIBRARY = ctypes.CDLL(OPTIONS.library)
    for name in ("bench_convolution", "bench_matmul", "bench_mlp"):
        getattr(LIBRARY, name).restype = ctypes.c_void_p
    LIBRARY.bench_run.restype = ctypes.c_int64
    LIBRARY.bench_failure.restype = ctypes.c_char_p
    numbers = (ctypes.c_int * 3)()
    LIBRARY.bench_version(numbers)
    VERSION = "oneDNN " + ".".join(map(str, numbers))


def floats(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)) if array is not None else None


def longs(values):
    return (ctypes.c_int64 * len(values))(*values)


def variant(handle, shape):
    if not handle:
        raise Unsupported(LIBRARY.bench_failure().decode())
    handle = ctypes.c_void_p(handle)

    def output():
        out = np.empty(shape, np.float32)
        LIBRARY.bench_output(handle, floats(out))
        return out

    def loop(calls):
        return LIBRARY.bench_run(handle, ctypes.c_int64(calls))

    return Variant(lambda: loop(1), output, loop=loop)


def long(value):
    return ctypes.c_int64(value)


def matmul(w, inputs):
    if w["operator"] == "gemv":
        rows, columns = w["inputs"]["A"]
        a, b, batch, m, n, k, ta, tb = inputs("A"), inputs("x"), 1, rows, 1, columns, False, False
    else:
        a, b, ta, tb = inputs("A"), inputs("B"), w["transpose_a"], w["transpose_b"]
        *lead, m, n = w["output"]
        batch, k = (lead or [1])[0], w["inputs"]["A"][-2 if ta else -1]
    handle = LIBRARY.bench_matmul(long(batch), long(m), long(n), long(k), ta, tb, floats(a), floats(b))
    return {"matmul": variant(handle, w["output"])}


def mlp(w, inputs):
    layers = len(w["sizes"]) - 1
    weights, biases = ([inputs(f"{kind}{i}") for i in range(layers)] for kind in "Wb")
    pointers = ctypes.POINTER(ctypes.c_float) * layers
    x = inputs("X")
    handle = LIBRARY.bench_mlp(
        layers, long(x.shape[0]), longs(w["sizes"]), floats(x),
        pointers(*map(floats, weights)), pointers(*map(floats, biases)),
    )  # fmt: skip
    return {"matmul": variant(handle, w["output"])}


def convolution(w, inputs):
    operator, x, weight = w["operator"], inputs("X"), inputs("W")
    bias = inputs("bias") if "bias" in w["inputs"] else None
    transposed, groups = operator.endswith("transpose"), w.get("groups") or 1
    if transposed:  # torch has (I,O,...) here
        weight = np.ascontiguousarray(weight.swapaxes(0, 1))
    if groups > 1:
        weight = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    built = {}
    for name, channels_last in (("plain", 0), ("channels-last", 1)):
        handle = LIBRARY.bench_convolution(
            x.ndim, int(transposed), channels_last, int(operator == "conv_relu"), longs(x.shape), weight.ndim,
            longs(weight.shape), longs(w["output"]), long(w.get("stride") or 1), long(w.get("padding") or 0),
            long(w.get("dilation") or 1), floats(x), floats(weight), floats(bias),
        )  # fmt: skip
        built[name] = variant(handle, w["output"])
    return built


def build(workload, inputs):
    operator = workload["operator"]
    if operator in ("gemv", "gemm", "bmm"):
        return matmul(workload, inputs)
    if operator == "mlp":
        return mlp(workload, inputs)
    if operator.startswith("conv"):
        return convolution(workload, inputs)
    raise Unsupported


def overhead():
    one = np.ones(1, np.float32)
    handle = LIBRARY.bench_matmul(long(1), long(1), long(1), long(1), 0, 0, floats(one), floats(one))
    return variant(handle, [1])


if __name__ == "__main__":
    setup()
    serve(sys.modules[__name__])
