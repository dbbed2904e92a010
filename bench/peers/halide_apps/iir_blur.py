"""A recursive blur: columns forwards and backwards in place, transposed, and the same once more."""

import halide as hl

from .common import c, x, y


def columns(image, a, height, name):
    out, rest = hl.Func(name), hl.RDom([hl.Range(1, height - 1)])
    back = height - 1 - rest.x
    out[x, y, c] = hl.undef(hl.Float(32))
    out[x, 0, c] = image[x, 0, c]
    out[x, rest.x, c] = a * image[x, rest.x, c] + (1.0 - a) * out[x, rest.x - 1, c]
    out[x, back, c] = a * out[x, back, c] + (1.0 - a) * out[x, back + 1, c]
    return out


def transposed(image, name):
    out = hl.Func(name)
    out[x, y, c] = image[y, x, c]
    return out


def pipeline(inputs, size):
    a = inputs("a")
    turned = transposed(columns(inputs("in"), a, size["H"], "columns"), "turned")
    return transposed(columns(turned, a, size["W"], "rows"), "out")
