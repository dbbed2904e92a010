"""Bilateral guided upsampling: an affine map of colours fitted in each cell of a grid, applied to a large picture."""

import halide as hl

from .common import Cells, added, between, blurred_grid, c, edges, x, y, z

p, q, n = hl.Var("p"), hl.Var("q"), hl.Var("n")


def eliminate(m, step):
    """A step of Gauss and Jordan."""
    out = hl.Func(f"m{step + 1}")
    at = lambda row, column: m[x, y, z, column, row]  # noqa: E731
    scaled = at(step, q) / at(step, step)
    out[x, y, z, q, p] = hl.select(p == step, scaled, at(p, q) - at(p, step) * at(step, q) / at(step, step))
    return out


def fit(inputs, size):
    """The map of every cell, in columns 4 to 6."""
    width, height, s, bins = size["w"], size["h"], size["s"], size["bins"]
    lo, done = (edges(inputs(name), width, height) for name in ("lo", "done"))
    grey, both, grid = hl.Func("lo_grey"), hl.Func("both"), hl.Func("grid")
    grey[x, y] = (lo[x, y, 0] + 2.0 * lo[x, y, 1] + lo[x, y, 2]) / 4.0
    colours = [lo[x, y, 0], lo[x, y, 1], lo[x, y, 2], hl.f32(1.0), done[x, y, 0], done[x, y, 1], done[x, y, 2]]
    both[x, y, q] = hl.mux(q, colours)
    cells = Cells(s, width, height)
    place = (cells.column, cells.row)
    level = hl.clamp(hl.i32(grey[place] * float(bins) + 0.5), 0, bins)
    grid[x, y, z, q, p] = hl.f32(0.0)
    grid[x, y, level, q, p] += hl.select(cells.counts, both[(*place, p)] * both[(*place, q)], hl.f32(0.0))
    m, known = hl.Func("m0"), (q == p) | ((q == p + 4) & (p < 3))
    m[x, y, z, q, p] = blurred_grid(grid, q, p)[x, y, z, q, p] + hl.select(known, inputs("small"), hl.f32(0.0))
    for step in range(4):
        m = eliminate(m, step)
    return m


def pipeline(inputs, size):
    bins, step = size["bins"], size["s"] * size["f"]
    maps, hi = fit(inputs, size), inputs("hi")
    depth, cell, row, at, out = (hl.Func(name) for name in ("depth", "cell", "row", "at", "out"))
    depth[x, y] = hl.clamp((hi[x, y, 0] + 2.0 * hi[x, y, 1] + hi[x, y, 2]) / 4.0, 0.0, 1.0) * float(bins)
    cell[x, y] = hl.clamp(hl.i32(depth[x, y]), 0, bins - 1)
    row[x, y, z, c, p] = between(lambda i: maps[x, i, z, c + 4, p], y, step)

    def entry(column):
        return between(lambda j: row[j, y, hl.clamp(cell[x, y], 0, bins - 1) + n, c, column], x, step)

    at[x, y, c, n] = added([entry(3), *(entry(k) * hi[x, y, k] for k in range(3))])
    out[x, y, c] = at[x, y, c, 0] + (depth[x, y] - hl.f32(cell[x, y])) * (at[x, y, c, 1] - at[x, y, c, 0])
    return out
