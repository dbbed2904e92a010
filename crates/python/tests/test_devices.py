"""Kernels on devices, called from Python."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorwright as tw

GEMM = "def gemm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


def on_device(text, **choices):
    """The operators of a text on the first OpenCL device; skips without a device, unless one is required."""
    module = tw.define(text, target="opencl:0", **choices)
    try:
        module[next(iter(module))]
    except ValueError as error:
        assert "TENSORWRIGHT_NEEDS_DEVICES" not in os.environ, error
        pytest.skip(str(error))
    return module


def test_results_are_those_of_numpy():
    a = np.random.default_rng(1).standard_normal((70, 50), dtype="float32")
    b = np.random.default_rng(2).standard_normal((50, 90), dtype="float32")
    gemm = on_device(GEMM).gemm
    for scale in (1, 2):
        np.testing.assert_allclose(gemm(a * scale, b), scale * (a @ b), rtol=1e-4, atol=1e-4)
    assert "bind" in gemm.schedule
    assert tw.define(GEMM).gemm.compile(a, b) is None, "the processor has kernels of its own"


def test_constants_can_be_frozen():
    module = on_device("def scale(float(N) x, const float(N) w) -> (y) { y(i) = w(i) * x(i) }")
    x, w = np.arange(8, dtype="float32"), np.full(8, 3, "float32")
    np.testing.assert_array_equal(module.scale.freeze(w=w)(x), 3 * x)


def test_reads_out_of_bounds_are_errors():
    module = on_device("def take(float(N) x, int32(M) at) -> (y) { y(i) = x(at(i)) }")
    x, at = np.arange(4, dtype="float32"), np.array([1, 9], "int32")
    with pytest.raises(tw.IndexOutOfBoundsError):
        module.take(x, at)
    np.testing.assert_array_equal(module.take(x, at % 4), [1, 1])


def test_tuning_is_for_the_device(tmp_path):
    module = on_device(GEMM, db=tmp_path / "records.sqlite3")
    a, b = (np.ones((64, 64), "float32") for _ in range(2))
    tuned = module.gemm.tune(a, b, trials=3)
    assert tuned.trials >= 1 and "bind" in tuned.schedule


def in_a_process(folder, script, **environment):
    """The output of a script that may leave a device in use."""
    on_device(GEMM).gemm
    kept = {name: value for name, value in os.environ.items() if name != "TENSORWRIGHT_DEVICE_DEADLINE"}
    start = "import os, signal, threading, time\nimport numpy as np, tensorwright as tw\n"
    start += f"gemm = tw.define({GEMM!r}, target='opencl:0').gemm\n"
    command = [sys.executable, "-c", start + script]
    done = subprocess.run(command, capture_output=True, text=True, env=kept | environment, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_call_that_takes_too_long_is_an_error(tmp_path):
    script = """
a = np.ones((3000, 3000), "float32")
for _ in range(2):
    try:
        gemm(a, a)
    except tw.DeadlineError as error:
        print(error.codes, "did not end on opencl:0 within 100ms" in str(error))
"""
    said = in_a_process(tmp_path, script, TENSORWRIGHT_DEVICE_DEADLINE="100ms")
    assert said == "['E1013'] True\n" * 2


def test_a_call_can_be_interrupted(tmp_path):
    script = """
a = np.ones((6000, 6000), "float32")
threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    gemm(a, a)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert in_a_process(tmp_path, script) == "interrupted\n"


def test_devices_that_are_not_there_are_said_to_be():
    with pytest.raises(ValueError, match="not here"):
        tw.define(GEMM, target="cuda:4294967295").gemm
    with pytest.raises(ValueError, match="there is no target `vax`"):
        tw.define(GEMM, target="vax").gemm


def test_the_environment_names_the_target_of_those_that_name_none(monkeypatch):
    monkeypatch.setenv("TENSORWRIGHT_TARGET", "vax")
    with pytest.raises(ValueError, match="there is no target `vax`"):
        tw.define(GEMM).gemm
    a = np.ones((4, 4), "float32")
    np.testing.assert_array_equal(tw.define(GEMM, target="native").gemm(a, a), a @ a)
