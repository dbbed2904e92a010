"""From the numbers of a sensor behind a Bayer filter to a picture, in integers of 32 bits like the definition."""

import halide as hl

from .common import added, c, edges, x, y


def named(name, expression):
    out = hl.Func(name)
    out[x, y] = expression
    return out


def green(name, at, left, right, above, below):
    """Green at a place of another colour, along the line where it changes less."""
    bend_x = named(f"bend_x_{name}", 2 * at[x, y] - at[x - 1, y] - at[x + 1, y])
    bend_y = named(f"bend_y_{name}", 2 * at[x, y] - at[x, y - 1] - at[x, y + 1])
    slope_x = hl.i32(hl.abs(left - right)) + hl.i32(hl.abs(bend_x[x, y]))
    slope_y = hl.i32(hl.abs(above - below)) + hl.i32(hl.abs(bend_y[x, y]))
    slope_x, slope_y = named(f"slope_x_{name}", slope_x), named(f"slope_y_{name}", slope_y)
    along_x = named(f"along_x_{name}", (left + right) // 2 + bend_x[x, y] // 4)
    along_y = named(f"along_y_{name}", (above + below) // 2 + bend_y[x, y] // 4)
    flat = (along_x[x, y] + along_y[x, y]) // 2
    chosen = hl.select(slope_x[x, y] > slope_y[x, y], along_y[x, y], flat)
    return named(name, hl.select(slope_x[x, y] < slope_y[x, y], along_x[x, y], chosen))


def mosaic(even_even, even_odd, odd_even, odd_odd):
    """A plane of the whole picture; `even_odd` is of even rows and odd columns."""
    at = lambda plane: plane[x // 2, y // 2]  # noqa: E731
    even = hl.select(x % 2 == 0, at(even_even), at(even_odd))
    return hl.select(y % 2 == 0, even, hl.select(x % 2 == 0, at(odd_even), at(odd_odd)))


def planes(inputs, size):
    """Red, green and blue at every pixel."""
    width, height = size["W"], size["H"]
    half = (width // 2, height // 2)
    raw = inputs("raw")
    at = lambda column, row: hl.i32(raw[column, row])  # noqa: E731
    # A pixel at an edge is its own neighbour, which keeps its place in the filter.
    rows = at(x, hl.max(hl.likely(y - 2), y % 2)), at(x, hl.min(hl.likely(y + 2), height - 2 + y % 2))
    columns = at(hl.max(hl.likely(x - 2), x % 2), y), at(hl.min(hl.likely(x + 2), width - 2 + x % 2), y)
    cool = named("cool", hl.min(at(x, y), hl.max(hl.max(*rows), hl.max(*columns))))

    def plane(name, column, row):
        return edges(named(name, cool[2 * x + column, 2 * y + row]), *half)

    r, gr, gb, b = plane("r", 0, 0), plane("gr", 1, 0), plane("gb", 0, 1), plane("b", 1, 1)
    g_r = green("g_r", r, gr[x - 1, y], gr[x, y], gb[x, y - 1], gb[x, y])
    g_b = green("g_b", b, gb[x, y], gb[x + 1, y], gr[x, y], gr[x, y + 1])
    dr = edges(named("dr", r[x, y] - g_r[x, y]), *half)
    db = edges(named("db", b[x, y] - g_b[x, y]), *half)
    r_gr = named("r_gr", gr[x, y] + (dr[x, y] + dr[x + 1, y]) // 2)
    r_gb = named("r_gb", gb[x, y] + (dr[x, y] + dr[x, y + 1]) // 2)
    r_b = named("r_b", g_b[x, y] + (dr[x, y] + dr[x + 1, y] + dr[x, y + 1] + dr[x + 1, y + 1]) // 4)
    b_gr = named("b_gr", gr[x, y] + (db[x, y] + db[x, y - 1]) // 2)
    b_gb = named("b_gb", gb[x, y] + (db[x, y] + db[x - 1, y]) // 2)
    b_r = named("b_r", g_r[x, y] + (db[x, y] + db[x - 1, y] + db[x, y - 1] + db[x - 1, y - 1]) // 4)
    red = named("red", mosaic(r, r_gr, r_gb, r_b))
    return red, named("grn", mosaic(g_r, gr, gb, g_b)), named("blue", mosaic(b_r, b_gr, b_gb, b))


def pipeline(inputs, size):
    matrix, curve, strength = inputs("matrix"), inputs("curve"), inputs("strength")
    correct, curved, rows, smooth, out = (hl.Func(name) for name in ("correct", "curved", "rows", "smooth", "out"))
    mixed = added(matrix[i, c] * plane[x, y] for i, plane in enumerate(planes(inputs, size)))
    correct[x, y, c] = (mixed + matrix[3, c] + 128) // 256
    curved[x, y, c] = hl.i32(curve[hl.clamp(correct[x, y, c], 0, 1023)])
    around = edges(curved, size["W"], size["H"])
    rows[x, y, c] = around[x, y - 1, c] + 2 * around[x, y, c] + around[x, y + 1, c]
    smooth[x, y, c] = (rows[x - 1, y, c] + 2 * rows[x, y, c] + rows[x + 1, y, c] + 8) // 16
    sharp = curved[x, y, c] + strength * (curved[x, y, c] - smooth[x, y, c]) // 32
    out[x, y, c] = hl.u8(hl.clamp(sharp, 0, 255))
    return out
