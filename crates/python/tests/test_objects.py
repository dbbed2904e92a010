"""The object cache shares compiled code between processes."""

import os
import subprocess
import sys

PROGRAM = """
import numpy, warnings, tensorwright as tw
warnings.simplefilter("error")
f = tw.define("def f(float(N,D) x) -> (y) { s(n) +=! x(n,d)  y(n,d) = x(n,d) - s(n) }", threads=THREADS).f
x = numpy.arange(12, dtype="float32").reshape(3, 4)
assert (f(x) == x - x.sum(1, keepdims=True)).all()
print(tw.compilations())
"""


def run(folder, threads=1):
    env = {**os.environ, "TENSORWRIGHT_CACHE": str(folder)}
    text = PROGRAM.replace("THREADS", str(threads))
    return subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, check=False)


def test_the_next_process_finds_the_code(tmp_path):
    folder = tmp_path / "objects"
    assert run(folder).stdout == "1\n"
    kept = list(folder.iterdir())
    assert [file.suffix for file in kept] == [".o"]
    assert run(folder).stdout == "0\n"
    # Damaged files are compiled again, and kept again.
    kept[0].write_bytes(kept[0].read_bytes()[:-1])
    assert run(folder).stdout == "1\n"
    assert run(folder).stdout == "0\n"


def test_nothing_is_kept_if_the_variable_is_empty(tmp_path):
    assert run("").stdout == "1\n"
    assert run("").stdout == "1\n"


def test_folders_of_others_are_refused(tmp_path):
    tmp_path.chmod(0o777)
    done = run(tmp_path)
    said = f"TENSORWRIGHT_CACHE={tmp_path}: other users can write to the folder, whose contents are executed; kernels are not cached"
    assert said in done.stderr
    assert done.returncode != 0, "warnings are errors there"
