#!/usr/bin/env python3
"""Writes the expected results of every `def` in examples/kernels (cases.json) and of every application in
examples/pipelines (pipelines.json), and the .npy files that they name.
With `--check` it writes nothing and fails if a file is missing, superfluous or different.

Needs NumPy only, and nothing of the compiler: results are computed in double precision from the
stored inputs, by another route than the kernels where there is one (`np.matmul`, `np.correlate`,
`np.pad`, sliding windows, scattering for transposed convolutions), then rounded to the type that the
kernel gives. Running it again gives the same bytes.

A case is {"file", "def", "sizes", "inputs", "outputs"}; "sizes" also holds the integer scalars that
shape a program, other scalars are inputs of rank 0. A tensor that is in-out is in both lists.
NumPy files have no bfloat16: such tensors are stored as float32, rounded, and named in "dtypes".
"""

import io
import json
import math
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pipelines
from numpy.lib.stride_tricks import sliding_window_view

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parent / "kernels"
F32, F64, I32 = np.float32, np.float64, np.int32

CASES = []
PIPELINES = []
LISTS = {"cases.json": CASES, "pipelines.json": PIPELINES}
FILES = {}  # path below HERE -> bytes
RNG = None  # reseeded by `seed` at the start of every case, so cases do not depend on each other


def seed(name):
    global RNG
    RNG = np.random.default_rng(zlib.crc32(name.encode()))


def normal(*shape):
    return RNG.standard_normal(shape).astype(F32)


def positive(*shape):
    return RNG.uniform(0.25, 1.0, shape).astype(F32)


def indices(below, *shape):
    return RNG.integers(0, below, shape).astype(I32)


def scalar(value):
    return np.array(value, F32)


def add(file, name, sizes, inputs, outputs, dtypes=None, tag="", double=False, folder=None, cases=CASES):
    """Stores one case. Outputs in double precision become float32, unless the kernel's are `double`."""
    folder, stem = folder or file.removesuffix(".tc"), name + tag

    def store(tensor, value, suffix=""):
        path = f"{folder}/{stem}.{tensor}{suffix}.npy"
        assert path not in FILES, f"{path} is written twice"
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(value, order="C"))
        FILES[path] = buffer.getvalue()
        return path

    case = {"file": file, "def": name, "sizes": sizes, "inputs": {}, "outputs": {}}
    for tensor, value in inputs.items():
        case["inputs"][tensor] = store(tensor, value, "_in" if tensor in outputs else "")
    for tensor, value in outputs.items():
        value = np.asarray(value)
        case["outputs"][tensor] = store(tensor, value if double or value.dtype != F64 else value.astype(F32))
    if dtypes:
        case["dtypes"] = dtypes
    cases.append(case)


def wide(*arrays):
    """The arrays in double precision."""
    return [a.astype(F64) for a in arrays]


# ---- building blocks -------------------------------------------------------------------------


def pad(x, p, spatial):
    return np.pad(x, [(0, 0)] * (x.ndim - spatial) + [(p, p)] * spatial)


def conv(x, w, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of x[N,C,...] with w[K,C/groups,...], as torch defines it."""
    nd = x.ndim - 2
    strides = stride if isinstance(stride, tuple) else (stride,) * nd
    x, w = wide(pad(x, padding, nd), w)
    reach = [dilation * (k - 1) + 1 for k in w.shape[2:]]
    windows = sliding_window_view(x, reach, axis=tuple(range(2, 2 + nd)))
    windows = windows[(slice(None),) * 2 + tuple(slice(None, None, s) for s in strides)]
    windows = windows[(...,) + (slice(None, None, dilation),) * nd]
    cg, kg = x.shape[1] // groups, w.shape[0] // groups
    taps = list(range(2 + nd, 2 + 2 * nd))
    parts = []
    for g in range(groups):
        part = np.tensordot(windows[:, g * cg:(g + 1) * cg], w[g * kg:(g + 1) * kg],
                            axes=([1] + taps, [1] + list(range(2, 2 + nd))))
        parts.append(np.moveaxis(part, -1, 1))
    return np.concatenate(parts, axis=1)


def conv_transpose(x, w, stride, padding):
    """Scatters x[N,C,...] through w[C,K,...]: every input adds a scaled kernel to the result."""
    x, w = wide(x, w)
    kernel, spatial = w.shape[2:], x.shape[2:]
    full = np.zeros(x.shape[:1] + w.shape[1:2] + tuple((n - 1) * stride + k for n, k in zip(spatial, kernel)))
    for at in np.ndindex(*spatial):
        place = tuple(slice(a * stride, a * stride + k) for a, k in zip(at, kernel))
        full[(slice(None), slice(None)) + place] += np.tensordot(x[(slice(None), slice(None)) + at], w, axes=1)
    return full[(slice(None),) * 2 + tuple(slice(padding, n - padding) for n in full.shape[2:])]


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def erf(x):
    return np.vectorize(math.erf)(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def separable(image, taps):
    """Correlates along x, then along y, repeating the edge pixels."""
    r = len(taps) // 2
    rows = np.stack([np.correlate(np.pad(row, r, mode="edge"), taps, "valid") for row in image.astype(F64)])
    return np.stack([np.correlate(np.pad(c, r, mode="edge"), taps, "valid") for c in rows.T]).T


def to_bfloat16(x):
    """Rounds to the nearest bfloat16, ties to even; the result is stored as float32."""
    bits = np.asarray(x, F32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(F32)


# ---- linear algebra --------------------------------------------------------------------------


def matvec():
    for name, out in (("mv", "C"), ("mv_short", "C"), ("gemv", "y")):
        seed(name)
        A, x = normal(5, 7), normal(7)
        add("matvec.tc", name, {"M": 5, "K": 7}, {"A": A, "x": x}, {out: np.matmul(*wide(A, x))})


def gemm():
    for tag, (M, N, K) in {"": (4, 5, 6), ".prime": (7, 3, 11), ".row": (1, 9, 2)}.items():
        seed("gemm" + tag)
        A, B = normal(M, K), normal(K, N)
        add("gemm.tc", "gemm", {"M": M, "N": N, "K": K}, {"A": A, "B": B}, {"C": np.matmul(*wide(A, B))}, tag=tag)
    for name in ("sgemm", "sgemm_inout"):
        seed(name)
        a, b, A, B, C = scalar(1.5), scalar(-0.75), normal(4, 6), normal(6, 5), normal(4, 5)
        wa, wb, wA, wB, wC = wide(a, b, A, B, C)
        add("gemm.tc", name, {"N": 4, "M": 6, "K": 5}, {"a": a, "b": b, "A": A, "B": B, "C": C},
            {"C": wa * np.matmul(wA, wB) + wb * wC})
    seed("tmm")
    A, B = normal(4, 6), normal(5, 6)
    add("gemm.tc", "tmm", {"M": 4, "N": 5, "K": 6}, {"A": A, "B": B}, {"C": np.matmul(*wide(A, B.T))})
    seed("tbmm")
    X, Y = normal(3, 4, 6), normal(3, 5, 6)
    add("gemm.tc", "tbmm", {"B": 3, "N": 4, "M": 6, "K": 5}, {"X": X, "Y": Y},
        {"Z": np.matmul(*wide(X, Y.swapaxes(1, 2)))})
    seed("bmm")
    X, Y = normal(3, 4, 6), normal(3, 6, 5)
    add("gemm.tc", "bmm", {"B": 3, "M": 4, "K": 6, "N": 5}, {"X": X, "Y": Y}, {"Z": np.matmul(*wide(X, Y))})
    seed("outerProductMM")
    A, B = normal(2, 3, 4), normal(5, 4, 6)
    add("gemm.tc", "outerProductMM", {"P": 2, "Q": 3, "R": 4, "S": 5, "T": 6}, {"A": A, "B": B},
        {"O": np.matmul(*wide(A[:, None], B[None]))})


def bilinear():
    for name in ("bilinear", "bilinear_factored"):
        seed(name)
        A, B, C = normal(3, 4), normal(2, 4, 5), normal(3, 5)
        add("bilinear.tc", name, {"N": 3, "P": 4, "M": 2, "Q": 5}, {"A": A, "B": B, "C": C},
            {"O": np.einsum("ik,jkl,il->ij", *wide(A, B, C))})
    seed("mttkrp")
    A, B, C = normal(3, 4, 5), normal(4, 2), normal(5, 2)
    add("bilinear.tc", "mttkrp", {"N": 3, "P": 4, "Q": 5, "M": 2}, {"A": A, "B": B, "C": C},
        {"O": np.einsum("ikl,kj,lj->ij", *wide(A, B, C))})


def dense(x, w, b):
    return relu(np.matmul(x, w.T) + b)


def mlp():
    seed("fcrelu")
    x, w, b = normal(3, 5), normal(4, 5), normal(4)
    add("fcrelu.tc", "fcrelu", {"B": 3, "I": 5, "O": 4}, {"in": x, "weight": w, "bias": b},
        {"out": dense(*wide(x, w, b))})
    x, w, b = normal(5, 3), normal(2, 3), normal(2)
    add("fcrelu.tc", "fc_bias_relu", {"B": 5, "I": 3, "O": 2}, {"in": x, "weight": w, "bias": b},
        {"out": dense(*wide(x, w, b))})

    seed("mlp")
    B, D, WX, WY, N, O, P, Q = 3, 4, 5, 6, 7, 8, 2, 9
    L1, I1, L2, I2 = normal(10, D), indices(10, B, 5), normal(11, D), indices(11, B, 2)
    I3, W = normal(B, WX), normal(WY, WX)
    M = 2 * D + WY
    weights = {"W1": normal(N, M), "B1": normal(N), "W2": normal(O, N), "B2": normal(O),
               "W3": normal(P, O), "B3": normal(P), "W4": normal(Q, P), "B4": normal(Q)}
    C1, C2 = L1.astype(F64)[I1].sum(axis=1), L2.astype(F64)[I2].sum(axis=1)
    C3 = np.matmul(*wide(I3, W.T))
    I = np.hstack([C1, C2, C3])
    o = {0: I}
    for i in range(1, 5):
        o[i] = dense(o[i - 1], *wide(weights[f"W{i}"], weights[f"B{i}"]))
    lut = {"LUT1": L1, "I1": I1, "LUT2": L2, "I2": I2}
    lut_sizes = {"E1": 10, "E2": 11, "D": D, "B": B, "L1": 5, "L2": 2}
    add("mlp.tc", "2LUT", lut_sizes, lut, {"O1": C1, "O2": C2})
    add("mlp.tc", "prodModel", lut_sizes | {"WX": WX, "WY": WY, "N": N, "M": M, "O": O, "P": P, "Q": Q},
        lut | {"I3": I3, "W": W} | weights,
        {"C1": C1, "C2": C2, "C3": C3, "I": I} | {f"O{i}": o[i] for i in range(1, 5)})

    seed("MLP1")
    x, w, b = normal(3, 5), normal(4, 5), normal(4)
    add("mlp.tc", "MLP1", {"B": 3, "M": 5, "N": 4}, {"I": x, "W1": w, "B1": b}, {"O1": dense(*wide(x, w, b))})
    seed("MLP3")
    x = positive(B, N)
    rest = {k: v for k, v in weights.items() if k not in ("W1", "B1")}
    o = {1: x.astype(F64)}
    for i in range(2, 5):
        o[i] = dense(o[i - 1], *wide(rest[f"W{i}"], rest[f"B{i}"]))
    add("mlp.tc", "MLP3", {"B": B, "N": N, "O": O, "P": P, "Q": Q}, {"I": x} | rest,
        {f"O{i}": o[i] for i in range(2, 5)})


def gather():
    seed("gather")
    X, I = normal(9), indices(9, 4, 5)
    add("gather.tc", "gather", {"N": 9, "A": 4, "B": 5}, {"X": X, "I": I}, {"Z": X[I]})
    X, I = normal(6, 3), indices(6, 5)
    add("gather.tc", "gather_rows", {"N": 6, "D": 3, "A": 5}, {"X": X, "I": I}, {"Z": X[I]})
    L1, I1, L2, I2 = normal(7, 4), indices(7, 3, 5), normal(8, 4), indices(8, 3, 2)
    O1, O2 = L1.astype(F64)[I1].sum(axis=1), L2.astype(F64)[I2].sum(axis=1)
    add("gather.tc", "1LUT", {"E1": 7, "D": 4, "B": 3, "L1": 5}, {"LUT1": L1, "I1": I1}, {"O1": O1})
    add("gather.tc", "2LUT", {"E1": 7, "D": 4, "B": 3, "L1": 5, "E2": 8, "L2": 2},
        {"LUT1": L1, "I1": I1, "LUT2": L2, "I2": I2}, {"O1": O1, "O2": O2})


# ---- convolutions ----------------------------------------------------------------------------


def conv2d():
    seed("conv2d")
    sizes = {"B": 2, "IP": 3, "OP": 4, "H": 6, "W": 7, "KH": 3, "KW": 2}
    x, w, b = normal(2, 3, 6, 7), normal(4, 3, 3, 2), normal(4)
    add("conv2d.tc", "conv2d", sizes, {"in": x, "weight": w}, {"out": conv(x, w)})
    add("conv2d.tc", "conv2d_bias_relu", sizes, {"in": x, "weight": w, "bias": b},
        {"out": relu(conv(x, w) + b.astype(F64)[:, None, None])})
    for sh, sw in ((2, 1), (1, 3)):
        add("conv2d.tc", "sconv2d", {"sh": sh, "sw": sw, "N": 2, "C": 3, "F": 4, "H": 6, "W": 7, "KH": 3, "KW": 2},
            {"I": x, "W1": w, "B": b}, {"O": conv(x, w, (sh, sw)) + b.astype(F64)[:, None, None]},
            tag=f".s{sh}{sw}")
    for s, p in ((1, 0), (1, 1), (2, 1), (3, 2)):
        for name in ("conv2d_padded", "conv2d_two_stage"):
            add("conv2d.tc", name, sizes | {"s": s, "p": p}, {"in": x, "weight": w},
                {"out": conv(x, w, s, p)}, tag=f".s{s}p{p}")
    for s, p, d in ((1, 2, 2), (2, 1, 2), (1, 0, 1)):
        add("conv2d.tc", "dilated_conv2d", sizes | {"s": s, "p": p, "d": d}, {"in": x, "weight": w},
            {"out": conv(x, w, s, p, d)}, tag=f".s{s}p{p}d{d}")


def conv1d():
    seed("conv1d")
    I, K = normal(11), normal(4)
    add("conv1d.tc", "conv1d", {"M": 11, "N": 4}, {"I": I, "K": K}, {"O": np.correlate(*wide(I, K), "valid")})
    x, w = normal(2, 3, 9), normal(4, 3, 4)
    for s, p in ((1, 0), (2, 1), (3, 2)):
        for name in ("conv1d_padded", "conv1d_two_stage"):
            add("conv1d.tc", name, {"N": 2, "C": 3, "L": 9, "K": 4, "R": 4, "s": s, "p": p},
                {"in": x, "weight": w}, {"out": conv(x, w, s, p)}, tag=f".s{s}p{p}")


def conv3d():
    seed("conv3d")
    x, w = normal(1, 2, 4, 5, 3), normal(3, 2, 3, 2, 1)
    for s, p in ((1, 1), (2, 1), (1, 0)):
        add("conv3d.tc", "conv3d",
            {"N": 1, "C": 2, "D": 4, "H": 5, "W": 3, "K": 3, "KD": 3, "KH": 2, "KW": 1, "s": s, "p": p},
            {"in": x, "weight": w}, {"out": conv(x, w, s, p)}, tag=f".s{s}p{p}")


def transposed():
    seed("conv1d_transpose")
    x, w = normal(2, 3, 5), normal(3, 4, 4)
    for s, p in ((1, 0), (2, 1), (3, 2)):
        add("conv_transpose.tc", "conv1d_transpose", {"N": 2, "C": 3, "L": 5, "K": 4, "R": 4, "s": s, "p": p},
            {"in": x, "weight": w}, {"out": conv_transpose(x, w, s, p)}, tag=f".s{s}p{p}")
    seed("conv2d_transpose")
    x, w = normal(2, 3, 3, 4), normal(3, 2, 3, 2)
    for s, p in ((1, 0), (2, 1), (3, 1)):
        add("conv_transpose.tc", "conv2d_transpose",
            {"N": 2, "C": 3, "H": 3, "W": 4, "K": 2, "KH": 3, "KW": 2, "s": s, "p": p},
            {"in": x, "weight": w}, {"out": conv_transpose(x, w, s, p)}, tag=f".s{s}p{p}")
    seed("conv3d_transpose")
    x, w = normal(1, 2, 2, 3, 4), normal(2, 3, 2, 3, 4)
    for s, p in ((1, 1), (2, 1)):
        add("conv_transpose.tc", "conv3d_transpose",
            {"N": 1, "C": 2, "D": 2, "H": 3, "W": 4, "K": 3, "KD": 2, "KH": 3, "KW": 4, "s": s, "p": p},
            {"in": x, "weight": w}, {"out": conv_transpose(x, w, s, p)}, tag=f".s{s}p{p}")


def gconv():
    seed("gconv")
    N, G, C, F, H, W, KH, KW = 2, 3, 2, 4, 5, 6, 3, 2
    sizes = {"N": N, "G": G, "C": C, "F": F, "H": H, "W": W, "KH": KH, "KW": KW}
    x, w, b = normal(N, G, C, H, W), normal(G, F, C, KH, KW), normal(G, F)
    flat_x, flat_w = x.reshape(N, G * C, H, W), w.reshape(G * F, C, KH, KW)
    flat = conv(flat_x, flat_w, groups=G)
    grouped = flat.reshape(N, G, F, *flat.shape[2:])
    add("gconv.tc", "gconv", sizes, {"I": x, "W1": w}, {"O": grouped})
    add("gconv.tc", "gconv_bias", sizes, {"I": x, "W1": w, "B": b},
        {"O": grouped + b.astype(F64)[:, :, None, None]})
    add("gconv.tc", "gconv_flat", sizes | {"GC": G * C}, {"I": flat_x, "W1": w}, {"O": flat})
    for s, p in ((1, 1), (2, 1), (2, 0)):
        add("gconv.tc", "group_conv2d",
            {"N": N, "C": G * C, "H": H, "W": W, "K": G * F, "CG": C, "KH": KH, "KW": KW, "g": G, "s": s, "p": p},
            {"in": flat_x, "weight": flat_w}, {"out": conv(flat_x, flat_w, s, p, groups=G)}, tag=f".s{s}p{p}")


def depthwise():
    seed("depthwise")
    x = normal(2, 3, 5, 6)
    for K, s, p in ((3, 1, 1), (6, 2, 1), (6, 1, 0)):
        w = normal(K, 3, 2)
        add("depthwise.tc", "depthwise_conv2d",
            {"N": 2, "C": 3, "H": 5, "W": 6, "K": K, "KH": 3, "KW": 2, "s": s, "p": p},
            {"in": x, "weight": w}, {"out": conv(x, w[:, None], s, p, groups=3)}, tag=f".k{K}s{s}p{p}")
    wd, wp, b = normal(3, 3, 3), normal(4, 3), normal(4)
    T = conv(x, wd[:, None], padding=1, groups=3)
    out = relu(np.einsum("nchw,kc->nkhw", T, wp.astype(F64)) + b.astype(F64)[:, None, None])
    add("depthwise.tc", "depthwise_separable", {"N": 2, "C": 3, "H": 5, "W": 6, "K": 4},
        {"X": x, "Wd": wd, "Wp": wp, "bias": b}, {"out": out})


def winograd():
    BT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], F32)
    G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], F32)
    AT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], F32)
    for H, W in ((6, 8), (5, 7), (7, 6)):
        seed(f"winograd {H} {W}")
        x, w = normal(2, 3, H, W), normal(2, 3, 3, 3)
        add("winograd.tc", "winograd", {"N": 2, "C": 3, "H": H, "W": W, "K": 2},
            {"X": x, "F": w, "BT": BT, "G": G, "AT": AT}, {"Y": conv(x, w)}, tag=f".{H}x{W}")


def pooling():
    for H, W in ((6, 8), (5, 7)):
        seed(f"maxpool2x2 {H} {W}")
        x = normal(2, 3, H, W)
        trimmed = x[:, :, :H // 2 * 2, :W // 2 * 2].reshape(2, 3, H // 2, 2, W // 2, 2)
        add("maxpool.tc", "maxpool2x2", {"B": 2, "C": 3, "H": H, "W": W}, {"in": x},
            {"out": trimmed.max(axis=(3, 5))}, tag=f".{H}x{W}")
    seed("pooling")
    x = normal(2, 3, 5, 7)
    for k, s, p in ((3, 2, 1), (2, 1, 0)):
        padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=-np.inf)
        windows = sliding_window_view(padded, (k, k), axis=(2, 3))[:, :, ::s, ::s]
        add("maxpool.tc", "maxpool", {"B": 2, "C": 3, "H": 5, "W": 7, "k": k, "s": s, "p": p}, {"in": x},
            {"out": windows.max(axis=(4, 5))}, tag=f".k{k}s{s}p{p}")
    for k, s in ((2, 2), (3, 1)):
        windows = sliding_window_view(x.astype(F64), (k, k), axis=(2, 3))[:, :, ::s, ::s]
        add("maxpool.tc", "avgpool", {"B": 2, "C": 3, "H": 5, "W": 7, "k": k, "s": s}, {"in": x},
            {"out": windows.mean(axis=(4, 5))}, tag=f".k{k}s{s}")
    add("maxpool.tc", "global_avgpool", {"B": 2, "C": 3, "H": 5, "W": 7}, {"in": x},
        {"out": x.astype(F64).mean(axis=(2, 3))})


# ---- FlexTensor's new operators --------------------------------------------------------------


def circulant():
    for M, N, b in ((4, 6, 2), (6, 9, 3)):
        seed(f"bcm_project {b}")
        X = normal(M, N)
        blocks = X.astype(F64).reshape(M // b, b, N // b, b).swapaxes(1, 2)
        out = np.empty_like(blocks)
        # Row k of a circulant block is its first row rolled by k; the nearest one averages the unrolled rows.
        first = np.mean([np.roll(blocks[:, :, k], -k, axis=-1) for k in range(b)], axis=0)
        for k in range(b):
            out[:, :, k] = np.roll(first, k, axis=-1)
        add("circulant.tc", "bcm_project", {"M": M, "N": N, "b": b}, {"X": X},
            {"O": out.swapaxes(1, 2).reshape(M, N)}, tag=f".b{b}")
    seed("bcm_mm")
    N, P, Q, S = 2, 3, 4, 3
    X, w = normal(N, Q * S), normal(P, Q, S)
    # The first column is w; column t is the first one rolled by t.
    A = np.block([[np.stack([np.roll(w[i, j].astype(F64), t) for t in range(S)], axis=1) for j in range(Q)]
                  for i in range(P)])
    add("circulant.tc", "bcm_mm", {"N": N, "C": Q * S, "P": P, "Q": Q, "S": S}, {"X": X, "w": w},
        {"O": np.matmul(X.astype(F64), A.T)})


def shift():
    for k in (3, 5):
        seed(f"shift {k}")
        N, H, W, C = 2, 4, 5, 6
        X, idx = normal(N, H, W, C), indices(k * k, C)
        r = (k - 1) // 2
        padded = np.pad(X, ((0, 0), (r, r), (r, r), (0, 0)))
        out = np.empty_like(X)
        for c, i in enumerate(idx):
            dy, dx = divmod(int(i), k)
            out[..., c] = padded[:, dy:dy + H, dx:dx + W, c]
        add("shift.tc", "shift", {"N": N, "H": H, "W": W, "C": C, "k": k}, {"X": X, "idx": idx}, {"O": out},
            tag=f".k{k}")


# ---- networks --------------------------------------------------------------------------------


def norm():
    seed("norm")
    x, gamma, beta, eps = normal(4, 7), normal(7), normal(7), scalar(1e-5)
    wx, wg, wb, we = wide(x, gamma, beta, eps)
    y = (wx - wx.mean(axis=1, keepdims=True)) / np.sqrt(wx.var(axis=1, keepdims=True) + we) * wg + wb
    add("norm.tc", "layer_norm", {"N": 4, "D": 7}, {"x": x, "gamma": gamma, "beta": beta, "eps": eps}, {"y": y})
    y = wx / np.sqrt(np.mean(wx ** 2, axis=1, keepdims=True) + we) * wg
    add("norm.tc", "rms_norm", {"N": 4, "D": 7}, {"x": x, "gamma": gamma, "eps": eps}, {"y": y})
    x, mean, variance, gamma, beta = normal(2, 3, 4, 5), normal(3), positive(3), normal(3), normal(3)
    wx, wm, wv, wg, wb = [a if a.ndim == 4 else a[:, None, None] for a in wide(x, mean, variance, gamma, beta)]
    add("norm.tc", "batch_norm", {"N": 2, "C": 3, "H": 4, "W": 5},
        {"x": x, "mean": mean, "variance": variance, "gamma": gamma, "beta": beta, "eps": eps},
        {"y": (wx - wm) / np.sqrt(wv + we) * wg + wb})


def group_norm():
    seed("group_norm")
    x, gamma, beta, eps = normal(2, 6, 3, 4), normal(6), normal(6), scalar(1e-5)
    wx, wg, wb, we = wide(x, gamma, beta, eps)
    groups = wx.reshape(2, 3, 2 * 3 * 4)
    z = (groups - groups.mean(axis=2, keepdims=True)) / np.sqrt(groups.var(axis=2, keepdims=True) + we)
    add("norm.tc", "group_norm", {"N": 2, "C": 6, "H": 3, "W": 4, "G": 3},
        {"x": x, "gamma": gamma, "beta": beta, "eps": eps},
        {"y": z.reshape(wx.shape) * wg[:, None, None] + wb[:, None, None]})


def rope():
    # Turning a pair is a product of complex numbers.
    seed("rope")
    x, angle = normal(5, 8), RNG.uniform(-3, 3, (5, 4))
    cosine, sine = np.cos(angle).astype(F32), np.sin(angle).astype(F32)
    wx, wc, ws = wide(x, cosine, sine)
    z = (wx[:, ::2] + 1j * wx[:, 1::2]) * (wc + 1j * ws)
    add("rope.tc", "rope", {"T": 5, "E": 8, "D": 4}, {"x": x, "cosine": cosine, "sine": sine},
        {"y": np.stack([z.real, z.imag], axis=2).reshape(5, 8)})
    z = (wx[:, :4] + 1j * wx[:, 4:]) * np.exp(1j * np.outer(np.arange(5), 10000.0 ** (-np.arange(4) / 4)))
    add("rope.tc", "rope_half", {"T": 5, "E": 8}, {"x": x, "base": scalar(10000)},
        {"y": np.concatenate([z.real, z.imag], axis=1)})


def loss():
    for tag, scale in (("", 1), (".large", 100)):  # exp(300) overflows a float; the loss must not
        seed("loss" + tag)
        logits, label = normal(5, 7) * F32(scale), indices(7, 5)
        log_y = logits.astype(F64) - np.logaddexp.reduce(logits.astype(F64), axis=1, keepdims=True)
        add("loss.tc", "cross_entropy", {"B": 5, "C": 7}, {"logits": logits, "label": label},
            {"loss": -log_y[np.arange(5), label].mean()}, tag=tag)


def softmaxes():
    for tag, scale in (("", 1), (".large", 100)):  # exp(300) overflows a float; softmax must not
        seed("softmax" + tag)
        x = normal(4, 7) * F32(scale)
        y = softmax(x.astype(F64))
        add("softmax.tc", "softmax", {"N": 4, "D": 7}, {"x": x}, {"y": y}, tag=tag)
        log_y = x.astype(F64) - np.logaddexp.reduce(x.astype(F64), axis=1, keepdims=True)
        add("softmax.tc", "log_softmax", {"N": 4, "D": 7}, {"x": x}, {"y": log_y}, tag=tag)


def recurrence(step, start, length):
    """The values of y(t) = step(t, y(t-1), y(t-2)), one after the other; before the first one they are `start`."""
    y = [start, start]
    for t in range(length):
        y.append(step(t, y[-1], y[-2]))
    return y[2:]


def scans():
    seed("scan")
    x = normal(4, 21)
    w = x.astype(F64)
    sizes = {"N": 4, "T": 21}
    add("scan.tc", "cumulative_sum", sizes, {"x": x}, {"y": np.cumsum(w, axis=1)})
    add("scan.tc", "running_max", sizes, {"x": x}, {"m": np.maximum.accumulate(x, axis=1)})

    so_far = [w[:, : t + 1] for t in range(21)]
    add("scan.tc", "running_moments", sizes, {"x": x},
        {"mean": np.stack([part.mean(axis=1) for part in so_far], 1),
         "variance": np.stack([part.var(axis=1) for part in so_far], 1)})

    def smooth(a, rows):  # along the first dimension, forwards and backwards
        forth = recurrence(lambda t, y, _: a * y + (1 - a) * rows[t], rows[0], len(rows))
        back = forth[::-1]
        return np.stack(recurrence(lambda t, z, _: a * z + (1 - a) * back[t], back[0], len(rows))[::-1])

    add("scan.tc", "iir", sizes, {"a": scalar(0.75), "x": x}, {"z": smooth(0.75, w.T).T})
    image = normal(9, 37)
    add("scan.tc", "iir_columns", {"H": 9, "W": 37}, {"a": scalar(0.75), "x": image},
        {"z": smooth(0.75, image.astype(F64))})
    c = np.array([0.25, 0.5, 0.25, -0.5, 0.25], F32)
    early = np.pad(w, ((0, 0), (2, 0)))
    v = (c[0] * w + c[1] * early[:, 1:-1] + c[2] * early[:, :-2]).T
    y = recurrence(lambda t, one, two: v[t] - c[3] * one - c[4] * two, np.zeros(4), 21)
    add("scan.tc", "biquad", sizes, {"c": c, "x": x}, {"y": np.stack(y).T})
    event, reset = RNG.random(23) < 0.6, RNG.random(23) < 0.2
    counts = recurrence(lambda t, n, _: 0 if reset[t] else n + int(event[t]), 0, 23)
    add("scan.tc", "count_since", {"T": 23}, {"event": event, "reset": reset}, {"n": np.array(counts, np.int32)})


def attention():
    seed("attention")
    Q, K, V = normal(4, 5), normal(6, 5), normal(6, 3)
    wq, wk, wv = wide(Q, K, V)
    add("attention.tc", "attention", {"L": 4, "S": 6, "D": 5, "E": 3}, {"Q": Q, "K": K, "V": V},
        {"O": np.matmul(softmax(np.matmul(wq, wk.T) / math.sqrt(5)), wv)})
    Q, K, V = normal(6, 5), normal(6, 5), normal(6, 3)
    wq, wk, wv = wide(Q, K, V)
    # By rows: the query at l attends to a prefix of the sequence.
    rows = [np.matmul(softmax(np.matmul(wk[:l + 1], wq[l]) / math.sqrt(5)), wv[:l + 1]) for l in range(6)]
    add("attention.tc", "causal_attention", {"T": 6, "D": 5, "E": 3}, {"Q": Q, "K": K, "V": V},
        {"O": np.stack(rows)})


def activations():
    seed("activation")
    x = (normal(5, 7) * F32(3)).astype(F32)
    w, slope = x.astype(F64), scalar(0.125)
    expected = {
        "relu": relu(w),
        "leaky_relu": np.where(w > 0, w, 0.125 * w),
        "gelu": 0.5 * w * (1 + erf(w / math.sqrt(2))),
        "gelu_tanh": 0.5 * w * (1 + np.tanh(math.sqrt(2 / math.pi) * (w + 0.044715 * w ** 3))),
        "silu": w * sigmoid(w),
        "tanh_act": np.tanh(w),
        "sigmoid_act": sigmoid(w),
        "softplus": np.logaddexp(0, w),
    }
    for name, y in expected.items():
        inputs = {"x": x} | ({"slope": slope} if name == "leaky_relu" else {})
        add("activation.tc", name, {"M": 5, "N": 7}, inputs, {"y": y})


def functions():
    seed("functions")
    x, b = normal(5, 7), normal(7)
    w = x.astype(F64) + b
    add("functions.tc", "bias_silu", {"M": 5, "N": 7}, {"x": x, "b": b}, {"y": w / (1 + np.exp(-w))})
    x, y, delta = normal(9), normal(9), scalar(0.75)
    d = np.abs(x.astype(F64) - y)
    loss = np.where(d <= 0.75, d * d / 2, 0.75 * (d - 0.375)).mean()
    add("functions.tc", "huber_loss", {"N": 9}, {"x": x, "y": y, "delta": delta}, {"loss": loss})
    x = RNG.integers(0, 1 << 32, 9, dtype=np.uint32)
    k = [int(v) * 0xCC9E2D51 % (1 << 32) for v in x]
    k = [((v << 15) % (1 << 32) + (v >> 17)) * 0x1B873593 % (1 << 32) for v in k]
    add("functions.tc", "scramble", {"N": 9}, {"x": x}, {"h": np.array([v ^ (v >> 16) for v in k], np.uint32)})
    packed, scale = RNG.integers(0, 256, (3, 5), dtype=np.uint8), scalar(0.25)
    both = np.stack([packed % 16, packed // 16], axis=2).reshape(3, 10)
    add("functions.tc", "unpack4", {"M": 3, "N": 5}, {"packed": packed, "scale": scale}, {"w": 0.25 * (both.astype(F64) - 8)})


def reductions():
    seed("reductions")
    A = normal(4, 7)
    w, sizes = A.astype(F64), {"M": 4, "N": 7}
    for name, outputs in {
        "sum_all": {"s": w.sum()},
        "row_sum": {"s": w.sum(axis=1)},
        "column_sum": {"s": w.sum(axis=0)},
        "row_product": {"p": w.prod(axis=1)},
        "row_range": {"lo": w.min(axis=1), "hi": w.max(axis=1)},
        "row_argmax": {"hi": w.max(axis=1), "at": w.argmax(axis=1).astype(I32)},
        "row_argmin": {"at": w.argmin(axis=1).astype(I32)},
        "mean_all": {"mean": w.mean()},
        "row_variance": {"mean": w.mean(axis=1), "variance": w.var(axis=1)},
    }.items():
        add("reductions.tc", name, sizes, {"A": A}, outputs)
    m = normal(7)
    add("reductions.tc", "running_min", sizes, {"m": m, "A": A}, {"m": np.minimum(m, A.min(axis=0))})
    x, y = normal(9), normal(9)
    wx, wy = wide(x, y)
    add("reductions.tc", "norm2", {"N": 9}, {"x": x}, {"norm": np.linalg.norm(wx)})
    add("reductions.tc", "dot", {"N": 9}, {"x": x, "y": y}, {"s": np.dot(wx, wy)})
    add("reductions.tc", "prefix_sum", {"N": 9}, {"x": x}, {"y": np.cumsum(wx)})


# ---- types and layouts -----------------------------------------------------------------------


def types():
    seed("types")
    byte = lambda *shape: RNG.integers(-128, 128, shape).astype(np.int8)
    ubyte = lambda *shape: RNG.integers(0, 256, shape).astype(np.uint8)
    a, b = byte(17), byte(17)
    a[0], b[0] = -128, -128  # a product that int8 and int16 cannot hold together
    add("types.tc", "dot_int8", {"N": 17}, {"a": a, "b": b}, {"s": np.dot(a.astype(I32), b.astype(I32)).astype(I32)})
    A, B, scale = byte(4, 6), byte(6, 5), scalar(1 / 256)  # a power of two: the scaled value is exact
    C = np.clip(np.rint(np.matmul(A.astype(F64), B.astype(F64)) / 256), -128, 127).astype(np.int8)
    add("types.tc", "gemm_int8", {"M": 4, "K": 6, "N": 5}, {"A": A, "B": B, "scale": scale}, {"C": C})
    image = ubyte(3, 5, 4)
    add("types.tc", "image_to_float", {"H": 3, "W": 5, "C": 4}, {"in": image},
        {"out": image.transpose(2, 0, 1) / 255.0})
    level = RNG.integers(-40, 300, (4, 3, 5))
    real = ((level + RNG.uniform(-0.3, 0.3, level.shape)) / 255).astype(F32)
    add("types.tc", "float_to_image", {"C": 4, "H": 3, "W": 5}, {"in": real},
        {"out": np.clip(level, 0, 255).astype(np.uint8).transpose(1, 2, 0)})

    scale, x = scalar(0.3), normal(11).astype(np.float16)
    add("types.tc", "scale_half", {"N": 11}, {"x": x, "a": scale}, {"y": (x.astype(F32) * scale).astype(np.float16)})
    x, y = to_bfloat16(normal(11)), to_bfloat16(normal(11))
    add("types.tc", "scale_bfloat16", {"N": 11}, {"x": x, "a": scale}, {"y": to_bfloat16(x * scale)},
        dtypes={"x": "bfloat16", "y": "bfloat16"})
    add("types.tc", "dot_bfloat16", {"N": 11}, {"x": x, "y": y}, {"s": np.dot(*wide(x, y))},
        dtypes={"x": "bfloat16", "y": "bfloat16"})
    x = (normal(12) * F32(1e6)).astype(F32)
    add("types.tc", "sum_double", {"N": 12}, {"x": x}, {"s": F64(math.fsum(x.astype(F64)))}, double=True)

    A = normal(5, 4)
    A[1], A[3] = np.abs(A[1]), -np.abs(A[3])  # a row of each kind
    add("types.tc", "any_all", {"M": 5, "N": 4}, {"A": A}, {"any": (A > 0).any(axis=1), "all": (A > 0).all(axis=1)})
    add("types.tc", "count_positive", {"M": 5, "N": 4}, {"A": A},
        {"count": np.count_nonzero(A > 0, axis=1).astype(I32)})
    x, keep, limit = normal(13), RNG.integers(0, 2, 13).astype(bool), scalar(1.0)
    add("types.tc", "masked", {"N": 13}, {"x": x, "keep": keep, "limit": limit},
        {"y": np.where(keep & (np.abs(x) <= 1), x, F32(0))})
    a = np.array([7, -7, 7, -7, 6, -6, 0, 5, -5, 2**31 - 1], I32)
    b = np.array([2, 2, -2, -2, 3, 3, 4, 0, 0, 10], I32)
    safe = np.where(b == 0, 1, b)
    add("types.tc", "floor_divide", {"N": 10}, {"a": a, "b": b},
        {"q": np.where(b == 0, 0, a // safe).astype(I32), "r": np.where(b == 0, 0, a % safe).astype(I32)})
    a, b = ubyte(9), ubyte(9)
    a[0], b[0] = 255, 1
    add("types.tc", "wrapping_add", {"N": 9}, {"a": a, "b": b},
        {"c": ((a.astype(I32) + b.astype(I32)) % 256).astype(np.uint8)})
    image = ubyte(4, 5)
    add("types.tc", "mean_byte", {"H": 4, "W": 5}, {"in": image},
        {"mean": np.array(int(image.sum(dtype=np.int64)) // 20, np.uint8)})


def layout():
    seed("layout")
    file = "layout.tc"
    A = normal(3, 5)
    add(file, "transpose", {"M": 3, "N": 5}, {"A": A}, {"B": A.T})
    add(file, "tile", {"M": 3, "N": 5, "k": 2}, {"A": A}, {"B": np.tile(A, (2, 2))})
    add(file, "rotate180", {"H": 3, "W": 5}, {"in": A}, {"out": np.rot90(A, 2)})
    add(file, "upsample_nearest", {"H": 3, "W": 5, "r": 2}, {"in": A}, {"out": A.repeat(2, axis=0).repeat(2, axis=1)})
    add(file, "pad_edge", {"H": 3, "W": 5, "p": 2}, {"in": A}, {"out": np.pad(A, 2, mode="edge")})
    x = normal(8)
    add(file, "reverse", {"N": 8}, {"x": x}, {"y": x[::-1]})
    X, Y = normal(3, 4), normal(3, 2)
    add(file, "concat_last", {"N": 3, "A": 4, "B": 2}, {"X": X, "Y": Y}, {"Z": np.concatenate([X, Y], axis=-1)})
    X, Y = normal(4, 3), normal(2, 3)
    add(file, "concat_first", {"N": 3, "A": 4, "B": 2}, {"X": X, "Y": Y}, {"Z": np.concatenate([X, Y], axis=0)})
    x = normal(2, 3, 4, 5)
    add(file, "nchw_to_nhwc", {"N": 2, "C": 3, "H": 4, "W": 5}, {"in": x}, {"out": x.transpose(0, 2, 3, 1)})
    for r, (N, C, H, W) in {2: (2, 8, 2, 3), 3: (1, 9, 3, 2)}.items():
        small = normal(N, C, H, W)
        split = small.reshape(N, C // (r * r), r, r, H, W)
        big = split.transpose(0, 1, 4, 2, 5, 3).reshape(N, C // (r * r), H * r, W * r)
        add(file, "pixel_shuffle", {"N": N, "C": C, "H": H, "W": W, "r": r}, {"in": small}, {"out": big}, tag=f".r{r}")
        add(file, "space_to_depth", {"N": N, "C": C // (r * r), "H": H * r, "W": W * r, "r": r}, {"in": big},
            {"out": small}, tag=f".r{r}")
    for k, s in ((2, 1), (3, 2)):
        x = normal(2, 2, 5, 6)
        windows = sliding_window_view(x, (k, k), axis=(2, 3))[:, :, ::s, ::s].transpose(0, 1, 4, 5, 2, 3)
        sizes = {"N": 2, "C": 2, "H": 5, "W": 6, "k": k, "s": s}
        add(file, "windows", sizes, {"in": x}, {"out": windows}, tag=f".k{k}s{s}")
        add(file, "im2col", sizes, {"in": x}, {"out": windows.reshape(2, 2 * k * k, -1)}, tag=f".k{k}s{s}")


# ---- imaging ---------------------------------------------------------------------------------


def imaging():
    for H, W in ((7, 9), (4, 3)):  # the second is smaller than some of the windows
        seed(f"imaging {H} {W}")
        x, sizes, tag = positive(H, W), {"H": H, "W": W}, f".{H}x{W}"
        w = x.astype(F64)
        binomial = np.array([1, 4, 6, 4, 1]) / 16
        add("blur.tc", "blur3x3", sizes, {"in": x}, {"out": separable(x, np.ones(3) / 3)}, tag=tag)
        add("blur.tc", "gauss5", sizes, {"in": x}, {"out": separable(x, binomial)}, tag=tag)
        taps = normal(7)
        add("blur.tc", "separable_blur", sizes | {"K": 7}, {"in": x, "taps": taps},
            {"out": separable(x, taps.astype(F64))}, tag=tag)
        add("unsharp.tc", "unsharp", sizes, {"in": x}, {"out": 2 * w - separable(x, binomial)}, tag=tag)
        add("harris.tc", "harris", sizes, {"in": x}, {"out": harris(w)}, tag=tag)
        add("stencil_chain.tc", "stencil_chain", sizes, {"in": x}, {"out": stencil(np.pad(w, 32, mode="edge"), 32)},
            tag=tag)
        if H > 4:
            add("stencil_chain.tc", "stencil", sizes, {"in": x}, {"out": stencil(w, 1)}, tag=tag)
        for r in (1, 3):
            windows = sliding_window_view(np.pad(x, r, mode="edge"), (2 * r + 1, 2 * r + 1))
            add("max_filter.tc", "max_filter", sizes | {"r": r}, {"in": x}, {"out": windows.max(axis=(2, 3))},
                tag=f"{tag}.r{r}")
    seed("histogram")
    x = RNG.uniform(0, 1, (6, 7)).astype(F32) ** 2
    x[2, 3] = 1  # falls into the last bin
    counts = np.histogram(x, bins=16, range=(0, 1))[0]
    bins = np.minimum((x * 16).astype(int), 15)
    sizes = {"H": 6, "W": 7, "bins": 16}
    add("histogram.tc", "histogram", sizes, {"in": x}, {"count": counts.astype(I32)})
    add("histogram.tc", "equalize", sizes, {"in": x}, {"out": np.cumsum(counts)[bins] / x.size})


def scatters():
    seed("scatter")
    file = "scatter.tc"
    to, x, y = indices(5, 31), normal(31), normal(5)
    sums = y.astype(F64)
    np.add.at(sums, to, x.astype(F64))
    add(file, "scatter_add", {"N": 31, "M": 5}, {"to": to, "x": x, "y": y}, {"z": sums})
    token, dy, table = indices(4, 7), normal(7, 5), normal(6, 5)
    g = np.zeros((6, 5))
    np.add.at(g, token, dy.astype(F64))  # two rows get nothing
    add(file, "embedding_gradient", {"N": 7, "D": 5, "V": 6}, {"token": token, "dy": dy, "table": table}, {"g": g})
    group, x, least = RNG.integers(0, 3, 8), normal(2, 8), normal(4)
    most = np.tile(least, (2, 1))
    np.maximum.at(most, (slice(None), group), x)
    add(file, "group_max", {"B": 2, "N": 8, "G": 4}, {"group": group, "x": x, "least": least}, {"m": most})
    row, column = indices(3, 20), indices(4, 20)
    joint = np.zeros((3, 4), I32)
    np.add.at(joint, (row, column), 1)
    add(file, "joint_histogram", {"N": 20, "A": 3, "B": 4}, {"first": row, "second": column}, {"count": joint})
    value, entry, at = normal(23), indices(4, 23), indices(6, 23)
    vector = normal(6)
    product = np.zeros(4)
    np.add.at(product, entry, value.astype(F64) * vector.astype(F64)[at])
    add(file, "sparse_product", {"E": 23, "M": 4, "N": 6}, {"value": value, "row": entry, "column": at, "x": vector},
        {"y": product})


def correlate3x3(image, kernel):
    return np.einsum("yxij,ij->yx", sliding_window_view(image, (3, 3)), kernel)


def harris(image):
    sobel = np.outer([1, 2, 1], [-1, 0, 1]) / 12
    padded = np.pad(image, 2, mode="edge")
    gx, gy = correlate3x3(padded, sobel), correlate3x3(padded, sobel.T)
    box = lambda products: correlate3x3(products, np.ones((3, 3)))
    xx, yy, xy = box(gx * gx), box(gy * gy), box(gx * gy)
    return xx * yy - xy ** 2 - 0.04 * (xx + yy) ** 2


def stencil(image, times):
    distance = np.abs(np.arange(-1, 2))
    kernel = 1 + distance[:, None] + distance[None, :]
    for _ in range(times):
        image = correlate3x3(image, kernel / kernel.sum())
    return image


def pixels():
    seed("pixels")
    image = RNG.integers(0, 256, (6, 7)).astype(np.uint8)
    image[:2] = image[:2] // 16  # edges that do not all saturate
    w = np.pad(image.astype(F64), 1, mode="edge")
    kernel = np.outer([1, 2, 1], [-1, 0, 1])
    windows = sliding_window_view(w, (3, 3))
    dx, dy = (windows * kernel).sum(axis=(2, 3)), (windows * kernel.T).sum(axis=(2, 3))
    add("sobel.tc", "sobel", {"H": 6, "W": 7}, {"in": image},
        {"out": np.minimum(np.hypot(dx, dy), 255).astype(np.uint8)})
    rgb = RNG.integers(0, 256, (4, 5, 3)).astype(np.uint8)
    rgb[0, :3] = [[255, 0, 0], [0, 0, 255], [255, 255, 255]]  # where chroma saturates
    matrix = np.array([[77, 150, 29], [-43, -85, 128], [128, -107, -21]], I32)
    offset = np.array([0, 128, 128], I32)
    yuv = np.floor(np.matmul(rgb, matrix.T) / 256 + 0.5) + offset
    add("colour.tc", "rgb_to_yuv", {"H": 4, "W": 5}, {"rgb": rgb, "matrix": matrix, "offset": offset},
        {"yuv": np.clip(yuv, 0, 255).astype(np.uint8)})


def box_blur():
    for H, W, r in ((7, 9, 2), (3, 4, 5)):  # the second window is larger than the image
        seed(f"box_blur {r}")
        x = positive(H, W)
        windows = sliding_window_view(np.pad(x.astype(F64), r, mode="edge"), (2 * r + 1, 2 * r + 1))
        add("blur.tc", "box_blur", {"H": H, "W": W, "r": r}, {"in": x}, {"out": windows.mean(axis=(2, 3))},
            tag=f".{H}x{W}")


def resize():
    seed("resize")
    x = positive(4, 6)
    # One axis by 2, the other by 1/2: the places are exact in float.
    places = lambda n, m: np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
    rows = np.array([np.interp(places(4, 8), np.arange(4), column) for column in x.astype(F64).T]).T
    out = np.array([np.interp(places(6, 3), np.arange(6), row) for row in rows])
    add("resize.tc", "resize_bilinear", {"H": 4, "W": 6, "OH": 8, "OW": 3}, {"in": x}, {"out": out})


def stereo():
    seed("stereo")
    left, right = normal(3, 4, 7), normal(3, 4, 7)
    wl, wr = wide(left, right)
    shifted = [np.pad(wr, [(0, 0), (0, 0), (d, 0)])[:, :, :7] for d in range(4)]
    add("stereo.tc", "cost_volume", {"C": 3, "H": 4, "W": 7, "D": 4}, {"left": left, "right": right},
        {"cost": np.array([(wl * s).mean(axis=0) for s in shifted])})


def embedding_bag():
    seed("embedding_bag")
    table, words = normal(9, 4), indices(9, 3, 5)
    add("gather.tc", "embedding_bag", {"V": 9, "D": 4, "B": 3, "L": 5}, {"table": table, "words": words},
        {"out": table.astype(F64)[words].mean(axis=1)})


def moving_average():
    seed("moving_average")
    x = normal(9)
    sums = np.convolve(x.astype(F64), np.ones(4))[:9]
    add("reductions.tc", "moving_average", {"N": 9, "W": 4}, {"x": x},
        {"y": sums / np.minimum(np.arange(9) + 1, 4)})


def zero_points():
    seed("zero_points")
    A, B = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((4, 6), (6, 5)))
    C = np.matmul(A.astype(F64) + 7, B.astype(F64) - 100).astype(I32)
    add("types.tc", "gemm_int8_zero_points", {"M": 4, "K": 6, "N": 5},
        {"A": A, "B": B, "za": np.array(-7, I32), "zb": np.array(100, I32)}, {"C": C})


def main():
    for family in (matvec, gemm, bilinear, mlp, gather, conv2d, conv1d, conv3d, transposed, gconv, depthwise,
                   winograd, pooling, circulant, shift, norm, group_norm, rope, loss, softmaxes, scans, scatters,
                   attention, activations, functions, reductions, moving_average, types, zero_points, layout, imaging, pixels,
                   box_blur, resize, stereo, embedding_bag):
        family()
    for name, *case in pipelines.cases():
        add(name + ".tc", name, *case, folder="pipelines", cases=PIPELINES)
    for name, cases in LISTS.items():
        FILES[name] = ("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n").encode()
    covered = {(case["file"], case["def"]) for case in CASES}
    written = {(path.name, name) for path in KERNELS.glob("*.tc")
               for name in re.findall(r"^def (\w+)", path.read_text(), re.MULTILINE)}
    assert covered == written, f"without a case or without a def: {sorted(covered ^ written)}"
    applications = {path.name for path in (HERE.parent / "pipelines").glob("*.tc")}
    computed = {case["file"] for case in PIPELINES}
    assert computed == applications, f"without a case or without a file: {sorted(computed ^ applications)}"

    present = {str(path.relative_to(HERE)): path.read_bytes()
               for path in [*HERE.glob("*/*.npy"), *(HERE / name for name in LISTS if (HERE / name).exists())]}
    changed = sorted(path for path in FILES if present.get(path) != FILES[path])
    orphans = sorted(present.keys() - FILES.keys())
    if "--check" in sys.argv[1:]:
        if changed or orphans:
            sys.exit("run make.py; not as it would write them: " + ", ".join(changed + orphans))
    else:
        for path in changed:
            (HERE / path).parent.mkdir(exist_ok=True)
            (HERE / path).write_bytes(FILES[path])
        for path in orphans:
            (HERE / path).unlink()
    print(f"{len(CASES)} cases of {len(written)} defs, {len(PIPELINES)} of pipelines, {sum(map(len, FILES.values()))} bytes, {len(changed)} changed")


if __name__ == "__main__":
    main()
