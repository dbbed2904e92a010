"""A bilateral grid: sums and counts in cells, three blurs, and the grid read at each pixel's place and brightness."""

import halide as hl

from .common import Cells, between, blurred_grid, c, edges, x, y, z


def pipeline(inputs, size):
    width, height, s, bins = size["W"], size["H"], size["s"], size["bins"]
    image = inputs("in")
    pixel, depth = edges(image, width, height), hl.Func("depth")
    depth[x, y] = hl.clamp(pixel[x, y], 0.0, 1.0) * float(bins)

    grid, cells = hl.Func("grid"), Cells(s, width, height)
    level = hl.clamp(hl.i32(depth[cells.column, cells.row] + 0.5), 0, bins)
    value = hl.mux(c, [pixel[cells.column, cells.row], hl.f32(1.0)])
    grid[x, y, z, c] = hl.f32(0.0)
    grid[x, y, level, c] += hl.select(cells.counts, value, hl.f32(0.0))
    smooth = blurred_grid(grid, c)

    row, cell, mixed, out = (hl.Func(name) for name in ("row", "cell", "mixed", "out"))
    row[x, y, z, c] = between(lambda i: smooth[x, i, z, c], y, s)
    cell[x, y] = hl.clamp(hl.i32(depth[x, y]), 0, bins - 1)
    below, above = (between(lambda j, n=n: row[j, y, hl.clamp(cell[x, y], 0, bins - 1) + n, c], x, s) for n in (0, 1))
    mixed[x, y, c] = below + (depth[x, y] - hl.f32(cell[x, y])) * (above - below)
    out[x, y] = mixed[x, y, 0] / mixed[x, y, 1]
    return out
