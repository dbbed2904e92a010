"""The imaging pipelines on slices of PyTorch tensors; edges are clamped."""

import torch
import torch.nn.functional as F
from protocol import Unsupported

GAUSS = [1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]


def pad(x, r):
    return F.pad(x[None, None], (r, r, r, r), mode="replicate")[0, 0]


def separable(x, taps):
    """A separable filter, of which only the valid part remains."""
    n = len(taps)
    rows = sum(t * x[:, i : x.shape[1] - n + 1 + i] for i, t in enumerate(taps))
    return sum(t * rows[i : rows.shape[0] - n + 1 + i] for i, t in enumerate(taps))


def box(a):
    """The sums of 3x3 neighbours."""
    height, width = a.shape
    return sum(a[i : height - 2 + i, j : width - 2 + j] for i in range(3) for j in range(3))


def harris(x):
    p = pad(x, 2)
    height, width = p.shape

    def at(dy, dx):
        return p[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    ix = (at(-1, 1) - at(-1, -1) + 2 * (at(0, 1) - at(0, -1)) + at(1, 1) - at(1, -1)) / 12
    iy = (at(1, -1) - at(-1, -1) + 2 * (at(1, 0) - at(-1, 0)) + at(1, 1) - at(-1, 1)) / 12
    a, b, c = box(ix * ix), box(iy * iy), box(ix * iy)
    return a * b - c * c - 0.04 * (a + b) ** 2


def unsharp(x):
    ratio = (2 * x - separable(pad(x, 2), GAUSS)) / x
    return ratio * x


def stencil_chain(stages):
    weights = torch.tensor([[1.0 + abs(i) + abs(j) for j in (-1, 0, 1)] for i in (-1, 0, 1)])
    weights = (weights / weights.sum())[None, None]

    def call(x):
        x = pad(x, stages)[None, None]
        for _ in range(stages):
            x = F.conv2d(x, weights)
        return x[0, 0]

    return call


def max_filter(r):
    def call(x):
        rows = F.max_pool2d(pad(x, r)[None, None], (1, 2 * r + 1), 1)
        return F.max_pool2d(rows, (2 * r + 1, 1), 1)[0, 0]

    return call


def equalize(x):
    bins = (x * 256).to(torch.int64).clamp(0, 255)
    below = torch.bincount(bins.flatten(), minlength=256).cumsum(0).to(torch.float32) / x.numel()
    return below[bins]


def pipeline(workload):
    """The function of an imaging workload."""
    operator = workload["operator"]
    simple = {
        "blur3x3": lambda x: separable(pad(x, 1), [1 / 3] * 3),
        "gauss5": lambda x: separable(pad(x, 2), GAUSS),
        "harris": harris,
        "unsharp": unsharp,
        "hist": equalize,
    }
    if operator in simple:
        return simple[operator]
    if operator == "stencil_chain":
        return stencil_chain(workload["stages"])
    if operator == "max_filter":
        return max_filter(workload["radius"])
    raise Unsupported
