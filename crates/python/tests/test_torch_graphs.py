"""Registered operators in graphs: traced, compiled and exported code computes what calls do."""

import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")

CUBE = "def cube(float(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }"


def registered(text, **choices):
    module = tw.define(text)
    return tw.torch.register(module[list(module)[-1]], backward=True, **choices)


def compiled(function, **choices):
    torch._dynamo.reset()
    return torch.compile(function, backend="aot_eager", **choices)


@pytest.mark.filterwarnings("ignore")
def test_traces_have_the_operator_and_not_its_result():
    op = registered(CUBE)
    traced = torch.jit.trace(lambda x: op(x) + 1, torch.tensor([1.0, 2.0]))
    assert traced(torch.tensor([3.0, 4.0])).tolist() == [28.0, 65.0]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("def pool(float(N) x) -> (y) { y(i) max=! x(4*i+k) where k in 0:4 }", [(8,), (16,), (40,)]),
        ("def flat(float(N,M) x) -> (y) { y(i) = x(i / M, i % M) where i in 0:N*M }", [(2, 3), (4, 5), (7, 9)]),
    ],
)
def test_shapes_that_are_no_sums_of_sizes(text, sizes):
    op = registered(text)
    mean = compiled(lambda x: op(x).sum() / op(x).shape[0], dynamic=True)
    assert [mean(torch.ones(size)).item() for size in sizes] == [1.0] * len(sizes)


def test_the_smaller_of_two_sizes():
    op = registered("def most(float(N) a, float(M) b) -> (y) { y(i) = a(i) * b(i) where i in 0:min(N,M) }")
    mean = compiled(lambda a, b: op(a, b).sum() / op(a, b).shape[0], dynamic=True)
    assert [mean(torch.ones(n), torch.ones(m)).item() for n, m in ((4, 9), (9, 4))] == [1.0, 1.0]


def test_shapes_that_are_sums_stay_dynamic():
    op = registered("def window(float(N) x, float(K) w) -> (y) { y(i) +=! x(i + k) * w(k) }")
    torch._dynamo.reset()
    counts = torch._dynamo.testing.CompileCounter()
    run = torch.compile(lambda x, w: op(x, w), backend=counts, dynamic=True)
    for n, k in ((9, 3), (20, 4), (31, 7)):
        assert run(torch.ones(n), torch.ones(k)).tolist() == [float(k)] * (n - k + 1)
    assert counts.frame_count == 1


def test_empty_batches_numbers_and_wrong_arguments():
    square = registered("def sq(float(N,D) x) -> (y) { y(n,d) = x(n,d) * x(n,d) }")
    assert compiled(square)(torch.ones(0, 3)).shape == (0, 3)
    assert square(torch.ones(0, 3, device="meta")).shape == (0, 3)
    gate = registered("def gate(float(N) x, bool on) -> (y) { y(i) = on ? x(i) : 0 }")
    assert compiled(gate)(torch.ones(2), True).tolist() == [1.0, 1.0]
    half = registered("def times(half(N) x, half a) -> (y) { y(i) = a * x(i) }")
    assert compiled(half)(torch.ones(2).half(), 2.5).tolist() == half(torch.ones(2).half(), 2.5).tolist() == [2.5, 2.5]
    head = registered("def head(float(N) x, int n) -> (y) { y(i) = i < n ? x(i) : 0 where i in 0:N }")
    run = compiled(lambda x, n: head(x, n), fullgraph=True)
    for n in range(2, 20):
        assert run(torch.ones(32), n).sum().item() == n
    mul = registered("def mul(float(N) a, float(N) b) -> (c) { c(i) = a(i) * b(i) }")
    for wrong in (torch.ones(2, device="meta"), torch.ones(2, device="meta", dtype=torch.double)):
        with pytest.raises(tw.ArgumentError) as caught:
            mul(torch.ones(2), wrong)
        assert str(caught.value) == "mul: `b` (float(N) b) is on the device meta, and has no memory"
    with pytest.raises(tw.ArgumentError) as caught:
        mul(torch.ones(2, device="meta"), torch.ones(2, device="meta", dtype=torch.double))
    assert str(caught.value) == "mul: `b` has elements of torch.float64, and torch.float32 is needed"


def test_forward_mode_is_refused_everywhere():
    forward = torch.autograd.forward_ad
    plain, rule = tw.torch.register(tw.define(CUBE).cube), registered(CUBE)
    x, said = torch.ones(3), "cube has no forward-mode derivative; use reverse mode"
    for op in (plain, rule):
        for call in (
            lambda op=op: torch.func.jvp(op, (x,), (x,)),
            lambda op=op: torch.func.jacfwd(op)(x),
            lambda op=op: compiled(lambda x: torch.func.jvp(op, (x,), (x,)))(x),
        ):
            with pytest.raises(NotImplementedError, match=said):
                call()
    with forward.dual_level(), torch.device("cpu"), pytest.raises(NotImplementedError, match=said):
        rule(forward.make_dual(x, torch.ones(3)))
    # What does not depend on the variable has no tangents and no gradients.
    assert torch.func.jvp(lambda y: y + rule(x), (x,), (x,))[1].tolist() == [1.0] * 3
    assert torch.func.grad(lambda y: (y * plain(x)).sum())(x).tolist() == [1.0] * 3
    with pytest.raises(NotImplementedError, match="cube has no gradient; register it with backward=True"):
        torch.func.grad(lambda x: plain(x).sum())(x)


def test_autocast_converts_each_argument_to_its_type():
    mix = registered("def mix(bfloat16(N) a, float(N) b) -> (c) { c(i) = float(a(i)) * b(i) }")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for call in (mix, compiled(mix)):
            assert call(torch.ones(2), torch.ones(2)).tolist() == [1.0, 1.0]
        with pytest.raises(tw.ArgumentError, match="has elements of double"):
            mix(torch.ones(2), torch.ones(2).double())


def test_frozen_operators_under_transforms_and_devices():
    text = "def layer(float(N,K) x, const float(O,K) w) -> (y) { y(n,o) +=! sin(x(n,k)) * w(o,k) }"
    w, x = torch.eye(3), torch.randn(2, 3)
    op = tw.torch.register(tw.define(text).layer.freeze(w=w), backward=True)
    found = torch.func.vmap(torch.func.grad(lambda v: op(v[None]).sum()))(x)
    torch.testing.assert_close(found, x.cos())
    with torch.device("meta"):
        op = tw.torch.register(tw.define(text).layer.freeze(w=2 * w), backward=True, name="frozen_under_meta")
    x.requires_grad_()
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())
