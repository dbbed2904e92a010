"""Calls with changing shapes, strides and types: each computes what NumPy does, or raises.

TENSORWRIGHT_FUZZ_SHAPES and TENSORWRIGHT_FUZZ_SEED change how many, and which:

    TENSORWRIGHT_FUZZ_SHAPES=100000 python -m pytest -s crates/python/tests/test_fuzz_shapes.py
"""

import os
import random
import warnings

import numpy as np

import tensorwright as tw

try:
    import torch
except ImportError:
    torch = None

CALLS = int(os.environ.get("TENSORWRIGHT_FUZZ_SHAPES", "4000"))
SEED = int(os.environ.get("TENSORWRIGHT_FUZZ_SEED", "0"))
SIZES = (0, 1, 2, 3, 5, 8, 9, 13, 16, 17, 24, 31, 40)


def softmax(x):
    if x.shape[1] == 0:
        return np.zeros_like(x)
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def gather(t, at):
    # Where there is nothing to gather, nothing is looked for.
    if t.shape[1] and ((at < 0) | (at >= len(t))).any():
        raise IndexError
    return t[at] if t.shape[1] else np.empty((len(at), 0), t.dtype)


def scattered(x, at):
    if ((at < 0) | (at >= 6)).any() and x.shape[1]:
        raise IndexError
    y = np.zeros((6, x.shape[1]), x.dtype)
    if x.shape[1]:
        np.add.at(y, at, x)
    return y


# The text, the types and the axes of the arguments, what NumPy computes, and which sizes are said to vary.
OPERATORS = [
    ("def f(float(N,D) x, float(D) b) -> (y) { y(n,d) = max(x(n,d) * b(d), 0) }", "ff", ("ND", "D"),
     lambda x, b: np.maximum(x * b, 0), ["N"]),
    ("def f(float(N,D) x, float(D) b) -> (y) { y(n,d) = x(n,d) + b(d) }", "ff", ("ND", "D"), lambda x, b: x + b, None),
    ("def f(float(M,K) a, float(K,N) b) -> (c) { c(m,n) +=! a(m,k) * b(k,n) }", "ff", ("MK", "KN"), np.matmul, True),
    ("def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = exp(x(n,d) - m(n)) / s(n) }",
     "f", ("ND",), softmax, True),
    ("def f(double(N,D) x) -> (s) { s(d) +=! x(n,d) }", "d", ("ND",), lambda x: x.sum(0), None),
    ("def f(int32(N,D) x) -> (s) { s(n) +=! x(n,d) }", "i", ("ND",), lambda x: x.sum(1, dtype="int32"), True),
    ("def f(bool(N,D) x, bool(N,D) y) -> (z) { z(n,d) = x(n,d) && !y(n,d) }", "??", ("ND", "ND"), lambda x, y: x & ~y, True),
    ("def f(float(N,D) t, int32(M) at) -> (y) { y(m,d) = t(at(m),d) }", "fi", ("ND", "M"), gather, ["M"]),
    ("def f(float(B,H,T,D) x) -> (y) { y(b,t,h,d) = 2 * x(b,h,t,d) }", "f", ("BHTD",),
     lambda x: 2 * x.transpose(0, 2, 1, 3), ["B", "T"]),
    # Statements that compute parts of tensors.
    ("def f(float(N,D) x) -> (y) { y(n,d) = 1 where n in 0:N+2, d in 0:D  y(n,d) = x(n,d) where n in 0:N }", "f", ("ND",),
     lambda x: np.pad(x, ((0, 2), (0, 0)), constant_values=1), ["N"]),
    ("""def f(float(N,D) x) -> (s) { y(n,d) = 1 where n in 0:N, d in 0:D+3  y(n,d) = x(n,d) where d in 0:D
        y(n,d) += 1 where n in 0:N, d in 0:2  s(n) +=! y(n,d) }""", "f", ("ND",), lambda x: x.sum(1) + 5, True),
    ("def f(float(N,D) x) -> (y) { y(n,d) = y(n-1,d) + x(n,d) scan n from 0 }", "f", ("ND",), lambda x: x.cumsum(0), True),
    ("def f(float(N,D) x, int32(N) at) -> (y) { y(k,d) +=! x(n,d) scatter k = at(n) where k in 0:6 }", "fi", ("ND", "N"),
     scattered, ["N"]),
]  # fmt: skip
TYPES = {"f": "float32", "d": "float64", "i": "int32", "?": "bool"}


def laid(draw, values):
    """The same values, somewhere in memory."""
    kind = draw.randrange(9)
    shape = values.shape
    if kind == 0:
        order = draw.sample(range(values.ndim), values.ndim)
        return np.ascontiguousarray(values.transpose(order)).transpose(np.argsort(order))
    if kind in (1, 2):
        wider = np.zeros([n + draw.randrange(4) for n in shape], values.dtype)
        cut = tuple(slice(w - n, w) if kind == 1 else slice(0, n) for n, w in zip(shape, wider.shape, strict=True))
        wider[cut] = values
        return wider[cut]
    if kind == 3:
        step = draw.choice((2, 3, -1))
        axis = draw.randrange(values.ndim)
        wider = np.zeros([n * abs(step) if a == axis else n for a, n in enumerate(shape)], values.dtype)
        cut = tuple(slice(None, None, step) if a == axis else slice(None) for a in range(values.ndim))
        wider[cut] = values
        return wider[cut]
    if kind == 4 and values.size:
        axis = draw.randrange(values.ndim)
        return np.broadcast_to(values.take([0], axis), shape)
    return values


def argument(draw, numbers, kind, axes, sizes):
    dtype = TYPES[kind]
    shape = [sizes[axis] for axis in axes]
    if draw.random() < 0.02:
        shape[draw.randrange(len(shape))] += 1
    if draw.random() < 0.02:
        shape = shape[1:] or [*shape, 1]
    if dtype == "int32":
        values = numbers.integers(-1 if draw.random() < 0.05 else 0, max(min(SIZES[1:]), draw.choice(SIZES)) + 1, shape)
    else:
        values = numbers.standard_normal(shape) * 2
    values = laid(draw, values.astype(dtype) if dtype != "bool" else values > 0)
    if draw.random() < 0.03:
        values = values.astype(draw.choice(("float32", "float64", "int32", "int64", "float16", "bool")))
    if torch is not None and draw.random() < 0.5 and all(stride >= 0 for stride in values.strides):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.as_tensor(values)
    return values


def test_calls_compute_what_numpy_does_or_raise():
    draw, numbers = random.Random(SEED), np.random.default_rng(SEED)
    made = [(tw.define(text, dynamic=dynamic).f, *rest) for text, *rest, dynamic in OPERATORS]
    computed = raised = 0
    for number in range(CALLS):
        op, types, axes, wanted = draw.choice(made)
        sizes = {axis: draw.choice(SIZES) if len(axes[0]) < 4 else draw.choice(SIZES[:6]) for axis in set("".join(axes))}
        args = [argument(draw, numbers, kind, names, sizes) for kind, names in zip(types, axes, strict=True)]
        plain = [np.asarray(arg) for arg in args]
        right = all(str(arg.dtype) == TYPES[kind] for arg, kind in zip(plain, types, strict=True))
        found = {}
        for arg, names in zip(plain, axes, strict=True):
            right = right and arg.ndim == len(names)
            for name, extent in zip(names, arg.shape):
                right = right and found.setdefault(name, extent) == extent
        try:
            expected = wanted(*plain) if right else None
        except IndexError:
            right = False
        text = f"seed {SEED}, call {number}: {op} of {[(a.shape, a.strides, a.dtype) for a in plain]}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = op(*args)
        except tw.Error as error:
            # An empty table has no element to gather; all else that is right is computed.
            assert not right or "subscript" in str(error) or "cannot be 0" in str(error) or "has no value" in str(error), text
            raised += 1
            continue
        assert right, text
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4, atol=1e-5, err_msg=text)
        computed += 1
    kernels = [op.kernels for op, *_ in made]
    print(f"{CALLS} calls, seed {SEED}: {computed} computed, {raised} raised, {sum(kernels)} kernels")
    assert computed > CALLS // 2 and raised > CALLS // 40 and max(kernels) <= 64
