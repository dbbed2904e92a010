"""The plot: a bar per workload and number of threads, on a logarithmic scale around 1."""

import math
from xml.sax.saxutils import escape

from .suites import SUITES

COLOURS = ("#2f6fb2", "#e08a2e", "#4a9a5c", "#8a5fb0")
INK, FAINT, PAPER = "#222222", "#d8d8d8", "#ffffff"
# Colours for dark pages.
DARK = dict(zip((INK, FAINT, PAPER, *COLOURS), ("#d6dbe1", "#454c55", "#1b1f24", "#6ba6e0", "#e9a55c", "#6dbb7e", "#b393d3"), strict=True))
BAR, GAP, LABELS, WIDTH, RIGHT = 7, 6, 210, 620, 90
TICKS = (0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)


class Scale:
    """Maps ratios to coordinates."""

    def __init__(self, ratios):
        self.low, self.high = min(0.5, *ratios), max(2.0, *ratios)
        self.low, self.high = self.low / 1.1, self.high * 1.1

    def __call__(self, ratio):
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return LABELS + share * WIDTH

    def ticks(self):
        return [tick for tick in TICKS if self.low <= tick <= self.high]


def text(x, y, content, *, anchor="start", size=11, weight="normal", colour=INK):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{colour}">{escape(content)}</text>')  # fmt: skip


def style():
    """Colours for dark pages."""
    rules = [f'[{key}="{light}"] {{ {key}: {dark}; }}' for light, dark in DARK.items() for key in ("fill", "stroke")]
    return "\n".join(["<style>", "@media (prefers-color-scheme: dark) {", *rules, "}", "</style>"])


def bar(scale, ratio, fast, y, colour):
    """A bar from 1 to the ratio, with a line for its quartiles, and a diamond for fast precision."""
    low, middle, high = ratio
    one, end = scale(1.0), scale(middle)
    centre = y + BAR / 2
    start, width = min(one, end), max(abs(end - one), 0.5)
    return [
        f'<rect x="{start:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<line x1="{scale(low):.1f}" x2="{scale(high):.1f}" y1="{centre:.1f}" y2="{centre:.1f}" stroke="{INK}"/>',
        *([diamond(scale(fast[1]), centre, colour)] if fast else []),
    ]


def diamond(x, y, colour):
    size = BAR / 2
    corners = f"{x - size:.1f},{y:.1f} {x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f}"
    return f'<polygon points="{corners}" fill="{PAPER}" stroke="{colour}" stroke-width="1.5"/>'


def rows(records):
    """`(suite, [(workload, {threads: (ratio, ratio of fast or None)})])`, in the order of the suites."""
    for suite in SUITES:
        found = {}
        for r in records:
            if r["suite"] == suite.name and r["best"]:
                ratio, fast, *_ = [*(ours["ratio"] for ours in r["ours"].values()), None]
                found.setdefault(r["workload"], {})[r["threads"]] = (ratio, fast)
        if found:
            yield suite, list(found.items())


def draw(records):
    """The plot of all results that have a peer."""
    groups = list(rows(records))
    threads = sorted({r["threads"] for r in records})
    pairs = [pair for _, items in groups for _, known in items for pair in known.values()]
    ratios = [value for pair in pairs for ratio in pair if ratio for value in ratio]
    if not ratios:
        return '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>\n'
    scale, height, shapes = Scale(ratios), 50.0, []
    for suite, items in groups:
        shapes.append(text(LABELS, height + 12, suite.title, size=13, weight="bold"))
        height += 22
        for name, known in items:
            step = len(threads) * BAR
            shapes.append(text(LABELS - 8, height + step / 2 + 4, name, anchor="end"))
            for place, count in enumerate(threads):
                if count in known:
                    shapes += bar(scale, *known[count], height + place * BAR, COLOURS[place % len(COLOURS)])
                    shapes.append(text(LABELS + WIDTH + 8 + 40 * place, height + step / 2 + 4,
                                       f"{known[count][0][1]:.2f}", colour=COLOURS[place % len(COLOURS)]))  # fmt: skip
            height += step + GAP
        height += 10
    grid = []
    for tick in scale.ticks():
        colour, x = INK if tick == 1 else FAINT, scale(tick)
        grid.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="42" y2="{height:.1f}" stroke="{colour}"/>')
        grid.append(text(scale(tick), 36, f"{tick:g}", anchor="middle"))
    legend = [text(LABELS, 16, "time of the best peer / ours: to the right of 1, ours is faster", size=12)]
    if any(fast for _, fast in pairs):
        x = LABELS + WIDTH - 140 * len(threads) - 90
        legend.append(diamond(x, 12, INK))
        legend.append(text(x + 8, 16, "faster rounding", size=12))
    for place, count in enumerate(threads):
        x = LABELS + WIDTH - 140 * (len(threads) - place) + 60
        legend.append(f'<rect x="{x}" y="7" width="10" height="10" fill="{COLOURS[place % len(COLOURS)]}"/>')
        legend.append(text(x + 14, 16, f"{count} thread{'s' if count > 1 else ''}", size=12))
    width = LABELS + WIDTH + RIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
        f'viewBox="0 0 {width} {height:.0f}" font-family="sans-serif">',
        style(), f'<rect width="100%" height="100%" fill="{PAPER}"/>', *legend, *grid, *shapes, "</svg>", "",
    ])  # fmt: skip
