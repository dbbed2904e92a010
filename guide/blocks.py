"""The fenced blocks of the guide's pages."""

import dataclasses
import pathlib
import re

SOURCE = pathlib.Path(__file__).parent / "src"
FENCE = re.compile(r"^```(?P<info>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
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


def agrees(wanted, printed):
    """Whether a text is what a page shows. `...` stands for anything within a line; alone, for any lines."""
    pattern = ""
    for line in wanted.rstrip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r" *\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None
