"""Result shapes for PyTorch graphs with symbolic sizes."""

import random
import re

import torch

from .errors import ArgumentError, CompileError


def inferred(op, args):
    """The element types and shapes of the results, without computing anything."""
    shapes, numbers, given = [], {}, iter(args)
    for name, dtype, rank, _ in op.parameters():
        arg = op.frozen[name] if name in op.frozen else next(given)
        shape = getattr(arg, "shape", None) if rank > 0 else None
        shapes.append(None if shape is None else list(shape))
        if rank == 0 and "int" in dtype and not isinstance(arg, torch._subclasses.FakeTensor):
            numbers[name] = arg
    if any(isinstance(number, torch.SymInt) for number in numbers.values()) and _needs_no_numbers(op, shapes):
        # One graph serves all values of numbers that shape nothing.
        numbers = {}
    numbers = {name: int(number) for name, number in numbers.items()}
    if any(isinstance(extent, torch.SymInt) for shape in shapes for extent in shape or ()):
        found = _symbolic(op, shapes, numbers)
        if found is not None:
            return found
    return op.infer([None if shape is None else [int(extent) for extent in shape] for shape in shapes], numbers)


def _needs_no_numbers(op, shapes):
    try:
        op.infer([None if shape is None else [_hint(extent) for extent in shape] for shape in shapes], {})
    except CompileError:
        return False
    return True


def _hint(extent):
    """A sample value of an extent; any number for a data-dependent one."""
    if not isinstance(extent, torch.SymInt):
        return extent
    return extent.node.hint if extent.node.hint is not None else 64


def _symbolic(op, shapes, numbers):
    """The same with symbolic extents; result extents must be linear in the sizes. None if they are not."""
    declared = [dims.split(",") if dims else [] for dims in re.findall(r"(?:^|, )(?:const )?\w+(?:\(([^)]*)\))? \w+", op.signature)]
    sizes = {}
    for dims, shape in zip(declared, shapes, strict=True):
        for dim, extent in zip(dims, shape or (), strict=False):
            if not dim.isidentifier() or dim in numbers:
                if isinstance(extent, torch.SymInt):
                    return None
            elif dim in sizes:
                # As calls check it: graphs are only for consistent shapes.
                torch._check(sizes[dim] == extent, lambda dim=dim: f"{op.__name__}: the size `{dim}` of arguments differs")
                sizes[dim] = extent if isinstance(sizes[dim], int) else sizes[dim]
            else:
                sizes[dim] = extent
    hints = {name: _hint(extent) for name, extent in sizes.items()}
    symbols = [name for name, extent in sizes.items() if isinstance(extent, torch.SymInt)]
    # Extents with quotients, minima or maxima cannot be extrapolated from a few values.
    if not set(symbols).isdisjoint(op.nonlinear_sizes()):
        return None

    def at(**changed):
        values = {**hints, **changed}
        concrete = [
            None if shape is None else [values.get(dim, extent) for dim, extent in zip(dims, shape, strict=True)]
            for dims, shape in zip(declared, shapes, strict=True)
        ]
        return op.infer(concrete, numbers)

    try:
        base = at()
        steps = {name: at(**{name: hints[name] + 1}) for name in symbols}
    except CompileError:
        return None

    def extents(values):
        """The result shapes for values of the symbols, if the extents are linear."""
        made = []
        for number, (_, shape) in enumerate(base):
            made.append(list(shape))
            for name, step in steps.items():
                for axis, extent in enumerate(shape):
                    by = step[number][1][axis] - extent
                    if by:
                        made[-1][axis] = made[-1][axis] + by * (values[name] - hints[name])
        return made

    # Linearity is tested: products and strided windows are not linear.
    draw = random.Random(0)
    for _ in range(32):
        values = {name: draw.randint(1, 2 ** draw.randint(1, 20)) for name in symbols}
        try:
            found = at(**values)
        except (ArgumentError, CompileError):
            continue
        if [shape for _, shape in found] != extents(values):
            return None
    return [(dtype, shape) for (dtype, _), shape in zip(base, extents(sizes), strict=True)]
