"""The imaging pipelines in Halide; edges are clamped."""

import functools
import operator as op

import halide as hl
from protocol import Unsupported

x, y = hl.Var("x"), hl.Var("y")


def added(terms):
    return functools.reduce(op.add, terms)


def blur3x3(image):
    rows, out = hl.Func("rows"), hl.Func("out")
    rows[x, y] = (image[x - 1, y] + image[x, y] + image[x + 1, y]) * (1 / 3.0)
    out[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) * (1 / 3.0)
    return out


def gauss5(image):
    taps = [1 / 16.0, 4 / 16.0, 6 / 16.0, 4 / 16.0, 1 / 16.0]
    rows, out = hl.Func("rows"), hl.Func("gauss")
    rows[x, y] = added(image[x + i - 2, y] * tap for i, tap in enumerate(taps))
    out[x, y] = added(rows[x, y + i - 2] * tap for i, tap in enumerate(taps))
    return out


def unsharp(image):
    blurred = gauss5(image)
    sharpened, ratio, out = hl.Func("sharpened"), hl.Func("ratio"), hl.Func("out")
    sharpened[x, y] = 2.0 * image[x, y] - blurred[x, y]
    ratio[x, y] = sharpened[x, y] / image[x, y]
    out[x, y] = ratio[x, y] * image[x, y]
    return out


def box(function, name):
    out = hl.Func(name)
    out[x, y] = added(function[x + i, y + j] for j in (-1, 0, 1) for i in (-1, 0, 1))
    return out


def harris(image):
    ix, iy, xx, yy, xy = (hl.Func(name) for name in ("ix", "iy", "xx", "yy", "xy"))
    ix[x, y] = (image[x + 1, y - 1] - image[x - 1, y - 1] + 2.0 * (image[x + 1, y] - image[x - 1, y])
                + image[x + 1, y + 1] - image[x - 1, y + 1]) / 12.0  # fmt: skip
    iy[x, y] = (image[x - 1, y + 1] - image[x - 1, y - 1] + 2.0 * (image[x, y + 1] - image[x, y - 1])
                + image[x + 1, y + 1] - image[x + 1, y - 1]) / 12.0  # fmt: skip
    xx[x, y] = ix[x, y] * ix[x, y]
    yy[x, y] = iy[x, y] * iy[x, y]
    xy[x, y] = ix[x, y] * iy[x, y]
    sxx, syy, sxy, out = box(xx, "sxx"), box(yy, "syy"), box(xy, "sxy"), hl.Func("out")
    trace = sxx[x, y] + syy[x, y]
    out[x, y] = sxx[x, y] * syy[x, y] - sxy[x, y] * sxy[x, y] - 0.04 * trace * trace
    return out


def stencil_chain(image, stages):
    weights = {(i, j): 1.0 + abs(i) + abs(j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
    total = sum(weights.values())
    current = image
    for stage in range(stages):
        out = hl.Func(f"stage{stage}")
        out[x, y] = added(current[x + j, y + i] * float(w / total) for (i, j), w in weights.items())
        current = out
    return current


def max_filter(image, radius):
    window = hl.RDom([hl.Range(-radius, 2 * radius + 1)])
    rows, out = hl.Func("rows"), hl.Func("out")
    rows[x, y] = hl.maximum(image[x + window.x, y])
    out[x, y] = hl.maximum(rows[x, y + window.x])
    return out


def equalize(image, height, width):
    pixels = hl.RDom([hl.Range(0, width), hl.Range(0, height)])
    bins, count, below, out = (hl.Func(name) for name in ("bins", "count", "below", "out"))
    bins[x, y] = hl.clamp(hl.i32(image[x, y] * 256.0), 0, 255)
    count[x] = 0
    count[bins[pixels.x, pixels.y]] += 1
    rest = hl.RDom([hl.Range(1, 255)])
    below[x] = count[x]
    below[rest.x] = below[rest.x - 1] + count[rest.x]
    out[x, y] = hl.f32(below[bins[x, y]]) / float(height * width)
    return out


def pipeline(workload, image):
    """The last function of an imaging workload."""
    operator, clamped = workload["operator"], hl.BoundaryConditions.repeat_edge(image)
    simple = {"blur3x3": blur3x3, "gauss5": gauss5, "unsharp": unsharp, "harris": harris}
    if operator in simple:
        return simple[operator](clamped)
    if operator == "stencil_chain":
        return stencil_chain(clamped, workload["stages"])
    if operator == "max_filter":
        return max_filter(clamped, workload["radius"])
    if operator == "hist":
        return equalize(image, *workload["inputs"]["X"])
    raise Unsupported
