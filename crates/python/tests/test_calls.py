"""Calls with NumPy arrays and numbers."""

import concurrent.futures
import multiprocessing
import subprocess
import sys
import time

import numpy as np
import pytest

import tensorwright as tw

DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bool": "bool_", "int8": "int8", "int16": "int16",
    "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip


def test_a_product_is_numpys(matmul, rng):
    a, b = rng.random((65, 40), "float32"), rng.random((40, 33), "float32")
    c = matmul(a, b)
    assert type(c) is np.ndarray and c.dtype == np.float32
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_shapes_are_inferred_and_each_set_has_its_kernel(matmul, rng):
    for m, k, n in [(3, 4, 5), (5, 4, 3), (3, 4, 5), (1, 1, 1)]:
        a, b = rng.random((m, k), "float32"), rng.random((k, n), "float32")
        np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-5)
        assert matmul.output_shapes == [[m, n]]


def test_arguments_by_name_and_results_in_place(matmul, rng):
    a, b = rng.random((8, 8), "float32"), rng.random((8, 8), "float32")
    out = np.empty((8, 8), "float32")
    assert matmul(B=b, A=a, out=out) is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_passes_through(dtype):
    copy = tw.define(f"def copy({dtype}(N) A) -> (B) {{ B(i) = A(i) }}").copy
    values = np.array([1, 0, 1, 1], DTYPES[dtype])
    assert (copy(values) == values).all() and copy(values).dtype == values.dtype


def test_scalars_are_numbers_of_any_kind():
    scale = tw.define("def scale(float(N) A, float s) -> (B) { B(i) = s * A(i) }").scale
    a = np.ones(3, "float32")
    for s in (2, 2.0, np.float32(2), np.int64(2), np.array(2, "float32")):
        assert scale(a, s).tolist() == [2, 2, 2]


def test_integers_that_shape_the_program_choose_a_kernel():
    pool = tw.define(
        "def pool(float(H) A, int32 s) -> (B) { B(i) max=! A(s*i + k) where k in 0:2, i in 0:3 }"
    ).pool
    a = np.arange(10, dtype="float32")
    assert pool(a, 2).tolist() == [1, 3, 5] and pool(a, 3).tolist() == [1, 4, 7]
    assert pool(a, np.int32(2)).tolist() == [1, 3, 5]


def test_sizes_that_no_shape_tells_are_named():
    module = tw.define("def ones(float(N) A) -> (B) { B(i,j) = A(i) where j in 0:3 }")
    assert module.ones(np.ones(2, "float32"), N=2).shape == (2, 3)
    with pytest.raises(tw.ArgumentError, match="no parameter or size `Q`"):
        module.ones(np.ones(2, "float32"), Q=2)


def test_a_result_that_is_added_to_is_supplied_as_well():
    with pytest.warns(UserWarning, match="W0903"):
        acc = tw.define("def acc(float(N) A) -> (B) { B(i) += A(i) }").acc
    a, b = np.arange(4, dtype="float32"), np.full(4, 10, dtype="float32")
    for result in (acc(a, b), acc(a, B=b), acc(A=a, B=b), acc(a, b, out=np.empty(4, "float32"))):
        np.testing.assert_array_equal(result, a + 10)
    np.testing.assert_array_equal(b, np.full(4, 10))
    assert acc.signature == "float(N) A, float(_) B" and acc.results() == ["B"]
    with pytest.raises(tw.ArgumentError, match=r"acc: `B` \(float\(_\) B\) is missing"):
        acc(a)
    with pytest.raises(tw.ArgumentError, match=r"`B` .* has the shape \(3\), and the other arguments need \(4\)"):
        acc(a, b[:3])
    with pytest.raises(tw.ArgumentError, match="`out` for `B` overlaps `B`"):
        acc(a, b, out=b)
    with pytest.raises(tw.CompileError, match="declare it as a parameter too"):
        acc.module.grad("acc")
    # By one number, and along with other results.
    with pytest.warns(UserWarning, match="W0903"):
        both = tw.define("def f(float(N) A) -> (s, B) { s() += A(i) B(i) = 2 * A(i) }").f
    total, twice = both(a, 1.0)
    assert float(total) == 7.0
    np.testing.assert_array_equal(twice, 2 * a)


def test_precision_is_exact_unless_it_is_said_to_be_fast():
    text = """def conv(float(C,H,W) I, const float(K,C,R,S) F) -> (O) {
      O(k,h,w) +=! I(c,h+r,w+s) * F(k,c,r,s)
    }"""
    sizes = dict(C=128, H=30, W=30, K=256, R=3, S=3)
    steps = {}
    for precision in ("exact", "fast"):
        conv = tw.define(text, precision=precision).conv
        conv.compile(**sizes)
        steps[precision] = conv.schedule
    default = tw.define(text).conv
    default.compile(**sizes)
    assert "winograd" in steps["fast"] and "winograd" not in steps["exact"]
    assert default.schedule == steps["exact"]
    with pytest.raises(ValueError, match="there is no precision `some`: it is `exact` or `fast`"):
        tw.define(text, precision="some").conv


def test_several_results_are_a_tuple():
    both = tw.define("def both(float(N) A) -> (S, T) { S(i) = A(i) + 1  T(i) = A(i) * 2 }").both
    s, t = both(np.array([1, 2], "float32"))
    assert (s.tolist(), t.tolist()) == ([2, 3], [2, 4])


def test_constants_are_compared_and_can_be_frozen(rng):
    layer = tw.define(
        "def layer(float(B,I) X, const float(O,I) W) -> (Y) { Y(b,o) +=! X(b,i) * W(o,i) }"
    ).layer
    x, w, v = (rng.random(s, "float32") for s in [(64, 64), (64, 64), (64, 64)])
    np.testing.assert_allclose(layer(x, w), x @ w.T, rtol=1e-4)
    np.testing.assert_allclose(layer(x, v), x @ v.T, rtol=1e-4)
    w_before = w.copy()
    frozen = layer.freeze(W=w)
    w[:] = 0
    np.testing.assert_allclose(frozen(x), x @ w_before.T, rtol=1e-4)
    np.testing.assert_allclose(layer(x, w), 0)
    with pytest.raises(tw.ArgumentError, match="is not const"):
        layer.freeze(X=x)


LAYER = """
def layer(float(N,I) X, const float(O,I) W, const float(O) b) -> (Y) {
    Y(n,o) = b(o)
    Y(n,o) += X(n,i) * W(o,i)
}
"""


def test_equal_layers_share_one_kernel(rng):
    x = rng.random((8, 24), "float32")
    weights = [(rng.random((24, 24), "float32"), rng.random(24, "float32")) for _ in range(5)]
    before = tw.compilations()
    layer = tw.define(LAYER).layer
    layers = [layer.freeze(W=w, b=b) for w, b in weights]
    # As a class does that defines its operator in every object.
    layers += [tw.define(LAYER).layer.freeze(W=w, b=b) for w, b in weights]
    for _ in range(2):
        for frozen, (w, b) in zip(layers, weights * 2, strict=True):
            np.testing.assert_allclose(frozen(x), x @ w.T + b, rtol=1e-4)
    assert tw.compilations() == before + 1
    layers[0](x[:4])
    layers[1](x[:4])
    assert tw.compilations() == before + 2
    assert layers[0].output_shapes == [[4, 24]] and layers[2].output_shapes == [[8, 24]]


def test_frozen_constants_are_a_snapshot(rng):
    layer = tw.define(LAYER).layer
    x, w, b = (rng.random(s, "float32") for s in [(8, 24), (24, 24), (24,)])
    expected = x @ w.T + b
    partly = layer.freeze(W=w)
    w[:] = 0
    whole = partly.freeze(b=b)
    for _ in range(2):
        np.testing.assert_allclose(partly(x, b), expected, rtol=1e-4)
        np.testing.assert_allclose(whole(x), expected, rtol=1e-4)
    # What is not frozen may change from call to call.
    np.testing.assert_allclose(partly(x, b + 1), expected + 1, rtol=1e-4)
    b[:] = 0
    np.testing.assert_allclose(whole(x), expected, rtol=1e-4)
    with pytest.raises(tw.ArgumentError, match="`W` is frozen, and was given again; leave it out"):
        whole(x, W=w)


def test_numbers_can_be_frozen():
    scale = tw.define("def scale(float(N) A, const float s) -> (B) { B(i) = s * A(i) }").scale
    assert scale.freeze(s=2.0)(np.ones(3, "float32")).tolist() == [2, 2, 2]


def test_a_call_looks_at_no_frozen_constant():
    # It takes as long with a table of 64 MB as with one of 64 bytes; to read that takes a thousand times as long.
    look = tw.define(
        "def look(const float(N) T, const bool(N) M, int32(K) at) -> (Y) { Y(i) = M(at(i)) ? T(at(i)) : 0.0 }"
    ).look
    at, best = np.arange(4, dtype="int32"), {}
    for n in [16, 1 << 24]:
        frozen = look.freeze(T=np.ones(n, "float32"), M=np.ones(n, "bool"))
        frozen(at)
        times = []
        for _ in range(50):
            start = time.perf_counter()
            frozen(at)
            times.append(time.perf_counter() - start)
        best[n] = min(times)
    assert best[1 << 24] < 50 * best[16]


def test_an_operator_tells_about_itself(matmul):
    with pytest.raises(RuntimeError, match="not compiled yet"):
        matmul.schedule  # noqa: B018
    matmul.compile(M=64, N=64, K=64)
    assert "C:" in matmul.schedule and matmul.origin.startswith("not tuned")
    assert "for (" in matmul.source("c") and "define" in matmul.source("llvm")
    assert "0 <= k < 64" in matmul.explain(M=64, N=64, K=64) or "64" in matmul.explain(M=64, N=64, K=64)
    assert repr(matmul) == "<operator matmul(float(M,K) A, float(K,N) B)>"
    assert matmul.parameters()[0] == ("A", "float", 2, False) and matmul.results() == ["C"]


def test_threads_compute_the_same_at_once(rng):
    matmul = tw.define("def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", threads=2).matmul
    pairs = [(rng.random((n, n), "float32"), rng.random((n, n), "float32")) for n in (16, 48, 64, 96) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for (a, b), c in zip(pairs, pool.map(lambda pair: matmul(*pair), pairs), strict=True):
            np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def _in_child(queue):
    queue.put(float(CHILD(np.ones((64, 64), "float32"), np.ones((64, 64), "float32"))[0, 0]))


def test_a_forked_child_can_call_kernels_of_its_parent():
    global CHILD
    CHILD = tw.define("def m(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", threads=2).m
    CHILD(np.ones((64, 64), "float32"), np.ones((64, 64), "float32"))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 64.0
    child.join(timeout=60)
    assert child.exitcode == 0


def test_the_command_comes_with_the_package(tmp_path):
    text = tmp_path / "t.tc"
    text.write_text("def f(float(N) A) -> (B) { B(i) = A(i) + A(i+1) }")
    done = subprocess.run([sys.executable, "-m", "tensorwright", "check", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    bad = subprocess.run([sys.executable, "-m", "tensorwright", "chekc"], capture_output=True, text=True)
    assert bad.returncode == 2 and "check" in bad.stderr
    fleet = subprocess.run([sys.executable, "-m", "tensorwright", "fleet", "status"], capture_output=True, text=True)
    assert fleet.returncode == 1 and "this build has no client for servers" in fleet.stderr
    assert "--features fleet" in fleet.stderr


def test_nan_is_kept_as_numpy_keeps_it():
    extremes = tw.define(
        """def extremes(float(M,N) A) -> (m, e, c, f, at) {
             m(i) max=! A(i,j)  e(i,j) = max(A(i,j), 0)  c(i,j) = clamp(A(i,j), -1, 1)  f(i,j) = fmax(A(i,j), 0)
             at(i) argmax=! A(i,j) }"""
    ).extremes
    for width in (1, 3, 16, 67):
        a = np.random.default_rng(width).standard_normal((9, width)).astype("float32")
        a[np.random.default_rng(1).random(a.shape) < 0.1] = np.nan
        m, e, c, f, at = extremes(a)
        np.testing.assert_array_equal(m, a.max(1))
        np.testing.assert_array_equal(e, np.maximum(a, 0))
        np.testing.assert_array_equal(c, np.clip(a, -1, 1))
        np.testing.assert_array_equal(f, np.fmax(a, 0))
        np.testing.assert_array_equal(at, a.argmax(1))


def test_extents_that_disagree_are_refused():
    bias = tw.define("def bias(float(N,D) x, float(E) b) -> (y) { y(n,d) = x(n,d) + b(d) }").bias
    with pytest.raises(tw.CompileError, match="`d` has two extents: 4 in dimension 1 of `x` and 3 in dimension 0 of `b`"):
        bias(np.ones((2, 4), "float32"), np.ones(3, "float32"))
    assert bias(np.ones((2, 4), "float32"), np.ones(4, "float32")).sum() == 16


def test_bfloat16_of_numpy(tmp_path):
    types = pytest.importorskip("ml_dtypes")
    twice = tw.define("def twice(bfloat16(N) A) -> (B) { B(i) = 2 * A(i) }").twice
    a = np.arange(5).astype(types.bfloat16)
    b = twice(a)
    assert b.dtype == types.bfloat16 and (b.astype("float32") == 2 * np.arange(5)).all()
    copy = tw.define("def copy(float(N) A) -> (B) { B(i) = A(i) }").copy
    with pytest.raises(tw.ArgumentError, match="elements of bfloat16, and float is needed"):
        copy(a)
    with pytest.raises(tw.ArgumentError, match="elements of float8_e5m2, which other libraries cannot read"):
        copy(np.arange(5).astype(types.float8_e5m2))
