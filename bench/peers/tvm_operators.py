"""The workloads as TVM tensor expressions. Convolutions are channels-last (NHWC, HWIO), which TVM prefers on CPUs."""

import numpy as np
from protocol import Unsupported
from tvm import te


class Operator:
    """Placeholders with their arrays, the result, and the conversion back to the workload's layout."""

    def __init__(self, inputs):
        self.inputs, self.placeholders, self.arrays = inputs, [], []
        self.result, self.back = None, lambda array: array

    def take(self, name, axes=None):
        """The placeholder of an input, with its axes permuted."""
        array = self.inputs(name)
        array = np.ascontiguousarray(array if axes is None else array.transpose(axes))
        self.arrays.append(array)
        self.placeholders.append(te.placeholder(array.shape, str(array.dtype), name=name))
        return self.placeholders[-1]


def over(extent, name):
    return te.reduce_axis((0, extent), name=name)


def compute(shape, function, name):
    return te.compute(shape, function, name=name)


def products(op, w):
    shapes = w["inputs"]
    if w["operator"] == "gemv":
        a, v, k = op.take("A"), op.take("x"), over(shapes["x"][0], "k")
        return compute(w["output"], lambda i: te.sum(a[i, k] * v[k], k), "y")
    ta, tb = w["transpose_a"], w["transpose_b"]
    a, b, k = op.take("A"), op.take("B"), over(shapes["A"][-2 if ta else -1], "k")

    def product(*index):
        *batch, i, j = index
        left = a[(*batch, k, i)] if ta else a[(*batch, i, k)]
        return te.sum(left * (b[(*batch, j, k)] if tb else b[(*batch, k, j)]), k)

    return compute(w["output"], product, "C")


def contractions(op, w):
    a, b, c = op.take("A"), op.take("B"), op.take("C")
    rows, columns = w["output"]
    k, m = over(w["inputs"]["A"][1], "k"), over(w["inputs"]["C"][1 if w["operator"] == "bilinear" else 0], "m")
    if w["operator"] == "bilinear":
        t = compute((rows, columns, m.dom.extent), lambda i, j, q: te.sum(a[i, k] * b[j, k, q], k), "T")
        return compute((rows, columns), lambda i, j: te.sum(t[i, j, m] * c[i, m], m), "O")
    t = compute((rows, k.dom.extent, columns), lambda i, q, j: te.sum(a[i, q, m] * c[m, j], m), "T")
    return compute((rows, columns), lambda i, j: te.sum(t[i, k, j] * b[k, j], k), "O")


def last(dims):
    """From channels first to channels last, and back."""
    return (0, *range(2, 2 + dims), 1), (0, dims + 1, *range(1, 1 + dims))


def padded(x, batch, space, channels, pad):
    if not pad:
        return x
    dims = len(space)

    def value(n, *at):
        inside = [te.all(at[i] >= pad, at[i] < space[i] + pad) for i in range(dims)]
        return te.if_then_else(te.all(*inside), x[(n, *[at[i] - pad for i in range(dims)], at[dims])], 0.0)

    return compute([batch, *[extent + 2 * pad for extent in space], channels], value, "P")


def convolution(op, w):
    batch, channels, *space = w["inputs"]["X"]
    filters, group_channels, *taps = w["inputs"]["W"]
    dims, groups = len(space), w.get("groups") or 1
    stride, dilation = w.get("stride") or 1, w.get("dilation") or 1
    to, op.back = last(dims)[0], lambda array: array.transpose(last(dims)[1])
    x, weight = op.take("X", to), op.take("W", (*range(2, 2 + dims), 1, 0))
    image = padded(x, batch, space, channels, w.get("padding") or 0)
    r, rc = [over(tap, f"r{i}") for i, tap in enumerate(taps)], over(group_channels, "rc")

    def value(n, *at):
        *place, k = at
        own = k if group_channels == 1 and filters == groups else k // (filters // groups) * group_channels + rc
        channel = rc if groups == 1 else own
        read = [place[i] * stride + r[i] * dilation for i in range(dims)]
        return te.sum(image[(n, *read, channel)] * weight[(*r, rc, k)], [*r, rc])

    shape = [batch, *w["output"][2:], filters]
    out = compute(shape, value, "O")
    if "bias" not in w["inputs"]:
        return out
    bias, relu = op.take("bias"), w["operator"] == "conv_relu"

    def biased(*at):
        return te.max(out(*at) + bias[at[-1]], 0.0) if relu else out(*at) + bias[at[-1]]

    return compute(shape, biased, "OB")


def transposed(op, w):
    batch, channels, *space = w["inputs"]["X"]
    _, filters, *taps = w["inputs"]["W"]
    dims, stride, pad = len(space), w["stride"], taps[0] - 1 - w["padding"]
    to, op.back = last(dims)[0], lambda array: array.transpose(last(dims)[1])
    x, weight = op.take("X", to), op.take("W", (*range(2, 2 + dims), 0, 1))

    def spread(n, *at):
        fits = [te.all(at[i] >= pad, at[i] < pad + (space[i] - 1) * stride + 1, (at[i] - pad) % stride == 0)
                for i in range(dims)]  # fmt: skip
        return te.if_then_else(te.all(*fits), x[(n, *[(at[i] - pad) // stride for i in range(dims)], at[dims])], 0.0)

    result = w["output"][2:]
    d = compute([batch, *[extent + taps[0] - 1 for extent in result], channels], spread, "D")
    r, rc = [over(tap, f"r{i}") for i, tap in enumerate(taps)], over(channels, "rc")

    def value(n, *at):
        read = d[(n, *[at[i] + r[i] for i in range(dims)], rc)]
        return te.sum(read * weight[(*[taps[i] - 1 - r[i] for i in range(dims)], rc, at[dims])], [*r, rc])

    return compute([batch, *result, filters], value, "O")


def circulants(op, w):
    b, x = w["block"], op.take("X")
    if w["operator"] == "bcm_project":
        rows, columns = w["output"]
        k = over(b, "k")
        read = lambda i, j: x[i * b + k, (j // b) * b + (j % b + k) % b]  # noqa: E731
        mean = compute((rows // b, columns), lambda i, j: te.sum(read(i, j) * (1.0 / b), k), "P")
        return compute((rows, columns), lambda i, j: mean[i // b, (j // b) * b + (j % b + b - i % b) % b], "O")
    weight, k = op.take("w"), over(w["inputs"]["X"][1], "k")
    at = lambda o: weight[o // b, k // b, (o % b + b - k % b) % b]  # noqa: E731
    return compute(w["output"], lambda i, o: te.sum(at(o) * x[i, k], k), "O")


def shift(op, w):
    _, height, width, _ = w["inputs"]["X"]
    kernel = w["kernel"]
    half, x, idx = (kernel - 1) // 2, op.take("X"), op.take("idx")

    def value(n, y, z, c):
        row, column = y + idx[c] // kernel - half, z + idx[c] % kernel - half
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        return te.if_then_else(inside, x[n, row, column, c], 0.0)

    return compute(w["output"], value, "O")


def mlp(op, w):
    layer = op.take("X")
    for i, width in enumerate(w["sizes"][:-1]):
        weight, bias, k = op.take(f"W{i}"), op.take(f"b{i}"), over(width, f"k{i}")
        shape = (layer.shape[0], w["sizes"][i + 1])
        total = compute(shape, lambda b, j, x=layer, v=weight, k=k: te.sum(x[b, k] * v[j, k], k), f"mm{i}")
        layer = compute(shape, lambda b, j, t=total, v=bias: te.max(t[b, j] + v[j], 0.0), f"relu{i}")
    return layer


def separable(op, w):
    batch, channels, height, width = w["inputs"]["X"]
    filters = w["inputs"]["Wp"][0]
    op.back = lambda array: array.transpose(last(2)[1])
    x, depth = op.take("X", last(2)[0]), op.take("Wd", (1, 2, 0))
    point, bias = op.take("Wp", (1, 0)), op.take("bias")
    image = padded(x, batch, (height, width), channels, 1)
    r, s, k = over(3, "r"), over(3, "s"), over(channels, "k")
    d = compute((batch, height, width, channels),
                lambda n, y, z, c: te.sum(image[n, y + r, z + s, c] * depth[r, s, c], [r, s]), "D")  # fmt: skip
    shape = (batch, height, width, filters)
    m = compute(shape, lambda n, y, z, o: te.sum(d[n, y, z, k] * point[k, o], k), "M")
    return compute(shape, lambda n, y, z, o: te.max(m[n, y, z, o] + bias[o], 0.0), "O")


def define(workload, inputs):
    """The operator of a workload."""
    operator, op = workload["operator"], Operator(inputs)
    makers = {
        "gemv": products, "gemm": products, "bmm": products, "bilinear": contractions, "mttkrp": contractions,
        "bcm_project": circulants, "bcm_mm": circulants, "shift": shift, "mlp": mlp, "dwsep": separable,
        "conv1d": convolution, "conv2d": convolution, "conv3d": convolution, "conv_relu": convolution,
        "conv1d_transpose": transposed, "conv2d_transpose": transposed, "conv3d_transpose": transposed,
    }  # fmt: skip
    if operator not in makers:
        raise Unsupported
    op.result = makers[operator](op, workload)
    return op
