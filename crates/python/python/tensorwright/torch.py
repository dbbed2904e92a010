"""Operators for PyTorch: as custom operators, which autograd and ``torch.compile`` know.

>>> import torch, tensorwright as tw
>>> module = tw.define("def scale(float(N) A, float s) -> (B) { B(i) = s * A(i) }")
>>> scale = tw.torch.register(module.scale, backward=True)
>>> a = torch.ones(3, requires_grad=True)
>>> scale(a, 2.0).sum().backward()
>>> a.grad
tensor([2., 2., 2.])
"""

import itertools
import keyword
from typing import Any

import torch

from ._operator import Operator

_REAL = ("half", "bfloat16", "float", "double")
_NUMBERS = {"float": "float", "double": "float", "bool": "bool"}
_numbers = itertools.count()


def register(op: Operator, backward: Operator | bool | None = None, *, name: str | None = None) -> Any:
    """Makes a ``torch.library`` custom operator of an operator: with shape inference, usable under
    ``torch.compile``, and differentiable if ``backward`` is given.

    ``backward`` is an operator whose parameters are named as those of ``op``, as its results (the values of the
    forward pass) or ``d_`` and the name of a result (its gradient), and whose results are ``d_`` and the name of a
    parameter: what ``module.grad`` makes. True stands for that gradient.

    ``name`` is the name within the namespace ``tensorwright`` of PyTorch's registry; one is made if there is none.
    """
    params, results = op.parameters(), op.results()
    if backward is True:
        backward = op.module.grad(op.__name__, [n for n, dtype, rank, _ in params if rank > 0 and dtype in _REAL])
    custom = _custom(op, name or f"{op.__name__}_{next(_numbers)}", [])
    if backward is not None:
        _differentiate(custom, backward, params, results)
    return custom


def _custom(op, name, tensors):
    """The custom operator, without a gradient. Parameters without axes are numbers, except for ``tensors``."""
    params, results = op.parameters(), op.results()

    def compute(*args):
        return op(*(_plain(arg) for arg in args))

    # Kernels for other devices than CUDA's take tensors of the CPU, and copy them.
    device = "cuda" if op.module.target.startswith("cuda") else "cpu"
    custom = torch.library.custom_op(
        f"tensorwright::{name}", compute, mutates_args=(), schema=_schema(params, results, tensors), device_types=device
    )

    @custom.register_fake
    def infer(*args):
        tensor = next(arg for arg in args if isinstance(arg, torch.Tensor))
        made = [tensor.new_empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in _inferred(op, params, args)]
        return made[0] if len(made) == 1 else tuple(made)

    return custom


def _plain(arg):
    """A tensor that kernels take: without its history, one row after the other."""
    return arg.detach().contiguous() if isinstance(arg, torch.Tensor) else arg


def _schema(params, results, tensors):
    def kind(name, dtype, rank):
        if rank > 0 or name in tensors:
            return "Tensor"
        return _NUMBERS.get(dtype, "int")

    # PyTorch's schemas reserve Python's words, `in` among them.
    names = [name + "_" * keyword.iskeyword(name) for name, *_ in params]
    kinds = [kind(name, dtype, rank) for name, dtype, rank, _ in params]
    taken = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    given = ", ".join("Tensor" for _ in results)
    return f"({taken}) -> {given if len(results) == 1 else f'({given})'}"


def _inferred(op, params, args):
    """The element types and shapes of the results, without computing anything."""
    shapes, numbers = [], {}
    for (name, _, rank, _), arg in zip(params, args, strict=True):
        is_tensor = isinstance(arg, torch.Tensor)
        shapes.append([int(extent) for extent in arg.shape] if is_tensor else None)
        if rank == 0 and isinstance(arg, int):
            numbers[name] = int(arg)
    return op.infer(shapes, numbers)


def _differentiate(custom, backward, params, results):
    if not isinstance(backward, Operator):
        raise TypeError("backward is an operator, such as module.grad(...) returns, or True")
    names = [name for name, *_ in params]
    wanted = [name for name, *_ in backward.parameters()]
    made = {name.removeprefix("d_"): place for place, name in enumerate(backward.results())}
    cotangents = {f"d_{name}": place for place, name in enumerate(results)}
    unknown = [n for n in wanted if n not in names and n not in results and n not in cotangents]
    if unknown or not set(made) <= set(names):
        raise ValueError(
            f"the backward operator takes {', '.join(wanted)} and returns {', '.join(backward.results())}; it may take "
            f"{', '.join([*names, *results, *cotangents])} and return {', '.join('d_' + n for n in names)}"
        )
    kept_inputs = [place for place, name in enumerate(names) if name in wanted]
    kept_results = [place for place, name in enumerate(results) if name in wanted and name not in names]

    def setup(ctx, inputs, output):
        outputs = (output,) if len(results) == 1 else output
        tensors = [inputs[place] for place in kept_inputs] + [outputs[place] for place in kept_results]
        ctx.numbers = [None if isinstance(value, torch.Tensor) else value for value in tensors]
        ctx.save_for_backward(*(value for value in tensors if isinstance(value, torch.Tensor)))
        ctx.like = [(value.shape, value.dtype) for value in outputs]

    def gradient(ctx, *gradients):
        saved = iter(ctx.saved_tensors)
        values = [next(saved) if number is None else number for number in ctx.numbers]
        known = dict(zip([names[place] for place in kept_inputs] + [results[place] for place in kept_results], values, strict=True))
        for name, place in cotangents.items():
            shape, dtype = ctx.like[place]
            given = gradients[place]
            known[name] = torch.zeros(shape, dtype=dtype) if given is None else given
        found = backward_op(*(known[name] for name in wanted))
        found = (found,) if isinstance(found, torch.Tensor) else found
        return tuple(found[made[name]] if name in made and rank > 0 else None for name, _, rank, _ in params)

    # Registered as well, so that compiled backward passes know its shapes.
    backward_op = _custom(backward, f"{backward.__name__}_{next(_numbers)}", list(cotangents))
    custom.register_autograd(gradient, setup_context=setup)
