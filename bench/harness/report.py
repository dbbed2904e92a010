"""Tables and pages of the results."""

import json
import math
import shutil

from . import against, plot, quiet, schedulers
from .places import BENCH, ROOT
from .suites import SUITES
from .text import shown, table


def first(record):
    """Our kernel of the first column: exact, unless only fast was requested, or the first of several
    modes."""
    return next(iter(record["ours"].values()))


def of_column(record, column):
    """Our kernel of a column; the exact one if there is no other."""
    return record["ours"].get(column, first(record))


def headline(record):
    """One line about a result, for the terminal."""
    name = f"{record['suite']}/{record['workload']}, {record['threads']} threads"
    if "failed" in record:
        return f"{name}: FAILED: {record['failed'].splitlines()[0]}"
    if record.get("unchanged"):
        return f"{name}: the same code as the other build"
    share = f"{shown(first(record)['median_ns'])}, {100 * record['roof']['share']:.0f} % of the roof"
    if not record["busy"]["quiet"]:
        share += ", on a busy machine"
    if record["best"] is None:
        return f"{name}: {share}, no peer"
    ratios = " and ".join("{1:.2f} ({0:.2f} to {2:.2f})".format(*ours["ratio"]) for ours in record["ours"].values())
    return f"{name}: {share}, {ratios} times as fast as {record['best']}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def is_measured(record):
    return "failed" not in record and not record.get("unchanged")


def of(records, suite, threads):
    return [r for r in records if r["suite"] == suite.name and r["threads"] == threads and is_measured(r)]


def mean(ratios):
    """The geometric mean of medians, with those of the lower and upper quartiles as its spread."""
    low, middle, high = (geometric_mean([ratio[i] for ratio in ratios]) for i in range(3))
    return f"**{middle:.2f}** ({low:.2f} to {high:.2f})"


COLUMNS = {"exact": "exact sums", "fast": "faster rounding allowed"}


def goals(records, run):
    """Suites with their geometric means and goals."""
    rows = [["suite", "threads", "workloads"]]
    for column in run.kernels:
        rows[0] += [COLUMNS.get(column, column), "goal", "least", "goal", "below"]
    for suite in SUITES:
        for threads in sorted({r["threads"] for r in records}):
            found = [r for r in of(records, suite, threads) if r["best"]]
            if not found:
                continue
            rows.append([suite.name, str(threads), str(len(found))])
            for column in run.kernels:
                rows[-1] += reached(suite, {r["workload"]: of_column(r, column)["ratio"] for r in found})
    return table(rows)


def reached(suite, ratios):
    """The cells of a suite in one precision."""
    least = min(ratios, key=lambda name: ratios[name][1])
    below = sum(suite.floor is not None and ratio[1] < suite.floor for ratio in ratios.values())
    goal = lambda value: "" if value is None else f"{value:.2f}"  # noqa: E731
    worst = f"{ratios[least][1]:.2f} ({least})"
    counted = "" if suite.floor is None else str(below)
    return [mean(ratios.values()), goal(suite.mean), worst, goal(suite.floor), counted]


def ratio_cell(kernel):
    low, middle, high = kernel["ratio"]
    return f"**{middle:.2f}** ({low:.2f} to {high:.2f})"


def suite_table(records, suite, threads, run):
    """Every workload of a suite."""
    rows = [["workload", "time", "rate", "roof", "ratio"]]
    others = list(run.kernels)[1:]
    for column in others:
        rows[0] += [f"time, {column}", f"ratio, {column}"]
    rows[0] += ["best peer", "its time", "tuned"]
    for r in of(records, suite, threads):
        ours = first(r)
        rate = f"{ours['gflops']:.3g} GFLOP/s" if r["flops"] else f"{ours['gbps']:.3g} GB/s"
        roof = f"{100 * r['roof']['share']:.0f} % ({r['roof']['bound']})"
        name = r["workload"] if r["busy"]["quiet"] else f"{r['workload']} \\*"
        row = [name, shown(ours["median_ns"]), rate, roof, ratio_cell(ours) if r["best"] else ""]
        for column in others:
            other = r["ours"].get(column)
            row += [shown(other["median_ns"]), ratio_cell(other) if r["best"] else ""] if other else ["", ""]
        theirs = next((p["median_ns"] for p in r["peers"] if p["name"] == r["best"]), None)
        row += [r["best"], shown(theirs)] if r["best"] else ["none", ""]
        costs = [f"{known['seconds']:.0f} s, {known['trials']} trials" for known in r.get("tuning", {}).values()]
        rows.append([*row, "; ".join(costs) or "no"])
    return table(rows) if len(rows) > 1 else ""


def roundings(records):
    """Kernels with algebraic rewrites, and the difference of their results from exact sums."""
    growth = "errors by those of direct sums, for data of one magnitude"
    rows = [["workload", "threads", growth, "largest difference to exact sums"]]
    for r in records:
        fast = r["ours"].get("fast")
        if fast and fast["error_growth"] > 1.0:
            rows.append([r["workload"], str(r["threads"]), f"{fast['error_growth']:.3g}", f"{fast['error']:.1e}"])
    return table(rows) if len(rows) > 1 else ""


def overheads(records):
    """The call overhead of short kernels."""
    rows = [["workload", "threads", "ours", "of that an empty call", "best peer", "its time", "of that an empty call"]]
    for r in records:
        if r.get("overhead_ns") and r["best"]:
            runner = next((name for name in r["overhead_ns"] if r["best"].startswith(name)), None)
            theirs = next(p["median_ns"] for p in r["peers"] if p["name"] == r["best"])
            cost = lambda name, known=r["overhead_ns"]: shown(known[name]) if name in known else ""  # noqa: E731
            rows.append([r["workload"], str(r["threads"]), shown(first(r)["median_ns"]), cost("tensorwright"),
                         r["best"], shown(theirs), cost(runner)])  # fmt: skip
    return table(rows) if len(rows) > 1 else ""


def losses(records):
    """Results below their goal, with known causes."""
    notes_file = BENCH / "notes.json"
    notes = json.loads(notes_file.read_text()) if notes_file.exists() else {}
    short = []
    for suite in SUITES:
        if suite.floor is not None:
            ratio = lambda r: first(r)["ratio"][1]  # noqa: E731
            found = [r for r in records if r["suite"] == suite.name and r.get("best") and ratio(r) < suite.floor]
            short += sorted(found, key=ratio)
    texts = []
    for r in short:
        roof, ours = r["roof"], first(r)
        limit = f"{roof['gflops']:.0f} GFLOP/s" if roof["bound"] == "compute" else f"{roof['gbps']:.1f} GB/s"
        why = notes.get(f"{r['suite']}/{r['workload']}", notes.get(r["workload"], ""))
        fast = f" (fast: {r['ours']['fast']['ratio'][1]:.2f})" if "fast" in r["ours"] else ""
        texts.append(
            f"### {r['workload']}, {r['threads']} threads: {ours['ratio'][1]:.2f}{fast} of {r['best']}\n\n"
            f"{100 * roof['share']:.0f} % of the roof, which is {roof['bound']} ({limit}). {why}\n\n"
            f"```text\n{ours['schedule'].strip()}\n```\n"
        )
    return "\n".join(texts)


def busy_text(records):
    """Whether other load disturbed the run."""
    again = sum(r["busy"]["attempts"] > 1 for r in records)
    never = sum(not r["busy"]["quiet"] for r in records)
    text = (
        f"{len(records)} measurements, of which {again} were taken again because other processes, or other machines on "
        f"the same host, used more than {100 * quiet.NOISE:.0f} % of a processor meanwhile."
    )
    if never:
        text += f" {never} never got quiet in {quiet.ATTEMPTS} attempts: marked with \\*, the quietest attempt shown."
    return text


def peer_list(records):
    """Versions, and how often each peer was the best."""
    versions, wins = {}, {}
    for r in records:
        versions.update(r.get("versions", {}))
        if r.get("best"):
            wins[r["best"]] = wins.get(r["best"], 0) + 1
    lines = [f"- {name}: {version}. {PEER_NOTES.get(name, '')}".rstrip() for name, version in sorted(versions.items())]
    best = ", ".join(f"{name} {count}" for name, count in sorted(wins.items(), key=lambda item: -item[1]))
    return "\n".join(lines) + (f"\n\nBest peer, in how many measurements: {best}." if best else "")


def troubles(records):
    """Failures of peers, except missing operators."""
    found = {}
    for r in records:
        for peer, why in r.get("troubles", {}).items():
            if why not in ("operator", "not a product of matrices"):
                found.setdefault((peer, why.splitlines()[0][:160]), []).append(r["workload"])
    lines = []
    for (peer, why), names in sorted(found.items()):
        names = sorted(set(names))
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        lines.append(f"- {peer}: {why} ({listed})")
    return "\n".join(lines)


def own_version(records):
    """The measured version."""
    found = {r["versions"]["tensorwright"] for r in records if "tensorwright" in r.get("versions", {})}
    return " and ".join(sorted(version.replace("tensorwright", "Tensorwright") for version in found)) or "Tensorwright"


def run_text(records, run):
    """The header: one machine, one build, one budget."""
    about = run.about
    m = about["machine"]
    measured = m.get("measured", {})
    text = (
        f"{m.get('model', '?')}, {m.get('logical_processors', '?')} processors, {m.get('system', '?')}; "
        f"{measured.get('fma_f32_gflops', 0):.0f} GFLOP/s of one thread, {measured.get('read_gbps', 0):.1f} GB/s. "
        f"One run, begun on {about['started']}, of {own_version(records)} (the build at {about['revision']}): {about['rounds']} rounds of "
        f"samples of {about['sample_s']} s"
    )
    if about["modes"] == ["untuned"]:
        return text + ", of schedules that nobody tuned."
    if about["modes"] != ["autotune"]:
        text += f", of our kernels in these modes (docs/tuning.md): {', '.join(about['modes'])}"
        if "autotune" not in about["modes"]:
            return text + "."
    seconds = about["time_s"]
    usual = max(seconds.values(), key=list(seconds.values()).count)
    other = ", ".join(f"{value:.0f} s for {name}" for name, value in seconds.items() if value != usual)
    other = f" ({other})" if other else ""
    return text + f", after {usual:.0f} s of tuning per workload, precision and number of threads{other}."


PRECISIONS = {
    "exact": "Our kernels were built with `--precision exact`: sums are computed from the terms that programs name.",
    "fast": "Our kernels were built with `--precision fast`: they may use Winograd's algorithm and factored sums, as "
    "*Rounding* lists.",
    "both": "*Exact sums* are kernels of the default, `--precision exact`: sums are computed from the terms that "
    "programs name. *Faster rounding allowed* are those of `--precision fast`, which may use Winograd's algorithm and "
    "factored sums, as *Rounding* lists; where no such algorithm exists, the exact kernel counts in both columns.",
}

METHOD = """\
Times are medians. Our kernels and all peers run in separate processes, which are asked for short samples in an
interleaved order, round by round, so that noise affects all alike. A ratio is the median over the rounds of a
peer's sample divided by our neighbouring samples, with the quartiles as its spread. The best peer is the one with
the lowest median. Peers that are 1.5 times slower than the best one after three rounds, by their fastest samples,
are not measured further. All results are compared before anything is timed.

The number of threads is fixed for every library, processes are restricted to as many cores, spinning threads are
pinned to one core each (ours, OpenMP's, OpenBLAS's), and the allocator keeps freed memory. Caches are warm. Weights
are constant: every peer may prepack them before the calls, as we do. Inputs and results have the layout of the
workload; peers may use their preferred one.
*Roof* is the fraction of the roofline, measured in the same run: the peak rate of fused multiply-adds, or moving
every input and result once. Operations are counted for the direct algorithm, so fast algorithms can exceed it."""

PEER_NOTES = {
    "numpy": "NumPy's OpenBLAS is given the core type if it does not recognise the CPU.",
    "torch": "PyTorch runs eagerly in both memory formats.",
    "torch-compile": "`torch.compile` runs with max-autotune and frozen weights, in both memory formats.",
    "onednn": "oneDNN is called directly, in both memory formats.",
    "jax": "JAX's functions are compiled by XLA ahead of the timing.",
    "halide-adams2019": "Halide's convolutions are built with channels first and last; its Adams2019 autoscheduler is "
    "skipped for zero-padded ones, for which its search did not end within minutes.",
    "halide-mullapudi2016": "Halide's Mullapudi2016 autoscheduler schedules the same algorithms as Adams2019.",
    "halide-hand": "Schedules by hand make the decisions of Halide's published applications (bench/peers/halide_hand.py).",
    "tvm": "TVM's MetaSchedule runs on a few workloads only, as it tunes each for minutes.",
}


def page(records, run, picture):
    """The whole report."""
    measured = [r for r in records if is_measured(r)]
    parts = [
        "# Benchmarks",
        "Written by `bench/run --docs`; bench/README.md says how to repeat it.",
        run_text(measured, run),
        busy_text(measured),
        PRECISIONS[run.about["precision"]],
        "## Summary",
        "*Ratio* is the time of the fastest peer divided by ours: above 1, ours is faster. The means are geometric, "
        "with those of the lower and upper quartiles of all rounds in brackets.",
        goals(records, run),
        *(["### Against another build", against.TEXT, against.table_of(records)] if run.about.get("against") else []),
        f"![The ratio of every workload]({picture})",
        "## Method",
        METHOD,
        peer_list(records),
    ]
    for suite in SUITES:
        for threads in sorted({r["threads"] for r in records}):
            if text := suite_table(records, suite, threads, run):
                parts += [f"## {suite.title}, {threads} thread{'s' if threads > 1 else ''}", text]
    if text := schedulers.table_of(measured, run):
        parts += ["## Autoschedulers", schedulers.TEXT, text]
    if text := overheads(records):
        parts += ["## Calls", "Kernels below 50 us, and the overhead of a call that computes next to nothing.", text]
    if text := roundings(measured):
        said = "Kernels that compute with other numbers than the program names (`--precision fast` allows it). "
        parts += ["## Rounding", said + "Differences are shares of the largest value of the result.", text]
    if text := losses(records):
        parts += ["## Below the goal", text]
    if text := troubles(records):
        parts += ["## Peers that could not take part", text]
    failed = [f"- {r['suite']}/{r['workload']}, {r['threads']} threads: {r['failed'].splitlines()[0]}"
              for r in records if "failed" in r]  # fmt: skip
    if failed:
        parts += ["## Not measured", "\n".join(failed)]
    return "\n\n".join(parts) + "\n"


def write(records, run, settings):
    """Writes the page, the plot and all numbers, and prints the summary."""
    measured = [r for r in records if is_measured(r)]
    (settings.out / "results.json").write_text(json.dumps(records, indent=1) + "\n")
    if run.about.get("against"):
        print(f"{against.TEXT}\n\n{against.table_of(records)}\n")
    if not measured:
        print("nothing was measured")
        return
    drawing = settings.out / "benchmarks.svg"
    drawing.write_text(plot.draw(measured))
    (settings.out / "benchmarks.md").write_text(page(records, run, "benchmarks.svg"))
    if settings.docs:
        shutil.copy(drawing, ROOT / "docs" / "images" / "benchmarks.svg")
        (ROOT / "docs" / "benchmarks.md").write_text(page(records, run, "images/benchmarks.svg"))
    if any(r["best"] and not r["best"].startswith(against.NAME) for r in measured):
        print(goals(records, run))
    print(f"\n{settings.out / 'benchmarks.md'}, benchmarks.svg, results.json")
