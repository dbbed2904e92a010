"""PyTorch on the CPU (oneDNN and MKL inside).

`--mode eager` has the default and the channels-last layout, `--mode compile` the same two through Inductor
with max-autotune and frozen weights. Where an operator can be written in several natural ways all are built.
"""

import argparse
import sys

import torch
import torch.nn.functional as F
import torch_imaging
import torch_scans
from protocol import Unsupported, Variant, circulant, serve, shift_positions

VERSION = "torch " + torch.__version__
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
LAYOUT_OPERATORS = ("conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "conv_relu", "dwsep")
ROWS = ("softmax", "log_softmax", "layer_norm", "rms_norm", "bias_gelu_residual_norm")
OPTIONS = argparse.Namespace(mode="eager", threads=1)


def setup():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--threads", type=int, default=1)
    parser.parse_args(namespace=OPTIONS)
    torch.set_num_threads(OPTIONS.threads)
    torch.set_grad_enabled(False)
    if OPTIONS.mode == "compile":
        import torch._inductor.config as config

        config.freezing = True
        config.max_autotune = True
        config.max_autotune_gemm_backends = "ATEN,CPP"
        config.cpp.threads = OPTIONS.threads
        config.compile_threads = 1


def products(workload, tensor):
    if workload["operator"] == "gemv":
        return {"mv": lambda d, p: torch.mv(*d)}, [tensor("A"), tensor("x")], []
    ta, tb = workload["transpose_a"], workload["transpose_b"]

    def matmul(d, _):
        return torch.matmul(d[0].mT if ta else d[0], d[1].mT if tb else d[1])

    return {"matmul": matmul}, [tensor("A"), tensor("B")], []


def contractions(workload, tensor):
    data = [tensor("A"), tensor("B"), tensor("C")]
    if workload["operator"] == "mttkrp":
        return {
            "einsum": lambda d, p: torch.einsum("ikl,kj,lj->ij", *d),
            "matmul+sum": lambda d, p: (torch.matmul(d[0], d[2]) * d[1]).sum(1),
        }, data, []  # fmt: skip
    return {
        "bilinear": lambda d, p: F.bilinear(d[0], d[2], d[1]),
        "einsum": lambda d, p: torch.einsum("ik,jkl,il->ij", *d),
        "matmul+sum": lambda d, p: (torch.matmul(d[0], d[1]) * d[2]).sum(-1).t(),
        "matmul+einsum": lambda d, p: torch.einsum("ik,jki->ij", d[0], torch.matmul(d[1], d[2].t())),
    }, data, []  # fmt: skip


def convolution(workload, tensor):
    operator = workload["operator"]
    dims, stride, padding = int(operator[4]), workload["stride"], workload["padding"]
    dilation, groups = workload["dilation"], workload["groups"]
    params = [tensor("W")] + ([tensor("bias")] if "bias" in workload["inputs"] else [])
    if operator.endswith("transpose"):
        function = getattr(F, f"conv_transpose{dims}d")

        def call(d, p):
            return function(d[0], p[0], None, stride, padding, workload["output_padding"], groups, dilation)
    else:
        function = getattr(F, f"conv{dims}d")

        def call(d, p):
            return function(d[0], p[0], p[1] if len(p) > 1 else None, stride, padding, dilation, groups)

    return {operator: call}, [tensor("X")], params


def bcm_project(workload, tensor):
    rows, columns = workload["inputs"]["X"]
    b = workload["block"]
    diagonal, spread = (torch.from_numpy(index) for index in circulant(b))
    k = torch.arange(b)

    def gather(d, _):
        blocks = d[0].view(rows // b, b, columns // b, b).permute(0, 2, 1, 3)
        mean = blocks[:, :, k[:, None], diagonal.T].mean(2)
        return mean[:, :, spread].permute(0, 2, 1, 3).reshape(rows, columns)

    return {"gather": gather}, [tensor("X")], []


def bcm_mm(workload, tensor):
    batch, columns = workload["inputs"]["X"]
    b, rows = workload["block"], workload["output"][1]
    index = torch.from_numpy(circulant(b)[1]).T.contiguous()
    weight = tensor("w")

    def unrolled(w):
        return w[:, :, index].permute(0, 2, 1, 3).reshape(rows, columns)

    def fft(d, p):
        x, w = torch.fft.rfft(d[0].view(batch, columns // b, b)), torch.fft.rfft(p[0])
        return torch.fft.irfft(torch.einsum("njf,ijf->nif", x, w), n=b).reshape(batch, rows)

    return {
        "gather+linear": lambda d, p: F.linear(d[0], unrolled(p[0])),
        "fft": fft,
        "dense": lambda d, p: F.linear(d[0], p[1]),
    }, [tensor("X")], [weight, unrolled(weight).contiguous()]  # fmt: skip


def shift(workload, tensor):
    _, height, width, _ = workload["inputs"]["X"]
    kernel = workload["kernel"]
    pad = (kernel - 1) // 2
    idx = tensor("idx")
    positions = torch.from_numpy(shift_positions(workload, idx.numpy()))
    groups = [(v, torch.nonzero(idx == v).flatten()) for v in range(kernel * kernel) if (idx == v).any()]

    def grouped(d, _):
        padded, out = F.pad(d[0], (0, 0, pad, pad, pad, pad)), torch.empty_like(d[0])
        for v, channels in groups:
            y, x = v // kernel, v % kernel
            out[..., channels] = padded[:, y : y + height, x : x + width][..., channels]
        return out

    return {
        "take": lambda d, p: torch.take(F.pad(d[0], (0, 0, pad, pad, pad, pad)), positions),
        "grouped": grouped,
    }, [tensor("X")], []  # fmt: skip


def lut(workload, tensor):
    count = sum(name.startswith("LUT") for name in workload["inputs"])
    tables, words = [tensor(f"LUT{i}") for i in range(count)], [tensor(f"I{i}") for i in range(count)]

    def bags(d, p):
        parts = [F.embedding_bag(index, table, mode="sum") for index, table in zip(d, p, strict=True)]
        return torch.cat(parts, 1) if count > 1 else parts[0]

    return {"embedding_bag": bags}, words, tables


def mlp(workload, tensor):
    layers = len(workload["sizes"]) - 1

    def call(d, p):
        x = d[0]
        for i in range(layers):
            x = torch.relu(F.linear(x, p[2 * i], p[2 * i + 1]))
        return x

    params = [tensor(f"{kind}{i}") for i in range(layers) for kind in "Wb"]
    return {"linear+relu": call}, [tensor("X")], params


def separable(workload, tensor):
    channels = workload["inputs"]["X"][1]

    def call(d, p):
        return torch.relu(F.conv2d(F.conv2d(d[0], p[0], None, 1, 1, 1, channels), p[1], p[2]))

    return {"conv+conv": call}, [tensor("X")], [tensor("Wd")[:, None], tensor("Wp")[:, :, None, None], tensor("bias")]


def gelu_norm(d, p):
    """Bias, GELU, residual and layer norm."""
    return F.layer_norm(F.gelu(d[0] + p[0]) + d[1], p[1].shape, p[1], p[2], 1e-5)


def along_rows(workload, tensor):
    calls = {
        "softmax": lambda d, p: torch.softmax(d[0], 1),
        "log_softmax": lambda d, p: torch.log_softmax(d[0], 1),
        "layer_norm": lambda d, p: F.layer_norm(d[0], p[0].shape, p[0], p[1], 1e-5),
        "rms_norm": lambda d, p: F.rms_norm(d[0], p[0].shape, p[0], 1e-5),
        "bias_gelu_residual_norm": gelu_norm,
    }
    operator = workload["operator"]
    names = list(workload["inputs"])
    data = [tensor(name) for name in names if name in "XR"]
    return {operator: calls[operator]}, data, [tensor(name) for name in names if name not in "XR"]


def attention(workload, tensor):
    causal = workload["operator"] == "causal_attention"

    def fused(d, _):
        return F.scaled_dot_product_attention(*(x[None] for x in d), is_causal=causal)[0]

    return {"scaled_dot_product_attention": fused}, [tensor(name) for name in "QKV"], []


def attention_gradient(workload, tensor):
    """The backward pass only, with saved values of the forward pass. The driver compares the gradient of the
    queries."""
    if OPTIONS.mode != "eager":
        raise Unsupported
    causal = workload["operator"] == "causal_attention_grad"
    given = [tensor(name)[None].requires_grad_() for name in "QKV"]
    with torch.enable_grad():
        result = F.scaled_dot_product_attention(*given, is_causal=causal)

    def backward(d, _):
        return torch.autograd.grad(result, given, d[0][None], retain_graph=True)[0][0]

    return {"scaled_dot_product_attention": backward}, [tensor("d_O")], []


def imaging(workload, tensor):
    pipeline = torch_imaging.pipeline(workload)
    return {"slices": lambda d, p: pipeline(d[0])}, [tensor("X")], []


def define(workload, tensor):
    """`{variant: function(data, parameters)}`, the data, and the constant parameters."""
    operator = workload["operator"]
    if operator == "conv_relu":
        relu = {"conv+relu": lambda d, p: torch.relu(F.conv2d(d[0], p[0], p[1]))}
        return relu, [tensor("X")], [tensor("W"), tensor("bias")]
    if operator.startswith("conv"):
        return convolution(workload, tensor)
    if operator in torch_scans.OPERATORS:
        return torch_scans.define(workload, tensor)
    makers = {
        "gemv": products, "gemm": products, "bmm": products, "bilinear": contractions, "mttkrp": contractions,
        "bcm_project": bcm_project, "bcm_mm": bcm_mm, "shift": shift, "lut": lut, "mlp": mlp, "dwsep": separable,
        "attention": attention, "causal_attention": attention, "attention_grad": attention_gradient,
        "causal_attention_grad": attention_gradient, **dict.fromkeys(ROWS, along_rows),
    }  # fmt: skip
    return makers.get(operator, imaging)(workload, tensor)


class Frozen(torch.nn.Module):
    """A function with parameters that the compiler may freeze."""

    def __init__(self, function, params):
        super().__init__()
        self.function = function
        self.params = torch.nn.ParameterList([torch.nn.Parameter(p, requires_grad=False) for p in params])

    def forward(self, *data):
        return self.function(list(data), list(self.params))


def variant(function, data, params):
    if OPTIONS.mode == "eager":
        # Entered once around many calls, so that its cost is not part of a call.
        call = lambda: function(data, params)  # noqa: E731
        return Variant(call, lambda: call().contiguous().numpy(), around=torch.inference_mode)
    torch._dynamo.reset()
    module = torch.compile(Frozen(function, params).eval(), mode="max-autotune", dynamic=False)
    for _ in range(2):
        module(*data)
    return Variant(lambda: module(*data), lambda: module(*data).contiguous().numpy())


def build(workload, inputs):
    functions, data, params = define(workload, lambda name: torch.from_numpy(inputs(name)))
    layouts = {"": lambda t: t}
    if workload["operator"] in LAYOUT_OPERATORS:
        last = lambda t: t.contiguous(memory_format=CHANNELS_LAST[t.dim()]) if t.dim() in CHANNELS_LAST else t  # noqa: E731
        layouts = {"": lambda t: t, " channels-last": last}
    built = {}
    for suffix, to in layouts.items():
        moved, kept = [to(t) for t in data], [to(t) for t in params]
        for name, function in functions.items():
            built[name + suffix] = variant(function, moved, kept)
    if not built:
        raise Unsupported
    return built


def overhead():
    a = torch.ones(1, 1)
    return Variant(lambda: torch.mm(a, a), lambda: torch.mm(a, a), around=torch.inference_mode)


if __name__ == "__main__":
    setup()
    serve(sys.modules[__name__])
