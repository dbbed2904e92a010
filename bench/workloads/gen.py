#!/usr/bin/env python3
"""Writes the workload suites (*.json) next to this script; edit this file, not them.

Every entry says what is computed, for the peers (`operator`, `inputs`, `output`, strides and so on), and
how it is written in the language (`file`, `def`, `size`). The inputs stand in the order of the definition's
tensors and have the same memory; a shape may differ where a definition gives groups a dimension of their own.
"""

import itertools
import json
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES, KERNELS = "examples/kernels/", "bench/kernels/"
PIPELINES = "examples/pipelines/"
SPATIAL = {1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}
TAPS = {1: ("R",), 2: ("KH", "KW"), 3: ("KD", "KH", "KW")}
SUITES = {}


def sizes(**values):
    """`M=1,N=2`, in the syntax of the command."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def add(suite, name, family, operator, inputs, output, flops, source, expr, ours, **extra):
    """One workload. `ours` is (file, def, size); `bytes` is the compulsory traffic unless given."""
    elements = sum(math.prod(shape) for shape in inputs.values()) + math.prod(output)
    entry = {
        "name": name,
        "family": family,
        "operator": operator,
        "dtype": "float32",
        "inputs": {key: list(shape) for key, shape in inputs.items()},
        "output": list(output),
        "flops": int(flops),
        "bytes": int(extra.pop("traffic", 4 * elements)),
        "expr": expr,
        "full_size": extra.pop("full_size", False),
        "source": source,
        "file": ours[0],
        "def": ours[1],
        "size": ours[2],
    }
    entry.update(extra)
    SUITES.setdefault(suite, []).append(entry)


def conv_ours(dims, inputs, stride, padding, dilation, groups):
    """How a convolution is written: the definition that says no more than is needed."""
    batch, channels, *image = inputs["X"]
    filters, group_channels, *kernel = inputs["W"]
    image = dict(zip(SPATIAL[dims], image, strict=True))
    taps = dict(zip(TAPS[dims], kernel, strict=True))
    if "bias" in inputs:
        group = {"N": batch, "G": groups, "F": filters // groups, "C": group_channels}
        return KERNELS + "conv.tc", "gconv_bias", sizes(**group, **image, **taps)
    if groups > 1 and group_channels == 1:
        depth = {"N": batch, "C": channels, "M": filters // groups}
        return KERNELS + "conv.tc", "depthwise_conv2d", sizes(**depth, **image, **taps, s=stride, p=padding)
    if groups > 1:
        group = {"N": batch, "C": channels, "G": groups, "KG": filters // groups, "CG": group_channels}
        pad = {"p": padding} if padding else {}
        name = "group_conv2d_padded" if padding else "group_conv2d"
        return KERNELS + "conv.tc", name, sizes(**group, **image, **taps, s=stride, **pad)
    plain = {"N": batch, "C": channels, "K": filters, **image, **taps, "s": stride}
    if dilation > 1:
        return KERNELS + "conv.tc", "dilated_conv2d", sizes(**plain, p=padding, d=dilation)
    if dims == 3:
        return EXAMPLES + "conv3d.tc", "conv3d", sizes(**plain, p=padding)
    if not padding:
        return KERNELS + "conv.tc", f"conv{dims}d", sizes(**plain)
    if dims == 2:
        plain = {{"N": "B", "C": "IP", "K": "OP"}.get(key, key): value for key, value in plain.items()}
    return EXAMPLES + f"conv{dims}d.tc", f"conv{dims}d_two_stage", sizes(**plain, p=padding)


def conv(suite, name, family, source, image, filters, kernel, *, stride=1, padding=0, dilation=1, groups=1, **extra):
    """A convolution of an image [N, C, ...] with a kernel that is `kernel` wide in every dimension."""
    batch, channels, *space = image
    dims = len(space)
    reach = dilation * (kernel - 1) + 1
    result = [batch, filters] + [(size + 2 * padding - reach) // stride + 1 for size in space]
    inputs = {"X": image, "W": [filters, channels // groups] + [kernel] * dims}
    flops = 2 * math.prod(result) * (channels // groups) * kernel**dims
    expr = "O[n,o,y..]=sum_{c,r..} X[n,g*C/G+c,y*stride+r*dilation-padding..]*W[o,c,r..]"
    if extra.pop("bias", False):
        inputs["bias"] = [filters]
        flops += math.prod(result)
        expr += "+bias[o]"
    shape = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    ours = conv_ours(dims, inputs, **shape)
    add(suite, name, family, f"conv{dims}d", inputs, result, flops, source, expr, ours, **shape, **extra)


def conv_transpose(suite, name, source, image, filters, kernel, stride, padding):
    """A transposed convolution. Flops: every input element meets every weight; clipped edges are not deducted."""
    batch, channels, *space = image
    dims = len(space)
    result = [batch, filters] + [(size - 1) * stride - 2 * padding + kernel for size in space]
    flops = 2 * math.prod(image) * filters * kernel**dims
    operator = f"conv{dims}d_transpose"
    own = {"N": batch, "C": channels, "K": filters, **dict(zip(SPATIAL[dims], space, strict=True))}
    own |= dict.fromkeys(TAPS[dims], kernel) | {"s": stride, "p": padding}
    add(
        suite, name, operator, operator,
        {"X": image, "W": [channels, filters] + [kernel] * dims}, result, flops, source,
        "O[n,o,y*stride+r-padding..]+=X[n,c,y..]*W[c,o,r..]",
        (EXAMPLES + "conv_transpose.tc", operator, sizes(**own)),
        stride=stride, padding=padding, dilation=1, groups=1, output_padding=0,
    )  # fmt: skip


def product(suite, name, source, m, k, n, *, ta=False, tb=False, batch=None, family=None):
    """A matrix product, batched if `batch` is given, with either factor transposed."""
    lead = [batch] if batch else []
    a, b = ([k, m] if ta else [m, k]), ([n, k] if tb else [k, n])
    own = {"M": m, "N": n, "K": k}
    if batch and tb:  # tbmm calls the sizes of X(b,n,m) and Y(b,k,m) so
        own = {"B": batch, "N": m, "K": n, "M": k}
    elif batch:
        own = {"B": batch, **own}
    definition = {
        (False, False, False): (EXAMPLES + "gemm.tc", "gemm"),
        (False, False, True): (EXAMPLES + "gemm.tc", "tmm"),
        (True, False, False): (EXAMPLES + "gemm.tc", "bmm"),
        (True, False, True): (EXAMPLES + "gemm.tc", "tbmm"),
        (True, True, False): (KERNELS + "contract.tc", "bmm_ta"),
    }[(bool(batch), ta, tb)]
    operator = "bmm" if batch else "gemm"
    expr = f"C[{'b,' if batch else ''}m,n]=sum_k {'A[k,m]' if ta else 'A[m,k]'}*{'B[n,k]' if tb else 'B[k,n]'}"
    add(
        suite, name, family or operator, operator, {"A": lead + a, "B": lead + b}, [*lead, m, n],
        2 * (batch or 1) * m * n * k, source, expr, (*definition, sizes(**own)), transpose_a=ta, transpose_b=tb,
    )  # fmt: skip


def yolo():
    """FlexTensor (ASPLOS 2020), table 4: the layers of YOLO-v1, batch 1."""
    channels = [3, 64, 192, 128, 256, 256, 512, 256, 512, 512, 1024, 512, 1024, 1024, 1024]
    filters = [64, 192, 128, 256, 256, 512, 256, 512, 512, 1024, 512, 1024, 1024, 1024, 1024]
    height = [448, 112, 56, 56, 56, 56, 28, 28, 28, 28, 14, 14, 14, 14, 7]
    kernel = [7, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 3, 3, 3]
    stride = [2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1]
    for i, (c, k, h, r, s) in enumerate(zip(channels, filters, height, kernel, stride, strict=True), 1):
        source = "FlexTensor ASPLOS'20 Table 4"
        conv("flextensor_yolo", f"yolo_c{i}", "conv2d", source, [1, c, h, h], k, r, stride=s, padding=r // 2)


def flextensor_algebra(suite, source):
    """Products and contractions of FlexTensor's operator suite."""
    for n in (128, 512, 1024, 4096):
        ours = (EXAMPLES + "matvec.tc", "mv_short", sizes(M=n, K=n))
        add(suite, f"gemv_{n}", "gemv", "gemv", {"A": [n, n], "x": [n]}, [n], 2 * n * n, source,
            "y[i]=sum_k A[i,k]*x[k]", ours)  # fmt: skip
    for n in (32, 64, 128, 256):
        product(suite, f"gemm_{n}", source, n, n, n)
    product(suite, "gemm_1024x32x1024", source, 1024, 32, 1024)
    product(suite, "gemm_32x1024x32", source, 32, 1024, 32)
    for n, p, q, m in ((32, 1024, 1024, 32), (128, 256, 512, 64), (512, 64, 128, 256)):
        ours = (KERNELS + "contract.tc", "bilinear", sizes(N=n, P=p, Q=q, M=m))
        inputs = {"A": [n, p], "B": [m, p, q], "C": [n, q]}
        # factored as T[i,j,l]=sum_k A*B, then sum_l T*C
        add(suite, f"bilinear_{n}_{p}_{q}_{m}", "bilinear", "bilinear", inputs, [n, m],
            2 * n * m * p * q + 2 * n * m * q, source, "O[i,j]=sum_{k,l} A[i,k]*B[j,k,l]*C[i,l]", ours)  # fmt: skip
    for n, p, q, m in ((128, 256, 512, 64), (512, 64, 128, 256)):
        ours = (EXAMPLES + "bilinear.tc", "mttkrp", sizes(N=n, P=p, Q=q, M=m))
        inputs = {"A": [n, p, q], "B": [p, m], "C": [q, m]}
        add(suite, f"mttkrp_{n}_{p}_{q}_{m}", "mttkrp", "mttkrp", inputs, [n, m],
            2 * n * m * p * q + 2 * n * m * p, source, "O[i,j]=sum_{k,l} A[i,k,l]*B[k,j]*C[l,j]", ours)  # fmt: skip


def flextensor_convolutions(suite, source):
    """Convolutions of FlexTensor's operator suite."""
    one = ((192, 3136, 128, 1, 0), (128, 3136, 256, 9, 1), (1024, 196, 512, 1, 0), (1024, 49, 1024, 9, 1))
    for i, (c, length, k, r, p) in enumerate(one, 1):
        conv(suite, f"conv1d_{i}", "conv1d", source, [1, c, length], k, r, padding=p)
        if i != 3:
            conv_transpose(suite, f"conv1d_transpose_{i}", source, [1, c, length], k, r, 1, p)
    two = ((1024, 28, 512, 2, 2, 0), (128, 196, 64, 2, 2, 0), (1024, 4, 512, 4, 2, 1), (768, 32, 128, 4, 2, 1),
           (128, 128, 3, 4, 2, 1))  # fmt: skip
    for i, (c, h, k, r, s, p) in enumerate(two, 1):
        conv_transpose(suite, f"conv2d_transpose_{i}", source, [1, c, h, h], k, r, s, p)
    three = ((64, (8, 28, 28), 64, 3, 1), (64, (8, 28, 28), 128, 3, 2), (128, (4, 14, 14), 256, 1, 2),
             (256, (2, 7, 7), 256, 3, 1))  # fmt: skip
    for i, (c, space, k, r, s) in enumerate(three, 1):
        conv(suite, f"conv3d_{i}", "conv3d", source, [1, c, *space], k, r, stride=s, padding=1)
    three = ((64, (8, 28, 28), 64, 3, 1), (128, (4, 14, 14), 64, 4, 2), (256, (2, 7, 7), 128, 4, 2))
    for i, (c, space, k, r, s) in enumerate(three, 1):
        other = "FlexTensor op class; shapes ours"
        conv_transpose(suite, f"conv3d_transpose_{i}", other, [1, c, *space], k, r, s, 1)
    groups = ((1024, 14, 512, 1, 0, 4), (1024, 14, 512, 1, 0, 32), (64, 112, 192, 3, 1, 16), (256, 56, 512, 3, 1, 16),
              (512, 28, 512, 1, 0, 16), (1024, 14, 1024, 3, 1, 16), (1024, 7, 1024, 3, 1, 16))  # fmt: skip
    for i, (c, h, k, r, p, g) in enumerate(groups, 1):
        conv(suite, f"group_conv2d_{i}", "group_conv2d", source, [1, c, h, h], k, r, padding=p, groups=g)
    depthwise = ((32, 112, 1, 1), (16, 112, 6, 2), (32, 28, 6, 2), (64, 14, 6, 1), (160, 7, 6, 1))
    for i, (c, h, m, s) in enumerate(depthwise, 1):
        conv(suite, f"depthwise_{i}", "depthwise_conv2d", source, [1, c, h, h], c * m, 3, stride=s, padding=1, groups=c)
    for i, (c, h, s) in enumerate(((64, 112, 2), (128, 56, 1), (256, 28, 1), (512, 14, 1), (1024, 7, 1)), 1):
        conv(suite, f"mobilenet_dw_{i}", "depthwise_conv2d", "MobileNet-v1 depthwise layers", [1, c, h, h], c, 3,
             stride=s, padding=1, groups=c)  # fmt: skip
    dilated = ((256, 56, 512, 1), (256, 28, 512, 1), (512, 14, 1024, 1), (1024, 14, 1024, 2), (1024, 7, 1024, 1))
    for i, (c, h, k, s) in enumerate(dilated, 1):
        image = [1, c, h, h]
        conv(suite, f"dilated_conv2d_{i}", "dilated_conv2d", source, image, k, 3, stride=s, padding=1, dilation=2)


def flextensor_new(suite, source):
    """FlexTensor's "new operators": block-circulant matrices and shifts."""
    for r, c, b in ((1024, 256, 8), (1024, 512, 16)):
        ours = (EXAMPLES + "circulant.tc", "bcm_project", sizes(M=r, N=c, b=b))
        expr = "P[i,j]=mean_k X[i*b+k,(j/b)*b+(j%b+k)%b]; O[i,j]=P[i/b,(j/b)*b+(j%b-i%b)%b]"
        add(suite, f"bcm_project_{r}x{c}_b{b}", "bcm", "bcm_project", {"X": [r, c]}, [r, c], r * c, source, expr, ours,
            block=b)  # fmt: skip
    for n, r, c, b in ((1, 1024, 1024, 8), (64, 1024, 512, 16)):
        ours = (EXAMPLES + "circulant.tc", "bcm_mm", sizes(N=n, C=c, P=r // b, Q=c // b, S=b))
        other = "FlexTensor 'new operator' BCM as a multiply (direct form flops); shapes ours"
        expr = "O[n,i*b+r]=sum_{j,s} w[i,j,(r-s) mod b]*X[n,j*b+s]"
        add(suite, f"bcm_mm_{n}x{r}x{c}_b{b}", "bcm", "bcm_mm", {"X": [n, c], "w": [r // b, c // b, b]}, [n, r],
            2 * n * r * c, other, expr, ours, block=b)  # fmt: skip
    for h, c, k in ((128, 64, 3), (64, 128, 5), (32, 256, 3), (16, 512, 3)):
        ours = (KERNELS + "conv.tc", "shift", sizes(N=1, H=h, W=h, C=c, k=k))
        expr = "O[n,y,x,c]=Xpad[n,y+idx[c]/k,x+idx[c]%k,c], zero padding (k-1)/2, NHWC"
        add(suite, f"shift_{h}x{h}x{c}_k{k}", "shift", "shift", {"X": [1, h, h, c], "idx": [c]}, [1, h, h, c], 0,
            source, expr, ours, kernel=k, index_range=k * k, indices=["idx"], traffic=8 * h * h * c)  # fmt: skip


def opevo():
    """OpEvo (AAAI 2021)."""
    suite, source = "opevo", "OpEvo AAAI'21"
    product(suite, "opevo_mm1", source, 512, 1024, 1024)
    product(suite, "opevo_mm2", source, 512, 1024, 4096)
    product(suite, "opevo_mm3", source, 512, 4096, 1024)
    product(suite, "opevo_bmm1", source, 128, 128, 64, batch=960)
    product(suite, "opevo_bmm2", source, 128, 128, 64, ta=True, batch=960)
    product(suite, "opevo_bmm3", source, 64, 128, 64, ta=True, batch=960)
    for batch, full in ((8, False), (512, True)):
        suffix, said = ("_full", source) if full else ("", source + ", batch 512 cut to 8")
        conv(suite, "opevo_c1" + suffix, "conv2d", said, [batch, 3, 227, 227], 64, 11, stride=4, full_size=full)
        conv(suite, "opevo_c2" + suffix, "conv2d", said, [batch, 64, 27, 27], 192, 5, padding=2, full_size=full)


def tensor_comprehensions():
    """Tensor Comprehensions (Vasilache et al. 2018), section 7."""
    suite, source = "tc", "Tensor Comprehensions (Vasilache et al. 2018)"
    for m, k, n in ((128, 32, 256), (128, 1024, 1024), (128, 4096, 16384)):
        product(suite, f"tmm_{m}_{k}_{n}", source, m, k, n, tb=True, family="tmm")
    product(suite, "tbmm_500_26_72_26", source, 26, 72, 26, tb=True, batch=500, family="tbmm")
    for f, w in ((16, 14), (32, 7), (4, 56), (8, 28)):
        conv(suite, f"gconv_{f}_{w}", "gconv", source, [32, 32 * f, w, w], 32 * f, 3, groups=32, bias=True)
    rows, width, words, batch = 10**6, 64, 50, 128
    for tables in (1, 2):
        inputs, traffic = {}, 0
        for i in range(tables):
            inputs |= {f"LUT{i}": [rows, width], f"I{i}": [batch, words]}
            traffic += batch * words * (width * 4 + 4) + batch * width * 4
        ours = (KERNELS + "network.tc", f"lut{tables}", sizes(E=rows, D=width, B=batch, L=words))
        add(suite, f"lut{tables}_1M", "embedding", "lut", inputs, [batch, tables * width],
            tables * batch * words * width, source + ", E cut from 1e7 to 1e6",
            "O[b,d]=sum_l LUT[I[b,l],d] (each table)", ours, traffic=traffic, index_range=rows,
            indices=[f"I{i}" for i in range(tables)])  # fmt: skip
    one = (EXAMPLES + "fcrelu.tc", "fc_bias_relu", sizes(B=128, I=2000, O=128))
    three = (KERNELS + "network.tc", "mlp3", sizes(B=128, I=128, O=64, P=32, Q=2))
    for name, widths, ours in (("mlp1", [2000, 128], one), ("mlp3", [128, 64, 32, 2], three)):
        inputs, flops = {"X": [128, widths[0]]}, 0
        for i, (a, b) in enumerate(itertools.pairwise(widths)):
            inputs |= {f"W{i}": [b, a], f"b{i}": [b]}
            flops += 2 * 128 * a * b + 2 * 128 * b
        add(suite, name, "mlp", "mlp", inputs, [128, widths[-1]], flops, source + ", sizes ours",
            "X=relu(X*W^T+b), layer by layer", ours, sizes=widths)  # fmt: skip


def imaging():
    """Pipelines around Halide. Flops: operations of the untransformed algorithm per output pixel."""
    suite, source = "imaging", "Halide apps / Adams et al. 2019"
    height, width = 2560, 1536

    def image(name, operator, definition, flops, expr, **extra):
        file, radius = definition.split(":")[0], extra.get("radius")
        size = {"H": height, "W": width} | ({"r": radius} if radius else {}) | extra.pop("size", {})
        ours = (EXAMPLES + file, definition.split(":")[1], sizes(**size))
        shape = [height, width]
        add(suite, name, "imaging", operator, {"X": shape}, shape, flops * height * width, source, expr, ours, **extra)

    image("blur3x3", "blur3x3", "blur.tc:blur3x3", 6,
          "bx=(x[-1]+x[0]+x[1])/3; by=(bx[-1]+bx[0]+bx[1])/3, edges clamped")  # fmt: skip
    image("blur5x5_gauss", "gauss5", "blur.tc:gauss5", 18, "separable [1 4 6 4 1]/16 in x then y, edges clamped")
    image("harris", "harris", "harris.tc:harris", 62,
          "Sobel gradients, 3x3 box of products, det-0.04*tr^2 on one channel, edges clamped")  # fmt: skip
    image("unsharp", "unsharp", "unsharp.tc:unsharp", 24,
          "separable 5-tap gaussian blur, sharpen = 2*in - blur, ratio = sharpen/in, out = ratio*in, edges "
          "clamped")  # fmt: skip
    image("stencil_chain32", "stencil_chain", "stencil_chain.tc:stencil_chain", 32 * 9 * 2,
          "32 dependent 3x3 weighted stencils (weight 1+|i|+|j| normalised), edges clamped on the input only",
          stages=32)  # fmt: skip
    image("max_filter", "max_filter", "max_filter.tc:max_filter", 50,
          "separable max filter, radius 12 (25 taps in x, then 25 in y), edges clamped", radius=12)  # fmt: skip
    image("histogram_equalize", "hist", "histogram.tc:equalize", 3,
          "256-bin histogram, cumulative sum, remap (float image in [0,1])", size={"bins": 256})  # fmt: skip
    n, c, k, h = 4, 32, 32, 112
    ours = (KERNELS + "conv.tc", "depthwise_separable", sizes(N=n, C=c, K=k, H=h, W=h))
    add(suite, "depthwise_separable", "imaging", "dwsep",
        {"X": [n, c, h, h], "Wd": [c, 3, 3], "Wp": [k, c], "bias": [k]}, [n, k, h, h],
        n * h * h * (c * 9 * 2 + k * c * 2 + 2 * k), source,
        "3x3 depthwise (zero pad 1) then 1x1 pointwise + bias + relu", ours)  # fmt: skip
    ours = (EXAMPLES + "conv2d.tc", "conv2d_bias_relu", sizes(B=4, IP=64, OP=64, H=82, W=102, KH=3, KW=3))
    add(suite, "conv_layer_relu", "imaging", "conv_relu", {"X": [4, 64, 82, 102], "W": [64, 64, 3, 3], "bias": [64]},
        [4, 64, 80, 100], 4 * 64 * 80 * 100 * (64 * 9 * 2 + 2), source,
        "3x3 convolution (valid) + bias + relu, the size of Halide's conv_layer app", ours)  # fmt: skip


PIXELS = ["float32", 0, 257, 1 / 256]
"""Brightnesses as a sensor of 8 bits has them: what is computed from them to find a cell of a grid is exact, so that
all find the same cell."""


def applications():
    """The applications of examples/pipelines, at the sizes that are named there. Flops: as `tensorwright explain`
    counts them, integer operations included."""

    def application(name, inputs, output, flops, terms, expr, size, data, types=()):
        size_of = lambda key: {"uint8": 1, "uint16": 2}.get(dict(types).get(key), 4)  # noqa: E731
        traffic = sum(size_of(key) * math.prod(shape) for key, shape in {**inputs, "out": output}.items())
        add("applications", name, "application", name, inputs, output, flops, "Anderson et al. 2021", expr,
            (f"{PIPELINES}{name}.tc", name, sizes(**size)), traffic=traffic, terms=terms, data=data)  # fmt: skip

    height, width = 1536, 2560
    whole, colour = {"H": height, "W": width}, [3, height, width]
    application("bgu", {"small": [], "lo": [3, 192, 320], "done": [3, 192, 320], "hi": colour}, colour, 712253868, 256,
                "an affine map of colours fitted in each cell of a bilateral grid, applied to a large picture",
                {"h": 192, "w": 320, **whole, "f": 8, "s": 16, "bins": 8},
                {"small": 0.25, "lo": PIXELS, "done": PIXELS, "hi": PIXELS})  # fmt: skip
    application("bilateral_grid", {"in": [height, width]}, [height, width], 221231440, 64,
                "sums in cells of place and brightness, three blurs, trilinear interpolation",
                {**whole, "s": 8, "bins": 10}, {"in": PIXELS})  # fmt: skip
    sensor = {"H": 1968, "W": 2592}
    application("camera_pipe", {"raw": [1968, 2592], "matrix": [3, 4], "curve": [1024], "strength": []},
                [3, 1968, 2592], 433589760, 1,
                "hot pixels, demosaicking, colour matrix, tone curve and sharpening, in integers", sensor,
                {"raw": ["uint16", 0, 1024], "matrix": ["int32", 0, 171], "curve": ["uint8", 0, 256], "strength": 32},
                {"raw": "uint16", "curve": "uint8", "out": "uint8"})  # fmt: skip
    application("disc_filter", {"in": colour}, colour, 780053288, 1,
                "the greatest value within a disc of radius 15, from maxima of columns of 1, 2, 4, 8 and 16",
                {"C": 3, **whole, "r": 15}, {"in": PIXELS})  # fmt: skip
    application("equalize_colour", {"in": colour}, colour, 66847744, 1,
                "histogram of brightness, running sums, a table, and colours moved by it, in 8 bits", whole,
                {"in": ["uint8", 0, 256]}, {"in": "uint8", "out": "uint8"})  # fmt: skip
    application("iir_blur", {"a": [], "in": colour}, colour, 188743680, 64,
                "recursive filters of first order down, up, right and left", {"C": 3, **whole},
                {"a": 0.125, "in": PIXELS})  # fmt: skip
    application("interpolate", {"in": [4, height, width]}, colour, 242480160, 64,
                "push and pull over eight levels", whole, {"in": PIXELS})  # fmt: skip
    taps = ["float32", -32, 33, 1 / 256]
    application("learned_demosaic", {"raw": [height, width], "feature": [4, 5, 5], "gate": [3, 4],
                                     "expert": [4, 3, 3, 5, 5]}, colour, 2827223040, 120,
                "three linear experts of 5 by 5, mixed by a softmax gate over four features",
                {**whole, "F": 4, "K": 3},
                {"raw": PIXELS, "feature": taps, "gate": taps, "expert": taps})  # fmt: skip
    small = [3, 192, 320]
    application("lens_blur", {"focus": [], "aperture": [], "left": small, "right": small, "lens": [64, 2]}, small,
                168445440, 64, "stereo over 32 disparities, a pyramid of costs, and a blur of 64 samples",
                {"H": 192, "W": 320, "D": 32, "N": 64, "R": 16},
                {"focus": 8.0, "aperture": 0.75, "left": PIXELS, "right": PIXELS,
                 "lens": ["float32", -181, 182, 1 / 256]})  # fmt: skip
    application("local_laplacian", {"alpha": [], "beta": [], "in": colour}, colour, 1141596240, 64,
                "eight remapped pictures as Laplacian pyramids of eight levels, coefficients between them",
                {**whole, "K": 8}, {"alpha": 1.0, "beta": 1.0, "in": PIXELS})  # fmt: skip
    application("nl_means", {"sigma": [], "in": [3, 614, 1024]}, [3, 614, 1024], 1141784576, 200,
                "means of 7 by 7 pixels, weighted by the differences of patches of 7 by 7",
                {"H": 614, "W": 1024, "S": 7, "P": 7}, {"sigma": 0.25, "in": PIXELS})  # fmt: skip
    application("unsharp_mask", {"sigma": [], "in": colour}, colour, 157286449, 16,
                "a Gaussian of seven taps, and colours times the factor by which grey changes", whole,
                {"sigma": 1.5, "in": PIXELS})  # fmt: skip


ROWS = {
    "softmax": (5, ("X",)),
    "log_softmax": (7, ("X",)),
    "layer_norm": (9, ("X", "gamma", "beta")),
    "rms_norm": (6, ("X", "gamma")),
    "bias_gelu_residual_norm": (16, ("X", "R", "bias", "gamma", "beta")),
}
"""Operations per element, and what is read."""


def rows():
    """Norms and softmax over rows: 2^21 elements in rows of 512 to 16,384, and rows that no vector divides."""
    for operator, (operations, names) in ROWS.items():
        for n, d in ((4096, 512), (1024, 2048), (1000, 2001), (512, 4096), (128, 16384)):
            inputs = {name: (n, d) if name in "XR" else (d,) for name in names}
            ours = (KERNELS + "rows.tc", operator, sizes(N=n, D=d))
            name = f"{operator}_{n}_{d}"
            add("rows", name, operator, operator, inputs, (n, d), operations * n * d, "ours", "along rows", ours)


def attention():
    """Attention of one head, plain and causal."""
    for causal, length, depth in itertools.product((False, True), (256, 1024, 4096), (64, 128)):
        inputs = dict.fromkeys("QKV", (1, length, depth))
        sizes_of = {"T": length} if causal else {"L": length, "S": length}
        definition = "causal_attention" if causal else "attention"
        ours = (KERNELS + "rows.tc", definition, sizes(H=1, **sizes_of, D=depth, E=depth))
        flops = 4 * length * length * depth
        name = f"{definition}_{length}_{depth}"
        expr = "softmax(Q K^T / sqrt(D)) V"
        add("attention", name, definition, definition, inputs, (1, length, depth), flops, "ours", expr, ours)


def attention_gradients():
    """The gradients of attention with respect to queries, keys and values, from these and the gradient of the result."""
    for definition, heads, length, depth in (
        ("attention", 8, 256, 64), ("attention", 8, 1024, 64), ("attention", 8, 1024, 128), ("attention", 1, 4096, 64),
        ("causal_attention", 8, 1024, 64), ("causal_attention", 1, 4096, 64),
    ):  # fmt: skip
        inputs = dict.fromkeys(("Q", "K", "V", "d_O"), (heads, length, depth))
        sizes_of = {"T": length} if definition == "causal_attention" else {"L": length, "S": length}
        operator = f"{definition}_grad"
        ours = (KERNELS + "gradients.tc", operator, sizes(H=heads, **sizes_of, D=depth, E=depth))
        add("attention_gradients", f"{operator}_{heads}_{length}_{depth}", operator, operator, inputs,
            (heads, length, depth), 10 * heads * length * length * depth, "ours", "gradients of softmax(Q K^T / sqrt(D)) V",
            ours, terms=length)  # fmt: skip


def recurrences():
    """Recurrences along rows and columns, and one long line: sums and maxima so far."""
    for operator, (n, t, along) in itertools.product(("cumsum", "cummax"), (
        (512, 4096, 1), (16, 131072, 1), (1, 1 << 21, 1), (2048, 1024, 0),
    )):  # fmt: skip
        shape, name = (n, t), f"{operator}_{n}_{t}" if along else f"{operator}_columns_{n}_{t}"
        definition = operator if along else f"{operator}_columns"
        ours = (KERNELS + "scans.tc", definition, sizes(N=n, T=t) if along else sizes(T=n, W=t))
        expr = "y[t] = y[t-1] + x[t]" if operator == "cumsum" else "y[t] = max(y[t-1], x[t])"
        add("scans", name, operator, operator, {"X": shape}, shape, n * t, "ours", expr, ours,
            along=along, terms=shape[along])  # fmt: skip


def scatters():
    """Scatters: counts, sums at positions from data, the gradient of a table of embeddings."""
    indices = {"indices": ["I"]}
    for count, bins in ((1 << 21, 256), (1 << 21, 65536)):
        ours = (KERNELS + "scans.tc", "histogram", sizes(N=count, B=bins))
        add("scans", f"histogram_{count}_{bins}", "histogram", "histogram", {"I": (count,)}, (bins,), count, "ours",
            "c[I[i]] += 1", ours, terms=1, index_range=bins, **indices)  # fmt: skip
    for count, size in ((1 << 20, 1024), (1 << 20, 1 << 20)):
        ours = (KERNELS + "scans.tc", "scatter_add", sizes(N=count, M=size))
        inputs = {"I": (count,), "X": (count,), "Y": (size,)}
        add("scans", f"scatter_add_{count}_{size}", "scatter_add", "scatter_add", inputs, (size,), count, "ours",
            "Z = Y; Z[I[i]] += X[i]", ours, terms=count // size, index_range=size, **indices)  # fmt: skip
    for tokens, depth, words in ((4096, 512, 32000), (16384, 128, 1000)):
        ours = (KERNELS + "scans.tc", "embedding_gradient", sizes(N=tokens, D=depth, V=words))
        inputs = {"I": (tokens,), "dY": (tokens, depth)}
        add("scans", f"embedding_gradient_{tokens}_{depth}_{words}", "embedding_gradient", "embedding_gradient",
            inputs, (words, depth), tokens * depth, "ours", "G[I[n],d] += dY[n,d]", ours,
            terms=max(1, tokens // words), index_range=words, **indices)  # fmt: skip


def main():
    yolo()
    for part in (flextensor_algebra, flextensor_convolutions, flextensor_new):
        part("flextensor_ops", "FlexTensor repository configurations")
    for n in (512, 1024, 2048):
        product("gbfs", f"gemm_{n}", "G-BFS/N-A2C (Zhang et al.)", n, n, n)
    opevo()
    tensor_comprehensions()
    imaging()
    applications()
    rows()
    attention()
    attention_gradients()
    recurrences()
    scatters()
    for suite, entries in SUITES.items():
        lines = ",\n".join(json.dumps(entry) for entry in entries)
        (HERE / f"{suite}.json").write_text(f"[\n{lines}\n]\n")
        print(suite, len(entries))


if __name__ == "__main__":
    main()
