"""Error messages name the problem, its place, and the remedy."""

import numpy as np
import pytest

import tensorwright as tw


def test_a_wrong_text_shows_its_place():
    with pytest.raises(tw.CompileError) as caught:
        tw.define("def f(float(N) A) -> (B) {\n  B(i) = A(i) * C(i)\n}", name="mine.tc")
    text = str(caught.value)
    assert "mine.tc:2:17" in text and "`C`" in text and caught.value.codes


def test_shapes_that_disagree_show_the_declaration(matmul):
    with pytest.raises(tw.ArgumentError) as caught:
        matmul(np.ones((2, 3), "float32"), np.ones((4, 5), "float32"))
    text = str(caught.value)
    assert "`K`" in text and "3" in text and "4" in text
    line = tw.define("def line(float(N) x) -> (y) { y(i) = x(i) }").line
    with pytest.raises(tw.ArgumentError, match=r"the input `x` has the shape \(2, 3\), and 1 dimension is declared"):
        line(np.ones((2, 3), "float32"))


BAD = {
    "the element type": (lambda a, b: (a.astype("float64"), b), "has elements of double, and float is needed; convert it to float32"),
    "the rank": (lambda a, b: (a[0], b), "2 dimensions are declared"),
    "order of bytes": (lambda a, b: (a.astype(">f4"), b), "of the other byte order"),
    "no array": (lambda a, b: ("abc", b), "was given a str"),
    "nothing": (lambda a, b: (None, b), "was given a NoneType"),
    "too few": (lambda a, b: (a,), "`B` (float(K,N) B) is missing"),
    "too many": (lambda a, b: (a, b, a), "takes 2 arguments"),
    "complex numbers": (lambda a, b: (a.astype("complex64"), b), "has elements of Zf"),
    "not aligned": (lambda a, b: (np.frombuffer(bytearray(8 * 8 * 4 + 1), "uint8")[1:].view("float32").reshape(8, 8), b), "not aligned"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_argument_is_refused(matmul, what):
    make, said = BAD[what]
    with pytest.raises((tw.ArgumentError, tw.CompileError)) as caught:
        matmul(*make(np.ones((8, 8), "float32"), np.ones((8, 8), "float32")))
    assert said in str(caught.value)


def test_bad_places_for_results_are_refused(matmul):
    a = np.ones((8, 8), "float32")
    both = np.ones((16, 8), "float32")
    fixed = np.ones((8, 8), "float32")
    fixed.flags.writeable = False
    for out, said in [
        (fixed, "read-only"),
        (a, "overlaps `A`"),
        (both[4:12], "overlaps"),
        (np.ones((8, 9), "float32"), "has the shape (8, 9)"),
        (np.ones((8, 8)), "has elements of double"),
        ((a, a), "has 1 results, and `out` has 2"),
        (3, "is not an array"),
    ]:
        with pytest.raises(tw.ArgumentError) as caught:
            matmul(a if out is not both else both[:8], both[:8] if said == "overlaps" else a, out=out)
        assert said in str(caught.value)


def test_a_subscript_out_of_bounds_raises_index_error():
    rows = tw.define("def rows(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }").rows
    table = np.arange(6, dtype="float32").reshape(3, 2)
    assert rows(table, np.array([2, 0], "int32")).tolist() == [[4, 5], [0, 1]]
    for bad in (3, -1, 2**31 - 1):
        with pytest.raises(IndexError) as caught:
            rows(table, np.array([0, bad], "int32"))
        assert isinstance(caught.value, tw.Error) and str(bad) in str(caught.value)


def test_booleans_are_zero_or_one():
    f = tw.define("def f(bool(N) A) -> (B) { B(i) = A(i) ? 1.0 : 0.0 }").f
    assert f(np.array([True, False])).tolist() == [1, 0]
    with pytest.raises(tw.ArgumentError, match="neither True nor False"):
        f(np.array([1, 7], "uint8").view("bool_"))


def test_a_number_that_does_not_fit_its_type_is_refused():
    f = tw.define("def f(int8(N) A, int8 s) -> (B) { B(i) = A(i) + s }").f
    with pytest.raises(tw.ArgumentError, match="cannot be 300"):
        f(np.ones(2, "int8"), 300)


def test_a_missing_definition_lists_those_there_are():
    module = tw.define("def f(float(N) A) -> (B) { B(i) = A(i) }")
    with pytest.raises(AttributeError, match="there is f"):
        module.g  # noqa: B018
    with pytest.raises(tw.CompileError, match="no `def g`"):
        module["g"]
