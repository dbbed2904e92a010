"""Tuning from Python, and its effect on later processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorwright as tw


def test_tuning_finds_records_and_uses_a_schedule(matmul, rng):
    a, b = rng.random((96, 80), "float32"), rng.random((80, 112), "float32")
    said = []
    tuned = matmul.tune(a, b, trials=12, progress=lambda *event: said.append(event))
    assert tuned.trials >= 1 and tuned.seconds > 0 and tuned.speedup > 0 and "GFLOP/s" in str(tuned)
    kinds = {kind for kind, _, _ in said}
    assert {"started", "trial", "finalists"} <= kinds
    assert all(0 <= share <= 1 for _, _, share in said if share is not None)
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-4)
    assert matmul.schedule.strip() == tuned.schedule.strip()
    assert "the schedule of" in matmul.origin

    # Another process finds it by itself.
    script = f"""
import numpy, tensorwright as tw
op = tw.define({matmul.module.source!r}).matmul
op(numpy.ones((96, 80), "float32"), numpy.ones((80, 112), "float32"))
print(op.origin)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0 and done.stdout.strip() == matmul.origin, done.stderr


def test_layers_that_share_a_kernel_share_what_tuning_finds(rng):
    layer = tw.define("def layer(float(N,I) X, const float(O,I) W) -> (Y) { Y(n,o) +=! X(n,i) * W(o,i) }").layer
    x, w, v = (rng.random((16, 16), "float32") for _ in range(3))
    first, second = layer.freeze(W=w), layer.freeze(W=v)
    for frozen, weights in [(first, w), (second, v)]:
        np.testing.assert_allclose(frozen(x), x @ weights.T, rtol=1e-4)
    first.tune(x, trials=2, progress=False)
    np.testing.assert_allclose(second(x), x @ v.T, rtol=1e-4)
    assert "the schedule of" in second.origin


def test_sizes_suffice_and_strategies_have_names(matmul):
    assert matmul.tune(M=32, N=32, K=32, trials=3, strategy="random", progress=False).trials >= 1
    with pytest.raises(tw.TuningError, match="portfolio"):
        matmul.tune(M=32, N=32, K=32, trials=3, strategy="magic", progress=False)
    with pytest.raises(tw.TuningError, match="this build has no client for servers"):
        matmul.tune(M=32, N=32, K=32, fleet=True, progress=False)


def test_modes_say_how_much_is_measured(matmul, rng):
    blur = tw.define(
        "def blur(float(N) A) -> (C) { B(i) = A(i) + A(i+1) + A(i+2)  C(i) = B(i) * B(i+1) }"
    ).blur
    a = rng.random(5000, "float32")
    chosen = blur.tune(a, mode="one-shot", progress=False)
    assert chosen.trials == 1 and chosen.origin == "pipeline"
    b = a[:-2] + a[1:-1] + a[2:]
    np.testing.assert_allclose(blur(a), b[:-1] * b[1:], rtol=1e-5)
    assert blur.schedule.strip() == chosen.schedule.strip() and "the schedule of" in blur.origin
    assert blur.tune(a, mode="top5", progress=False).trials <= 6
    # One stage: the schedule without tuning.
    assert matmul.tune(M=36, N=36, K=36, mode="one-shot", progress=False).origin == "default"
    for wrong, says in [({"mode": "best"}, "one-shot, top5, autotune"), ({"mode": "top5", "strategy": "random"}, "strategy")]:
        with pytest.raises(tw.TuningError, match=says):
            matmul.tune(M=36, N=36, K=36, progress=False, **wrong)


def test_what_a_watcher_raises_ends_the_run_and_keeps_the_trials(matmul):
    def watch(kind, line, share):
        if kind == "trial":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        matmul.tune(M=40, N=40, K=40, trials=50, progress=watch)
    assert matmul.tune(M=40, N=40, K=40, trials=1, progress=False).status


def test_what_was_tuned_for_other_threads_is_named():
    text = "def halve(float(N) x) -> (y) { y(i) = x(i) / 2 }"
    tw.define(text, threads=1).halve.tune(N=300, trials=2, progress=False)
    other = tw.define(text, threads=2).halve
    other.compile(N=300)
    said = "it has been tuned for 1 thread, not for 2; run it so (`--threads 1`, in Python `threads=1`), or tune it for 2"
    assert other.origin == f"not tuned: {said}"
    assert said in other.explain(N=300)


def test_a_time_is_that_of_the_whole_call(matmul):
    tuned = matmul.tune(M=20, N=20, K=20, time=8, progress=False)
    parts = tuned.start_seconds + tuned.search_seconds + tuned.finals_seconds
    assert abs(parts - tuned.elapsed) < 0.1 and tuned.finals_seconds > 0
    # Wide: the machine may be busy.
    assert tuned.elapsed < 24, tuned
    assert "start" in str(tuned) and "finals" in str(tuned)


def in_terminal(script, columns=None):
    """The output of a script in a terminal, optionally of a given width."""
    import fcntl
    import pty
    import struct
    import termios

    parent, child = pty.openpty()
    if columns is not None:
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([sys.executable, "-c", script], stderr=child, env=os.environ)
    os.close(child)
    text = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    assert process.wait() == 0
    return text


@pytest.mark.parametrize("columns", [40, 80, 140])
def test_progress_is_no_wider_than_the_terminal(matmul, columns):
    script = f"import tensorwright as tw; tw.define({matmul.module.source!r}).matmul.tune(M=24, N=24, K=24, trials=80, fresh=True)"
    # The line changes ten times a second: so many trials take longer on every machine.
    text = in_terminal(script, columns)
    updates = [update for update in text.decode().split("\r\x1b[K") if "\n" not in update]
    assert any("/80 trials" in update for update in updates), text
    assert all(len(update) < columns for update in updates), updates


def test_progress_is_a_line_that_changes_in_a_terminal(matmul):
    script = f"""
import tensorwright as tw
tw.define({matmul.module.source!r}).matmul.tune(M=24, N=24, K=24, trials=3)
"""
    text = in_terminal(script)
    assert b"\r\x1b[K[#" in text and b"finalists" in text, text
