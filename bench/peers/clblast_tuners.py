"""Parser for the output of CLBlast's tuners."""

import re


def rows(text):
    """The valid configurations in a tuner's output: `(milliseconds, parameters)`, fastest first."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    names, found = [], []
    for line in text.splitlines():
        if line.startswith("* Parameters explored:"):
            names = line.split(":")[1].split()
        cells = [cell.strip() for cell in line.split("|")]
        if "results match" not in line or len(cells) < 9 or not cells[1].isdigit():
            continue
        values = [int(value) for value in cells[3].split()]
        took = re.search(r"([\d.]+) ms", cells[7])
        if took and len(values) == len(names):
            found.append((float(took[1]), dict(zip(names, values, strict=True))))
    return sorted(found, key=lambda row: row[0])
