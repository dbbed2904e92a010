"""Regressions found by PyTorch users: each silently lost something, or failed."""

import copy
import pickle
import subprocess
import sys

import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")

CUBE = "def cube(float(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }"


def registered(text, **choices):
    module = tw.define(text)
    return tw.torch.register(module[list(module)[-1]], backward=True, **choices)


def test_softplus_is_smooth_at_zero():
    op = registered("def sp(double(N) x) -> (y) { y(i) = softplus(x(i)) }")
    x = torch.tensor([0.0, -1.0, 2.0, -800.0, 800.0], dtype=torch.double, requires_grad=True)
    torch.testing.assert_close(op(x), torch.nn.functional.softplus(x))
    (ours,) = torch.autograd.grad(op(x).sum(), x, create_graph=True)
    torch.testing.assert_close(ours, torch.sigmoid(x))
    torch.testing.assert_close(torch.autograd.grad(ours.sum(), x)[0], torch.sigmoid(x) * torch.sigmoid(-x))


def test_products_with_zeros_are_differentiated_twice():
    op = registered("def product(double(N,D) x) -> (y) { y(n) *=! x(n,d) }")
    x = torch.tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(op, x)
    assert torch.autograd.gradgradcheck(op, x)
    ours, theirs = (torch.autograd.functional.hessian(lambda x: f(x).sum(), x) for f in (op, lambda x: x.prod(1)))
    torch.testing.assert_close(ours, theirs)


def test_nan_is_seen_by_gradients():
    nan = float("nan")
    relu = registered("def positive(float(N) x) -> (y) { y(i) = relu(x(i)) }")
    largest = registered("def largest(float(N) x) -> (y) { y() max=! x(i) }")
    for op, theirs in ((relu, torch.relu), (largest, torch.amax)):
        x = torch.tensor([1.0, nan, -2.0], requires_grad=True)
        (op(x) * nan).sum().backward()
        grad, x.grad = x.grad, None
        (theirs(x) * nan).sum().backward()
        torch.testing.assert_close(grad, x.grad, equal_nan=True)


def test_gathers_of_nothing_have_gradients():
    op = registered("def rows(float(V,D) table, int32(N) at) -> (y) { y(n,d) = table(at(n), d) }")
    table = torch.ones(4, 3, requires_grad=True)
    op(table, torch.zeros(0, dtype=torch.int32)).sum().backward()
    assert torch.equal(table.grad, torch.zeros(4, 3))


def test_forward_mode_is_refused():
    op, forward = registered(CUBE), torch.autograd.forward_ad
    with forward.dual_level():
        assert torch.equal(op(torch.full((2,), 2.0)), torch.full((2,), 8.0))
        with pytest.raises(NotImplementedError) as caught:
            op(forward.make_dual(torch.ones(2), torch.ones(2)))
    assert str(caught.value) == "cube has no forward-mode derivative; use reverse mode (backward)"


def test_views_of_the_other_sign_are_refused():
    cube = tw.define(CUBE).cube
    x = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    with pytest.raises(tw.ArgumentError, match=r"is a view of a conjugate, whose memory has the other sign; pass .resolve_neg\(\)"):
        cube(x)
    assert cube(x.resolve_neg()).tolist() == [-8, 64]


def test_a_number_that_requires_a_gradient_is_refused():
    op = registered("def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }")
    a = torch.tensor(2.0, requires_grad=True)
    for x in (torch.ones(3), torch.ones(3, requires_grad=True)):
        with pytest.raises(tw.ArgumentError) as caught:
            op(x, a)
        assert str(caught.value) == (
            "scale: `a` requires a gradient, and numbers have none; declare a tensor of one element, as in `float(ONE) a`, or pass .detach()"
        )
        assert op(x, a.detach()).tolist() == [2, 2, 2]


def test_without_a_rule_backward_raises():
    op = tw.torch.register(tw.define(CUBE).cube)
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        (op(x) * w).sum().backward()
    with torch.no_grad():
        assert op(x).tolist() == [1, 1, 1]


def test_out_is_a_change_in_place():
    cube = tw.define(CUBE).cube
    out, w = torch.ones(2), torch.ones(2, requires_grad=True)
    loss = (out * w).sum()
    cube(torch.tensor([2.0, 3.0]), out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with torch.inference_mode():
        made = torch.ones(2)
        assert cube(torch.tensor([2.0, 3.0]), out=made).tolist() == [8, 27]


def test_inputs_that_matter_for_shapes_or_conditions_alone():
    mean = registered("def mean(float(N,L) x) -> (y) { y(n) +=! x(n,l) / L }")
    x = torch.randn(2, 3, requires_grad=True)
    (first,) = torch.autograd.grad((mean(x) ** 2).sum(), x, create_graph=True)
    torch.testing.assert_close(first, (2 / 3 * x.mean(1, keepdim=True)).expand(2, 3))
    torch.testing.assert_close(torch.autograd.grad(first[0, 0], x)[0], torch.tensor([[2 / 9] * 3, [0.0] * 3]))
    (first,) = torch.autograd.grad(mean(x).sum(), x, create_graph=True)
    torch.testing.assert_close(first, torch.full((2, 3), 1 / 3))
    gate = registered("def gate(float(N) x, float(N) t) -> (y) { y(i) = t(i) > 0 ? x(i) : 0 }")
    x, t = torch.randn(5, requires_grad=True), torch.tensor([1.0, -1, 2, -2, 0], requires_grad=True)
    for kept in (t, t.detach()):
        x.grad = t.grad = None
        gate(x, kept).sum().backward()
        assert x.grad.tolist() == [1, 0, 1, 0, 0]
        assert (t.grad is None) if kept is not t else t.grad.tolist() == [0] * 5
    torch.autograd.gradgradcheck(
        registered("def d(double(N,L) x) -> (y) { y(n,l) = x(n,l+1) - x(n,l) }"),
        (torch.randn(2, 4, dtype=torch.double, requires_grad=True),),
    )


def test_batches_of_gradients():
    op = registered(CUBE)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (rows,) = torch.autograd.grad(op(x), x, torch.eye(2), is_grads_batched=True)
    torch.testing.assert_close(rows, torch.diag(3 * x.detach() ** 2))
    torch.testing.assert_close(torch.autograd.functional.jacobian(op, x, vectorize=True), rows)
    assert torch.func.vmap(op)(torch.zeros(0, 3)).shape == (0, 3)


def test_copies_and_missing_arguments():
    op = registered("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }")
    assert copy.deepcopy(op) is op and copy.copy(op) is op
    module = tw.define(CUBE)
    assert copy.copy(module).cube(torch.ones(1)).tolist() == [1]
    with pytest.raises(tw.ArgumentError, match="`b`"):
        op(torch.ones(3, requires_grad=True))


def test_compiled_graphs_serve_all_sizes():
    op = registered("def pairs(float(N,D) x, float(D) b) -> (y) { y(n,d) = x(n,d) * x(n+1,d) + b(d) }")
    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x, b: op(x, b) + 1, fullgraph=True, dynamic=True, backend=count)
    for n in range(3, 15):
        x, b = torch.randn(n, 4), torch.randn(4)
        torch.testing.assert_close(compiled(x, b), x[:-1] * x[1:] + b + 1)
    assert len(graphs) == 1

    class Layer(torch.nn.Module):
        def forward(self, x, b):
            return op(x, b)

    exported = torch.export.export(
        Layer(),
        (torch.randn(5, 4), torch.randn(4)),
        dynamic_shapes=({0: torch.export.Dim("n", min=3)}, None),
    )
    x, b = torch.randn(9, 4), torch.randn(4)
    torch.testing.assert_close(exported.module()(x, b), x[:-1] * x[1:] + b)
    x = torch.randn(7, 4, requires_grad=True)
    compiled = torch.compile(op, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (7, 6, 5):
        (ours,) = torch.autograd.grad(compiled(x[:n], b).sum(), x)
        (theirs,) = torch.autograd.grad((x[: n - 1] * x[1:n] + b).sum(), x)
        torch.testing.assert_close(ours, theirs)


def test_settings_that_cannot_be():
    with pytest.raises(TypeError, match="dynamic is True, False, or names of sizes, not 3"):
        tw.define(CUBE, dynamic=3)
    with pytest.raises(ValueError, match="threads is a number from 1 to 1024, not 2.5"):
        tw.define(CUBE, threads=2.5)
    with pytest.raises(ValueError, match="name is that of an operator in the namespace tensorwright, such as 'cube', not 'my::x'"):
        tw.torch.register(tw.define(CUBE).cube, name="my::x")
    for wrong in ({"trials": -1}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is a number of at least 0, not -1"):
            tw.define(CUBE).cube.tune(N=4, progress=False, **wrong)


def test_transforms_under_modes_and_arguments_by_name():
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils.flop_counter import FlopCounterMode

    op, x = registered(CUBE), torch.full((2,), 2.0)
    with FlopCounterMode(display=False):
        assert torch.equal(torch.func.grad(lambda x: op(x).sum())(x), torch.full((2,), 12.0))
    assert "torch.ops.tensorwright.cube" in make_fx(torch.func.grad(lambda x: op(x).sum()))(x).code
    assert torch.equal(torch.func.grad(lambda x: op(x=x).sum())(x), torch.full((2,), 12.0))
    graph = torch.fx.symbolic_trace(lambda x: op(x) + 1)
    assert "dlpack" not in graph.code and torch.equal(graph(x), torch.full((2,), 9.0))


def test_tensors_without_memory_have_shapes():
    for records in (False, True):
        made = registered(CUBE)(torch.empty(3, device="meta", requires_grad=records))
        assert made.is_meta and made.shape == (3,)
    cube = tw.define(CUBE).cube
    for tensor, said in (
        (torch.empty(3, device="meta"), "is on the device meta, and has no memory"),
        (torch.eye(3)[0].to_sparse(), "has the layout torch.sparse_coo; pass .to_dense()"),
    ):
        with pytest.raises(tw.ArgumentError) as caught:
            cube(tensor)
        assert str(caught.value) == f"cube: `x` (float(N) x) {said}"


def test_plain_calls_record_nothing():
    cube, forward = tw.define(CUBE).cube, torch.autograd.forward_ad
    x = torch.nn.Parameter(torch.full((2,), 2.0))
    with torch.no_grad():
        assert torch.equal(cube(x), torch.full((2,), 8.0))
    assert "us a call" in cube.explain(x)
    with forward.dual_level(), pytest.raises(tw.ArgumentError) as caught:
        cube(forward.make_dual(torch.ones(2), torch.ones(2)))
    said = "has a tangent of forward mode, which a plain call does not pass on; pass .detach()"
    assert str(caught.value) == f"cube: `x` (float(N) x) {said}"


@pytest.mark.parametrize(
    ("args", "named", "said"),
    [
        ([], {}, "cube: `x` (float(N) x) is missing"),
        ([], {"y": 1}, "cube(float(N) x) has no parameter `y`"),
        ([1], {"x": 1}, "cube(float(N) x) was given `x` twice"),
    ],
)
def test_arguments_that_are_missing_or_too_many(args, named, said):
    with pytest.raises(tw.ArgumentError) as caught:
        registered(CUBE)(*args, **named)
    assert str(caught.value) == said


def test_registered_operators_have_what_operators_have():
    op = registered(CUBE)
    op(torch.ones(3))
    assert op.kernels == 1 and op.module.source == CUBE and "cube" in op.explain(N=3)
    assert op.tune(N=3, trials=1, progress=False).trials == 1
    assert not hasattr(op, "tunes")


def test_operators_are_saved(tmp_path):
    layer = "def layer(float(N,K) x, const float(K) w) -> (y) { y(n) +=! x(n,k) * w(k) }"
    w = torch.tensor([1.0, 2.0])
    frozen = tw.define(layer, threads=1).layer.freeze(w=w)
    w.zero_()
    model = torch.nn.Module()
    model.plain, model.op, model.frozen = tw.define(CUBE).cube, registered(CUBE), tw.torch.register(frozen)
    torch.save(model, tmp_path / "model.pt")
    found = torch.load(tmp_path / "model.pt", weights_only=False)
    x = torch.full((2,), 3.0, requires_grad=True)
    assert torch.equal(found.plain(x.detach()), torch.full((2,), 27.0)) and found.op is model.op
    assert found.frozen(torch.ones(1, 2)).tolist() == [3.0]
    script = f"""
import torch
model = torch.load({str(tmp_path / "model.pt")!r}, weights_only=False)
x = torch.full((2,), 3.0, requires_grad=True)
model.op(x).sum().backward()
print(x.grad.tolist(), model.frozen(torch.ones(1, 2)).tolist(), model.frozen.threads)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[27.0, 27.0] [3.0] 1\n"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a", "was given a str; pass a NumPy array, a torch tensor, or anything with a buffer or DLPack"),
        (torch.ones(2, dtype=torch.double), "has elements of double, and float is needed; convert it to float32"),
        (torch.ones(2, requires_grad=True), "requires a gradient, which a plain call does not record"),
        (torch.ones(2, 2), "has the shape (2, 2), and 1 dimension is declared"),
        (torch.ones(3), "the size `K` is 2, and the input `w` makes it 3"),
    ],
)
def test_what_cannot_be_frozen_is_refused_at_once(value, said):
    text = "def layer(const float(K) v, const float(K) w, float(N,K) x) -> (y) { y(n) +=! x(n,k) * w(k) * v(k) }"
    layer = tw.define(text).layer.freeze(v=torch.ones(2))
    assert repr(layer) == "<operator layer(const float(K) w, float(N,K) x), v frozen>"
    with pytest.raises(tw.ArgumentError) as caught:
        layer.freeze(w=value)
    assert said in str(caught.value)


def test_names_that_python_has_taken():
    with pytest.warns(UserWarning, match=r"module.grad is a method of modules; the definition is module\['grad'\]"):
        module = tw.define("def grad(float(N) out) -> (y) { y(i) = 2 * out(i) }")
    x = torch.ones(2)
    assert module["grad"](x).tolist() == [2.0, 2.0]
    with pytest.raises(tw.ArgumentError) as caught:
        module["grad"](out=x)
    said = "`out=` says where results go, so give the parameter by position"
    assert str(caught.value) == f"grad: `out` (float(N) out) is missing; {said}"
    with pytest.raises(TypeError) as caught:
        module(x)
    assert str(caught.value) == "a module is not called, but its definitions are: module.grad(...)"


def test_a_schedule_of_the_caller_outlives_tuning():
    cube = tw.define(CUBE, dynamic=False).cube
    cube.compile(N=64, schedule="")
    cube.tune(N=64, trials=1, progress=False)
    cube(torch.ones(64))
    assert cube.origin == "given"


def test_results_with_similar_names_have_their_own_gradients():
    op = registered("def f(double(N) x) -> (y_1, y) { y_1(i) = 2*x(i)*x(i)  y(i) = 5*x(i)*x(i)*x(i) }")
    x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
    assert torch.autograd.grad(op(x)[0].sum(), x)[0].tolist() == [4.0, 8.0]
    assert torch.autograd.grad(op(x)[1].sum(), x)[0].tolist() == [15.0, 60.0]


def test_losses_are_differentiated_twice():
    op = registered("def mse(double(N) a, double(N) b) -> (l) { l() +=! (a(i) - b(i)) * (a(i) - b(i)) / N }")
    a, b = (torch.randn(3, dtype=torch.double, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradgradcheck(op, (a, b))
    ours, theirs = (
        torch.func.jacrev(torch.func.grad(lambda a, f=f: f(a, b.detach()).sqrt()))(a.detach())
        for f in (op, torch.nn.functional.mse_loss)
    )
    torch.testing.assert_close(ours, theirs)


def test_names_are_given_once():
    cube = tw.define(CUBE).cube
    first = tw.torch.register(cube, name="cube_of_this_test")
    assert tw.torch.register(tw.define(CUBE).cube, name="cube_of_this_test") is first
    with pytest.raises(ValueError) as caught:
        tw.torch.register(cube, True, name="cube_of_this_test")
    said = "the name 'cube_of_this_test' is that of another operator, whose compiled code would change; give another one, or none"
    assert str(caught.value) == said
    with pytest.raises(ValueError, match="eye takes no tensors"):
        tw.torch.register(tw.define("def eye(int n) -> (e) { e(i,j) = i == j ? 1.0 : 0.0 where i in 0:n, j in 0:n }").eye)


def test_what_is_loaded_is_what_was_saved():
    text = CUBE.replace("cube", "loaded")
    saved = pickle.dumps(registered(text))
    script = f"""
import pickle, torch, tensorwright as tw
tw.torch.register(tw.define({text!r}, precision="fast", threads=1).loaded)
op = pickle.loads({saved!r})
x = torch.ones(2, requires_grad=True)
op(x).sum().backward()
again = tw.torch.register(op._op, backward=True)
print(op.module._choices.precision, x.grad.tolist(), op(x).tolist(), again(x).tolist(), again is op)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "exact [3.0, 3.0] [1.0, 1.0] [1.0, 1.0] False\n"


def test_frozen_arrays_of_numpy_and_equal_ones():
    import numpy as np

    text = "def layer(const float(O,K) w, float(N,K) x) -> (y) { y(n,o) +=! x(n,k) * w(o,k) }"
    op = tw.define(text).layer.freeze(w=np.ones((4, 3), "float32"))
    made = tw.torch.register(op, backward=True)
    x = torch.ones(2, 3, requires_grad=True)
    made(x).sum().backward()
    assert isinstance(op(torch.ones(2, 3)), torch.Tensor) and x.grad.tolist() == [[4.0] * 3] * 2
    # What is loaded again is what is there.
    assert pickle.loads(pickle.dumps(made)) is made
    # Arrays are tensors for a registered operator, and NumPy's numbers Python's.
    y = torch.ones(3, requires_grad=True)
    scaled = registered("def scaled(float(N) x, float(N) y, float a) -> (z) { z(i) = a * x(i) * y(i) }")
    scaled(np.full(3, 2, "float32"), y, np.float32(1.5)).sum().backward()
    assert y.grad.tolist() == [3.0] * 3
    memory = tw.define("def f(const uint8(N) w, float(N) x) -> (y) { y(i) = float(w(i)) * x(i) }").f.freeze(w=b"ab")
    assert memory(np.ones(2, "float32")).tolist() == [97.0, 98.0]


def test_one_element_of_a_conjugate():
    with pytest.raises(tw.ArgumentError, match=r"pass \.resolve_neg\(\)"):
        tw.define(CUBE).cube(torch.tensor([1 + 2j]).conj().imag)
