"""Non-local means: the mean of pixels around, weighted by how much their surroundings look alike."""

import halide as hl

from .common import added, c, edges, window, x, y

i, j = hl.Var("i"), hl.Var("j")


def pipeline(inputs, size):
    width, height, search, patch = size["W"], size["H"], size["S"], size["P"]
    sigma, image = inputs("sigma"), edges(inputs("in"), width, height)
    names = ("d", "dy", "dist", "weight", "sum", "total", "out")
    d, dy, dist, weight, colours, total, out = (hl.Func(name) for name in names)
    apart = [image[x, y, k] - image[x + j - search // 2, y + i - search // 2, k] for k in range(3)]
    d[x, y, j, i] = added(a * a for a in apart)
    p, r, near = window(patch), window(search, search), edges(d, width, height)
    dy[x, y, j, i] = hl.f32(0.0)
    dy[x, y, j, i] += near[x, y + p.x - patch // 2, j, i]
    dist[x, y, j, i] = hl.f32(0.0)
    dist[x, y, j, i] += dy[x + p.x - patch // 2, y, j, i]
    weight[x, y, j, i] = hl.exp(-dist[x, y, j, i] / (float(3 * patch * patch) * sigma * sigma))
    colours[x, y, c] = hl.f32(0.0)
    colours[x, y, c] += weight[x, y, r.x, r.y] * image[x + r.x - search // 2, y + r.y - search // 2, c]
    total[x, y] = hl.f32(0.0)
    total[x, y] += weight[x, y, r.x, r.y]
    out[x, y, c] = colours[x, y, c] / total[x, y]
    return out
