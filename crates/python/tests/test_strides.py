"""Non-contiguous tensors: dense views are read in place, others are copied."""

import warnings

import numpy as np
import pytest

import tensorwright as tw

SCALE = "def scale(float(N,D) x) -> (y) { y(n,d) = 2 * x(n,d) }"
ROWS = "def sums(float(N,D) x) -> (s, m) { s(n) +=! x(n,d)  m(n) max=! x(n,d) }"
BATCH = "def heads(float(B,H,T,D) x) -> (y) { y(b,h,t,d) = 3 * x(b,h,t,d) }"

# What is done to an array of 40 by 60, and whether kernels read the result where it is.
VIEWS = {
    "columns": (lambda a: a[:, 7:30], True),
    "last columns": (lambda a: a[:, -13:], True),
    "rows and columns": (lambda a: a[3:20, 1:2], True),
    "every second row": (lambda a: a[::2], True),
    "every third column": (lambda a: a[:, 1::3], True),
    "transposed": (lambda a: a.T, True),
    "transposed columns": (lambda a: a[5:9].T, True),
    "expanded": (lambda a: np.broadcast_to(a[3], (21, 60)), True),
    "one column for all": (lambda a: np.broadcast_to(a[:, 3:4], (40, 17)), True),
    "backwards": (lambda a: a[::-1], False),
    "a diagonal band": (lambda a: np.lib.stride_tricks.sliding_window_view(a.ravel(), 9)[:30], False),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_arrays(view, rng):
    make, is_read_in_place = VIEWS[view]
    # What is beside the array is not part of it: its end is the end of a page that ends there.
    a = rng.standard_normal((40, 60)).astype("float32")
    x = make(a)
    scale, sums = tw.define(SCALE).scale, tw.define(ROWS).sums
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(scale(x), 2 * x)
        np.testing.assert_array_equal(scale(x), 2 * x)
    if is_read_in_place:
        assert not said
    else:
        assert [str(warning.message) for warning in said] == [
            "scale: `x` is copied on every call, because kernels cannot read it with these strides; pass .contiguous() or "
            "numpy.ascontiguousarray(...) to copy it once"
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s, m = sums(x)
    np.testing.assert_allclose(s, x.sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(m, x.max(1))


def test_nothing_outside_of_a_view_is_read():
    """The elements lie between unreadable pages."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 4 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    whole = np.frombuffer(memory, "float32")
    inner = whole[page // 4 : 3 * page // 4]
    inner[:] = np.arange(inner.size)
    for at in (start, start + 3 * page):
        assert libc.mprotect(ctypes.c_void_p(at), page, 0) == 0
    try:
        scale, sums = tw.define(SCALE, dynamic=False).scale, tw.define(ROWS, dynamic=False).sums
        for width, rows, columns in [(64, 32, 13), (64, 32, 63), (128, 16, 7), (37, 30, 20), (256, 8, 100)]:
            count = width * (rows - 1) + columns
            for view in (inner[:count], inner[-count:]):
                x = np.lib.stride_tricks.as_strided(view, (rows, columns), (4 * width, 4))
                np.testing.assert_array_equal(scale(x), 2 * x)
                np.testing.assert_allclose(sums(x)[0], x.sum(1), rtol=1e-4)
                y = x.T
                np.testing.assert_array_equal(scale(y), 2 * y)
                np.testing.assert_allclose(sums(y)[0], y.sum(1), rtol=1e-4)
    finally:
        for at in (start, start + 3 * page):
            libc.mprotect(ctypes.c_void_p(at), page, 3)


def test_axes_of_torch_tensors_in_any_order(rng):
    torch = pytest.importorskip("torch")
    heads = tw.define(BATCH).heads
    x = torch.rand(2, 5, 3, 8)
    for view in (x.transpose(1, 2), x.permute(3, 0, 2, 1), x[:, 1:4], x[..., :3], x[:1].expand(4, 5, 3, 8)):
        assert torch.equal(heads(view), 3 * view)
    # Slices of a batch are computed by one kernel.
    scale = tw.define(SCALE, dynamic=["N"]).scale
    x = torch.rand(700, 50)
    for n in range(600, 700, 3):
        assert torch.equal(scale(x[:n, 3:40]), 2 * x[:n, 3:40])
    assert scale.kernels == 1


def test_many_layouts_are_copied_in_the_end(rng):
    scale = tw.define(SCALE, dynamic=False).scale
    a = rng.random((9, 64), "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for width in range(20, 60):
            x = a.reshape(-1)[: 9 * width].reshape(9, width)[:, :16]
            np.testing.assert_array_equal(scale(x), 2 * x)
    assert scale.kernels <= 9


def test_results_and_constants_are_dense(rng):
    scale = tw.define(SCALE).scale
    x = rng.random((6, 4), "float32")
    with pytest.raises(tw.ArgumentError, match="`out` for `y` is not contiguous"):
        scale(x, out=np.empty((4, 6), "float32").T)
    layer = tw.define("def layer(float(N,I) x, const float(O,I) w) -> (y) { y(n,o) +=! x(n,i) * w(o,i) }").layer
    w = rng.random((4, 7), "float32")
    with pytest.warns(UserWarning, match="a constant has to be contiguous"):
        np.testing.assert_allclose(layer(x, w.T), x @ w, rtol=1e-5)
    np.testing.assert_allclose(layer.freeze(w=w.T)(x), x @ w, rtol=1e-5)
