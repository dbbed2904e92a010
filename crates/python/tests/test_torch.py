"""Calls with torch tensors, and operators that autograd and torch.compile know."""

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
    "rows apart": (lambda a: a.t(), "not contiguous"),
    "expanded": (lambda a: a[:1].expand(8, 9), "not contiguous"),
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
    tensor = make(torch.rand(9, 8) if what == "rows apart" else torch.rand(8, 9))
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
