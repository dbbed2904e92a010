"""Local Laplacian filters: a pyramid for each of K brightnesses, and coefficients chosen between them."""

import halide as hl

from .common import c, edges, halved, x, y

k = hl.Var("k")
LEVELS = 8


def reduced(image, name, rest):
    """Half the size both ways, by taps of 1 4 6 4 1."""
    rows, out = hl.Func(f"{name}_rows"), hl.Func(name)
    row = lambda i: image[(x, 2 * y + i, *rest)]  # noqa: E731
    rows[(x, y, *rest)] = (row(-2) + 4.0 * row(-1) + 6.0 * row(0) + 4.0 * row(1) + row(2)) / 16.0
    column = lambda i: rows[(2 * x + i, y, *rest)]  # noqa: E731
    total = column(-2) + 4.0 * column(-1) + 6.0 * column(0) + 4.0 * column(1) + column(2)
    out[(x, y, *rest)] = total / 16.0
    return out


def doubled(position, at):
    """Between the pixels of a coarser line."""
    even = (at(position // 2 - 1) + 6.0 * at(position // 2) + at(position // 2 + 1)) / 8.0
    return hl.select(position % 2 == 0, even, (at(position // 2) + at(position // 2 + 1)) / 2.0)


def expanded(coarse, fine, sign, name, rest):
    """Twice the size, times `sign`, plus the finer picture."""
    rows, out = hl.Func(f"{name}_rows"), hl.Func(name)
    rows[(x, y, *rest)] = doubled(y, lambda i: coarse[(x, i, *rest)])
    out[(x, y, *rest)] = fine[(x, y, *rest)] + sign * doubled(x, lambda j: rows[(j, y, *rest)])
    return out


def chosen(detail, grey, count, name):
    """Coefficients at the brightness of each pixel."""
    below, out = hl.Func(f"{name}_below"), hl.Func(name)
    below[x, y] = hl.clamp(hl.i32(grey[x, y] * float(count - 1)), 0, count - 2)
    level = hl.clamp(below[x, y], 0, count - 2)
    share = grey[x, y] * float(count - 1) - hl.f32(below[x, y])
    out[x, y] = detail[x, y, level] + share * (detail[x, y, level + 1] - detail[x, y, level])
    return out


def pipeline(inputs, size):
    count, image, alpha, beta = size["K"], inputs("in"), inputs("alpha"), inputs("beta")
    grey, away, first, out = (hl.Func(name) for name in ("i0", "away", "g0", "out"))
    grey[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    brightness = hl.f32(k) / float(count - 1)
    away[x, y, k] = grey[x, y] - brightness
    far = away[x, y, k]
    first[x, y, k] = brightness + beta * far + alpha * far * hl.exp(-far * far * float((count - 1) ** 2) / 2.0)
    shapes, g, i = [(size["W"], size["H"])], [first], [grey]
    for level in range(1, LEVELS):
        g.append(reduced(edges(g[-1], *shapes[-1]), f"g{level}", (k,)))
        i.append(reduced(edges(i[-1], *shapes[-1]), f"i{level}", ()))
        shapes.append(tuple(map(halved, shapes[-1])))
    result = chosen(g[-1], i[-1], count, f"o{LEVELS - 1}")
    for level in reversed(range(LEVELS - 1)):
        shape = shapes[level + 1]
        detail = expanded(edges(g[level + 1], *shape), g[level], -1.0, f"l{level}", (k,))
        coefficients = chosen(detail, i[level], count, f"c{level}")
        result = expanded(edges(result, *shape), coefficients, 1.0, f"o{level}", ())
    out[x, y, c] = image[x, y, c] * (result[x, y] + 0.01) / (grey[x, y] + 0.01)
    return out
