"""The expected results of the applications in examples/pipelines, for make.py.

Computed in double precision by other routes than theirs: linear stages as matrices, windows and discs as a whole,
pictures behind a Bayer filter pixel by pixel, systems of equations by `np.linalg.solve`.
"""

import zlib

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

F32, F64, I32 = np.float32, np.float64, np.int32


def generator(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def scalar(value):
    return np.array(value, F32)


def matrix(outputs, inputs, taps):
    """The matrix of a filter with clamped edges: `taps` gives the weights of each output."""
    found = np.zeros((outputs, inputs))
    for i in range(outputs):
        for j, weight in taps(i):
            found[i, min(max(j, 0), inputs - 1)] += weight
    return found


def halving(n):
    return matrix((n + 1) // 2, n, lambda i: [(2 * i - 1, 0.25), (2 * i, 0.5), (2 * i + 1, 0.25)])


def doubling(n, m):
    return matrix(n, m, lambda i: [(i // 2, 0.5), ((i + 1) // 2, 0.5)])


def burt(n):
    return matrix((n + 1) // 2, n, lambda i: [(2 * i + k - 2, w / 16) for k, w in enumerate((1, 4, 6, 4, 1))])


def burt_back(n, m):
    even, odd = [(-1, 1 / 8), (0, 6 / 8), (1, 1 / 8)], [(0, 1 / 2), (1, 1 / 2)]
    return matrix(n, m, lambda i: [(i // 2 + k, w) for k, w in (odd if i % 2 else even)])


def down(make, x):
    return make(x.shape[-2]) @ x @ make(x.shape[-1]).T


def up(make, x, like):
    return make(like.shape[-2], x.shape[-2]) @ x @ make(like.shape[-1], x.shape[-1]).T


def grey(x):
    return np.tensordot([0.299, 0.587, 0.114], x, 1)


def binomial(grid):
    """Blurs the last three dimensions, and makes each smaller by four."""
    for axis in (-1, -2, -3):
        grid = sliding_window_view(grid, 5, axis=axis) @ (np.array([1, 4, 6, 4, 1]) / 16)
    return grid


def trilinear(grid, y, x, z):
    """The grid's value at a place between eight cells."""
    found = 0
    corner = [min(int(at), n - 2) for at, n in zip((y, x, z), grid.shape[-3:], strict=True)]
    for step in np.ndindex(2, 2, 2):
        share = [abs(1 - s - (at - c)) for s, at, c in zip(step, (y, x, z), corner, strict=True)]
        found = found + np.prod(share) * grid[(..., *(c + s for c, s in zip(corner, step, strict=True)))]
    return found


def cells(at, shape, s, bins):
    """For every pixel, the cell of a grid with a border of two that is nearest."""
    i, j = np.mgrid[: shape[0], : shape[1]]
    return (i + s // 2) // s + 2, (j + s // 2) // s + 2, np.clip(np.floor(at * bins + 0.5).astype(int), 0, bins) + 2


def bilateral_grid(rng):
    H, W, s, bins = 11, 13, 4, 5
    x = rng.random((H, W), F32)
    wide = x.astype(F64)
    grid = np.zeros((2, (H - 1) // s + 6, (W - 1) // s + 6, bins + 5))
    for c, value in enumerate((wide, 1)):
        np.add.at(grid[c], cells(wide, (H, W), s, bins), value)
    grid = binomial(grid)
    out = np.zeros((H, W))
    for i, j in np.ndindex(H, W):
        value, count = trilinear(grid, i / s, j / s, wide[i, j] * bins)
        out[i, j] = value / count
    return {"H": H, "W": W, "s": s, "bins": bins}, {"in": x}, {"out": out}


def iir_blur(rng):
    a, x = 0.25, rng.standard_normal((2, 9, 7)).astype(F32)

    def filtered(n):
        t, s = np.mgrid[:n, :n]
        forth = np.where(s <= t, a * (1 - a) ** np.abs(t - s), 0)
        forth[:, 0] += (1 - a) ** (np.arange(n) + 1)
        return forth[::-1, ::-1] @ forth

    return {"C": 2, "H": 9, "W": 7}, {"a": scalar(a), "in": x}, {"out": filtered(9) @ x.astype(F64) @ filtered(7).T}


def unsharp_mask(rng):
    sigma, x = 1.5, rng.uniform(0.25, 1, (3, 7, 9)).astype(F32)
    taps = np.exp(-np.square(np.arange(-3, 4)) / (2 * sigma**2))
    taps /= taps.sum()
    blur = [matrix(n, n, lambda i: [(i + k - 3, w) for k, w in enumerate(taps)]) for n in (7, 9)]
    brightness = grey(x.astype(F64))
    ratio = 2 - blur[0] @ brightness @ blur[1].T / brightness
    return {"H": 7, "W": 9}, {"sigma": scalar(sigma), "in": x}, {"out": ratio * x}


def equalize_colour(rng):
    x = (40 * rng.standard_normal((3, 9, 10)) + 90).clip(0, 255).astype(np.uint8)
    brightness = (np.tensordot([77, 150, 29], x.astype(int), 1) + 128) // 256
    rank = np.cumsum(np.bincount(brightness.ravel(), minlength=256))
    table = (255 * rank + 45) // 90
    return {"H": 9, "W": 10}, {"in": x}, {"out": (table[brightness] + x - brightness).clip(0, 255).astype(np.uint8)}


def nl_means(rng):
    sigma, x, S, P = 0.5, rng.random((3, 7, 8), F32), 3, 5
    wide = x.astype(F64)
    around = sliding_window_view(np.pad(wide, [(0, 0), (1, 1), (1, 1)], mode="edge"), (S, S), axis=(1, 2))
    d = np.square(wide[..., None, None] - around).sum(axis=0)
    patches = sliding_window_view(np.pad(d, [(2, 2), (2, 2), (0, 0), (0, 0)], mode="edge"), (P, P), axis=(0, 1))
    weight = np.exp(-patches.mean(axis=(-1, -2)) / (3 * sigma**2))
    out = (around * weight).sum(axis=(-1, -2)) / weight.sum(axis=(-1, -2))
    return {"H": 7, "W": 8, "S": S, "P": P}, {"sigma": scalar(sigma), "in": x}, {"out": out}


def disc_filter(rng):
    r, x = 4, rng.random((2, 9, 8), F32)
    i, j = np.mgrid[-r : r + 1, -r : r + 1]
    disc = i * i + j * j <= (r + 0.25) ** 2
    windows = sliding_window_view(np.pad(x, [(0, 0), (r, r), (r, r)], mode="edge"), disc.shape, axis=(1, 2))
    return {"C": 2, "H": 9, "W": 8, "r": r}, {"in": x}, {"out": windows[..., disc].max(axis=-1)}


def interpolate(rng):
    x = rng.random((4, 13, 18), F32)
    x[3] = np.where(rng.random((13, 18)) < 0.3, x[3], 0)
    wide = x.astype(F64)
    levels = [np.concatenate([wide[:3] * wide[3], wide[3:]])]
    for _ in range(8):
        total = 4 * down(halving, levels[-1])
        levels.append(total / np.maximum(total[3], 1))
    over = levels.pop()
    for level in reversed(levels):
        over = level + (1 - level[3]) * up(doubling, over, level)
    return {"H": 13, "W": 18}, {"in": x}, {"out": over[:3] / np.maximum(over[3], 0.0001)}


def local_laplacian(rng):
    alpha, beta, K, x = 0.75, 0.5, 5, rng.random((3, 13, 18), F32)
    brightness = grey(x.astype(F64))
    at = np.arange(K)[:, None, None] / (K - 1)
    away = brightness - at
    g = [at + beta * away + alpha * away * np.exp(-np.square(away * (K - 1)) / 2)]
    i = [brightness]
    for _ in range(7):
        g.append(down(burt, g[-1]))
        i.append(down(burt, i[-1]))
    detail = [fine - up(burt_back, coarse, fine) for fine, coarse in zip(g, g[1:])] + g[-1:]
    out = None
    for lap, level in reversed(list(zip(detail, i, strict=True))):
        chosen = np.zeros_like(level)
        for p in np.ndindex(level.shape):
            chosen[p] = np.interp(level[p] * (K - 1), np.arange(K), lap[(slice(None), *p)])
        out = chosen if out is None else chosen + up(burt_back, out, chosen)
    inputs = {"alpha": scalar(alpha), "beta": scalar(beta), "in": x}
    return {"H": 13, "W": 18, "K": K}, inputs, {"out": x * (out + 0.01) / (brightness + 0.01)}


def cases():
    """The name of each application, the sizes of its case, its inputs and its outputs."""
    import cameras

    for make in (bilateral_grid, iir_blur, unsharp_mask, equalize_colour, nl_means, disc_filter, interpolate,
                 local_laplacian, cameras.camera_pipe, cameras.bgu, cameras.lens_blur, cameras.learned_demosaic):
        yield make.__name__, *make(generator(make.__name__))
