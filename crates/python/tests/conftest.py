"""Tests of the installed package; `pytest crates/python/tests` after `pip install` of the wheel."""

import os
import tempfile

# Before the package is loaded: the records of tests are nobody's.
os.environ["TENSORWRIGHT_DB"] = os.path.join(tempfile.mkdtemp(prefix="tensorwright-tests-"), "records.sqlite3")
# Tests count what is compiled.
os.environ["TENSORWRIGHT_CACHE"] = ""

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import tensorwright as tw  # noqa: E402

MATMUL = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


@pytest.fixture
def matmul():
    return tw.define(MATMUL).matmul


@pytest.fixture
def rng():
    return np.random.default_rng(7)
