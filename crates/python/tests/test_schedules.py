"""Schedules, explanations and reports from Python."""

import numpy as np
import pytest

import tensorwright as tw

SUM = "def sum(float(N,M) A) -> (s) { s(i) +=! A(i,j) }"


def test_a_schedule_of_ones_own_is_used(rng):
    sum = tw.define(SUM, threads=1).sum
    a = rng.random((32, 48), "float32")
    sum.compile(a, schedule="s: split i 8\ns: reorder i.0 j i.1\ns: vectorize i.1")
    np.testing.assert_allclose(sum(a), a.sum(1), rtol=1e-5)
    assert sum.schedule.splitlines()[0] == "s: split i 8" and sum.origin == "given"
    # Other shapes have their own.
    sum(a[:5])
    assert sum.origin.startswith("not tuned")
    sum(a)
    assert sum.origin == "given"
    # The one before is replaced.
    sum.compile(a, schedule="")
    np.testing.assert_allclose(sum(a), a.sum(1), rtol=1e-5)
    assert sum.schedule.strip() == ""


def test_a_schedule_that_does_not_fit_is_refused_and_changes_nothing(rng):
    sum = tw.define(SUM, threads=1).sum
    a = rng.random((32, 48), "float32")
    sum(a)
    before = sum.schedule
    for wrong, why in [("s: split k 8", "no loop `k`"), ("s: spilt i 8", "spilt"), ("what is this", "what")]:
        with pytest.raises(tw.CompileError, match=why):
            sum.compile(a, schedule=wrong)
    sum(a)
    assert sum.schedule == before


def test_an_explanation_shows_the_schedule_in_use(rng):
    blur = tw.define(
        "def blur(float(N) A) -> (C) { B(i) = A(i) + A(i+1)  C(i) = B(i) * B(i+1) }", threads=1
    ).blur
    text = blur.explain(rng.random(500, "float32"))
    for wanted in ("A(i+1)", "Where stages are computed", "moves", "Schedule", "not tuned; 1 thread", "us a call, measured now"):
        assert wanted in text, text
    # By sizes alone there is nothing to measure.
    assert "us a call" not in blur.explain(N=500)


def test_a_report_is_a_page(rng, tmp_path):
    sum = tw.define(SUM, threads=1).sum
    a = rng.random((20, 30), "float32")
    with pytest.raises(tw.TuningError, match="was not tuned|no records"):
        sum.report(a)
    sum.tune(a, trials=3, progress=False)
    report = sum.report(a)
    assert report.html.startswith("<!") and "s(i)" in report.html
    assert report._repr_html_().startswith("<iframe srcdoc=\"&lt;!")
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report.html
    assert sum.report(N=20, M=30).html.count("<h2") == report.html.count("<h2")


def test_records_without_a_place_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no directory .*nowhere"):
        tw.define(SUM, db=tmp_path / "nowhere" / "records.sqlite3")
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        tw.define(SUM, db=tmp_path)
    tw.define(SUM, db=tmp_path / "records.sqlite3")


def test_records_that_cannot_be_written_are_said(tmp_path):
    (tmp_path / "records.sqlite3").write_text("no database " * 100)
    sum = tw.define(SUM, db=tmp_path / "records.sqlite3", threads=1).sum
    with pytest.warns(UserWarning, match="could not be written yet"):
        sum.tune(N=20, M=30, trials=2, progress=False)
