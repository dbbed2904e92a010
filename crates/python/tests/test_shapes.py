"""Dynamic shapes: few kernels serve all shapes, with NumPy's results."""

import numpy as np
import pytest

import tensorwright as tw

ROWS = "def rows(float(N,D) x, float(D) b) -> (y) { y(n,d) = max(x(n,d) + b(d), 0) }"
SOFTMAX = """def softmax(float(N,D) x) -> (y) {
  m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = exp(x(n,d) - m(n)) / s(n)
}"""
MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
ATTENTION = """def attention(float(N,D) q, float(N,D) k, float(N,D) v) -> (o) {
  s(i,j) +=! q(i,d) * k(j,d)
  m(i) max=! j <= i ? s(i,j) : -1e30
  e(i,j) = j <= i ? exp(s(i,j) - m(i)) : 0.0
  t(i) +=! e(i,j)
  o(i,d) +=! e(i,j) * v(j,d)
  o(i,d) = o(i,d) / t(i)
}"""


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def attention(q, k, v):
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T, -np.inf)
    return softmax(scores) @ v


def test_a_thousand_batch_sizes_take_few_kernels(rng):
    rows = tw.define(ROWS, dynamic=["N"]).rows
    x, b = rng.standard_normal((3000, 9)).astype("float32"), rng.random(9, "float32")
    wanted = np.maximum(x + b, 0)
    for n in rng.integers(0, 3000, 1000):
        start = rng.integers(0, 3000 - n)
        np.testing.assert_array_equal(rows(x[start : start + n], b), wanted[start : start + n])
    # For a few rows, for some, and for many.
    assert rows.kernels == 3


def test_a_kernel_says_for_which_sizes_it_is(rng):
    rows = tw.define(ROWS, dynamic=["N"]).rows
    rows(rng.random((100, 64), "float32"), rng.random(64, "float32"))
    explained = rows.explain(N=1000, D=64)
    assert "1000 x 64" in explained
    assert explained.endswith("\n  N from 1 to 1048576, made for 1024\n")
    assert rows.origin == "not tuned, for sizes that vary"
    assert "N" in rows.source("loops")


def test_parts_of_larger_arrays_are_read_in_place(rng):
    rows = tw.define(ROWS, dynamic=True).rows
    image, b = rng.standard_normal((60, 90)).astype("float32"), rng.random(90, "float32")
    for part in (image[3:40, 5:70], image[::2], image[::-1, :33], np.broadcast_to(image[0], (7, 90)), image[:, ::2], image.T):
        offset = np.resize(b, part.shape[1])
        np.testing.assert_array_equal(rows(part, offset), np.maximum(part + offset, 0))
    assert rows.kernels == 1


def test_sizes_that_vary_are_found(rng):
    rows = tw.define(ROWS).rows
    x, b = rng.random((600, 5), "float32"), rng.random(5, "float32")
    for n in rng.permutation(600)[:200]:
        np.testing.assert_array_equal(rows(x[:n], b), np.maximum(x[:n] + b, 0))
    # Four sizes have their own.
    assert 4 <= rows.kernels <= 7
    exact = tw.define(ROWS, dynamic=False).rows
    for n in range(100, 120):
        exact(x[:n], b)
    assert exact.kernels == 20


def test_several_sizes_vary_and_one_is_inside_of_a_softmax(rng):
    op = tw.define(SOFTMAX, dynamic=True).softmax
    for _ in range(60):
        x = rng.standard_normal(rng.integers(1, 200, 2)).astype("float32") * 5
        np.testing.assert_allclose(op(x), softmax(x), rtol=1e-4, atol=1e-7)
    # A row without a number has none afterwards, whatever is beside it.
    x = np.full((11, 13), -np.inf, "float32")
    x[1:] = 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(op(x), softmax(x), rtol=1e-4)


def test_sums_over_sizes_that_vary(rng):
    matmul = tw.define(MATMUL, dynamic=["M", "N", "K"]).matmul
    for _ in range(40):
        m, n, k = rng.integers(0, 70, 3)
        a, b = rng.random((m, k), "float32"), rng.random((k, n), "float32")
        out = np.full((m, n), 7, "float32")
        assert matmul(a, b, out=out) is out
        np.testing.assert_allclose(out, a @ b, rtol=1e-4)
    causal = tw.define(ATTENTION, dynamic=["N"]).attention
    for n in (1, 2, 9, 17, 33, 57, 60, 61):
        q, k, v = (rng.standard_normal((n, 6)).astype("float32") for _ in range(3))
        np.testing.assert_allclose(causal(q, k, v), attention(q, k, v), rtol=1e-3, atol=1e-5)
    assert causal.kernels == 2


def test_kernels_that_are_not_used_leave(rng):
    op = tw.define(MATMUL, dynamic=False, kernels=3).matmul
    a = rng.random((9, 9), "float32")
    for _ in range(2):
        for n in range(1, 9):
            np.testing.assert_allclose(op(a[:n], a), a[:n] @ a, rtol=1e-5)
            assert op.kernels <= 3
    # One with a schedule of the caller's stays.
    op.compile(M=9, N=9, K=9, schedule="C: reorder m k n")
    for n in range(1, 9):
        op(a[:n], a)
    op.compile(M=9, N=9, K=9)
    assert op.schedule.strip() == "C: reorder m k n"
    with pytest.raises(ValueError, match="kernels is a number of at least 1, not 0"):
        tw.define(MATMUL, kernels=0)


def test_frozen_constants_are_those_of_every_size(rng):
    layer = tw.define(
        "def layer(float(N,I) X, const float(O,I) W, const float(N) s) -> (Y) { Y(n,o) +=! s(n) * X(n,i) * W(o,i) }",
        dynamic=["N"],
    ).layer
    x, w, s = (rng.random(shape, "float32") for shape in [(300, 20), (24, 20), (300,)])
    frozen = layer.freeze(W=w)
    for n in (5, 100, 299, 77, 150, 299):
        wanted = (x[:n] @ w.T) * s[:n, None]
        np.testing.assert_allclose(frozen(x[:n], s[:n]), wanted, rtol=1e-4)
        np.testing.assert_allclose(layer(x[:n], 2 * w, s[:n]), 2 * wanted, rtol=1e-4)


def test_constants_that_change_are_noticed_by_every_size(rng):
    layer = tw.define("def layer(float(N,I) X, const float(O,I) W) -> (Y) { Y(n,o) +=! X(n,i) * W(o,i) }", dynamic=["N"]).layer
    x, weights = rng.random((200, 12), "float32"), [rng.random((16, 12), "float32") for _ in range(3)]
    for _ in range(200):
        n, w = rng.integers(1, 200), weights[rng.integers(3)]
        np.testing.assert_allclose(layer(x[:n], w), x[:n] @ w.T, rtol=1e-4)
        # The same memory with another value.
        w *= 1.5


def test_few_kernels_may_stay(rng):
    rows = tw.define(ROWS, dynamic=["N"], kernels=1).rows
    x, b = rng.standard_normal((300, 8)).astype("float32"), rng.random(8, "float32")
    before = tw.compilations()
    for _ in range(20):
        np.testing.assert_array_equal(rows(x[:299], b), np.maximum(x[:299] + b, 0))
    assert rows.kernels == 1 and tw.compilations() - before == 1


def test_a_wrong_subscript_is_that_of_the_whole():
    look = tw.define("def look(float(E) t, int32(N) at) -> (y) { y(i) = t(at(i)) }", dynamic=["N"]).look
    at = np.zeros(100, "int32")
    at[97] = 7
    with pytest.raises(tw.IndexOutOfBoundsError, match="i = 97"):
        look(np.ones(3, "float32"), at)
    at[97] = 2
    assert look(np.ones(3, "float32"), at).sum() == 100


def test_tuned_kernels_are_used_for_their_sizes(rng):
    rows = tw.define(ROWS, dynamic=["N"]).rows
    rows.tune(N=77, D=16, trials=2, progress=False)
    rows(rng.random((77, 16), "float32"), rng.random(16, "float32"))
    assert "trial" in rows.origin and rows.kernels == 1


def test_tensors_without_elements(rng):
    both = tw.define(
        "def both(float(N,D) x) -> (s, m, p, y) { s(n) +=! x(n,d)  m(n) max=! x(n,d)  p(n) *=! x(n,d)  y(n,d) = 2 * x(n,d) }"
    ).both
    s, m, p, y = both(np.ones((3, 0), "float32"))
    assert s.tolist() == [0] * 3 and m.tolist() == [-np.inf] * 3 and p.tolist() == [1] * 3 and y.shape == (3, 0)
    s, m, p, y = both(np.ones((0, 4), "float32"))
    assert s.shape == m.shape == p.shape == (0,) and y.shape == (0, 4)
    assert np.matmul(np.ones((2, 0)), np.ones((0, 3))).tolist() == tw.define(MATMUL).matmul(
        np.ones((2, 0), "float32"), np.ones((0, 3), "float32")
    ).tolist()
    mean = tw.define("def mean(float(N,D) x) -> (y) { y(n) +=! x(n,d)  y(n) = y(n) / D }").mean
    assert mean(np.ones((0, 3), "float32")).shape == (0,)
    with pytest.raises(tw.ArgumentError) as caught:
        mean(np.ones((3, 0), "float32"))
    assert str(caught.value) == "mean: has no value where `D` is 0: the result depends on its value"
    window = tw.define("def window(float(N) x) -> (y) { y(i) = x(i) + x(i+1) }").window
    with pytest.raises(tw.ArgumentError) as caught:
        window(np.ones(0, "float32"))
    assert str(caught.value) == "window: `N` cannot be 0: `y` would have a negative extent"


def test_ranges_without_values_read_nothing():
    module = tw.define("""
        def add_to(int32(N) to, float(N) x, float(V) y) -> (y) { y(v) += x(n) scatter v = to(n) }
        def bag(float(V,D) table, int32(N) at) -> (y) { y(d) +=! table(at(n), d) }
        def share(float(N) x) -> (y) { y() +=! x(n) / N }
        def first(float(N) x) -> (y) { y() = x(0) }
        def shifted(float(N) x) -> (y) { y(i) = i > 0 ? x(i - 1) : 7 where i in 0:N + 1 }
        """)
    nothing, nowhere = np.ones(0, "float32"), np.ones(0, "int32")
    assert module.add_to(nowhere, nothing, np.full(3, 5, "float32")).tolist() == [5, 5, 5]
    assert module.bag(np.ones((4, 2), "float32"), nowhere).tolist() == [0, 0]
    assert module.share(nothing) == 0
    assert module.shifted(nothing).tolist() == [7]
    with pytest.raises(tw.ArgumentError) as caught:
        module.bag(np.ones((0, 2), "float32"), np.zeros(3, "int32"))
    assert str(caught.value) == "bag: has no value where `V` is 0: an element of `table` is read, which has none"
    with pytest.raises(tw.ArgumentError) as caught:
        module.first(nothing)
    assert str(caught.value) == "first: has no value where `N` is 0: an element of `x` is read, which has none"


PARTS = {
    "inner": ("y(i) = x(i)   y(i) = x(i-1) + x(i+1) where i in 1:N-1", lambda x: np.r_[x[:1], x[:-2] + x[2:], x[-1:]]),
    "head": ("y(i) = 7 where i in 0:N+3   y(i) = x(i) where i in 0:N", lambda x: np.r_[x, [7, 7, 7]]),
    "added": ("y(i) = x(i)   y(i) += x(i) where i in 0:N-2", lambda x: np.r_[2 * x[:-2], x[-2:]]),
    "summed": ("t(i) = 7 where i in 0:N+2   t(i) = x(i) where i in 0:N   y() +=! t(i)", lambda x: x.sum() + 14),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("dynamic", [["N"], False, None])
def test_statements_may_compute_parts_of_tensors(name, dynamic):
    text, expected = PARTS[name]
    named = {} if dynamic is None else {"dynamic": dynamic}
    op = tw.define(f"def f(float(N) x) -> (y) {{ {text} }}", **named).f
    for n in range(4, 60):
        x = np.arange(1, n + 1, dtype="float32")
        np.testing.assert_array_equal(op(x), expected(x), err_msg=f"N = {n}")


def test_parts_without_elements_leave_what_was_there():
    nothing = np.ones(0, "float32")

    def of(text, *args):
        return tw.define(f"def f(float(N) x) -> (y) {{ {text} }}").f(nothing, *args).tolist()

    assert of("y(i) = 7 where i in 0:N+1   y(i) = x(i) where i in 0:N") == [7]
    assert of("y(i) = 7 where i in 0:4   y(i) = 1 where i in 0:2   y(i) = x(i) where i in 0:N") == [1, 1, 7, 7]
    assert of("y(i) = 7 where i in 0:N+3   y(i) = 2 where i in 1:N+1") == [7, 7, 7]
    assert of("y(i) = 7 where i in 0:3   y(i) max= x(i) where i in 0:N") == [7, 7, 7]
    assert of("t(i) = 7 where i in 0:N+2   t(i) = x(i) where i in 0:N   y(i) = 2 * t(i)") == [14, 14]


NOWHERE = {
    "t(i) = x(i) + 1   y() = t(0)": "an element of `t` is read, which has none",
    "s(t) = s(t-1) + x(t) scan t from 0   y() = s(0)": "an element of `s` is read, which has none",
    "y(i) = k(i) > 0 ? x(0) : 1": "an element of `x` is read, which has none",
    "y(i) = i < 2 ? x(0) : 1 where i in 0:4": "an element of `x` is read, which has none",
    "y(t) = y(t-1) + k(t) scan t from x(0)": "an element of `x` is read, which has none",
    "y(n) +=! k(j) scatter n = at(j) where n in 0:N": "terms go to elements of `y`, which has none",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("text", NOWHERE)
def test_elements_that_are_not_there_are_not_read(text):
    op = tw.define(f"def f(float(N) x, float(K) k, int32(K) at) -> (y) {{ {text} }}").f
    with pytest.raises(tw.ArgumentError) as caught:
        op(np.ones(0, "float32"), np.ones(2, "float32"), np.zeros(2, "int32"))
    assert str(caught.value) == f"f: has no value where `N` is 0: {NOWHERE[text]}"


def test_extents_of_nothing_are_not_guessed():
    def says(ends, *shape):
        text = f"def f(float(N,M) x) -> (y) {{ y(i) = 7 where i in 0:{ends} }}"
        with pytest.raises(tw.ArgumentError) as caught:
            tw.define(text).f(np.ones(shape, "float32"))
        return str(caught.value)

    assert says("(N+3)/2", 0, 2) == "f: `N` cannot be 0: a range is not linear in `N`"
    assert says("max(N,M)", 0, 1) == "f: `N` cannot be 0: a range is not linear in `N`"
    assert says("N*M", 0, 0) == "f: `M`, `N` cannot be 0: an extent of `y` is not linear in it"
    # What does not depend on it is no reason to refuse.
    ceil = tw.define("def f(float(N,M) x) -> (y) { y(n,i) = 7 where n in 0:N, i in 0:(M+1)/2 }").f
    assert ceil(np.ones((0, 5), "float32")).shape == (0, 3)


def test_a_size_that_no_definition_has_is_refused():
    with pytest.raises(ValueError) as caught:
        tw.define(MATMUL, dynamic=["Q"])
    assert str(caught.value) == "dynamic: no definition has a size 'Q': there are K, M, N"


def test_a_scalar_is_told_to_be_data():
    text = "def take(float(N) x, int64 pos) -> (y) { y() = x(pos) }"
    with pytest.raises(ValueError) as caught:
        tw.define(text, dynamic=["pos"])
    assert str(caught.value) == (
        "dynamic: 'pos' is a scalar, and sizes are dynamic. A scalar that sets no range and no subscript takes any value with the same "
        "kernel; make one that does data: write `int64(1) pos` for it, `pos(0)` where it is used, and pass an array of one number"
    )


@pytest.mark.parametrize("dynamic", [["N"], True])
def test_a_size_that_cannot_be_dynamic_is_named_once(dynamic):
    twice = tw.define("def twice(float(N) x) -> (y) { y(i) = x(i % N) where i in 0:2 * N }", dynamic=dynamic).twice
    with pytest.warns(UserWarning) as caught:
        for n in (5, 9, 33):
            x = np.arange(n, dtype="float32")
            np.testing.assert_array_equal(twice(x), np.r_[x, x])
    assert [str(warning.message) for warning in caught] == [
        "twice: `N` cannot be dynamic: `N` divides an index, so it has to be a number; each value gets its own kernel"
    ]


def test_sizes_that_are_dynamic_are_not_warned_about(recwarn):
    mean = tw.define("def mean(float(N) x) -> (m) { m() +=! x(i) / N }", dynamic=True).mean
    for n in (5, 9, 33):
        np.testing.assert_allclose(mean(np.full(n, 3, "float32")), 3, rtol=1e-5)
    for text, name in ((ROWS, "rows"), (SOFTMAX, "softmax"), (MATMUL, "matmul")):
        op = tw.define(text, dynamic=True)[name]
        for n in (16, 21, 24):
            x = np.ones((n, n), "float32")
            op(x, x[0].copy()) if name == "rows" else op(x, x) if name == "matmul" else op(x)
    assert not recwarn.list
