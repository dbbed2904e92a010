"""A shallow depth of field from two pictures: stereo, a pyramid of costs, and a blur that gathers samples."""

import halide as hl

from .common import added, c, edges, halved, window, x, y

d, n = hl.Var("d"), hl.Var("n")
LEVELS = 4


def halve(image, level):
    rows, out = hl.Func(f"rows{level}"), hl.Func(f"p{level}")
    rows[x, y, d] = (image[x, 2 * y - 1, d] + 2.0 * image[x, 2 * y, d] + image[x, 2 * y + 1, d]) / 4.0
    out[x, y, d] = (rows[2 * x - 1, y, d] + 2.0 * rows[2 * x, y, d] + rows[2 * x + 1, y, d]) / 4.0
    return out


def mix(fine, coarse, level):
    rows, out = hl.Func(f"up_rows{level}"), hl.Func(f"q{level}")
    rows[x, y, d] = (coarse[x, y // 2, d] + coarse[x, (y + 1) // 2, d]) / 2.0
    out[x, y, d] = (fine[x, y, d] + (rows[x // 2, y, d] + rows[(x + 1) // 2, y, d]) / 2.0) / 2.0
    return out


def smoothed(first, width, height):
    """Up and down the pyramid."""
    shapes, levels = [(width, height)], [first]
    for level in range(1, LEVELS + 1):
        levels.append(halve(edges(levels[-1], *shapes[-1]), level))
        shapes.append(tuple(map(halved, shapes[-1])))
    result = levels[-1]
    for level in reversed(range(LEVELS)):
        result = mix(levels[level], edges(result, *shapes[level + 1]), level)
    return result


def stereo(inputs, size):
    """The disparity of every pixel."""
    width, height, count = size["W"], size["H"], size["D"]
    left, right = inputs("left"), edges(inputs("right"), width, height)
    names = ("diff", "cost", "mean", "trust", "p0", "filtered", "disparity")
    diff, cost, mean, trust, first, filtered, disparity = (hl.Func(name) for name in names)
    diff[x, y, d] = added(hl.abs(left[x, y, k] - right[x - d, y, k]) for k in range(3))
    cost[x, y, d] = hl.min(diff[x, y, d], 1.0) * hl.min(diff[x, y, d], 1.0)
    r = window(count)
    mean[x, y] = hl.f32(0.0)
    mean[x, y] += cost[x, y, r.x] / float(count)
    away = cost[x, y, r.x] - mean[x, y]
    trust[x, y] = hl.f32(0.0)
    trust[x, y] += away * away / float(count)
    weight = trust[x, y] + 0.0001
    first[x, y, d] = hl.select(d < count, cost[x, y, hl.min(d, count - 1)] * weight, weight)
    smooth = smoothed(first, width, height)
    filtered[x, y, d] = smooth[x, y, d] / smooth[x, y, count]
    disparity[x, y] = hl.argmin(filtered[x, y, r.x])[0]
    return disparity


def pipeline(inputs, size):
    width, height, reach = size["W"], size["H"], size["R"]
    left, lens, focus, aperture = (inputs(name) for name in ("left", "lens", "focus", "aperture"))
    disparity, around = stereo(inputs, size), window(2 * reach + 1)
    names = ("radius", "wide", "reach", "sy", "sx", "weight", "own", "total", "sum", "out")
    radius, wide, far, sy, sx, weight, own, total, colours, out = (hl.Func(name) for name in names)
    radius[x, y] = hl.min(aperture * hl.abs(hl.f32(disparity[x, y]) - focus), float(reach))
    near = edges(radius, width, height)
    wide[x, y] = hl.maximum(near[x + around.x - reach, y])
    far[x, y] = hl.maximum(wide[x, y + around.x - reach])

    offset = lambda axis: hl.i32(hl.floor(lens[axis, n] * far[x, y] + 0.5))  # noqa: E731
    sy[x, y, n] = hl.clamp(y + offset(0), 0, height - 1)
    sx[x, y, n] = hl.clamp(x + offset(1), 0, width - 1)
    place = (hl.clamp(sx[x, y, n], 0, width - 1), hl.clamp(sy[x, y, n], 0, height - 1))
    hides = disparity[place] < disparity[x, y]
    blur = hl.select(hides, hl.min(radius[place], radius[x, y]), radius[place])
    reaches = blur + 0.5 >= hl.hypot(lens[0, n], lens[1, n]) * far[x, y]
    weight[x, y, n] = hl.select(reaches, 1.0 / hl.max(blur * blur, 1.0), 0.0)
    own[x, y] = 1.0 / hl.max(radius[x, y] * radius[x, y], 1.0)
    r = window(size["N"])
    sample = left[hl.clamp(sx[x, y, r.x], 0, width - 1), hl.clamp(sy[x, y, r.x], 0, height - 1), c]
    total[x, y] = hl.f32(0.0)
    total[x, y] += weight[x, y, r.x]
    colours[x, y, c] = hl.f32(0.0)
    colours[x, y, c] += weight[x, y, r.x] * sample
    out[x, y, c] = (colours[x, y, c] + own[x, y] * left[x, y, c]) / (total[x, y] + own[x, y])
    return out
