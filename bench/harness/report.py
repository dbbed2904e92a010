"""Tables and pages of the results."""

import json
import math
import shutil

from . import plot
from .places import BENCH, ROOT
from .suites import SUITES


def shown(ns):
    """A time with its unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def headline(record):
    """One line about a result, for the terminal."""
    name = f"{record['suite']}/{record['workload']}, {record['threads']} threads"
    if "failed" in record:
        return f"{name}: FAILED: {record['failed'].splitlines()[0]}"
    share = f"{shown(record['ours']['median_ns'])}, {100 * record['roof']['share']:.0f} % of the roof"
    if record["best"] is None:
        return f"{name}: {share}, no peer"
    low, middle, high = record["ratio"]
    return f"{name}: {share}, {middle:.2f} ({low:.2f} to {high:.2f}) times as fast as {record['best']}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def of(records, suite, threads):
    return [r for r in records if r["suite"] == suite.name and r["threads"] == threads and "failed" not in r]


def table(lines):
    """A Markdown table of rows, the first of which is the head."""
    head, *rows = lines
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def goals(records):
    """Suites with their geometric means and what is asked of them."""
    rows = [["suite", "threads", "workloads", "geometric mean", "goal", "least", "goal", "below"]]
    for suite in SUITES:
        for threads in sorted({r["threads"] for r in records}):
            ratios = {r["workload"]: r["ratio"][1] for r in of(records, suite, threads) if r["ratio"]}
            if not ratios:
                continue
            least = min(ratios, key=ratios.get)
            below = sum(suite.floor is not None and ratio < suite.floor for ratio in ratios.values())
            goal = lambda value: "" if value is None else f"{value:.2f}"  # noqa: E731
            mean = f"**{geometric_mean(ratios.values()):.2f}**"
            worst = f"{ratios[least]:.2f} ({least})"
            counts = [suite.name, str(threads), str(len(ratios))]
            rows.append([*counts, mean, goal(suite.mean), worst, goal(suite.floor), str(below)])
    return table(rows)


def suite_table(records, suite, threads):
    """Every workload of a suite."""
    rows = [["workload", "time", "GFLOP/s", "roof", "ratio", "quartiles", "best peer", "its time", "tuned"]]
    for r in of(records, suite, threads):
        rate = f"{r['ours']['gflops']:.3g}" if r["flops"] else f"{r['ours']['gbps']:.3g} GB/s"
        roof = f"{100 * r['roof']['share']:.0f} % ({r['roof']['bound']})"
        tuning = r.get("tuning")
        cost = f"{tuning['seconds']:.0f} s, {tuning['trials']} trials" if tuning else "no"
        peer = ["", "", "none", ""]
        if r["best"]:
            low, middle, high = r["ratio"]
            theirs = next(p["median_ns"] for p in r["peers"] if p["name"] == r["best"])
            peer = [f"**{middle:.2f}**", f"{low:.2f} to {high:.2f}", r["best"], shown(theirs)]
        rows.append([r["workload"], shown(r["ours"]["median_ns"]), rate, roof, *peer, cost])
    return table(rows) if len(rows) > 1 else ""


def roundings(records):
    """Kernels that use an algorithm which rounds differently, and how far their results are from the peers'."""
    rows = [["workload", "threads", "errors by those of direct sums, for data of one magnitude", "largest difference to a peer"]]
    for r in records:
        if r["ours"].get("error_growth", 1.0) > 1.0:
            largest = max((p["error"] for p in r["peers"]), default=0.0)
            rows.append([r["workload"], str(r["threads"]), f"{r['ours']['error_growth']:.3g}", f"{largest:.1e}"])
    return table(rows) if len(rows) > 1 else ""


def overheads(records):
    """What empty calls cost, beside the short kernels for which that matters."""
    rows = [["workload", "threads", "ours", "of that an empty call", "best peer", "its time", "of that an empty call"]]
    for r in records:
        if r.get("overhead_ns") and r["best"]:
            runner = next((name for name in r["overhead_ns"] if r["best"].startswith(name)), None)
            theirs = next(p["median_ns"] for p in r["peers"] if p["name"] == r["best"])
            cost = lambda name, known=r["overhead_ns"]: shown(known[name]) if name in known else ""  # noqa: E731
            rows.append([r["workload"], str(r["threads"]), shown(r["ours"]["median_ns"]), cost("tensorwright"),
                         r["best"], shown(theirs), cost(runner)])  # fmt: skip
    return table(rows) if len(rows) > 1 else ""


def losses(records):
    """What falls short of its goal, with what is known of the cause."""
    notes_file = BENCH / "notes.json"
    notes = json.loads(notes_file.read_text()) if notes_file.exists() else {}
    short = []
    for suite in SUITES:
        if suite.floor is None:
            continue
        found = [r for r in records if r["suite"] == suite.name and r.get("ratio") and r["ratio"][1] < suite.floor]
        short += sorted(found, key=lambda r: r["ratio"][1])
    texts = []
    for r in short:
        roof = r["roof"]
        limit = f"{roof['gflops']:.0f} GFLOP/s" if roof["bound"] == "compute" else f"{roof['gbps']:.1f} GB/s"
        why = notes.get(f"{r['suite']}/{r['workload']}", notes.get(r["workload"], ""))
        texts.append(
            f"### {r['workload']}, {r['threads']} threads: {r['ratio'][1]:.2f} of {r['best']}\n\n"
            f"{100 * roof['share']:.0f} % of the roof, which is {roof['bound']} ({limit}). {why}\n\n"
            f"```text\n{r['ours']['schedule'].strip()}\n```\n"
        )
    return "\n".join(texts)


def load_text(records):
    """Whether the machine had other work to do."""
    loads = sorted(r["load"] - r["threads"] for r in records if "load" in r)
    if not loads:
        return ""
    busy = sum(load > 0.5 for load in loads)
    middle, largest = max(0.0, loads[len(loads) // 2]), max(0.0, loads[-1])
    return (
        f"Load beside the measurement: median {middle:.1f}, largest {largest:.1f}; "
        f"in {busy} of {len(loads)} measurements the machine had other work to do."
    )


def peer_list(records):
    """Versions, and how often each peer was the best."""
    versions, wins = {}, {}
    for r in records:
        versions.update(r.get("versions", {}))
        if r.get("best"):
            wins[r["best"]] = wins.get(r["best"], 0) + 1
    lines = [f"- {name}: {version}" for name, version in sorted(versions.items())]
    best = ", ".join(f"{name} {count}" for name, count in sorted(wins.items(), key=lambda item: -item[1]))
    return "\n".join(lines) + (f"\n\nBest peer, in how many measurements: {best}." if best else "")


def troubles(records):
    """What kept peers out, other than that they lack an operator."""
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


def machine_text(settings):
    path = settings.out / "machine.json"
    m = json.loads(path.read_text()) if path.exists() else {}
    measured = m.get("measured", {})
    return (
        f"{m.get('model', '?')}, {m.get('logical_processors', '?')} processors, {m.get('system', '?')}; "
        f"{measured.get('fma_f32_gflops', 0):.0f} GFLOP/s of one thread, {measured.get('read_gbps', 0):.1f} GB/s. "
        f"Measured on {m.get('date', '?')} at {m.get('revision', '?')}: {m.get('rounds', '?')} rounds of samples of "
        f"{m.get('sample_s', '?')} s, after at most {m.get('trials', '?')} trials or {m.get('time_s', 0):.0f} s of "
        "tuning."
    )


PRECISIONS = {
    "exact": "Our kernels were built with `--precision exact`: sums are computed from the terms that the program names.",
    "fast": "Our kernels were built with `--precision fast`: they may use Winograd's algorithm and factored sums, as "
    "*Rounding* lists.",
}

METHOD = """\
Times are medians. *Ratio* is the time of the fastest peer divided by ours: above 1, ours is faster. Our kernels and
all peers run in separate processes, which are asked for short samples in an interleaved order, round by round, so
that noise affects all alike. A ratio is the median over the rounds of a peer's sample divided by our neighbouring
samples, with the quartiles as its spread. The best peer is the one with the lowest median. Peers that are 1.5 times
slower than the best one after three rounds, by their fastest samples, are not measured further. All results are
compared before anything is timed.

The number of threads is fixed for every library, processes are restricted to as many cores, spinning threads are
pinned to one core each (ours, OpenMP's, OpenBLAS's), and the allocator keeps freed memory. Caches are warm. Weights
are constant: every peer may prepack them before the calls, as we do. Inputs and results have the layout of the
workload; peers may use their preferred one.
*Roof* is the fraction of the roofline, measured in the same run: the peak rate of fused multiply-adds, or moving
every input and result once. Operations are counted for the direct algorithm, so fast algorithms can exceed it.
PyTorch runs eagerly in both memory formats, and through `torch.compile` with max-autotune and frozen weights.
oneDNN is called directly, also in both formats. NumPy's OpenBLAS is given the core type if it does not recognise
the CPU. Halide's convolutions are built with channels first and last; its Adams2019 autoscheduler is skipped for
zero-padded ones, for which its search did not end within minutes. TVM's MetaSchedule runs on a few workloads only,
as it tunes each for minutes."""


def page(records, settings, picture):
    """The whole report."""
    parts = [
        "# Benchmarks",
        "Written by `bench/run`; bench/README.md says how to repeat it.",
        machine_text(settings),
        load_text(records),
        PRECISIONS[settings.precision],
        "## Summary",
        goals(records),
        f"![The ratio of every workload]({picture})",
        "## Method",
        METHOD,
        peer_list(records),
    ]
    for suite in SUITES:
        for threads in sorted({r["threads"] for r in records}):
            if text := suite_table(records, suite, threads):
                parts += [f"## {suite.title}, {threads} thread{'s' if threads > 1 else ''}", text]
    if text := overheads(records):
        parts += ["## Calls", "Kernels below 50 us, and the overhead of a call that computes next to nothing.", text]
    if text := roundings([r for r in records if "failed" not in r]):
        said = "Kernels that compute with other numbers than the text names (`--precision fast` allows it); differences are "
        parts += ["## Rounding", said + "shares of the largest value of the result.", text]
    if text := losses(records):
        parts += ["## Below the goal", text]
    if text := troubles(records):
        parts += ["## Peers that could not take part", text]
    failed = [f"- {r['suite']}/{r['workload']}, {r['threads']} threads: {r['failed'].splitlines()[0]}"
              for r in records if "failed" in r]  # fmt: skip
    if failed:
        parts += ["## Not measured", "\n".join(failed)]
    return "\n\n".join(parts) + "\n"


def write(records, settings):
    """Writes the page, the plot and all numbers, and prints the summary."""
    records = [r for r in records if r["tuned"] != settings.untuned and r["precision"] == settings.precision]
    measured = [r for r in records if "failed" not in r]
    (settings.out / "results.json").write_text(json.dumps(records, indent=1) + "\n")
    if not measured:
        print("nothing was measured")
        return
    drawing = settings.out / "benchmarks.svg"
    drawing.write_text(plot.draw(measured))
    (settings.out / "benchmarks.md").write_text(page(records, settings, "benchmarks.svg"))
    if settings.docs:
        shutil.copy(drawing, ROOT / "docs" / "images" / "benchmarks.svg")
        (ROOT / "docs" / "benchmarks.md").write_text(page(records, settings, "images/benchmarks.svg"))
    print(goals(records))
    print(f"\n{settings.out / 'benchmarks.md'}, benchmarks.svg, results.json")
