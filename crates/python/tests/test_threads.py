"""The default number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorwright as tw

COPY = "def copy(float(N) A) -> (B) { B(i) = A(i) }"


@pytest.fixture(autouse=True)
def restored():
    yield
    tw.set_num_threads(None)


def asked(prelude, **environment):
    script = f"{prelude}\nimport tensorwright as tw\nprint(tw.get_num_threads(), tw.define({COPY!r}).copy.threads)"
    said = {name: value for name, value in os.environ.items() if name != "TENSORWRIGHT_THREADS"} | environment
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=said)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_as_many_as_torch_uses():
    pytest.importorskip("torch")
    assert asked("import torch; torch.set_num_threads(3)") == ["3", "3"]


def test_one_for_each_core_without_torch():
    [count, used] = asked("")
    assert count == used and 1 <= int(count) <= len(os.sched_getaffinity(0))
    assert asked("import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})") == ["1", "1"]


def test_the_environment_and_the_program_say_otherwise():
    assert asked("", TENSORWRIGHT_THREADS="5") == ["5", "5"]
    tw.set_num_threads(2)
    assert tw.get_num_threads() == 2 and tw.define(COPY).copy.threads == 2
    assert tw.define(COPY, threads=1).copy.threads == 1
    before = tw.define(COPY).copy
    tw.set_num_threads(1)
    assert before.threads == 2, "operators that are there keep their kernels"


def test_numbers_that_are_none_are_refused():
    for wrong in (0, -1, 1025, "many", None):
        with pytest.raises(ValueError, match="1 to 1024") if wrong is not None else pytest.raises(TypeError):
            tw.define(COPY, threads=wrong) if wrong is not None else tw.set_num_threads()
    with pytest.raises(ValueError, match="threads is a number from 1 to 1024, not 0"):
        tw.set_num_threads(0)


def test_frozen_operators_and_gradients_use_as_many():
    tw.set_num_threads(2)
    layer = tw.define("def layer(float(N,I) X, const float(O,I) W) -> (Y) { Y(n,o) +=! X(n,i) * W(o,i) }").layer
    frozen = layer.freeze(W=np.ones((4, 4), "float32"))
    assert frozen.threads == layer.threads == 2
