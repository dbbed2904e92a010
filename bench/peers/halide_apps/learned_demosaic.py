"""Colours behind a Bayer filter: experts of 5 by 5 for each place in the filter, mixed by a gate."""

import halide as hl

from .common import added, c, window, x, y

k, f = hl.Var("k"), hl.Var("f")


def pipeline(inputs, size):
    features, experts = size["F"], size["K"]
    feature, gate, expert = inputs("feature"), inputs("gate"), inputs("expert")
    raw = hl.BoundaryConditions.mirror_interior(inputs("raw"), [hl.Range(0, size["W"]), hl.Range(0, size["H"])])
    r = window(5, 5)
    pixel = raw[x + r.x - 2, y + r.y - 2]
    names = ("linear", "score", "peak", "e", "total", "opinion", "out")
    linear, score, peak, e, total, opinion, out = (hl.Func(name) for name in names)
    linear[x, y, f] = hl.f32(0.0)
    linear[x, y, f] += feature[r.x, r.y, f] * pixel
    score[x, y, k] = added(gate[i, k] * hl.abs(linear[x, y, i]) for i in range(features))
    greatest = score[x, y, 0]
    for i in range(1, experts):
        greatest = hl.max(greatest, score[x, y, i])
    peak[x, y] = greatest
    e[x, y, k] = hl.exp(score[x, y, k] - peak[x, y])
    total[x, y] = added(e[x, y, i] for i in range(experts))
    opinion[x, y, k, c] = hl.f32(0.0)
    opinion[x, y, k, c] += expert[r.x, r.y, k, c, 2 * (y % 2) + x % 2] * pixel
    out[x, y, c] = added(e[x, y, i] / total[x, y] * opinion[x, y, i, c] for i in range(experts))
    return out
