"""`tensorwright.toml` applies to Python."""

import os
import subprocess
import sys

COPY = "def copy(float(N) A) -> (B) { B(i) = A(i) }"


def asked(folder, script, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENSORWRIGHT_")}
    said = kept | {"HOME": str(folder)} | environment
    command = [sys.executable, "-c", f"import tensorwright as tw\n{script}"]
    return subprocess.run(command, capture_output=True, text=True, env=said, cwd=folder)


def test_a_file_says_threads_target_and_where_records_are(tmp_path):
    (tmp_path / "tensorwright.toml").write_text('threads = 3\ntarget = "sse"\ndatabase = "r.sqlite3"\n')
    script = f"m = tw.define({COPY!r})\nprint(m.target, m.copy.threads, tw.define({COPY!r}, threads=1).copy.threads)"
    done = asked(tmp_path, script)
    assert done.stdout.split() == ["sse", "3", "1"], done.stderr
    done = asked(tmp_path, script, TENSORWRIGHT_THREADS="2", TENSORWRIGHT_TARGET="native")
    assert done.stdout.split() == ["native", "2", "1"], done.stderr
    done = asked(tmp_path, script, TENSORWRIGHT_CONFIG="", TENSORWRIGHT_THREADS="1")
    assert done.stdout.split() == ["native", "1", "1"], done.stderr
    tune = f"tw.define({COPY!r}, threads=1, target='native').copy.tune(N=64, trials=1, progress=False)"
    done = asked(tmp_path, tune)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.sqlite3").exists()


def test_a_mistake_in_a_file_is_an_exception_with_its_line(tmp_path):
    (tmp_path / "tensorwright.toml").write_text("\nthread = 3\n")
    done = asked(tmp_path, f"tw.define({COPY!r})")
    assert done.returncode == 1
    assert "[E1012] Error: unknown field `thread`" in done.stderr
    assert "tensorwright.toml:2:1" in done.stderr


def test_what_goes_on_is_told_to_those_who_ask(tmp_path):
    script = f"tw.define({COPY!r}).copy.compile(N=8)"
    assert asked(tmp_path, script).stderr == ""
    done = asked(tmp_path, script, TENSORWRIGHT_LOG="info", TENSORWRIGHT_TRACE="trace.json")
    assert 'compile{def="copy"' in done.stderr
    assert '"name":"compile"' in (tmp_path / "trace.json").read_text()
