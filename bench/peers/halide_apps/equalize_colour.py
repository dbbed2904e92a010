"""Histogram equalisation of a colour picture of 8 bits, in integers."""

import halide as hl

from .common import c, window, x, y


def pipeline(inputs, size):
    width, height, image = size["W"], size["H"], inputs("in")
    grey, count, below, table, out = (hl.Func(name) for name in ("grey", "count", "below", "table", "out"))
    red, green, blue = (hl.i32(image[x, y, k]) for k in range(3))
    grey[x, y] = (77 * red + 150 * green + 29 * blue + 128) // 256
    pixels, rest = window(width, height), hl.RDom([hl.Range(1, 255)])
    count[x] = 0
    count[hl.clamp(grey[pixels.x, pixels.y], 0, 255)] += 1
    below[x] = count[x]
    below[rest.x] = below[rest.x - 1] + count[rest.x]
    table[x] = (255 * below[x] + width * height // 2) // (width * height)
    changed = table[hl.clamp(grey[x, y], 0, 255)] + hl.i32(image[x, y, c]) - grey[x, y]
    out[x, y, c] = hl.u8(hl.clamp(changed, 0, 255))
    return out
