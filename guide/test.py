#!/usr/bin/env python3
"""Runs everything in the guide, and builds it.

    python guide/test.py             # all
    python guide/test.py Pages -v    # the blocks of pages; `Book` builds and follows links

Needs the packages tensorwright, numpy and torch, the command `tensorwright` (the first in PATH, or that of the
package), a C compiler, and mdbook (the environment variable MDBOOK, or the first in PATH).

What a block's first line says:

- `python`: the blocks of a page run in order in one process. A block `text,output` after it is what it prints.
- `console`: lines after `$ ` are run, what follows is what they print. With `fails`, the last one must fail.
- `varies`: numbers in what is printed are examples.
- `tc`: must pass `tensorwright check`; with `fails=E0301` it is refused with exactly that code.
- `file=NAME`: the block is written to that file, for the blocks after it.
- `ignore`: nothing is done. `rust` blocks are tested by `cargo test --doc`.

The notebook `examples/tutorial.ipynb` runs as well, and prints what it shows; numbers in it are examples. Every public name of the package is in its
reference (`guide/api.py`), the index of the search finds what is on the pages, and texts can be read on dark backgrounds.

Pages run in scratch directories of their own, with `examples` and `bench` in reach, and with records and compiled kernels
of their own. In what is printed, `...` stands for anything.
"""

import colorsys
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import api
import blocks

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 600

# Runs the blocks of a page, read as JSON, and answers with what each printed.
RUNNER = """
import contextlib, io, json, sys
blocks, names, printed = json.load(sys.stdin), {"__name__": "__main__"}, []
for place, text in blocks:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, place, "exec"), names)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


def environment(scratch):
    here = pathlib.Path(sys.executable).parent
    return os.environ | {
        "PATH": f"{os.environ['PATH']}{os.pathsep}{here}",
        "TENSORWRIGHT_DB": str(scratch / "records.sqlite3"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "NO_COLOR": "1",
    }


class Pages(unittest.TestCase):
    """Every page does what it says."""

    def run_page(self, page):
        found = blocks.blocks(page)
        with tempfile.TemporaryDirectory(prefix="guide-") as scratch:
            scratch = pathlib.Path(scratch)
            for name in ("bench", "examples"):
                (scratch / name).symlink_to(ROOT / name)
            for block in found:
                if "ignore" in block.flags:
                    continue
                if name := block.flags.get("file"):
                    (scratch / name).write_text(block.text, encoding="utf-8")
                with self.subTest(block.place):
                    if block.language == "tc":
                        self.check(block, scratch)
                    elif block.language == "console":
                        self.console(block, scratch)
            self.python(found, scratch)

    def run_command(self, command, scratch):
        return subprocess.run(
            ["bash", "-c", command],
            cwd=scratch,
            env=environment(scratch),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )

    def check(self, block, scratch):
        path = scratch / "block.tc"
        path.write_text(block.text, encoding="utf-8")
        done = self.run_command("tensorwright check block.tc", scratch)
        codes = re.findall(r"^\[([EW]\d+)\]", done.stdout, re.MULTILINE)
        wanted = [block.flags["fails"]] if "fails" in block.flags else []
        self.assertEqual(sorted(set(codes)), wanted, done.stdout)

    def console(self, block, scratch):
        # A line that ends in \\ goes on in the next one.
        steps = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
        self.assertTrue(steps, f"no line of {block.place} begins with `$ `")
        for place, (command, wanted) in enumerate(steps):
            done = self.run_command(command, scratch)
            fails = "fails" in block.flags and place == len(steps) - 1
            self.assertEqual(done.returncode != 0, fails, f"$ {command}\n{done.stdout}")
            if wanted:
                self.shown(block, wanted, done.stdout, f"$ {command}")

    def shown(self, block, wanted, printed, what):
        if not blocks.agrees(wanted, printed, "varies" in block.flags):
            self.fail(f"{what}\n--- the page says\n{wanted}\n--- printed\n{printed}")

    def python(self, found, scratch):
        run = [block for block in found if block.language == "python" and "ignore" not in block.flags]
        if not run:
            return
        done = subprocess.run(
            [sys.executable, "-c", RUNNER],
            input=json.dumps([(block.place, block.text) for block in run]),
            cwd=scratch,
            env=environment(scratch),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        self.assertEqual(done.returncode, 0, f"{run[0].page.name}\n{done.stderr}")
        printed = dict(zip([id(block) for block in run], json.loads(done.stdout), strict=True))
        for block, after in zip(found, [*found[1:], None], strict=True):
            if id(block) in printed:
                shows = after and after.language == "text" and "output" in after.flags
                with self.subTest(block.place):
                    self.shown(after or block, after.text if shows else "", printed[id(block)], block.place)


def page_test(page):
    return lambda self: self.run_page(page)


for _page in blocks.pages():
    _name = re.sub(r"\W", "_", str(_page.relative_to(blocks.SOURCE).with_suffix("")))
    setattr(Pages, f"test_{_name}", page_test(_page))


class Notebook(unittest.TestCase):
    """The tutorial runs from its first cell to its last, and prints what it shows."""

    def test_it_runs(self):
        path = ROOT / "examples" / "tutorial.ipynb"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        self.assertGreater(len(code), 5)
        run = [(f"{path.name}, cell {number}", "".join(cell["source"])) for number, cell in enumerate(code, 1)]
        with tempfile.TemporaryDirectory(prefix="guide-") as scratch:
            done = subprocess.run(
                [sys.executable, "-c", RUNNER],
                input=json.dumps(run),
                cwd=scratch,
                env=environment(pathlib.Path(scratch)),
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        for (place, _), cell, printed in zip(run, code, json.loads(done.stdout), strict=True):
            shown = "".join(text for output in cell["outputs"] for text in output.get("text", []))
            with self.subTest(place):
                if not blocks.agrees(shown, printed, varies=True):
                    self.fail(f"{place}\n--- the notebook says\n{shown}\n--- printed\n{printed}")


class Reference(unittest.TestCase):
    """The reference of the package is what the package says."""

    def test_the_reference_is_current(self):
        text = (blocks.SOURCE / "reference" / "python-api.md").read_text(encoding="utf-8")
        again = "write the page anew: python guide/api.py > guide/src/reference/python-api.md"
        self.assertMultiLineEqual(api.page(), text, again)


def contrast(one, other):
    """The contrast of two colours, as the guidelines for accessible pages define it: 1 to 21."""

    def luminance(colour):
        parts = [channel / 255 for channel in rgb(colour)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def rgb(colour):
    """Red, green and blue of `#abc`, `#aabbcc` or `hsl(226, 23%, 11%)`."""
    if colour.startswith("#"):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        return [int(digits[at : at + 2], 16) for at in (0, 2, 4)]
    hue, saturation, lightness = (float(number) for number in re.findall(r"[\d.]+", colour)[:3])
    return [255 * part for part in colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)]


class Links(html.parser.HTMLParser):
    """What a page of HTML refers to, and the names in it that can be referred to."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names.update(value for name, value in attrs.items() if name in ("id", "name") and value)
        self.targets += [value for name, value in attrs.items() if name in ("href", "src") and value]


class Book(unittest.TestCase):
    """The book builds without a warning, and its links lead somewhere."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="guide-book-")
        cls.addClassCleanup(scratch.cleanup)
        cls.book = pathlib.Path(scratch.name)
        command = [os.environ.get("MDBOOK", "mdbook"), "build", str(ROOT / "guide"), "--dest-dir", scratch.name]
        cls.done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)

    def test_it_builds_without_warnings(self):
        said = self.done.stdout + self.done.stderr
        self.assertEqual(self.done.returncode, 0, said)
        self.assertNotRegex(said, r"(?i)\b(warn|error)")

    def test_links_lead_somewhere(self):
        pages = {path: Links(path.read_text(encoding="utf-8")) for path in self.book.rglob("*.html")}
        self.assertGreater(len(pages), 30)
        for path, links in pages.items():
            if path.name in ("404.html", "toc.html"):
                continue  # Their links start from the root of the site.
            for target in links.targets:
                parts = urllib.parse.urlsplit(target)
                if parts.scheme or parts.netloc:
                    continue
                with self.subTest(page=path.name, target=target):
                    wanted = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                    self.assertTrue(wanted.exists(), "no such file")
                    if parts.fragment and wanted in pages:
                        self.assertIn(urllib.parse.unquote(parts.fragment), pages[wanted].names)

    def test_the_search_finds_what_is_on_the_pages(self):
        # The index is data that the script of a page reads.
        [index] = self.book.glob("searchindex*.js")
        text = index.read_text(encoding="utf-8").lower()
        for word in ("tropical", "vectorize", "halide", "winograd"):
            self.assertIn(word, text, f"the search does not find {word}")
        for path in self.book.rglob("*.html"):
            if path.name not in ("print.html", "404.html", "toc.html"):
                self.assertIn("searchbar", path.read_text(encoding="utf-8"), path.name)

    def test_texts_can_be_read_on_dark_backgrounds(self):
        [sheet] = self.book.glob("css/variables*.css")
        style = sheet.read_text(encoding="utf-8") + (ROOT / "guide" / "theme.css").read_text(encoding="utf-8")
        for theme in ("light", "navy", "coal", "ayu", "rust"):
            # Later rules count; those of a theme name it, alone or among others.
            rules = re.findall(rf"(?:^|\s)\.{theme}\b[^{{}}]*\{{(.*?)\}}", style, re.DOTALL)
            colours = dict(re.findall(r"--(bg|fg|links|inline-code-color|sidebar-\w+):\s*([^;]+);", "".join(rules)))
            pairs = [(name, "bg") for name in ("fg", "links", "inline-code-color")]
            for name, below in [*pairs, ("sidebar-fg", "sidebar-bg"), ("sidebar-active", "sidebar-bg")]:
                with self.subTest(theme=theme, name=name):
                    self.assertGreater(contrast(colours[name], colours[below]), 4.5)

    def test_nothing_is_left_to_include(self):
        for path in self.book.rglob("*.html"):
            if path.name != "print.html":
                self.assertNotIn("{{#", path.read_text(encoding="utf-8"), path.name)


if __name__ == "__main__":
    unittest.main()
