"""PyTorch operators as comprehensions, forward and backward, against torch's own."""

import pathlib

import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")
F = torch.nn.functional

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "kernels"


def rand(*shape):
    return torch.rand(shape) * 2 - 1


def spread(*shape):
    """Different nonzero numbers in random order: away from kinks."""
    count = torch.Size(shape).numel()
    return ((torch.randperm(count).float() + 0.4) / count * 4 - 2).reshape(shape)


def ints(high, *shape):
    return torch.randint(0, high, shape, dtype=torch.int32)


# The file, the definition, arguments, and what torch computes.
OPERATORS = {
    "mm": ("gemm", "gemm", lambda: (rand(5, 7), rand(7, 4)), torch.mm),
    "relu": ("activation", "relu", lambda: (spread(6, 5),), F.relu),
    "leaky_relu": ("activation", "leaky_relu", lambda: (spread(6, 5), 0.1), F.leaky_relu),
    "gelu": ("activation", "gelu", lambda: (rand(6, 5),), F.gelu),
    "gelu_tanh": ("activation", "gelu_tanh", lambda: (rand(6, 5),), lambda x: F.gelu(x, approximate="tanh")),
    "silu": ("activation", "silu", lambda: (rand(6, 5),), F.silu),
    "tanh": ("activation", "tanh_act", lambda: (rand(6, 5),), torch.tanh),
    "sigmoid": ("activation", "sigmoid_act", lambda: (rand(6, 5),), torch.sigmoid),
    "softplus": ("activation", "softplus", lambda: (spread(6, 5),), F.softplus),
    "softmax": ("softmax", "softmax", lambda: (spread(4, 9),), lambda x: F.softmax(x, 1)),
    "log_softmax": ("softmax", "log_softmax", lambda: (spread(4, 9),), lambda x: F.log_softmax(x, 1)),
    "layer_norm": (
        "norm", "layer_norm", lambda: (rand(4, 9), rand(9), rand(9), 1e-5),
        lambda x, gamma, beta, eps: F.layer_norm(x, (9,), gamma, beta, eps),
    ),
    "rms_norm": (
        "norm", "rms_norm", lambda: (rand(4, 9), rand(9), 1e-5), lambda x, gamma, eps: F.rms_norm(x, (9,), gamma, eps),
    ),
    "group_norm": (
        "norm", "group_norm", lambda: (rand(2, 6, 3, 4), rand(6), rand(6), 1e-5, 3),
        lambda x, gamma, beta, eps, groups: F.group_norm(x, groups, gamma, beta, eps),
    ),
    "conv2d": (
        "conv2d", "conv2d_padded", lambda: (rand(2, 3, 9, 8), rand(4, 3, 3, 3), 2, 1),
        lambda x, w, s, p: F.conv2d(x, w, stride=s, padding=p),
    ),
    "conv2d, padded first": (
        "conv2d", "conv2d_two_stage", lambda: (rand(2, 3, 9, 8), rand(4, 3, 3, 3), 1, 1),
        lambda x, w, s, p: F.conv2d(x, w, stride=s, padding=p),
    ),
    "conv2d, valid": ("conv2d", "conv2d", lambda: (rand(2, 3, 7, 8), rand(4, 3, 3, 2)), F.conv2d),
    "conv_transpose2d": (
        "conv_transpose", "conv2d_transpose", lambda: (rand(1, 3, 4, 5), rand(3, 2, 3, 3), 2, 1),
        lambda x, w, s, p: F.conv_transpose2d(x, w, stride=s, padding=p),
    ),
    "max_pool2d": ("maxpool", "maxpool2x2", lambda: (spread(2, 3, 6, 8),), lambda x: F.max_pool2d(x, 2)),
    "max_pool2d, padded": (
        "maxpool", "maxpool", lambda: (spread(2, 3, 7, 7), 3, 2, 1), lambda x, k, s, p: F.max_pool2d(x, k, s, p),
    ),
    "avg_pool2d": ("maxpool", "avgpool", lambda: (rand(2, 3, 8, 8), 2, 2), F.avg_pool2d),
    "embedding": ("gather", "gather_rows", lambda: (rand(7, 4), ints(7, 5)), lambda t, i: F.embedding(i.long(), t)),
    "embedding_bag": (
        "gather", "embedding_bag", lambda: (rand(7, 4), ints(7, 5, 3)),
        lambda t, i: F.embedding_bag(i.long(), t, mode="mean"),
    ),
    "cross_entropy": (
        "loss", "cross_entropy", lambda: (spread(6, 5), ints(5, 6)), lambda x, y: F.cross_entropy(x, y.long()),
    ),
    "attention": (
        "attention", "attention", lambda: (rand(5, 4), rand(6, 4), rand(6, 3)), F.scaled_dot_product_attention,
    ),
    "causal attention": (
        "attention", "causal_attention", lambda: (rand(5, 4), rand(5, 4), rand(5, 3)),
        lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_and_its_gradient_are_torchs(name):
    torch.manual_seed(11)
    file, definition, make, expected = OPERATORS[name]
    module = tw.load(KERNELS / f"{file}.tc")
    ours = tw.torch.register(module[definition], backward=True)
    arguments = make()
    first, second = (
        [a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments]
        for _ in range(2)
    )
    result, wanted = ours(*first), expected(*second)
    torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
    weights = rand(*wanted.shape)
    (result * weights).sum().backward()
    (wanted * weights).sum().backward()
    for a, b in zip(first, second, strict=True):
        if isinstance(a, torch.Tensor) and a.is_floating_point():
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["mm", "gelu", "silu", "softmax", "layer_norm", "conv2d", "conv_transpose2d", "avg_pool2d", "attention"]
)
def test_an_operator_in_double_passes_gradcheck(name):
    torch.manual_seed(12)
    file, definition, make, _ = OPERATORS[name]
    text = (KERNELS / f"{file}.tc").read_text().replace("float(", "double(").replace("float ", "double ")
    ours = tw.torch.register(tw.define(text)[definition], backward=True)
    arguments = [a.double().requires_grad_() if isinstance(a, torch.Tensor) else a for a in make()]
    assert torch.autograd.gradcheck(ours, arguments)


def test_a_gradient_is_an_operator_with_a_text():
    module = tw.load(KERNELS / "gemm.tc")
    gradient = module.grad("gemm", wrt=["A"])
    assert gradient.results() == ["d_A"] and "def gemm_grad" in gradient.module.source
    a, b, d = rand(4, 5), rand(5, 6), rand(4, 6)
    given = {"A": a, "B": b, "d_C": d}
    found = gradient(*(given[name] for name, *_ in gradient.parameters()))
    torch.testing.assert_close(found, d @ b.t())
    with pytest.raises(tw.CompileError, match="Q"):
        module.grad("gemm", wrt=["Q"])
