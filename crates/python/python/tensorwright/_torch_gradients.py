"""Differentiation of operators: saved values and arguments of gradients."""

import contextlib
import operator
import os
import re
import threading

import torch
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
from torch.utils import _python_dispatch

from ._operator import _REAL, Operator
from .errors import ArgumentError, CompileError

_transforms = torch._C._functorch.peek_interpreter_stack
_JVP = torch._C._functorch.TransformType.Jvp
_is_wrapped, _unwrapped = torch._C._functorch.is_functorch_wrapped_tensor, torch._C._functorch.get_unwrapped

# Held while choosing and registering a name. Reentrant, because a rule registers its gradient.
registering = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A forked child lacks the threads that would release it.
    os.register_at_fork(before=registering.acquire, after_in_parent=registering.release, after_in_child=registering.release)


def open_parameters(op):
    """The parameters that are not frozen."""
    return [param for param in op.parameters() if param[0] not in op.frozen]


@contextlib.contextmanager
def outside():
    """Disables all transforms and modes of the caller."""
    with torch._C._DisableFuncTorch(), torch._C.DisableTorchFunction(), _python_dispatch._disable_current_modes():
        yield


def requires_gradient(tensor):
    """Whether autograd or a transform of ``torch.func`` differentiates with respect to a tensor, at any level."""
    while not tensor.requires_grad and _is_wrapped(tensor):
        tensor = _unwrapped(tensor)
    return tensor.requires_grad


def has_tangent(tensor):
    """Whether a tensor has a forward-mode tangent, at any level of ``torch.func``. Each level knows only its own."""
    with contextlib.ExitStack() as left:
        while (level := _transforms()) is not None:
            if _is_wrapped(tensor) and torch._C._functorch.maybe_get_level(tensor) == level.level():
                if level.key() == _JVP and _is_dual(tensor):
                    return True
                tensor = _unwrapped(tensor)
            left.enter_context(temporarily_pop_interpreter_stack())
        return _is_dual(tensor)


def _is_dual(tensor):
    return torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


def numbers_of(op, tensors=()):
    """The positions of real scalars among the open parameters, with names and types; ``tensors`` are excluded."""
    return [
        (place, name, dtype)
        for place, (name, dtype, rank, _) in enumerate(open_parameters(op))
        if rank == 0 and dtype in _REAL and name not in tensors
    ]


def without_gradient(op, name, dtype):
    """The exception for a number that requires a gradient."""
    return ArgumentError(
        f"{op.__name__}: `{name}` requires a gradient, and numbers have none; "
        f"declare a tensor of one element, as in `{dtype}(ONE) {name}`, or pass .detach()"
    )


class Rule:
    """The differentiation rule of an operator: gradients for the arguments that need one. ``tensors`` names the
    zero-dimensional parameters that are tensors, not numbers; ``make`` makes a custom operator of a gradient."""

    def __init__(self, op, given, make, tensors=()):
        self.op, self.given, self.make, self.tensors = op, given, make, tensors
        self.params, self.results = open_parameters(op), op.results()
        self.names = [name for name, *_ in self.params]
        self.real = [name for name, dtype, rank, _ in self.params if dtype in _REAL and (rank > 0 or name in tensors)]
        # Tensors of real numbers that affect results only through conditions or shapes: their gradient is zero.
        self.flat = []
        if given is not None and not isinstance(given, Operator):
            raise TypeError("backward is an operator, such as module.grad(...) returns, or True")
        self.frozen = op.frozen
        self.steps = {}
        self.passes = {}
        self.recorded = {}
        if given is None:
            real = self.real
            if not _has_derivative(op, real):
                self.real = [name for name in real if _has_derivative(op, [name])]
            self.flat = [place for place, name in enumerate(self.names) if name in real and name not in self.real]
        self.whole = self.step(tuple(name in self.real for name in self.names))
        # Saves the arguments of the full gradient; partial gradients need no others.
        self.kept = [] if self.whole is None else self.whole.kept()

    @outside()
    def step(self, needs):
        """The gradient for the parameters that need one; None if all are zero."""
        with registering:
            found = self.steps.get(needs)
            if found is None:
                wanted = self._wanted(needs)
                if not wanted and self.given is None:
                    return None
                if self.given is not None or (self.steps and wanted == self.real):
                    found = self.steps.get(None) or _Step(self, self.given or self._gradient(wanted), wanted)
                    self.steps[None] = self.steps[needs] = found
                else:
                    found = self.steps[needs] = _Step(self, self._gradient(wanted), wanted)
            return found

    @outside()
    def passing(self, needs):
        """The forward pass and the gradient for the parameters that need one, with the values saved between them."""
        wanted = [] if self.given is not None else self._wanted(needs)
        module, name = self.op.module, self.op.__name__
        forward, gradient, saved = module.training(name, wanted) if wanted else (self.op, None, {})
        if gradient is None or gradient is module.grad(name, wanted):
            made = _Pass(self, self.op, self.step(needs), self.kept)
        else:
            if len(forward.results()) == len(self.results):
                forward = self.op
            elif self.frozen:
                forward = forward.freeze(**self.frozen)
            step = _Step(self, self.frozen_in(gradient), wanted, saved)
            # A gradient that is differentiated again saves inputs and recomputes everything else.
            made = _Pass(self, forward, step, [*self.kept, *(source for source in step.kept() if source not in self.kept)])
        return self.passes.setdefault(needs, made)

    def recording(self, needs):
        """The same for a gradient that is differentiated again: it depends on inputs only."""
        made = self.recorded.get(needs)
        if made is None:
            made = self.recorded.setdefault(needs, _Pass(self, self.op, self.step(needs), self.kept))
        return made

    def _wanted(self, needs):
        for place, name, dtype in numbers_of(self.op, self.tensors):
            if needs[place]:
                raise without_gradient(self.op, name, dtype)
        return [name for name, need in zip(self.names, needs, strict=True) if need and name in self.real]

    def _gradient(self, wanted):
        return self.frozen_in(self.op.module.grad(self.op.__name__, wanted))

    def frozen_in(self, gradient):
        """A gradient for frozen values."""
        taken = {name: dtype for name, dtype, *_ in gradient.parameters() if name in self.frozen}
        if not taken:
            return gradient
        # Gradients take all values as variables; frozen values are constant.
        text = gradient.module.source
        for name, dtype in taken.items():
            text = re.sub(rf"\b{dtype}(\([^)]*\))? {name}\b", rf"const {dtype}\1 {name}", text, count=1)
        frozen = {name: self.frozen[name] for name in taken}
        return gradient.module.like(text)[gradient.__name__].freeze(**frozen)


def _has_derivative(op, names):
    """Whether results depend on these values, not only through conditions or shapes."""
    try:
        op.module.grad(op.__name__, names)
    except CompileError as error:
        if error.codes == ["E1102"]:
            return False
        raise
    return True


class _Step:
    """A gradient with the origins of its arguments."""

    def __init__(self, rule, op, wrt, saved=None):
        self.op, self.make, self.made, saved = op, rule.make, None, saved or {}
        wanted = [name for name, *_ in open_parameters(op)]
        own = [name for name in wanted if name not in saved]
        self.cotangents = {f"d_{name}": place for place, name in enumerate(rule.results) if f"d_{name}" not in saved}
        made = {name.removeprefix("d_"): place for place, name in enumerate(op.results())}
        if rule.given is None:
            # Results may be renamed to avoid conflicts; they are in the requested order.
            last = own[-len(rule.results) :]
            for place, name in enumerate(rule.results):
                other = [taken for taken in last if re.fullmatch(rf"d_{name}_\d+", taken) and taken not in self.cotangents]
                if f"d_{name}" not in last:
                    self.cotangents.update({taken: place for taken in other})
            made = {name: place for place, name in enumerate(wrt)}
        known = [*rule.names, *rule.results, *saved, *self.cotangents]
        if not set(wanted) <= set(known) or not set(made) <= set(rule.names):
            raise ValueError(
                f"the backward operator takes {', '.join(wanted)} and returns {', '.join(op.results())}; it may take "
                f"{', '.join(known)} and return {', '.join('d_' + name for name in rule.names)}"
            )
        # The origin of each argument: an input, a result or a gradient.
        self.sources = []
        for name in wanted:
            if name in saved:
                self.sources.append(("result", saved[name]))
            elif name in rule.names:
                self.sources.append(("input", rule.names.index(name)))
            elif name in self.cotangents:
                self.sources.append(("gradient", self.cotangents[name]))
            else:
                self.sources.append(("result", rule.results.index(name)))
        self.places = [made.get(name) if rank > 0 or name in rule.tensors else None for name, _, rank, _ in rule.params]
        self.tensors = (*self.cotangents, *(name for name in rule.tensors if name in wanted))

    @property
    def custom(self):
        """The gradient as a custom operator, so that compiled backward passes know its shapes and it can be differentiated again."""
        if self.made is None:
            with registering, outside():
                # Another thread may have been faster.
                self.made = self.made or self.make(self.op, self.tensors)
        return self.made

    def kept(self):
        """The values that the forward pass saves for it."""
        return sorted({source for source in self.sources if source[0] != "gradient"})

    def compute(self, values):
        try:
            return self.op.compute(*values)
        except ArgumentError:
            # A batch of gradients (``is_grads_batched``) has no memory of its own, and duals have tangents.
            return self.custom(*values)


class _Pass:
    """A forward pass and its gradient, with the saved values and the origins of the gradient's arguments. Per-call work
    uses C functions where possible: after a kernel has used the caches, Python code must be fetched from memory."""

    def __init__(self, rule, forward, step, kept):
        self.compute, self.step, self.flat = forward.compute, step, rule.flat
        self.is_tuple = len(forward.results()) > 1
        self.results = len(rule.results)
        self.keep = _picker([place if kind == "input" else len(rule.params) + place for kind, place in kept])
        self.has_numbers = any(kind == "input" and rule.params[place][2] == 0 for kind, place in kept)
        self.nothing = (None,) * len(rule.params)
        if step is not None:
            places = [place if kind == "gradient" else self.results + kept.index((kind, place)) for kind, place in step.sources]
            self.arrange = _picker(places)
            count = len(step.op.results())
            self.is_single = count == 1
            self.spread = _picker([count if place is None else place for place in step.places])

    def save(self, ctx, inputs, outputs):
        kept = self.keep(inputs + outputs)
        if self.has_numbers:
            ctx.numbers = [None if isinstance(value, torch.Tensor) else value for value in kept]
            kept = [value for value in kept if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*kept)
        if self.flat:
            ctx.flat = [(place, inputs[place].shape, inputs[place].dtype, inputs[place].device) for place in self.flat]
        # Only one of several results can lack a gradient.
        if self.results > 1:
            ctx.like = [(value.shape, value.dtype, value.device) for value in outputs[: self.results]]

    def gradient(self, ctx, gradients, is_recorded):
        """The gradients in the positions of the parameters."""
        made = self.nothing
        if self.step is not None:
            kept = ctx.saved_tensors
            if self.has_numbers:
                tensors = iter(kept)
                kept = tuple(next(tensors) if number is None else number for number in ctx.numbers)
            if self.results > 1:
                gradients = tuple(
                    torch.zeros(shape, dtype=dtype, device=device) if gradient is None else gradient
                    for gradient, (shape, dtype, device) in zip(gradients, ctx.like, strict=True)
                )
            values = self.arrange(gradients + kept)
            found = self.step.custom(*values) if is_recorded else self.step.compute(values)
            made = self.spread((found, None) if self.is_single else (*found, None))
        if self.flat:
            made = list(made)
            for place, shape, dtype, device in ctx.flat:
                if ctx.needs_input_grad[place]:
                    made[place] = torch.zeros(shape, dtype=dtype, device=device)
            made = tuple(made)
        return made


def _picker(places):
    """A function that picks these items of a tuple, as a tuple."""
    match places:
        case []:
            return lambda _: ()
        case [place]:
            return lambda values: (values[place],)
        case _:
            return operator.itemgetter(*places)
