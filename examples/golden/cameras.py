"""The camera applications of pipelines.py."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from pipelines import F32, F64, I32, binomial, cells, doubling, down, halving, scalar, trilinear, up


def camera_pipe(rng):
    H, W, strength = 8, 10, 20
    raw = rng.integers(0, 1024, (H, W)).astype(np.uint16)
    correct = np.array([[400, -100, -44, -300], [-70, 380, -54, 100], [10, -130, 376, 900]], I32)
    curve = np.floor(255 * (np.arange(1024) / 1023) ** 0.5).astype(np.uint8)

    def inside(v, n):
        return v % 2 if v < 0 else n - 2 + v % 2 if v >= n else v

    def hot(y, x):
        near = [raw[inside(y + d, H), x] for d in (-2, 2)] + [raw[y, inside(x + d, W)] for d in (-2, 2)]
        return int(min(raw[y, x], max(near)))

    cool = np.array([[hot(y, x) for x in range(W)] for y in range(H)])

    def at(y, x):
        return int(cool[inside(y, H), inside(x, W)])

    def green(y, x):
        """At any place, also beyond the edges: there it is that of the nearest place of the same colour."""
        y, x = inside(y, H), inside(x, W)
        if (y + x) % 2:
            return at(y, x)
        bends = [2 * at(y, x) - at(y - dy, x - dx) - at(y + dy, x + dx) for dy, dx in ((0, 2), (2, 0))]
        pairs = [(at(y - dy, x - dx), at(y + dy, x + dx)) for dy, dx in ((0, 1), (1, 0))]
        slopes = [abs(a - b) + abs(bend) for (a, b), bend in zip(pairs, bends, strict=True)]
        values = [(a + b) // 2 + bend // 4 for (a, b), bend in zip(pairs, bends, strict=True)]
        if slopes[0] == slopes[1]:
            return sum(values) // 2
        return values[int(slopes[1] < slopes[0])]

    def colour(y, x, parity):
        """Red is where both coordinates are even, blue where both are odd."""
        if (y % 2, x % 2) == (parity, parity):
            return at(y, x)
        dy = (0,) if y % 2 == parity else (-1, 1)
        dx = (0,) if x % 2 == parity else (-1, 1)
        away = [at(y + i, x + j) - green(y + i, x + j) for i in dy for j in dx]
        return green(y, x) + sum(away) // len(away)

    picture = [[(colour(y, x, 0), green(y, x), colour(y, x, 1), 1) for x in range(W)] for y in range(H)]
    corrected = (np.einsum("yxk,ck->cyx", np.array(picture), correct) + 128) // 256
    curved = curve[corrected.clip(0, 1023)].astype(int)
    windows = sliding_window_view(np.pad(curved, [(0, 0), (1, 1), (1, 1)], mode="edge"), (3, 3), axis=(1, 2))
    smooth = (np.einsum("cyxij,i,j->cyx", windows, [1, 2, 1], [1, 2, 1]) + 8) // 16
    out = (curved + strength * (curved - smooth) // 32).clip(0, 255).astype(np.uint8)
    inputs = {"raw": raw, "matrix": correct, "curve": curve, "strength": np.array(strength, I32)}
    return {"H": H, "W": W}, inputs, {"out": out}


def bgu(rng):
    h, w, f, s, bins, small = 6, 7, 2, 3, 4, 0.125
    lo, hi = rng.random((3, h, w), F32), rng.random((3, h * f, w * f), F32)
    done = (np.sqrt(lo) * 0.75 + 0.25 * lo[::-1]).astype(F32)
    both = np.concatenate([lo, np.ones((1, h, w)), done]).astype(F64)
    grid = np.zeros((4, 7, (h - 1) // s + 6, (w - 1) // s + 6, bins + 5))
    place = cells(np.tensordot([0.25, 0.5, 0.25], both[:3], 1), (h, w), s, bins)
    for p, q in np.ndindex(4, 7):
        np.add.at(grid[p, q], place, both[p] * both[q])
    grid = binomial(grid)
    maps = np.zeros((4, 3, *grid.shape[2:]))
    for cell in np.ndindex(grid.shape[2:]):
        system = grid[(..., *cell)] + small * np.eye(4, 7) + small * np.eye(4, 7, 4)
        maps[(..., *cell)] = np.linalg.solve(system[:, :4], system[:, 4:])
    wide = hi.astype(F64)
    out = np.zeros(hi.shape)
    for y, x in np.ndindex(hi.shape[1:]):
        depth = bins * (wide[0, y, x] + 2 * wide[1, y, x] + wide[2, y, x]) / 4
        out[:, y, x] = np.append(wide[:, y, x], 1) @ trilinear(maps, y / (s * f), x / (s * f), depth)
    sizes = {"h": h, "w": w, "H": h * f, "W": w * f, "f": f, "s": s, "bins": bins}
    return sizes, {"small": scalar(small), "lo": lo, "done": done, "hi": hi}, {"out": out}


def lens_blur(rng):
    H, W, D, N, R, focus, aperture = 10, 14, 4, 9, 3, 2.0, 1.25
    right = rng.random((3, H, W + D), F32)
    near = np.add.outer(np.arange(H), np.arange(W)) < 12
    left = np.where(near, right[..., :W], np.roll(right, 3, axis=2)[..., :W])
    right, lens = right[..., :W].copy(), rng.uniform(-0.7, 0.7, (N, 2)).astype(F32)
    l, r, a = left.astype(F64), right.astype(F64), lens.astype(F64)
    shifted = np.stack([r[:, :, np.maximum(np.arange(W) - d, 0)] for d in range(D)])
    cost = np.minimum(np.abs(l - shifted).sum(axis=1), 1) ** 2
    trust = cost.var(axis=0) + 0.0001
    levels = [np.concatenate([cost * trust, trust[None]])]
    for _ in range(4):
        levels.append(down(halving, levels[-1]))
    mixed = levels.pop()
    for level in reversed(levels):
        mixed = (level + up(doubling, mixed, level)) / 2
    disparity = np.argmin(mixed[:D] / mixed[D], axis=0)
    radius = np.minimum(aperture * np.abs(disparity - focus), R)
    reach = sliding_window_view(np.pad(radius, R, mode="edge"), (2 * R + 1, 2 * R + 1)).max(axis=(2, 3))
    out = np.zeros(left.shape)
    for y, x in np.ndindex(H, W):
        total = 1 / max(radius[y, x] ** 2, 1)
        out[:, y, x] = total * l[:, y, x]
        for place in a:
            sy, sx = np.floor(place * reach[y, x] + 0.5).astype(int) + (y, x)
            sy, sx = min(max(sy, 0), H - 1), min(max(sx, 0), W - 1)
            blur = radius[sy, sx]
            if disparity[sy, sx] < disparity[y, x]:
                blur = min(blur, radius[y, x])
            if blur + 0.5 >= np.linalg.norm(place) * reach[y, x]:
                total += 1 / max(blur**2, 1)
                out[:, y, x] += l[:, sy, sx] / max(blur**2, 1)
        out[:, y, x] /= total
    inputs = {"focus": scalar(focus), "aperture": scalar(aperture), "left": left, "right": right, "lens": lens}
    return {"H": H, "W": W, "D": D, "N": N, "R": R}, inputs, {"out": out}


def learned_demosaic(rng):
    H, W, F, K = 6, 8, 3, 2
    raw = rng.random((H, W), F32)
    feature, gate, expert = (rng.standard_normal(shape).astype(F32) for shape in ((F, 5, 5), (K, F), (4, 3, K, 5, 5)))
    windows = sliding_window_view(np.pad(raw.astype(F64), 2, mode="reflect"), (5, 5))
    scores = np.einsum("kf,fyx->kyx", gate, np.abs(np.einsum("fij,yxij->fyx", feature, windows)))
    share = np.exp(scores) / np.exp(scores).sum(axis=0)
    place = 2 * (np.arange(H) % 2)[:, None] + np.arange(W) % 2
    out = np.einsum("kyx,yxckij,yxij->cyx", share, expert[place].astype(F64), windows)
    inputs = {"raw": raw, "feature": feature, "gate": gate, "expert": expert}
    return {"H": H, "W": W, "F": F, "K": K}, inputs, {"out": out}
