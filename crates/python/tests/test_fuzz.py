"""Calls with whatever people pass by mistake: each is computed rightly or raises, and nothing crashes.

TENSORWRIGHT_FUZZ_CALLS and TENSORWRIGHT_FUZZ_SEED change how many, and which.
"""

import os
import random

import numpy as np

import tensorwright as tw

try:
    import torch
except ImportError:
    torch = None

CALLS = int(os.environ.get("TENSORWRIGHT_FUZZ_CALLS", "100000"))
SEED = int(os.environ.get("TENSORWRIGHT_FUZZ_SEED", "0"))

TEXT = """
def rows(float(E,D) T, int32(B) I, float s) -> (O) { O(b,d) = s * T(I(b),d) }
"""
SIZES = (1, 2, 3, 8)
# Ours, and what NumPy and torch raise when they are asked for memory that they do not hand out.
RAISED = (tw.Error, TypeError, ValueError, BufferError, RuntimeError)


def expected(table, index, scale):
    return np.float32(scale) * np.asarray(table)[np.asarray(index)]


class Liar:
    """Claims to be a tensor."""

    def __init__(self, answer):
        self.answer = answer

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def array(draw, dtype):
    """An array that may be wrong in one of many ways."""
    rank = {"float32": 2, "int32": 1}[dtype] if draw.random() < 0.8 else draw.choice((0, 1, 2, 3, 20))
    shape = [draw.choice(SIZES) if rank < 5 else 1 for _ in range(rank)]
    kind = draw.randrange(14)
    if dtype == "int32":
        values = (0,) if draw.random() < 0.7 else (0, 1, 2, -1, 7, 2**31 - 1)
        base = np.array([draw.choice(values) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)
    else:
        base = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    if kind == 0:
        others = ("float64", "int64", "uint8", "bool", "complex64", "float16", ">f4", "U3", "O", "M8[s]")
        with np.errstate(all="ignore"):
            return base.astype(draw.choice(others))
    if kind == 1:
        return np.repeat(base, 2, -1)[..., ::2] if base.ndim else base
    if kind == 2:
        return base.T
    if kind == 3:
        return base[::-1] if base.ndim else base
    if kind == 4:
        return np.broadcast_to(base, (2, *base.shape))
    if kind == 5:
        base.flags.writeable = False
        return base
    if kind == 6 and base.ndim:
        raw = np.frombuffer(bytearray(base.nbytes + 1), "uint8")[1:].view(dtype)
        return raw.reshape(base.shape)
    if kind == 7:
        return base[:0] if base.ndim else base
    if kind == 8:
        return memoryview(base)
    return base


def tensor(draw, dtype):
    made = array(draw, dtype)
    if torch is None or not isinstance(made, np.ndarray) or made.dtype.kind not in "fib" or not made.flags.writeable:
        return made
    if made.dtype.byteorder == ">" or any(stride < 0 for stride in made.strides):
        return made
    made = torch.from_numpy(made)
    kind = draw.randrange(8)
    if kind == 0:
        return made.to("meta")
    if kind == 1 and made.is_floating_point():
        return made.clone().requires_grad_()
    if kind == 2:
        copy = made.clone()
        copy.untyped_storage().resize_(0)
        return copy
    if kind == 3 and made.dim():
        return made.to_sparse()
    return made


def thing(draw, dtype):
    kind = draw.randrange(24)
    if kind < 12:
        return array(draw, dtype)
    if kind < 21:
        return tensor(draw, dtype)
    odd = (None, "text", b"bytes", 3, 2.5, True, [1.0], {}, object(), 10**30, float("nan"), bytearray(8))
    return draw.choice((*odd, Liar(None), Liar(ValueError("no")), Liar(3)))


def test_nothing_that_is_passed_crashes():
    rows = tw.define(TEXT).rows
    draw = random.Random(SEED)
    right = raised = 0
    for number in range(CALLS):
        scale = draw.choice((2.0, 3, np.float32(1.5), True)) if draw.random() < 0.9 else draw.choice(("s", None, [1]))
        args = [thing(draw, "float32"), thing(draw, "int32"), scale]
        if draw.random() < 0.05:
            args = args[: draw.randrange(4)]
        named = {}
        if draw.random() < 0.15:
            first = args[0] if args else None
            named["out"] = draw.choice((first, thing(draw, "float32"), (), (thing(draw, "float32"),) * 2))
        if draw.random() < 0.03:
            named[draw.choice(("E", "T", "Q", "s"))] = draw.choice((1, 2, -1, 2**62, "x"))
        try:
            result = rows(*args, **named)
        except RAISED:
            raised += 1
            continue
        right += 1
        if len(args) == 3 and not named:
            table, index = (np.asarray(a) for a in args[:2])
            np.testing.assert_array_equal(
                np.asarray(result), expected(table, index, args[2]), err_msg=f"seed {SEED}, call {number}: {args}"
            )
    print(f"{CALLS} calls, seed {SEED}: {right} computed, {raised} raised")
    assert right > CALLS // 50 and raised > CALLS // 3
