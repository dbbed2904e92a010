"""Tests of the harness: two small workloads, NumPy as the only real peer, and misbehaving peers.

    bench/install ours numpy
    target/bench/numpy/bin/python -m unittest discover bench

Any Python with NumPy will do. BENCH_PROGRAMS names the directory of `tensorwright` and `tensorwright-bench`, if it is
not target/release.
"""

import argparse
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import (  # noqa: E402
    against,
    contest,
    driver,
    inputs,
    journal,
    modes,
    peers,
    plot,
    quiet,
    report,
    run,
    schedulers,
    settings,
    suites,
)
from harness.peers import Peer  # noqa: E402
from harness.runner import Runner, RunnerFailed  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import clblast_tuners  # noqa: E402

quiet.PAUSE = 0.0

PEER = """
import sys
sys.path.insert(0, {peers!r})
from protocol import Variant, serve
VERSION = "test 1"
{body}
serve(sys.modules[__name__])
"""


def workload(name):
    return next(w for _, w in suites.chosen(["all"], f"^{name}$", True))


def has_ended(process):
    """Whether a process has ended, even if its new parent has not asked for its status yet."""
    try:
        return pathlib.Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition, seconds=20.0):
    """Waits for a condition; fails after a timeout."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)


class Scratch(unittest.TestCase):
    """A directory for every test."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def runner(self, body, name="test"):
        """A Python runner with the module `body`."""
        script = self.directory / f"{name}.py"
        script.write_text(PEER.format(peers=str(peers.PEERS), body=body))
        runner = Runner(name, [sys.executable, script], 1, self.directory / "log")
        self.addCleanup(runner.stop)
        return runner


class Workloads(unittest.TestCase):
    def test_every_suite_is_there_and_every_workload_names_an_existing_definition(self):
        found = suites.chosen(["all"], "", True)
        self.assertEqual(
            {suite.name for suite, _ in found}, {suite.name for suite in suites.SUITES if not suite.device}
        )
        for _, entry in found:
            text = (peers.PEERS.parent.parent / entry["file"]).read_text()
            self.assertIn(f"def {entry['def']}(", text, entry["name"])

    def test_published_sizes_are_left_out_unless_wanted(self):
        few = suites.chosen(["gemm"], "_full$", False)
        self.assertEqual((few, len(suites.chosen(["gemm"], "_full$", True))), ([], 2))

    def test_inputs_are_the_same_in_every_run_and_indices_are_in_range(self):
        entry = workload("shift_16x16x512_k3")
        first, second = (inputs.values(entry, "idx", [512]) for _ in range(2))
        self.assertTrue((first == second).all())
        self.assertTrue(first.min() >= 0 and first.max() < 9)

    def test_a_workload_may_say_what_its_inputs_are(self):
        camera, blur = workload("camera_pipe"), workload("iir_blur")
        made = {name: inputs.values(camera, name, shape) for name, shape in camera["inputs"].items()}
        kinds = {name: array.dtype.name for name, array in made.items()}
        self.assertEqual(kinds, {"raw": "uint16", "matrix": "int32", "curve": "uint8", "strength": "int32"})
        self.assertEqual((made["strength"].shape, made["strength"].item()), ((), 32))
        self.assertLess(made["raw"].max(), 1024)
        pixels = inputs.values(blur, "in", [3, 4, 5])
        self.assertEqual(pixels.dtype, np.float32)
        self.assertTrue((pixels * 256 == np.round(pixels * 256)).all())

    def test_every_application_has_a_pipeline_of_halide(self):
        names = {entry["operator"] for _, entry in suites.chosen(["applications"], "", True)}
        found = {path.stem for path in (peers.PEERS / "halide_apps").glob("*.py")}
        self.assertEqual(names, found - {"__init__", "common"})

    def test_differences_are_shares_of_the_largest_value(self):
        self.assertAlmostEqual(inputs.difference(np.array([1.0, 9.0]), np.array([1.0, 10.0])), 0.1)
        self.assertEqual(inputs.difference(np.ones(3), np.ones(4)), float("inf"))
        self.assertEqual(inputs.difference(np.array([np.nan]), np.ones(1)), float("inf"))


class ByHand(unittest.TestCase):
    def test_schedules_written_by_hand_apply_and_compute_what_the_programs_say(self):
        command = [sys.executable, pathlib.Path(__file__).resolve().parent / "hand" / "run", "--check"]
        for threads in ("1", "2"):
            done = subprocess.run([*command, "--threads", threads], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            said = [line for line in done.stdout.splitlines() if line.endswith(": the reference interpreter")]
            self.assertEqual(len(said), 17, done.stdout)


class Runners(Scratch):
    def test_what_a_library_prints_does_not_disturb_replies(self):
        runner = self.runner("def build(w, i): print('noise'); return {'a': Variant(lambda: 1, lambda: [1.0])}")
        reply = runner.ask("build", workload={}, inputs="")
        self.assertEqual((reply["variants"], reply["version"]), (["a"], "test 1"))
        self.assertGreater(runner.ask("sample", variant="a", seconds=0.001)["ns"][0], 0)

    def test_a_runner_that_ends_or_hangs_is_ended_and_starts_again(self):
        runner = self.runner("def build(w, i):\n  import os, time\n  os._exit(3) if w == 'end' else time.sleep(w)")
        for what, limit in (("end", 10), (60, 0.3)):
            with self.assertRaises(RunnerFailed):
                runner.ask("build", workload=what, inputs="", limit=limit)
        self.assertIn("error", runner.ask("build", workload=0, inputs=""))

    def test_tuning_ends_with_a_driver_that_is_ended(self):
        code = "import sys; sys.path.insert(0, sys.argv[1]); from harness.tuning import execute; "
        code += "execute([sys.executable, '-c', sys.argv[2]], sys.argv[3])"
        said = self.directory / "pid"
        inner = f"import os, pathlib, time; pathlib.Path({str(said)!r}).write_text(str(os.getpid())); time.sleep(60)"
        words = [pathlib.Path(__file__).resolve().parent, inner, self.directory / "log"]
        driver = subprocess.Popen([sys.executable, "-c", code, *map(str, words)])
        wait_for(lambda: said.exists() and said.read_text())
        driver.terminate()
        driver.wait()
        wait_for(lambda: has_ended(said.read_text()))


class Contests(Scratch):
    def contest(self, *bodies, other=None):
        """Our runner computes ones in a millisecond; the peers' seconds and values are given, and what another build
        reports about its kernel. The runners are real, but sample times are reported, not slept: load on the machine
        must not affect a test."""
        build = "import numpy\ndef build(w, i): return {{'': Variant(lambda: None, lambda: numpy.full(4, {}))}}"

        def runner(seconds, value, name, **more):
            made = self.runner(build.format(value), name)
            ask = made.ask

            def answer(what, **arguments):
                reply = ask(what, **arguments)
                return {**more, **reply, "ns": [seconds * 1e9]} if what == "sample" else {**more, **reply}

            made.ask = answer
            return made

        # Our runner reports more about its builds than peers do.
        ours = runner(0.001, 1.0, "ours", schedule="C: unroll i", code="1f", compile_s=0.0)
        others = [(Peer("x"), runner(*body, f"peer{i}")) for i, body in enumerate(bodies)]
        if other is not None:
            others.append((against.OtherBuild(self.directory), runner(0.002, 1.0, against.NAME, **other)))
        entry = {"name": "w", "flops": 8, "bytes": 8, "output": [4], "inputs": {}}
        settings = argparse.Namespace(rounds=4, sample=0.002, mode=["untuned"])
        made = contest.Contest(entry, {"exact": ours}, others, settings, self.directory, lambda _: None)
        made.roof = lambda: {"gflops": 1.0, "gbps": 1.0, "bandwidth": "read"}
        made.overheads = lambda best: {}
        return made.run()

    def test_the_best_peer_is_found_and_slow_ones_are_screened(self):
        record = self.contest((0.004, 1.0), (0.002, 1.0), (0.02, 1.0))
        self.assertEqual(record["best"], "peer1")
        self.assertEqual(record["ours"]["exact"]["ratio"], [2.0, 2.0, 2.0])
        self.assertEqual({p["name"]: p["rounds"] for p in record["peers"]}, {"peer1": 4, "peer0": 3, "peer2": 3})

    def test_a_wrong_result_keeps_a_peer_out_and_disagreement_of_all_is_a_failure(self):
        record = self.contest((0.001, 2.0), (0.002, 1.0))
        self.assertEqual(record["best"], "peer1")
        self.assertIn("differs from ours", record["troubles"]["peer0"])
        self.assertIn("differs from every peer", self.contest((0.001, 2.0))["failed"])

    def test_another_build_is_measured_unless_its_schedule_and_its_code_are_the_same(self):
        same = {"schedule": "C: unroll i", "code": "1f"}
        record = self.contest(other=same)
        self.assertEqual((record["unchanged"], against.ratio_of(record)), (True, [1.0, 1.0, 1.0]))
        # A build that does not say what its code is may have another one.
        for other in ({**same, "code": "2e"}, {**same, "schedule": ""}, {"schedule": "C: unroll i"}):
            record = self.contest(other=other)
            self.assertNotIn("unchanged", record)
            self.assertEqual(against.ratio_of(record), [2.0, 2.0, 2.0])
        record = self.contest((0.0005, 1.0), other=same)
        self.assertEqual((record["best"], against.ratio_of(record)), ("peer0", [2.0, 2.0, 2.0]))


class Against(Scratch):
    def build(self, *folders):
        """A folder with programs that do nothing."""
        folder = self.directory.joinpath(*folders)
        folder.mkdir(parents=True)
        for name in (against.COMMAND.name, against.OURS.name):
            (folder / name).touch()
        return folder.resolve()

    def test_a_build_is_a_checkout_a_folder_or_a_program(self):
        folder = self.build("checkout", "target", "release")
        for said in (self.directory / "checkout", folder, folder / "tensorwright", folder / "tensorwright-bench"):
            chosen = settings.parse(["--against", str(said), "--untuned"])
            self.assertEqual(chosen.against, folder)
            self.assertEqual((chosen.mode, chosen.peers, chosen.precision), (["untuned"], ["none"], "exact"))
        chosen = settings.parse(["--against", str(folder), "--untuned", "--peers", "numpy", "--precision", "fast"])
        self.assertEqual((chosen.peers, chosen.precision), (["numpy"], "fast"))
        command = against.OtherBuild(folder).runner(2, chosen).command
        self.assertEqual(command[-3:], ["--precision", "fast", "--untuned"])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            settings.parse(["--against", str(self.directory)])
        self.assertIn(f"there is no tensorwright-bench in {self.directory.resolve()}", said.getvalue())

    def test_the_summary_has_the_mean_and_the_least_ratio_of_every_suite(self):
        def record(workload, threads, **more):
            return {"suite": "gemm", "workload": workload, "threads": threads, **more}

        def other(*ratio):
            return {"peers": [{"name": "numpy", "ratio": [9.0] * 3}, {"name": "other build tw", "ratio": list(ratio)}]}

        records = [
            record("a", 1, unchanged=True),
            record("b", 1, **other(0.4, 0.5, 0.6)),
            record("c", 1, **other(1.9, 2.0, 2.1)),
            record("d", 1, failed="no"),
            record("a", 2, **other(1.0, 1.21, 1.3)),
            {**record("x", 2, failed="no"), "suite": "tc"},
        ]
        self.assertEqual(
            against.table_of(records),
            "| suite | threads | workloads | same code | mean | least | not compared |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n"
            "| gemm | 1 | 3 | 1 | 1.000 | 0.500 (b) | 1 |\n"
            "| gemm | 2 | 1 | 0 | 1.210 | 1.210 (a) | 0 |\n"
            "| tc | 2 | 0 | 0 |  |  | 1 |",
        )


class Modes(unittest.TestCase):
    def test_columns_are_precisions_of_one_mode_or_modes_of_one_precision(self):
        self.assertEqual(list(modes.kernels(("exact", "fast"), ["autotune"])), ["exact", "fast"])
        made = modes.kernels(("exact",), ["untuned", "one-shot"])
        self.assertEqual([(name, k.precision, k.tuned) for name, k in made.items()],
                         [("untuned", "exact", False), ("one-shot", "exact", True)])  # fmt: skip
        chosen = settings.parse(["--mode", "one-shot,autotune", "--precision", "exact", "--out", "/o"])
        records = [modes.Kernel("exact", mode).db(chosen).name for mode in chosen.mode]
        self.assertEqual(records, ["one-shot-records.sqlite3", "records.sqlite3"])
        self.assertEqual(settings.parse(["--untuned"]).mode, ["untuned"])

    def test_modes_that_there_are_not_and_a_column_too_many_are_refused(self):
        for words, why in ((["all"], "there is no all"), (["untuned", "top5"], "columns of one precision")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                settings.parse(["--mode", ",".join(words)])
            self.assertIn(why, said.getvalue())

    def test_autoschedulers_are_shown_with_their_seconds_or_with_what_kept_them_out(self):
        peer = {"name": "halide-adams2019 p2", "median_ns": 3e6, "schedule_s": 12.34}
        ours = {"untuned": {"median_ns": 2e6}, "one-shot": {"median_ns": 1e6}}
        record = {"workload": "w", "threads": 1, "ours": ours, "troubles": {"halide-mullapudi2016": "time limit"}}
        about = {"modes": list(ours), "precision": "exact"}
        made = run.Run(pathlib.Path(), about)
        text = schedulers.table_of([{**record, "peers": [peer, {**peer, "median_ns": 9e6}]}], made)
        self.assertIn("| w | 1 | 2 ms | 1 ms | 3 ms (12.3 s) | time limit | 1.50 | 3.00 |", text)
        self.assertEqual(schedulers.table_of([{**record, "peers": []}], made), "")


class Devices(unittest.TestCase):
    def test_a_device_has_suites_and_peers_of_its_own(self):
        chosen = settings.parse(["--target", "opencl:1"])
        self.assertEqual(chosen.threads, [len(os.sched_getaffinity(0))])
        there = {suite.name for suite, _ in suites.chosen(["all"], "", False, device=True)}
        here = {suite.name for suite, _ in suites.chosen(["all"], "", False)}
        self.assertEqual(there, {"device-products", "device-stages"})
        self.assertFalse(there & here)
        installed, missing = peers.chosen(["all"], device=True)
        self.assertEqual({peer.name for peer in installed} | set(missing), {"clblast", "halide-anderson2021"})

    def test_names_of_no_device_and_peers_without_one_are_refused(self):
        for words in (["--target", "avx2"], ["--suite", "device-stages"], ["--peers", "clblast"]):
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                settings.parse(words)
            self.assertIn("opencl:0", said.getvalue())

    def test_what_a_tuner_of_clblast_prints_is_read(self):
        line = "|  {} |   578 |    0   16   {} |    8   8 |   512   512 |   \x1b[32mOK\x1b[0m   78 ms |   {} ms |"
        text = "* Parameters explored: GEMMK MWG NWG \n" + "\n".join(
            (
                line.format("ref", 8, 1.0) + "      - |      reference OK |",
                line.format("  1", 32, 20.5) + "    2.0 |     results match |",
                line.format("  2", 64, 10.25) + "    8.7 |     \x1b[32mresults match\x1b[0m |",
                line.format("  3", 128, 0.1) + "    8.7 |     L2 error 1.0 |",
                "|    4 |   578 |    0   16 ",  # the tuner was ended while it wrote
            )
        )
        best = [(10.25, {"GEMMK": 0, "MWG": 16, "NWG": 64}), (20.5, {"GEMMK": 0, "MWG": 16, "NWG": 32})]
        self.assertEqual(clblast_tuners.rows(text), best)


class Quiet(unittest.TestCase):
    def attempts(self, *shares):
        """Measures with given loads of others, one attempt after the other."""
        left, taken = list(shares), []

        class Watch:
            def __init__(self, _sessions):
                pass

            def busy(self):
                return {"others": left.pop(0), "steal": 0.0}

        real, quiet.Watch = quiet.Watch, Watch
        self.addCleanup(setattr, quiet, "Watch", real)
        return quiet.quietest(lambda: taken.append(None) or len(taken), None)

    def test_a_busy_measurement_is_taken_again_up_to_three_times(self):
        self.assertEqual(self.attempts(0.01), (1, {"others": 0.01, "steal": 0.0, "attempts": 1, "quiet": True}))
        self.assertEqual(self.attempts(0.9, 0.5, 0.02)[1]["attempts"], 3)
        result, busy = self.attempts(0.9, 0.3, 0.6, 0.8)
        self.assertEqual((result, busy["attempts"], busy["quiet"]), (2, 4, False), "the quietest one, marked")

    def test_work_of_others_is_seen_and_that_of_runners_is_not(self):
        def spin(mine):
            """What others used while a process spun for a second, as a share of a processor."""
            sessions = set()
            watch = quiet.Watch(lambda: sessions)
            code = "import time\nwhile time.process_time() < 1: pass"
            process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
            if mine:
                sessions.add(process.pid)
            # It is still running when its work is done, like a runner.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            busy = watch.busy()["others"]
            process.wait()
            return busy

        # Other load is in both.
        self.assertGreater(spin(mine=False), spin(mine=True) + 0.3)


class Whole(Scratch):
    def measure(self, *more):
        arguments = ["--suite", "ops", "--only", "^(gemm_32|gemv_128)$", "--peers", "numpy", "--threads", "1"]
        arguments += ["--trials", "2", "--time", "20", "--rounds", "2", "--sample", "0.001"]
        self.assertEqual(driver.main([*arguments, "--out", str(self.directory), *more]), 0)
        return journal.Journal(self.directory / "results.jsonl").records()

    def test_another_build_takes_part_as_a_peer_with_records_of_its_own(self):
        records = self.measure("--peers", "none", "--against", str(run.OURS.parent))
        for record in records:
            self.assertTrue(record.get("best", "").startswith("other build"), record)
            self.assertGreaterEqual(record["tuning"]["other build"]["trials"], 2)
        self.assertTrue((self.directory / "other-records.sqlite3").exists())
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            self.measure("--against", str(self.directory / "nowhere"))
        self.assertIn("there is no tensorwright-bench in", said.getvalue())

    def test_kernels_whose_code_is_the_same_in_another_build_are_not_measured(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            records = self.measure("--untuned", "--peers", "none", "--against", str(run.OURS.parent))
        self.assertEqual([(r.get("unchanged"), r.get("best")) for r in records], [(True, None)] * 2, records)
        self.assertIn("| ops | 1 | 2 | 2 | 1.000 | 1.000 (gemv_128) | 0 |", said.getvalue())
        self.assertTrue((self.directory / "bin" / "other" / run.OURS.name).exists())

    def test_two_workloads_are_tuned_measured_and_reported_and_not_measured_twice(self):
        records = self.measure()
        self.assertEqual({r["workload"] for r in records}, {"gemm_32", "gemv_128"})
        for record in records:
            self.assertTrue(record.get("best", "").startswith("numpy"), record)
            # No rewrite of a product rounds differently, so one kernel serves both columns.
            self.assertEqual(list(record["ours"]), ["exact"])
            self.assertGreater(record["ours"]["exact"]["median_ns"], 0)
            self.assertGreaterEqual(record["tuning"]["exact"]["trials"], 2)
            self.assertGreater(record["roof"]["share"], 0)
            self.assertLessEqual(record["busy"]["attempts"], quiet.ATTEMPTS)
        page = (self.directory / "benchmarks.md").read_text()
        self.assertIn("gemv_128", page)
        self.assertIn("faster rounding allowed", page)
        self.assertIn("- numpy: ", page)
        for absent in ("Halide", "TVM", "oneDNN", "PyTorch"):
            self.assertNotIn(absent, page, "only peers that ran are named")
        ElementTree.parse(self.directory / "benchmarks.svg")
        lines = (self.directory / "results.jsonl").read_text()
        self.measure()
        self.assertEqual((self.directory / "results.jsonl").read_text(), lines)

    def test_modes_are_columns_with_records_of_their_own(self):
        chosen = ["--mode", "untuned,one-shot,autotune", "--precision", "exact", "--only", "^gemv_128$"]
        (record,) = self.measure(*chosen)
        self.assertEqual(list(record["ours"]), ["untuned", "one-shot", "autotune"])
        self.assertEqual(list(record["tuning"]), ["one-shot", "autotune"])
        self.assertGreater(record["tuning"]["one-shot"]["trials"], 0)
        self.assertTrue((self.directory / "one-shot-records.sqlite3").exists())
        self.assertIn("time, one-shot", (self.directory / "benchmarks.md").read_text())

    def test_a_convolution_has_a_column_of_each_precision(self):
        only = ["--suite", "yolo", "--only", "^yolo_c15$", "--peers", "none", "--untuned"]
        (record,) = self.measure(*only)
        self.assertEqual(list(record["ours"]), ["exact", "fast"])
        self.assertEqual(record["ours"]["exact"]["error_growth"], 1.0)
        page = (self.directory / "benchmarks.md").read_text()
        self.assertIn("time, fast", page)

    def test_results_of_two_budgets_do_not_go_into_one_table(self):
        self.measure("--untuned")
        with self.assertRaises(SystemExit) as refused:
            self.measure()
        self.assertIn("holds a run with other options (modes)", str(refused.exception))
        self.assertIn("--fresh", str(refused.exception))
        self.measure("--fresh", "--precision", "exact", "--untuned")
        self.assertEqual(run.Run.read(self.directory).precisions, ("exact",))

    def test_a_fresh_run_forgets_results_programs_and_records(self):
        self.measure()
        (self.directory / "records.sqlite3.runs").mkdir(exist_ok=True)
        run.forget(self.directory)
        self.assertEqual([path.name for path in self.directory.glob("*records*")], [])
        for name in ("bin", "run.json", "results.jsonl"):
            self.assertFalse((self.directory / name).exists(), name)

    def test_later_sittings_measure_the_programs_of_the_first(self):
        self.measure("--untuned")
        begun = run.Run.read(self.directory)
        stamp = begun.command.stat().st_mtime_ns
        self.measure("--untuned")
        self.assertEqual(begun.command.stat().st_mtime_ns, stamp)

    def test_a_mean_has_a_spread_and_busy_results_are_marked(self):
        ratios = {"a": [0.5, 1.0, 2.0], "b": [2.0, 4.0, 8.0]}
        self.assertEqual(report.mean(ratios.values()), "**2.00** (1.00 to 4.00)")
        text = report.busy_text([{"busy": {"attempts": 4, "quiet": False}}, {"busy": {"attempts": 1, "quiet": True}}])
        self.assertIn("2 measurements, of which 1 were taken again", text)
        self.assertIn("1 never got quiet", text)

    def test_a_plot_without_ratios_is_empty_and_a_cut_line_is_no_result(self):
        self.assertIn("<svg", plot.draw([]))
        path = self.directory / "results.jsonl"
        path.write_text('{"suite": "ops", "work')
        self.assertEqual(journal.Journal(path).records(), [])


if __name__ == "__main__":
    unittest.main()
