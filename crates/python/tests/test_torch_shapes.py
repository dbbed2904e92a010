"""Shapes in PyTorch graphs with symbolic sizes."""

import pytest

import tensorwright as tw

torch = pytest.importorskip("torch")


def registered(text):
    return tw.torch.register(tw.define(text, threads=1).f)


RANGES = ["N+3", "2*N", "(N+63)/64*64", "min(N,1000)", "N/100+1", "max(N,128)", "N*N", "1+(N-1)%7"]


@pytest.mark.parametrize("ends", RANGES)
def test_extents_in_compiled_graphs_are_those_of_calls(ends):
    op = registered(f"def f(float(N) x) -> (y) {{ y(i) = i < N ? x(i) : 0 where i in 0:{ends} }}")

    def share(x):
        y = op(x)
        return y.sum() / y.shape[0] + torch.empty(y.shape).numel()

    torch._dynamo.reset()
    compiled = torch.compile(share, backend="aot_eager", dynamic=True)
    for n in (8, 9, 16, 64, 100, 200, 2000):
        x = torch.ones(n)
        assert compiled(x) == share(x), n


def test_strided_windows_have_the_extents_of_calls():
    op = registered("def f(float(N) x) -> (y) { y(i) = x(50*i) }")
    compiled = torch.compile(lambda x: op(x) + op(x).shape[0], backend="aot_eager", dynamic=True)
    for n in (8, 40, 60, 100, 101, 1000):
        x = torch.arange(float(n))
        torch.testing.assert_close(compiled(x), op(x) + op(x).shape[0])


def test_data_may_decide_a_size():
    op = registered("def f(float(N) x) -> (y) { y(i) = 2 * x(i) where i in 0:N-1 }")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(lambda x: op(x[x > 0]).sum(), backend="aot_eager", fullgraph=True)
        for n in (20, 30):
            x = torch.randn(n)
            torch.testing.assert_close(compiled(x), op(x[x > 0]).sum())
