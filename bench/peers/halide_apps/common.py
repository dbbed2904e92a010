"""Functions shared by applications."""

import functools
import operator

import halide as hl

x, y, z, c = (hl.Var(name) for name in "xyzc")


def added(terms):
    return functools.reduce(operator.add, terms)


def edges(function, width, height):
    """Repeats the outermost pixels of an image or a function."""
    return hl.BoundaryConditions.repeat_edge(function, [hl.Range(0, width), hl.Range(0, height)])


def window(*extents):
    return hl.RDom([hl.Range(0, extent) for extent in extents])


def halved(length):
    return (length + 1) // 2


def blurred(grid, name, along, rest):
    """Taps of 1 4 6 4 1 in one dimension of a grid; `rest` are the dimensions after it that stand as they are."""
    out = hl.Func(name)
    place = (x, y, z, *rest)
    read = lambda offset: grid[tuple(v + offset if i == along else v for i, v in enumerate(place))]  # noqa: E731
    out[place] = (read(-2) + 4.0 * read(-1) + 6.0 * read(0) + 4.0 * read(1) + read(2)) / 16.0
    return out


def blurred_grid(grid, *rest):
    """Blurs in depth, along x and along y."""
    for name, along in (("bz", 2), ("bx", 0), ("by", 1)):
        grid = blurred(grid, name, along, rest)
    return grid


class Cells:
    """The pixels of each cell of a grid, `s` by `s` of them: a cell gathers what the definition scatters."""

    def __init__(self, s, width, height):
        self.inside = window(s, s)
        self.column = x * s + self.inside.x - s // 2
        self.row = y * s + self.inside.y - s // 2
        self.counts = (self.column >= 0) & (self.column < width) & (self.row >= 0) & (self.row < height)


def between(at, position, step):
    """Between the cells before and after a pixel; `at` reads a cell."""
    share = hl.f32(position % step) / float(step)
    return at(position // step) + share * (at(position // step + 1) - at(position // step))
