"""Fills the gaps of a picture by a pyramid: eight halvings, and as many finer levels laid over coarser ones."""

import halide as hl

from .common import c, edges, halved, x, y

LEVELS = 8


def halve(image, level):
    rows, total, out = (hl.Func(f"{name}{level}") for name in ("rows", "sum", "d"))
    rows[x, y, c] = (image[x, 2 * y - 1, c] + 2.0 * image[x, 2 * y, c] + image[x, 2 * y + 1, c]) / 2.0
    total[x, y, c] = (rows[2 * x - 1, y, c] + 2.0 * rows[2 * x, y, c] + rows[2 * x + 1, y, c]) / 2.0
    out[x, y, c] = total[x, y, c] / hl.max(total[x, y, 3], 1.0)
    return out


def over(fine, coarse, level):
    rows, out = hl.Func(f"up_rows{level}"), hl.Func(f"u{level}")
    rows[x, y, c] = (coarse[x, y // 2, c] + coarse[x, (y + 1) // 2, c]) / 2.0
    seen = (rows[x // 2, y, c] + rows[(x + 1) // 2, y, c]) / 2.0
    out[x, y, c] = fine[x, y, c] + (1.0 - fine[x, y, 3]) * seen
    return out


def pipeline(inputs, size):
    image, alpha, first, out = inputs("in"), hl.Func("alpha"), hl.Func("d0"), hl.Func("out")
    alpha[x, y] = hl.clamp(image[x, y, 3], 0.0, 1.0)
    first[x, y, c] = hl.select(c < 3, image[x, y, c] * alpha[x, y], alpha[x, y])
    shapes, levels = [(size["W"], size["H"])], [first]
    for level in range(1, LEVELS + 1):
        levels.append(halve(edges(levels[-1], *shapes[-1]), level))
        shapes.append(tuple(map(halved, shapes[-1])))
    filled = levels[-1]
    for level in reversed(range(LEVELS)):
        filled = over(levels[level], edges(filled, *shapes[level + 1]), level)
    out[x, y, c] = filled[x, y, c] / hl.max(filled[x, y, 3], 0.0001)
    return out
