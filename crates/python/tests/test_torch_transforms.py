"""Registered operators within torch.func transforms and forward mode, and their registration."""

import multiprocessing
import pickle
import sys
import threading
import time

import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")
forward = torch.autograd.forward_ad

CUBE = "def cube(float(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }"
SCALE = "def scale(float(N) x, float s) -> (y) { y(i) = s * x(i) }"
LINEAR = "def linear(float(B,I) x, float(O,I) w) -> (y) { y(n,o) +=! x(n,i) * w(o,i) }"
X = torch.tensor([1.0, 2.0, 3.0])


class Subclass(torch.Tensor):
    pass


def registered(text, backward=True, **choices):
    module = tw.define(text, threads=1)
    return tw.torch.register(module[list(module)[-1]], backward=backward, **choices)


def under_a_mode(function, *args):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        return function(*args)


@pytest.mark.parametrize("backward", [True, None])
@pytest.mark.parametrize(
    "call",
    [
        lambda op, s: torch.func.grad(lambda s: op(X, s).sum())(s),
        lambda op, s: torch.func.jacrev(lambda s: op(X, s))(s),
        lambda op, s: torch.func.vmap(torch.func.grad(lambda s: op(X, s).sum()))(s[None]),
        lambda op, s: torch.func.grad(lambda s: torch.func.vmap(lambda x: op(x, s))(X[None]).sum())(s),
        lambda op, s: torch.func.grad(lambda ss: torch.func.vmap(lambda s: op(X, s))(ss).sum())(s[None]),
        lambda op, s: torch.func.vmap(lambda x, s=s.requires_grad_(): op(X, s) * x)(X),
        lambda op, s: under_a_mode(op, X, s.requires_grad_()),
        lambda op, s: op(X.as_subclass(Subclass), s.requires_grad_()),
        lambda op, s: op(X, s.requires_grad_()),
    ],
)
def test_numbers_that_require_gradients_are_refused_everywhere(call, backward):
    with pytest.raises(tw.ArgumentError) as caught:
        call(registered(SCALE, backward), torch.tensor(2.0))
    assert str(caught.value) == (
        "scale: `s` requires a gradient, and numbers have none; "
        "declare a tensor of one element, as in `float(ONE) s`, or pass .detach()"
    )


def test_numbers_whose_gradient_nobody_wants():
    op, s = registered(SCALE), torch.tensor(2.0, requires_grad=True)
    assert torch.func.grad(lambda s: op(X, s.detach()).sum() * s)(s.detach()).item() == 12.0
    assert torch.func.vmap(lambda s: op(X, s))(s.detach()[None]).tolist() == [[2.0, 4.0, 6.0]]
    with torch.no_grad():
        for made in (op(X, s), under_a_mode(op, X, s), torch.func.vmap(lambda x: op(x, s))(X[None])[0]):
            assert made.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("backward", [True, None])
def test_tangents_are_refused_at_every_level(backward):
    op, func = registered(CUBE, backward), torch.func
    rows = func.vmap(lambda r: op(r[None])[0])
    calls = [
        lambda: func.jvp(rows, (X,), (X,)),
        lambda: func.jacfwd(rows)(X),
        lambda: func.jvp(func.grad(lambda x: op(x).sum()), (X,), (X,)),
        lambda: func.hessian(lambda x: op(x).sum())(X),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match="cube has no forward-mode derivative; use reverse mode"):
            call()
    with forward.dual_level():
        dual = forward.make_dual(X, X)
        calls = [
            lambda: func.vmap(lambda x: op(dual) * x)(X),
            lambda: func.grad(lambda x: (op(dual) * x).sum())(X),
            lambda: rows(dual),
        ]
        for call in calls:
            with pytest.raises(NotImplementedError, match="cube has no forward-mode derivative; use reverse mode"):
                call()
        assert rows(X).tolist() == [1.0, 8.0, 27.0]


def test_tangents_of_gradients_are_refused():
    op, x = registered(CUBE), X.clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="has no forward-mode derivative"):
        torch.func.jvp(lambda v: torch.func.vjp(op, X)[1](v)[0], (X,), (X,))
    with forward.dual_level():
        for records in (False, True):
            with pytest.raises(NotImplementedError, match="has no forward-mode derivative"):
                torch.autograd.grad(op(x), x, forward.make_dual(X, X), create_graph=records)
        assert torch.autograd.grad(op(x), x, X)[0].tolist() == [3.0, 24.0, 81.0]


@pytest.mark.parametrize("backward", [True, None])
def test_what_has_no_tangent_or_gradient_passes_through(backward):
    op, func = registered(CUBE, backward), torch.func
    for given in (lambda x: X, lambda x: x.detach()):
        assert func.jvp(lambda x: x + op(given(x)), (X,), (X,))[1].tolist() == X.tolist()
        rows = func.vmap(lambda x, given=given: x + op(given(x).reshape(-1))[0])
        assert func.jvp(rows, (X,), (X,))[1].tolist() == X.tolist()
        assert func.grad(lambda x: (x * op(given(x))).sum())(X).tolist() == [1.0, 8.0, 27.0]
    # The row is a batch for one level, and a constant for the other.
    assert func.vmap(lambda r: func.grad(lambda z: z * op(r[None])[0])(r))(X).tolist() == [1.0, 8.0, 27.0]


def test_arguments_from_outside_that_require_gradients():
    op, func = registered(LINEAR), torch.func
    x, w, s = torch.ones(2, 4), torch.nn.Parameter(torch.rand(3, 4)), torch.rand(2, 3)
    for transform, given in ((func.grad, s), (func.jacrev, s), (func.vmap, torch.stack([s, 2 * s]))):
        made, gradients = [], []
        for linear in (op, torch.nn.functional.linear):
            run = transform(lambda s, linear=linear: ((linear(x, w) * s - s) ** 2).sum())
            made.append(run(given))
            gradients.append(torch.autograd.grad(made[-1].sum(), w)[0])
            with torch.no_grad():
                torch.testing.assert_close(run(given), made[-1])
        torch.testing.assert_close(*made)
        torch.testing.assert_close(*gradients)
    assert func.jvp(lambda s: s + op(x, w), (s,), (s,))[1].tolist() == s.tolist()


def test_batches_without_a_rule_record():
    x = X.clone().requires_grad_()
    made = torch.func.vmap(lambda r: registered(CUBE, None)(r[None]))(x)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        made.sum().backward()


def test_batches_of_gradients_are_differentiated_again():
    made = []
    for op in (registered(CUBE), lambda x: x * x * x):
        x = X.clone().requires_grad_()
        (rows,) = torch.autograd.grad(op(x), x, torch.eye(3), is_grads_batched=True, create_graph=True)
        made.append((rows, *torch.autograd.grad(rows.sin().sum(), x)))
        made[-1] += (torch.autograd.functional.hessian(lambda x, op=op: op(x).sin().sum(), x, vectorize=True),)
    torch.testing.assert_close(*made)


@pytest.mark.parametrize("backward", [True, None])
def test_functionalization(backward):
    op, func = registered(CUBE, backward), torch.func
    rows = func.vmap(lambda r: op(r[None])[0])
    for run in (op, rows, lambda x: op(X), func.vmap(func.functionalize(lambda r: op(r[None])[0]))):
        assert func.functionalize(run)(X).tolist() == [1.0, 8.0, 27.0]
    traced = torch.fx.experimental.proxy_tensor.make_fx(func.functionalize(op))(X)
    assert "torch.ops.tensorwright.cube" in traced.code


def test_functionalization_within_gradients():
    op, func = registered("def two(float(N) x, float s) -> (y, z) { y(i) = s * x(i)  z(i) = x(i) * x(i) }"), torch.func
    assert [made.tolist() for made in func.functionalize(op)(X, 2.0)] == [[2.0, 4.0, 6.0], [1.0, 4.0, 9.0]]
    assert func.grad(lambda x: func.functionalize(op)(x, 2.0)[1].sum())(X).tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("wrong", [[1.0, 2.0], "a", None])
@pytest.mark.parametrize("backward", [True, None])
def test_arguments_that_are_no_tensors(wrong, backward):
    op = registered("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }", backward)
    for first in (wrong, X, X.clone().requires_grad_(), X.to("meta")):
        with pytest.raises(tw.ArgumentError):
            op(first, wrong)
    with pytest.raises(tw.ArgumentError) as caught:
        registered(CUBE, backward)(wrong)
    with pytest.raises(tw.ArgumentError) as plain:
        tw.define(CUBE).cube(wrong)
    assert str(caught.value) == str(plain.value)


def test_restoring_finds_what_there_is():
    cube = tw.define(CUBE, threads=1)
    text = "def layer(float(N,K) x, const float(K) w, const float s) -> (y) { y(n) +=! s * x(n,k) * w(k) }"
    nan, layer = float("nan"), tw.define(text, threads=1).layer
    given = [
        tw.torch.register(cube.cube, backward=cube.grad("cube")),
        tw.torch.register(layer.freeze(w=torch.tensor([1.0, nan, 0.0]), s=nan), backward=True),
    ]
    for op in given:
        assert pickle.loads(pickle.dumps(op)) is op
    # Zeros have signs.
    other = pickle.dumps(tw.torch.register(layer.freeze(w=torch.tensor([1.0, nan, -0.0]), s=nan), backward=True))
    assert pickle.loads(other) is not given[1]


def test_restoring_twice_where_another_has_the_name():
    op = tw.torch.register(tw.define(CUBE, threads=1).cube, name="restored_elsewhere")
    saved = pickle.dumps(op).replace(b"restored_elsewhere", b"restored_somewhere")
    registered(SCALE, name="restored_somewhere")
    found = pickle.loads(saved)
    assert found(X).tolist() == [1.0, 8.0, 27.0] and pickle.loads(saved) is found


@pytest.mark.parametrize("name", ["class", "größe", "a b", ""])
def test_names_that_pytorch_would_refuse(name):
    with pytest.raises(ValueError) as caught:
        registered(CUBE, name=name)
    assert str(caught.value) == f"name is that of an operator in the namespace tensorwright, such as 'cube', not {name!r}"


@pytest.mark.parametrize("place", ["torch.library.custom_op", "tensorwright.torch._differentiate"])
def test_names_are_free_again_where_registration_fails(monkeypatch, place):
    def fail(*_, **__):
        raise RuntimeError("no memory")

    name = place.replace(".", "_")
    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        with pytest.raises(RuntimeError, match="no memory"):
            registered(CUBE, name=name)
    op = registered(CUBE, name=name)
    assert op(X).tolist() == under_a_mode(op, X).tolist() == [1.0, 8.0, 27.0]


def test_threads_register_under_names_of_their_own():
    begin, made, raised = threading.Barrier(6), [], []
    module = tw.define(CUBE, threads=1)

    def run():
        begin.wait()
        try:
            for _ in range(4):
                made.append(tw.torch.register(module.cube, backward=True))
        except Exception as error:
            raised.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not raised and len({op._name for op in made}) == 24
    for op in made:
        assert under_a_mode(op, X).tolist() == [1.0, 8.0, 27.0]
        assert torch.func.grad(lambda x, op=op: op(x).sum())(X).tolist() == [3.0, 12.0, 27.0]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_children_register_though_a_thread_was_at_it():
    from tensorwright._torch_gradients import registering

    has_it = threading.Event()

    def hold():
        with registering:
            has_it.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    has_it.wait()
    child = multiprocessing.get_context("fork").Process(target=registered, args=(CUBE, None))
    child.start()
    child.join(20)
    thread.join()
    child.kill()
    assert child.exitcode == 0


@pytest.mark.parametrize("dtype", ["float", "half"])
def test_products_that_overflow_beside_a_zero_have_torchs_gradient(dtype):
    op = tw.torch.register(tw.define(f"def f({dtype}(N) x) -> (y) {{ y() *=! x(i) }}", threads=1).f, backward=True)
    large = {"float": 1e30, "half": 300.0}[dtype]
    for values in ([0.0, large, large, 2.0], [0.0, 0.0, large, large], [3.0, 0.0, 2.0, 1.0]):
        x = torch.tensor(values, dtype=getattr(torch, {"half": "float16"}.get(dtype, dtype)), requires_grad=True)
        ours, theirs = (torch.autograd.grad(call(x), x)[0] for call in (op, torch.prod))
        torch.testing.assert_close(ours, theirs)
    # What cannot be kept is computed again, by a gradient for its value alone.
    x = torch.tensor([0.0, 2.0, 3.0], dtype=x.dtype, requires_grad=True)
    op(x).backward()
    assert x.grad.tolist() == [6, 0, 0]
