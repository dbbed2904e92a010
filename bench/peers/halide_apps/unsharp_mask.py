"""Unsharp masking of a colour picture, by the factor by which its grey changes."""

import halide as hl

from .common import added, c, edges, x, y

TAPS = 7


def pipeline(inputs, size):
    sigma, image = inputs("sigma"), edges(inputs("in"), size["W"], size["H"])
    names = ("bell", "tap", "grey", "by", "blurred", "sharpened", "ratio", "out")
    bell, tap, grey, by, blurred, sharpened, ratio, out = (hl.Func(name) for name in names)
    bell[x] = hl.exp(hl.f32((x - TAPS // 2) * (TAPS // 2 - x)) / (2.0 * sigma * sigma))
    tap[x] = bell[x] / added(bell[k] for k in range(TAPS))
    grey[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    by[x, y] = added(tap[k] * grey[x, y + k - TAPS // 2] for k in range(TAPS))
    blurred[x, y] = added(tap[k] * by[x + k - TAPS // 2, y] for k in range(TAPS))
    sharpened[x, y] = 2.0 * grey[x, y] - blurred[x, y]
    ratio[x, y] = sharpened[x, y] / hl.max(grey[x, y], 0.001)
    out[x, y, c] = ratio[x, y] * image[x, y, c]
    return out
