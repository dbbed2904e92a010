"""Calls with torch tensors, and custom operators for autograd and torch.compile."""

import subprocess
import sys

import numpy as np
import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")
torch.manual_seed(3)


def test_tensors_go_in_and_out_without_copies(matmul):
    a, b = torch.rand(33, 20), torch.rand(20, 17)
    c = matmul(a, b)
    assert isinstance(c, torch.Tensor) and c.dtype == torch.float32
    torch.testing.assert_close(c, a @ b)
    out = torch.empty(33, 17)
    assert matmul(a, b, out=out) is out
    torch.testing.assert_close(out, a @ b)


TYPES = [
    ("float", torch.float32), ("double", torch.float64), ("half", torch.float16), ("bfloat16", torch.bfloat16), ("bool", torch.bool),
    ("int8", torch.int8), ("int16", torch.int16), ("int32", torch.int32), ("int64", torch.int64),
    ("uint8", torch.uint8), ("uint16", torch.uint16), ("uint32", torch.uint32), ("uint64", torch.uint64),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype"), TYPES, ids=[name for name, _ in TYPES])
def test_results_are_tensors_like_others(name, dtype):
    text = f"""def copy({name}(N,M) A) -> (B) {{ B(i,j) = A(i,j) }}
               def first({name}(N,M) A) -> (b) {{ b() = A(0,0) }}"""
    module = tw.define(text)
    a = (torch.arange(6).reshape(2, 3) % 2).to(dtype)
    b = module.copy(a)
    assert b.dtype == dtype and type(b) is torch.Tensor and torch.equal(b, a)
    assert b.is_contiguous() and b.data_ptr() % 64 == 0 and b._version == 0 and b.is_leaf and not b.is_inference()
    # Its memory is its own.
    assert b.untyped_storage().resizable() and b.untyped_storage().nbytes() == b.nbytes
    assert b.resize_(5, 7).shape == (5, 7) and b.share_memory_().is_shared()
    last = module.first(a)
    assert last.shape == () and last.item() == a[0, 0].item()
    none = module.copy(a[:0])
    assert none.shape == (0, 3) and none.stride() == torch.empty(0, 3).stride()
    with torch.inference_mode():
        assert module.copy(a).is_inference()
    # Not where a default device sends new tensors.
    with torch.device("meta"):
        assert module.copy(a).device.type == "cpu"


def test_results_without_the_stable_functions_are_the_same():
    """Simulates PyTorch before 2.14."""
    script = """
import torch
torch._C.__file__ = torch.__file__
import tensorwright as tw
a = torch.arange(6.0).reshape(2, 3)
b = tw.define("def copy(float(N,M) A) -> (B) { B(i,j) = A(i,j) }").copy(a)
assert torch.equal(a, b) and b.untyped_storage().resizable() and not b.requires_grad
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_libraries_can_be_mixed_and_the_first_decides(matmul):
    a, b = torch.rand(4, 4), np.ones((4, 4), "float32")
    assert isinstance(matmul(a, b), torch.Tensor) and isinstance(matmul(b, a), np.ndarray)


def test_bfloat16_passes_through():
    copy = tw.define("def copy(bfloat16(N) A) -> (B) { B(i) = A(i) }").copy
    a = torch.arange(5).to(torch.bfloat16)
    assert torch.equal(copy(a), a)


def test_a_capsule_serves_where_there_is_no_table(matmul):
    class Wrapped:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **named):
            return self.tensor.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    class Old(Wrapped):
        def __dlpack__(self):
            return self.tensor.__dlpack__()

    a, b = torch.rand(8, 8), torch.rand(8, 8)
    for wrap in (Wrapped, Old):
        np.testing.assert_allclose(matmul(wrap(a), wrap(b)), (a @ b).numpy(), rtol=1e-5)


BAD = {
    "a gradient": (lambda a: a.requires_grad_(), "requires a gradient"),
    "no memory": (lambda a: torch.empty(8, 9, device="meta"), ""),
    "sparse": (lambda a: a.to_sparse(), ""),
    "freed": (lambda a: (a.untyped_storage().resize_(0), a)[1], "freed"),
    "element type": (lambda a: a.double(), "has elements of double"),
    "complex": (lambda a: a.to(torch.complex64), "has elements of complex64"),
    "quantised": (lambda a: torch.quantize_per_tensor(a, 0.1, 0, torch.qint8), ""),
    "nested": (lambda a: torch.nested.nested_tensor([torch.rand(2), torch.rand(3)]), ""),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore")
def test_tensors_that_cannot_be_read_are_refused(what):
    make, said = BAD[what]
    copy = tw.define("def copy(float(8,9) A) -> (B) { B(i,j) = A(i,j) }").copy
    tensor = make(torch.rand(8, 9))
    with pytest.raises((tw.Error, RuntimeError, BufferError)) as caught:
        copy(tensor)
    assert said in str(caught.value)


def test_a_registered_operator_passes_torchs_own_checks():
    module = tw.define("def gate(double(N) A, double(N) B) -> (C) { C(i) = A(i) / (1 + exp(-B(i))) }")
    gate = tw.torch.register(module.gate, backward=True)
    a, b = (torch.rand(6, dtype=torch.double, requires_grad=True) for _ in range(2))
    torch.library.opcheck(gate, (a, b))
    assert torch.autograd.gradcheck(gate, (a, b))


def test_a_result_that_is_added_to_is_an_argument_and_has_no_gradient():
    with pytest.warns(UserWarning, match="W0903"):
        acc = tw.define("def acc(float(N) A) -> (B) { B(i) += A(i) }").acc
    registered = tw.torch.register(acc)
    a, b = torch.arange(4.0), torch.full((4,), 10.0)
    assert torch.equal(registered(a, b), a + 10) and torch.equal(b, torch.full((4,), 10.0))
    with pytest.raises(tw.CompileError, match="declare it as a parameter too"):
        tw.torch.register(acc, backward=True)


def test_a_module_that_uses_one_is_compiled():
    module = tw.define(
        "def layer(float(B,I) X, float(O,I) W) -> (Y) { T(b,o) +=! X(b,i) * W(o,i)  Y(b,o) = fmax(T(b,o), 0.0) }"
    )
    layer = tw.torch.register(module.layer, backward=True)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(5, 7) - 0.5)

        def forward(self, x):
            return layer(x * 2, self.weight).sum()

    net, x = Net(), torch.rand(3, 7)
    compiled = torch.compile(net, fullgraph=True)
    expected = torch.relu(x * 2 @ net.weight.t()).sum()
    torch.testing.assert_close(compiled(x), expected)
    expected.backward()
    wanted, net.weight.grad = net.weight.grad.clone(), None
    compiled(x).backward()
    torch.testing.assert_close(net.weight.grad, wanted)


NORM = """def norm(double(N,D) x, double(D) g) -> (y) {
  s(n) +=! x(n,d) * x(n,d)
  y(n,d) = g(d) * x(n,d) / sqrt(s(n) + 1.0)
}"""


def rms(x, g):
    return g * x / torch.sqrt((x * x).sum(1, keepdim=True) + 1)


def doubles(*shape):
    return torch.rand(shape, dtype=torch.double, requires_grad=True)


def test_gradients_of_gradients():
    norm = tw.torch.register(tw.define(NORM).norm, backward=True)
    x, g = doubles(3, 4), doubles(4)
    torch.library.opcheck(norm, (x, g))
    assert torch.autograd.gradcheck(norm, (x, g))
    assert torch.autograd.gradgradcheck(norm, (x, g))
    for op in (norm, rms):
        (first,) = torch.autograd.grad(op(x, g).sin().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), g)
        wanted = second if op is norm else torch.testing.assert_close(second, wanted)


def test_only_what_is_needed_is_computed():
    norm = tw.torch.register(tw.define(NORM).norm, backward=True)
    x, g = doubles(5, 4), doubles(4)
    norm(x.detach(), g).sum().backward()
    assert x.grad is None
    torch.testing.assert_close(g.grad, torch.autograd.grad(rms(x, g).sum(), g)[0])
    with torch.no_grad():
        assert not norm(x, g).requires_grad


SAVING = """
def softmax(double(N,D) x) -> (p) {
  m(n) max=! x(n,d)  e(n,d) = exp(x(n,d) - m(n))  s(n) +=! e(n,d)  p(n,d) = e(n,d) / s(n)
}
def dense(double(N,I) x, const double(O,I) w, double(O) b) -> (y, z) {
  y(n,o) = b(o) where n in 0:N  y(n,o) += x(n,i) * w(o,i)  y(n,o) = sin(y(n,o))  z(n) +=! y(n,o) * y(n,o)
}
"""


def dense(x, w, b):
    y = torch.sin(x @ w.t() + b)
    return y, (y * y).sum(1)


@pytest.mark.parametrize("frozen", [False, True])
def test_values_are_kept_for_the_gradient(frozen):
    module = tw.define(SAVING)
    forward, gradient, saved = module.training("dense", ["x", "b"])
    assert forward.results()[:2] == ["y", "z"] and len(forward.results()) == 3 and saved
    assert set(saved) <= {name for name, *_ in gradient.parameters()}
    softmax = tw.torch.register(module.softmax, backward=True)
    x, w, b = doubles(7, 5), doubles(3, 5).detach(), doubles(3)
    p = softmax(x)
    # The result is among what is kept, as PyTorch keeps it.
    assert any(kept.data_ptr() == p.data_ptr() for kept in p.grad_fn.saved_tensors)
    assert torch.autograd.gradcheck(softmax, x) and torch.autograd.gradgradcheck(softmax, x)
    layer = tw.torch.register(module.dense.freeze(w=w) if frozen else module.dense, backward=True)
    args = (x, b) if frozen else (x, w, b)
    torch.testing.assert_close(layer(*args), dense(x, w, b))
    for which in (0, 1):
        found = torch.autograd.grad(layer(*args)[which].sin().sum(), (x, b))
        torch.testing.assert_close(found, torch.autograd.grad(dense(x, w, b)[which].sin().sum(), (x, b)))
    assert torch.autograd.gradcheck(layer, args) and torch.autograd.gradgradcheck(layer, args)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p = softmax(x)
        p.mul_(2.0)
        p.sum().backward()


CONFUSING = """
def head(float(N,I) x, float(O,I) w) -> (m) { t(n,o) +=! x(n,i) * w(o,i)  m(n) max=! t(n,o) }
def named(double(N,D) x) -> (y) { d_y(n) +=! x(n,d) * x(n,d)  y(n,d) = sin(d_y(n)) * x(n,d) }
def pool(double(N,K) w, bool(N,K) mask) -> (y) {
  c(n) +=! mask(n,k) ? 1.0 : 0.0  s(n) +=! w(n,k)  y(n) = s(n) / double(c(n))
}
"""


def test_what_is_kept_is_not_confused_with_anything_else():
    module = tw.define(CONFUSING)
    head, named, pool = (tw.torch.register(module[name], backward=True) for name in module)
    # A maximum is not kept: the products that are computed again may differ from it in their last digits.
    x, w = torch.randn(64, 512, requires_grad=True), torch.randn(1000, 512)
    (found,) = torch.autograd.grad(head(x, w).sum(), x)
    torch.testing.assert_close(found, torch.autograd.grad((x @ w.t()).amax(1).sum(), x)[0])
    # A value has the name that a gradient would have.
    y = doubles(3, 4)
    square = (y * y).sum(1, keepdim=True)
    torch.testing.assert_close(torch.autograd.grad(named(y).sum(), y), torch.autograd.grad((square.sin() * y).sum(), y))
    # A parameter is there for its size alone.
    mask = torch.rand(3, 4) > 0.2
    mask[:, 0] = True
    wanted = torch.autograd.grad((y.sum(1) / mask.sum(1)).sum(), y)
    torch.testing.assert_close(torch.autograd.grad(pool(y, mask).sum(), y), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_maximum_of_16_bits_has_a_gradient(dtype):
    kind = {torch.float16: "half", torch.bfloat16: "bfloat16"}[dtype]
    module = tw.define(f"def top({kind}(N,D) x, {kind}(D) w, {kind}(D) v) -> (m) {{ m(n) max=! exp(x(n,d)) * w(d) + v(d) }}")
    top = tw.torch.register(module.top, backward=True)
    x, w, v = torch.randn(32, 40, dtype=dtype, requires_grad=True), torch.rand(40, dtype=dtype), torch.rand(40, dtype=dtype)
    (found,) = torch.autograd.grad(top(x, w, v).float().sum(), x)
    assert (found != 0).any(1).all()


def test_tuning_what_trains():
    op = tw.define(SAVING).softmax
    op.tune(N=12, D=34, trials=2, backward=True, progress=False)
    for made in op.module.training("softmax", ["x"])[:2]:
        made.compile(N=12, D=34)
        assert "trial" in made.origin


def test_transforms_of_functions():
    norm = tw.torch.register(tw.define(NORM).norm, backward=True)
    x, g = (t.detach() for t in (doubles(6, 5, 4), doubles(4)))
    torch.testing.assert_close(torch.func.vmap(norm, in_dims=(0, None))(x, g), torch.func.vmap(rms, in_dims=(0, None))(x, g))
    torch.testing.assert_close(torch.func.vmap(norm, in_dims=(1, None))(x, g), torch.func.vmap(rms, in_dims=(1, None))(x, g))
    for op in (norm, rms):
        found = torch.func.grad(lambda x, op=op: op(x, g).sin().sum())(x[0])
        each = torch.func.vmap(torch.func.grad(lambda x, op=op: op(x, g).sin().sum()))(x)
        if op is norm:
            wanted = found, each
    torch.testing.assert_close((found, each), wanted)
    gate = tw.define("def two(double(N) a) -> (s, t) { s(i) = sin(a(i))  t(i) = a(i) * a(i) }").two
    s, t = torch.func.vmap(tw.torch.register(gate))(x[0])
    torch.testing.assert_close((s, t), (x[0].sin(), x[0] ** 2))


def test_a_frozen_operator_is_registered():
    layer = tw.define(
        "def layer(float(N,I) x, const float(O,I) w, float(O) b) -> (y) { y(n,o) = b(o)  y(n,o) += x(n,i) * w(o,i) }"
    ).layer
    w = torch.rand(5, 7)
    registered = tw.torch.register(layer.freeze(w=w), backward=True)
    kept = w.clone()
    w.zero_()
    x, b = torch.rand(3, 7, requires_grad=True), torch.rand(5, requires_grad=True)
    torch.library.opcheck(registered, (x, b))
    y = registered(x, b)
    torch.testing.assert_close(y, x @ kept.t() + b)
    y.sum().backward()
    torch.testing.assert_close(x.grad, kept.sum(0).expand(3, 7))
    torch.testing.assert_close(b.grad, torch.full((5,), 3.0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_converts_to_what_the_operator_takes(dtype):
    twice = tw.define("def twice(float(N) a, float(N) b) -> (c) { c(i) = 2 * a(i) * b(i) }").twice
    op = tw.torch.register(twice, backward=True)
    a = torch.rand(6, dtype=dtype, requires_grad=True)
    b = torch.rand(6, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = op(a, b)
        through_the_dispatcher = op._opoverload(a, b)
    assert c.dtype == torch.float32
    torch.testing.assert_close(c, 2 * a.float() * b)
    torch.testing.assert_close(through_the_dispatcher, c)
    c.sum().backward()
    assert a.grad.dtype == dtype
    torch.testing.assert_close(b.grad, 2 * a.detach().float())
    with pytest.raises(tw.ArgumentError, match="has elements of"):
        op(a, b)


def test_tuning_the_gradient_with_the_operator():
    op = tw.define("def cube(float(N) a) -> (b) { b(i) = a(i) * a(i) * a(i) }").cube
    registered = tw.torch.register(op, backward=True)
    tuned = op.tune(N=321, trials=2, backward=True, progress=False)
    assert tuned.backward is not None and tuned.backward.trials == 2 and "backward" in str(tuned)
    a = torch.rand(321, requires_grad=True)
    registered(a).sum().backward()
    torch.testing.assert_close(a.grad, 3 * a.detach() ** 2)
    gradient = op.module.grad("cube", ["a"])
    gradient.compile(N=321)
    assert "trial" in gradient.origin


def test_gradients_that_are_expanded_or_missing():
    two = tw.define("def two(float(N) a) -> (s, t) { s(i) = sin(a(i))  t(i) = a(i) * a(i) }").two
    op = tw.torch.register(two, backward=True)
    a = torch.rand(5, requires_grad=True)
    op(a)[1].sum().backward()
    torch.testing.assert_close(a.grad, 2 * a.detach())
