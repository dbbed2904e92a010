"""Peers with autoschedulers: their scheduling times and results."""

from .text import shown, table

TEXT = (
    "Times of kernels, and in brackets the seconds in which a peer's autoscheduler found its schedule. *Ratio* is the "
    "time of the fastest of these peers divided by ours."
)


def table_of(records, run):
    """A row per workload with an autoscheduler; empty if there are none."""
    asked = [r for r in records if any("schedule_s" in peer for peer in r["peers"])]
    names = sorted({name for r in asked for name in outcomes(r)})
    rows = [["workload", "threads", *(f"ours, {column}" for column in run.kernels), *names]]
    rows[0] += [f"ratio, {column}" for column in run.kernels]
    for r in asked:
        known = outcomes(r)
        ours = [r["ours"][column]["median_ns"] if column in r["ours"] else None for column in run.kernels]
        best = min(peer["median_ns"] for peer in r["peers"] if "schedule_s" in peer)
        row = [r["workload"], str(r["threads"]), *(shown(ns) if ns else "" for ns in ours)]
        row += [known.get(name, "") for name in names]
        rows.append([*row, *(f"{best / ns:.2f}" if ns else "" for ns in ours)])
    return table(rows) if len(rows) > 1 else ""


def outcomes(record):
    """The result of each scheduling peer: its fastest variant or its error."""
    found = {}
    for peer in sorted(record["peers"], key=lambda peer: peer["median_ns"]):
        if "schedule_s" in peer:
            runner = peer["name"].split()[0]
            found.setdefault(runner, f"{shown(peer['median_ns'])} ({peer['schedule_s']:.1f} s)")
    for name, why in record["troubles"].items():
        if name.startswith("halide-") and name.split()[0] not in found:
            found[name.split()[0]] = why.splitlines()[0][:60]
    return found
