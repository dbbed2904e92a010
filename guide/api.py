#!/usr/bin/env python3
"""Writes the reference of the Python package from its own documentation.

    python guide/api.py > guide/src/reference/python-api.md

`guide/test.py` insists that the page is current.
"""

import dataclasses
import importlib
import inspect
import re

PACKAGE = "tensorwright"


def names():
    """Everything public, in the order of the page: functions, classes with their members, exceptions, torch."""
    package = importlib.import_module(PACKAGE)
    public = {name: getattr(package, name) for name in package.__all__ if name not in ("torch", "__version__")}
    functions = {name: value for name, value in public.items() if not inspect.isclass(value)}
    classes = {name: value for name, value in public.items() if inspect.isclass(value)}
    exceptions = {name: value for name, value in classes.items() if issubclass(value, Exception)}
    plain = {name: value for name, value in classes.items() if name not in exceptions}
    torch = importlib.import_module(f"{PACKAGE}.torch")
    in_torch = {f"torch.{name}": getattr(torch, name) for name in getattr(torch, "__all__", ["register"])}
    return functions, plain, exceptions, in_torch


def members(kind):
    """The public methods, properties and fields of a class, those of its bases of this package included."""
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.split(".")[0] == PACKAGE:
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return dict(sorted(found.items()))


def signature(name, value):
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    # Types are in the stubs; here they are in the way.
    given = [parameter.replace(annotation=parameter.empty) for parameter in found.parameters.values() if parameter.name != "self"]
    text = str(found.replace(parameters=given, return_annotation=found.empty))
    return name + re.sub(r"^\(/, ", "(", text)


def text_of(value):
    said = inspect.getdoc(value) or ""
    said = re.sub(r":(?:func|class|meth|attr):`~?\.?([^`]+)`", r"`\1`", said).replace("``", "`")
    return re.sub(r"((?:^>>> .*\n?(?:^(?!>>> ).+\n?)*)+)", r"```python,ignore\n\1\n```\n", said, flags=re.MULTILINE)


def page():
    functions, plain, exceptions, in_torch = names()
    package = importlib.import_module(PACKAGE)
    lines = [
        "# The Python package",
        "",
        f"`import {PACKAGE} as tw`. [From Python](../python.md) explains it by examples. The page is written by `guide/api.py` from the documentation in",
        "the package, which `help(tw.define)` shows as well.",
        "",
        f"`tw.__version__` is the version, such as `{package.__version__}`.",
        "",
    ]
    for title, group in (("Functions", functions), ("PyTorch", in_torch)):
        lines += [f"## {title}", ""]
        for name, value in group.items():
            lines += [f"### `tw.{signature(name, value)}`", "", text_of(value), ""]
    lines += ["## Classes", ""]
    for name, kind in plain.items():
        lines += [f"### `tw.{name}`", "", re.sub(r"^\w+\(.*\)$", "", text_of(kind), flags=re.MULTILINE).strip(), ""]
        fields = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
        if fields:
            lines += ["Fields: " + ", ".join(f"`{field}`" for field in fields) + ".", ""]
        for member, value in members(kind).items():
            if member in fields and not callable(value):
                continue
            shown = signature(member, value) if callable(value) else member
            said = text_of(value) if callable(value) or inspect.isdatadescriptor(value) else ""
            lines += [f"#### `{name}.{shown}`", "", said, ""]
    lines += ["## Exceptions", "", "| exception | is also | when |", "| --- | --- | --- |"]
    for name, kind in exceptions.items():
        bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
        said = text_of(kind).split("\n\n")[0].replace("\n", " ")
        lines.append(f"| `tw.{name}` | {bases} | {said} |")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
