"""TVM's MetaSchedule. Tunes a workload on first use, for the measured number of threads, and keeps its
records in `--state`; the tuning time is reported next to the result."""

import argparse
import os
import pathlib
import sys
import time

import numpy as np
import tvm
from protocol import Variant, serve
from tvm import te
from tvm.s_tir import meta_schedule as ms
from tvm_operators import define

VERSION = "tvm " + tvm.__version__
OPTIONS = argparse.Namespace(threads=1, trials=200, state=".")
# Workers unpickle `cpu_build` from this file.
os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).resolve().parent)


def setup():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--state", default=".")
    parser.parse_args(namespace=OPTIONS)


def target():
    with open("/proc/cpuinfo") as file:
        flags = file.read()
    names = (("amx_tile", "sapphirerapids"), ("avx512f", "skylake-avx512"), ("avx2", "haswell"))
    cpu = next((name for flag, name in names if flag in flags), "generic")
    return tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": OPTIONS.threads})


def cpu_build(module, build_target, _params):
    """The default builder imports GPU tensor intrinsics, which takes tens of seconds per worker."""
    from tvm.driver import build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=build_target)


def tune(module, directory):
    """Tunes, and records the seconds and the measured trials."""
    directory.mkdir(parents=True, exist_ok=True)
    start = time.time()
    # Search and builds may use the whole machine; candidates run with the measured number of
    # threads.
    cores, kept = os.cpu_count(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(cores))
    evaluator = ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=30, enable_cpu_cache_flush=False)
    database = ms.tune_tir(
        module, target(), str(directory), OPTIONS.trials,
        num_trials_per_iter=max(1, min(64, OPTIONS.trials // 2)),
        runner=ms.runner.LocalRunner(evaluator_config=evaluator, timeout_sec=20),
        builder=ms.builder.LocalBuilder(max_workers=cores, timeout_sec=30, f_build=cpu_build),
        num_tuning_cores=cores, seed=1,
    )  # fmt: skip
    os.sched_setaffinity(0, kept)
    (directory / "done.txt").write_text(f"{time.time() - start:.1f} {len(database)}")


def build(workload, inputs):
    op = define(workload, inputs)
    function = te.create_prim_func([*op.placeholders, op.result]).with_attr("global_symbol", "main")
    module = tvm.IRModule({"main": function})
    directory = pathlib.Path(OPTIONS.state) / f"{workload['name']}-{OPTIONS.threads}-{OPTIONS.trials}"
    if not (directory / "done.txt").exists():
        tune(module, directory)
    seconds, trials = (directory / "done.txt").read_text().split()
    database = ms.database.JSONDatabase(work_dir=str(directory))
    scheduled = ms.tir_integration.compile_tir(database, module, target())
    if scheduled is None:
        raise RuntimeError("no valid schedule was found")
    run = tvm.compile(scheduled.mod, target=target())["main"]
    shape = [int(extent) for extent in op.result.shape]
    result = tvm.runtime.tensor(np.zeros(shape, np.float32), tvm.cpu())
    arguments = [*(tvm.runtime.tensor(array, tvm.cpu()) for array in op.arrays), result]

    def output():
        run(*arguments)
        return op.back(result.numpy())

    extra = {"tune_s": float(seconds), "trials": int(trials)}
    return {"metaschedule": Variant(lambda: run(*arguments), output, extra)}


def overhead():
    a = te.placeholder((1,), "float32", name="A")
    b = te.compute((1,), lambda i: a[i] + 1.0, name="B")
    module = tvm.IRModule({"main": te.create_prim_func([a, b]).with_attr("global_symbol", "main")})
    run = tvm.compile(module, target=target())["main"]
    arguments = [tvm.runtime.tensor(np.zeros(1, np.float32), tvm.cpu()) for _ in range(2)]
    return Variant(lambda: run(*arguments), lambda: arguments[-1].numpy())


if __name__ == "__main__":
    setup()
    serve(sys.modules[__name__])
