"""Halide, just in time, with one of its autoschedulers: `--scheduler adams2019`, `mullapudi2016`, or `anderson2021`
with `--device N` for the OpenCL device of that number; or with schedules by hand, `--scheduler hand`.

Convolutions are built with channels outermost and innermost. Adams2019 is given several degrees of
parallelism: with 1 its search degenerates, for one thread as well.
"""

import argparse
import functools
import os
import pathlib
import sys
import time
import warnings
from importlib.metadata import version

import halide as hl
import halide_hand
import halide_imaging
import numpy as np
from halide_apps import APPLICATIONS
from protocol import Unsupported, Variant, serve

warnings.filterwarnings("ignore", category=RuntimeWarning)  # float literals that become float32
VERSION = "halide " + version("halide")
OPTIONS = argparse.Namespace(scheduler="adams2019", threads=1, device=None)
PATIENCE = 60.0
"""After this many seconds, no further degree of parallelism is tried."""
TYPES = {"float32": hl.Float(32), "int32": hl.Int(32), "uint16": hl.UInt(16), "uint8": hl.UInt(8)}
x, y, z, c, n = (hl.Var(name) for name in "xyzcn")


def setup():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduler", choices=("adams2019", "mullapudi2016", "anderson2021", "hand"), default="adams2019")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", type=int, help="the OpenCL device that is computed on, as anderson2021 needs one")
    parser.parse_args(namespace=OPTIONS)
    if OPTIONS.device is not None:
        use_device(OPTIONS.device)
    if OPTIONS.scheduler == "hand":
        hl.Func = recorded
        return
    hl.load_plugin(str(pathlib.Path(hl.__file__).parent / "lib64" / f"libautoschedule_{OPTIONS.scheduler}.so"))


FUNCTIONS = {}
"""The functions of the current pipeline by name."""


def recorded(name, kind=hl.Func):
    FUNCTIONS[name] = function = kind(name)
    return function


def use_device(number):
    """Selects the OpenCL device with a number; Halide identifies devices by name."""
    import pyopencl

    device = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()][number]
    kind = "cpu" if device.type & pyopencl.device_type.CPU else "gpu"
    os.environ.update(HL_OCL_PLATFORM_NAME=device.platform.name, HL_OCL_DEVICE_TYPE=kind)


def target():
    host = hl.get_host_target()
    return host if OPTIONS.device is None else host.with_feature(hl.TargetFeature.OpenCL)


class Pipeline:
    """A pipeline under construction. Shapes are NumPy's, outermost first; Halide's are innermost first."""

    def __init__(self, operator=None):
        self.inputs = []
        self.operator = operator
        FUNCTIONS.clear()

    def input(self, array):
        if array.ndim == 0:
            number = hl.Param(TYPES[array.dtype.name], array.item())
            number.set_estimate(array.item())
            return number
        array = np.ascontiguousarray(array)
        image = hl.ImageParam(TYPES[array.dtype.name], array.ndim)
        for dimension, extent in enumerate(reversed(array.shape)):
            image.dim(dimension).set_estimate(0, extent)
        self.inputs.append((image, array))
        return image

    def finish(self, result, shape, parallelism, to_workload=lambda array: array):
        """Schedules and compiles."""
        for variable, extent in zip(result.args(), reversed(shape), strict=True):
            result.set_estimate(variable, 0, extent)
        pipeline = hl.Pipeline(result)
        start = time.time()
        if OPTIONS.scheduler == "hand":
            halide_hand.SCHEDULES[self.operator](FUNCTIONS, result)
        else:
            pipeline.apply_autoscheduler(target(), scheduler(parallelism))
        scheduled = time.time()
        for image, array in self.inputs:
            image.set(hl.Buffer(array))
        pipeline.compile_jit(target())
        out = np.zeros(shape, np.uint8 if result.types() == [hl.UInt(8)] else np.float32)
        buffer = hl.Buffer(out)
        extra = {"schedule_s": round(scheduled - start, 2), "compile_s": round(time.time() - scheduled, 2)}

        # Buffers do not keep their arrays alive.
        def output(_kept=self.inputs):
            pipeline.realize(buffer)
            buffer.copy_to_host()
            return to_workload(out)

        def call():
            pipeline.realize(buffer)
            if OPTIONS.device is not None:
                buffer.device_sync()  # the result stays there

        return Variant(call, output, extra)


def scheduler(parallelism):
    if OPTIONS.scheduler in ("adams2019", "anderson2021"):
        return hl.AutoschedulerParams(OPTIONS.scheduler.capitalize(), {"parallelism": str(parallelism)})
    parameters = {"parallelism": str(parallelism), "last_level_cache_size": str(2 << 20), "balance": "40"}
    return hl.AutoschedulerParams("Mullapudi2016", parameters)


def domain(*extents):
    return hl.RDom([hl.Range(0, extent) for extent in extents])


def zero_outside(image):
    return hl.BoundaryConditions.constant_exterior(image, hl.f32(0.0))


def products(w, inputs, p):
    """Matrix-vector, matrix-matrix and batched products."""
    total, out = hl.Func("total"), hl.Func("out")
    if w["operator"] == "gemv":
        a, v, k = p.input(inputs("A")), p.input(inputs("x")), domain(w["inputs"]["x"][0])
        total[x] = 0.0
        total[x] += a[k.x, x] * v[k.x]
        out[x] = total[x]
        return out
    a, b = p.input(inputs("A")), p.input(inputs("B"))
    ta, tb = w["transpose_a"], w["transpose_b"]
    k = domain(w["inputs"]["A"][-2 if ta else -1])
    batch = (n,) if w["operator"] == "bmm" else ()
    at = (x, y, *batch)
    left = a[(y, k.x, *batch)] if ta else a[(k.x, y, *batch)]
    right = b[(k.x, x, *batch)] if tb else b[(x, k.x, *batch)]
    total[at] = 0.0
    total[at] += left * right
    out[at] = total[at]
    return out


def bilinear(w, inputs, p):
    a, b, d = p.input(inputs("A")), p.input(inputs("B")), p.input(inputs("C"))
    k, m = domain(w["inputs"]["A"][1]), domain(w["inputs"]["C"][1])
    inner, total, out = hl.Func("inner"), hl.Func("total"), hl.Func("out")
    inner[z, x, y] = 0.0
    inner[z, x, y] += a[k.x, y] * b[z, k.x, x]
    total[x, y] = 0.0
    total[x, y] += inner[m.x, x, y] * d[m.x, y]
    out[x, y] = total[x, y]
    return out


def mlp(w, inputs, p):
    layer = p.input(inputs("X"))
    for i, width in enumerate(w["sizes"][:-1]):
        weight, bias, k = p.input(inputs(f"W{i}")), p.input(inputs(f"b{i}")), domain(width)
        total, relu = hl.Func(f"total{i}"), hl.Func(f"relu{i}")
        total[x, y] = bias[x]
        total[x, y] += layer[k.x, y] * weight[k.x, x]
        relu[x, y] = hl.max(total[x, y], 0.0)
        layer = relu
    return layer


def convolution_1d_3d(w, inputs, p):
    if w["groups"] != 1:
        raise Unsupported
    image, weight = p.input(inputs("X")), p.input(inputs("W"))
    _, channels, *taps = w["inputs"]["W"]
    stride, pad = w["stride"], w["padding"]
    padded = zero_outside(image) if pad else image
    total, out = hl.Func("total"), hl.Func("out")
    r = domain(*reversed(taps), channels)
    space = (x,) if len(taps) == 1 else (x, y, z)
    offsets = (r.x,) if len(taps) == 1 else (r.x, r.y, r.z)
    channel = r.y if len(taps) == 1 else r.w
    read = tuple(v * stride + o * w["dilation"] - pad for v, o in zip(space, offsets, strict=True))
    at = (*space, c, n)
    total[at] = 0.0
    total[at] += weight[(*offsets, channel, c)] * padded[(*read, channel, n)]
    out[at] = total[at]
    return out


def convolution_2d(w, inputs, p, channels_last):
    """Returns the function; with `channels_last` images are NHWC and weights HWIO."""
    image, weight = inputs("X"), inputs("W")
    groups, stride = w.get("groups") or 1, w.get("stride") or 1
    pad, dilation = w.get("padding") or 0, w.get("dilation") or 1
    filters, group_channels, height, width = weight.shape
    if channels_last:
        image, weight = image.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0)
    image, weight = p.input(image), p.input(weight)
    bias = p.input(inputs("bias")) if "bias" in w["inputs"] else None
    padded = zero_outside(image) if pad else image
    r = domain(width, height) if group_channels == 1 else domain(width, height, group_channels)
    inner = 0 if group_channels == 1 else r.z
    channel = inner if groups == 1 else (c / (filters // groups)) * group_channels + inner
    column, row = x * stride + r.x * dilation - pad, y * stride + r.y * dilation - pad
    total, out = hl.Func("total"), hl.Func("out")
    at = (c, x, y, n) if channels_last else (x, y, c, n)
    total[at] = bias[c] if bias else 0.0
    if channels_last:
        total[at] += weight[c, inner, r.x, r.y] * padded[channel, column, row, n]
    else:
        total[at] += weight[r.x, r.y, inner, c] * padded[column, row, channel, n]
    out[at] = hl.max(total[at], 0.0) if w["operator"] == "conv_relu" else total[at]
    return out


def separable(w, inputs, p, channels_last):
    image, depth, point = inputs("X"), inputs("Wd"), inputs("Wp")
    if channels_last:
        image, depth, point = image.transpose(0, 2, 3, 1), depth.transpose(1, 2, 0), point.T
    padded, depth, point = zero_outside(p.input(image)), p.input(depth), p.input(point)
    bias = p.input(inputs("bias"))
    r, k = domain(3, 3), domain(w["inputs"]["X"][1])
    d, total, out = hl.Func("d"), hl.Func("total"), hl.Func("out")
    at = (c, x, y, n) if channels_last else (x, y, c, n)
    d[at] = 0.0
    total[at] = bias[c]
    if channels_last:
        d[at] += depth[c, r.x, r.y] * padded[c, x + r.x - 1, y + r.y - 1, n]
        total[at] += point[c, k.x] * d[k.x, x, y, n]
    else:
        d[at] += depth[r.x, r.y, c] * padded[x + r.x - 1, y + r.y - 1, c, n]
        total[at] += point[k.x, c] * d[x, y, k.x, n]
    out[at] = hl.max(total[at], 0.0)
    return out


def softmax(inputs, p):
    image = p.input(inputs("X"))
    k = domain(inputs("X").shape[1])
    top, powers, total, out = (hl.Func(name) for name in ("top", "powers", "total", "out"))
    top[y] = hl.f32(float(np.finfo(np.float32).min))
    top[y] = hl.max(top[y], image[k.x, y])
    powers[x, y] = hl.exp(image[x, y] - top[y])
    total[y] = hl.f32(0.0)
    total[y] += powers[k.x, y]
    out[x, y] = powers[x, y] / total[y]
    return out


def variants(w, inputs, parallelism):
    operator, shape = w["operator"], w["output"]
    if OPTIONS.scheduler == "hand" and operator not in halide_hand.SCHEDULES:
        raise Unsupported
    if operator in ("conv2d", "conv_relu", "dwsep"):
        make = separable if operator == "dwsep" else convolution_2d
        batch, filters, height, width = shape
        p = Pipeline()
        yield "NCHW", p.finish(make(w, inputs, p, False), shape, parallelism)
        p = Pipeline()
        result = make(w, inputs, p, True)
        back = lambda array: array.transpose(0, 3, 1, 2)  # noqa: E731
        yield "NHWC", p.finish(result, [batch, height, width, filters], parallelism, back)
        return
    makers = {"gemv": products, "gemm": products, "bmm": products, "bilinear": bilinear, "mlp": mlp,
              "conv1d": convolution_1d_3d, "conv3d": convolution_1d_3d}  # fmt: skip
    p = Pipeline(operator)
    if operator in makers:
        result = makers[operator](w, inputs, p)
    elif operator in APPLICATIONS:
        size = {name: int(value) for name, value in (pair.split("=") for pair in w["size"].split(","))}
        result = APPLICATIONS[operator].pipeline(functools.cache(lambda name: p.input(inputs(name))), size)
    elif w["family"] == "imaging":
        result = halide_imaging.pipeline(w, p.input(inputs("X")))
    elif operator == "softmax":
        result = softmax(inputs, p)
    else:
        raise Unsupported
    yield "", p.finish(result, shape, parallelism)


def build(workload, inputs):
    degrees = (max(2, OPTIONS.threads),)
    if OPTIONS.scheduler == "adams2019" and workload["operator"] != "stencil_chain":
        degrees = (2, 8)
    if OPTIONS.scheduler == "anderson2021":
        degrees = (2, 16, 80)
    built, start = {}, time.time()
    for degree in degrees:
        # A timeout of the next search must not lose earlier results.
        if built and time.time() - start > PATIENCE:
            break
        for name, variant in variants(workload, inputs, degree):
            built[f"{name} p{degree}".strip()] = variant
    return built


def overhead():
    p, out = Pipeline(), hl.Func("out")
    image = p.input(np.ones(1, np.float32))
    out[x] = image[x] * 2.0
    result = np.zeros(1, np.float32)
    pipeline, buffer = hl.Pipeline(out), hl.Buffer(result)
    image.set(hl.Buffer(p.inputs[0][1]))
    pipeline.compile_jit(target())
    return Variant(lambda _kept=(p, result): pipeline.realize(buffer), lambda: result)


if __name__ == "__main__":
    setup()
    serve(sys.modules[__name__])
