"""The fenced blocks of the guide's pages."""

import dataclasses
import pathlib
import re

SOURCE = pathlib.Path(__file__).parent / "src"
FENCE = re.compile(r"^```(?P<info>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\b\d[\d.,]*(?P<unit> [num]?s\b)?")
INCLUDE = re.compile(r"^\{\{#include (?P<path>[^}:]+)\}\}$", re.MULTILINE)


@dataclasses.dataclass
class Block:
    """A fenced block: its language, what else its first line says, and its text."""

    page: pathlib.Path
    line: int
    language: str
    flags: dict
    text: str

    @property
    def place(self):
        return f"{self.page.relative_to(SOURCE)}:{self.line}"


def pages():
    """The pages whose blocks are run: not those that only include docs/, which has tests of its own."""
    return sorted(page for page in SOURCE.rglob("*.md") if page.parent.name not in ("reference", "measured"))


def blocks(page):
    """The blocks of a page, in order, with included files in place."""
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        language, *flags = fence["info"].split(",")
        flags = {name: value for name, _, value in (flag.partition("=") for flag in flags)}
        line = text.count("\n", 0, fence.start()) + 2
        content = INCLUDE.sub(lambda found: (page.parent / found["path"]).read_text(encoding="utf-8"), fence["text"])
        found.append(Block(page, line, language, flags, content))
    return found


def agrees(wanted, printed, varies=False):
    """Whether a text is what a page shows. `...` stands for anything within a line; alone, for any lines. Where it
    `varies`, a number stands for any number, with any unit of time."""
    pattern = ""
    for line in wanted.rstrip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(literal(part, varies) for part in line.split("...")) + r" *\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def literal(text, varies):
    """A pattern for a part of a line."""
    if not varies:
        return re.escape(text)
    found, end = "", 0
    for number in NUMBER.finditer(text):
        found += re.escape(text[end : number.start()]) + (r"[\d.,]+ [num]?s" if number["unit"] else r"[\d.,]+")
        end = number.end()
    return found + re.escape(text[end:])
