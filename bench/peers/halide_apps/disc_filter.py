"""The greatest value within a disc. How high each column of the disc is, is known when the pipeline is built."""

import functools
import math

import halide as hl

from .common import c, edges, x, y


def pipeline(inputs, size):
    width, height, r = size["W"], size["H"], size["r"]
    # Columns of 1, 2, 4, 8 and 16 pixels, downwards.
    columns = [edges(inputs("in"), width, height)]
    for level in range(4):
        longer, before = hl.Func(f"m{2 << level}"), columns[-1]
        longer[x, y, c] = hl.max(before[x, y, c], before[x, y + (1 << level), c])
        columns.append(longer)
    terms = []
    for i in range(-r, r + 1):
        reach = int(math.sqrt(0.0625 + r * r - i * i + 0.5 * r))
        level = reach.bit_length()
        column = columns[level]
        terms += [column[x + i, y - reach, c], column[x + i, y + reach + 1 - (1 << level), c]]
    out = hl.Func("out")
    out[x, y, c] = functools.reduce(hl.max, terms)
    return out
