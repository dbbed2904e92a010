"""Operators for PyTorch: as custom operators, which autograd, ``torch.compile`` and ``torch.func`` know.

>>> import torch, tensorwright as tw
>>> module = tw.define("def scale(float(N) A, float s) -> (B) { B(i) = s * A(i) }")
>>> scale = tw.torch.register(module.scale, backward=True)
>>> a = torch.ones(3, requires_grad=True)
>>> scale(a, 2.0).sum().backward()
>>> a.grad
tensor([2., 2., 2.])
"""

import contextlib
import functools
import hashlib
import itertools
import keyword
import operator
import random
import re
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch.utils import _python_dispatch

from ._operator import _REAL, Operator
from .errors import ArgumentError, CompileError

_NUMBERS = {"half": "float", "bfloat16": "float", "float": "float", "double": "float", "bool": "bool"}
# What was registered, and the names of that and of its gradients. A name that is registered again would take its meaning from what has it.
_made: dict[str, "Registered"] = {}
_taken: set[str] = set()

# Whether something else than tensors and autograd looks at what is called. Each takes a fraction of a microsecond.
_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_TRANSFORM, _is_wrapped = torch._C._functorch.TransformType, torch._C._functorch.is_functorch_wrapped_tensor
_tracing = torch._C._get_tracing_state
_is_autocast = torch._C._is_any_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled
_forward_mode = torch.autograd.forward_ad
_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter


def register(op: Operator, backward: Operator | bool | None = None, *, name: str | None = None) -> Any:
    """Makes a ``torch.library`` custom operator of an operator: with shape inference, usable under
    ``torch.compile`` and ``torch.func``, and differentiable if ``backward`` is given. Parameters that are frozen are left out.

    ``backward`` is an operator whose parameters are named as those of ``op``, as its results (the values of the
    forward pass) or ``d_`` and the name of a result (its gradient), and whose results are ``d_`` and the name of a
    parameter: what ``module.grad`` makes. True stands for that gradient, which can itself be differentiated, and of which only what
    is needed is computed.

    ``name`` is the name within the namespace ``tensorwright`` of PyTorch's registry; one is made if there is none. Registering the
    same again returns what there is.
    """
    if name is not None and not name.isidentifier():
        raise ValueError(f"name is that of an operator in the namespace tensorwright, such as {op.__name__!r}, not {name!r}")
    if all(rank == 0 for _, _, rank, _ in _open(op)):
        raise ValueError(f"{op.__name__} takes no tensors, so there is nothing for PyTorch to look at; call the operator itself")
    if name in _made and _is_same(_made[name], op, backward):
        return _made[name]
    if name in _taken:
        raise ValueError(f"the name {name!r} is that of another operator, whose compiled code would change; give another one, or none")
    rule = None
    if backward is not None and backward is not False:
        rule = _Rule(op, None if backward is True else backward)
    name = name or _named(op)
    made = _made[name] = _custom(op, name, (), rule)
    made._origin = op, backward, name
    return made


def _is_same(made, op, backward):
    """Whether an operator was registered as another one would be."""
    first, before, _ = made._origin
    if (first.__name__, first.module.source, first.module._choices) != (op.__name__, op.module.source, op.module._choices):
        return False
    if before is not backward or first.frozen.keys() != op.frozen.keys():
        return False
    return all(_is_equal(first.frozen[name], value) for name, value in op.frozen.items())


def _is_equal(one, other):
    try:
        with _outside():
            return torch.equal(torch.as_tensor(one), torch.as_tensor(other))
    except (TypeError, RuntimeError):
        # Of types that PyTorch does not know, or of two.
        return False


def _named(op):
    """A name that says what is computed: PyTorch keeps compiled code by names, for other processes too."""
    said = "\n".join([op.module.source, op.__name__, op.module.target, *sorted(op.frozen)])
    name = f"{op.__name__}_{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in _taken)


class Registered(CustomOpDef):
    """A custom operator. Where nothing but autograd looks on, a call goes to the kernel without PyTorch's dispatcher."""

    _op: Operator
    _function: Any
    _transformed: Any
    _casts: list[torch.dtype | None]
    _names: list[str]
    _origin: tuple[Operator, Operator | bool | None, str]

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if _is_compiling():
            if _forward_mode._current_level >= 0:
                raise NotImplementedError(self._says_no_tangents())
            return self._opoverload(*args, **named)
        if named:
            args = self._placed(args, named)
        if len(args) != len(self._casts):
            # Says what is missing.
            return self._op.compute(*args)
        transform = _transforms()
        if transform is not None:
            return self._within(transform, args)
        if _forward_mode._current_level >= 0:
            self._refuse_tangents(args)
        if _dispatch_modes() or _function_modes() or _tracing() is not None:
            return self._opoverload(*args)
        records = False
        for arg in args:
            kind = type(arg)
            if kind is _TENSOR or kind is _PARAMETER:
                if arg.requires_grad:
                    records = True
            elif kind is not float and kind is not int and hasattr(kind, "__torch_function__"):
                return self._opoverload(*args)
            elif hasattr(kind, "__array_interface__"):
                return self(*self._converted(args))
        if _is_autocast() and torch.is_autocast_enabled("cpu"):
            args = _cast(args, self._casts)
        try:
            if records and _is_grad_enabled():
                # Without a rule, PyTorch says so once somebody asks for the gradient.
                return (self._opoverload if self._function is None else self._function.apply)(*args)
            return self._op.compute(*args)
        except (ArgumentError, TypeError):
            # Of tensors that are nowhere, PyTorch knows the shapes.
            if all(arg.is_meta for arg in args if isinstance(arg, torch.Tensor)):
                return self._opoverload(*args)
            raise

    def __getattr__(self, name: str) -> Any:
        # What operators have beside: ``tune``, ``explain``, ``compile``, ``kernels``.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._op, name)

    def _within(self, transform, args):
        """The call within a transform of ``torch.func``."""
        if not any(isinstance(arg, torch.Tensor) and _is_wrapped(arg) for arg in args):
            # It does not matter to the transform.
            with torch._C._DisableFuncTorch():
                return self._opoverload(*args)
        if transform.key() == _TRANSFORM.Jvp:
            raise NotImplementedError(self._says_no_tangents())
        if self._transformed is not None:
            return self._transformed.apply(*args)
        if transform.key() == _TRANSFORM.Grad:
            raise NotImplementedError(f"{self._op.__name__} has no gradient; register it with backward=True, or pass .detach()")
        return self._opoverload(*args)

    def _converted(self, args):
        """Arguments of which NumPy's are tensors, and its numbers Python's."""
        ranks = [rank for _, _, rank, _ in _open(self._op)]
        is_array = [hasattr(type(arg), "__array_interface__") for arg in args]
        return tuple(
            arg if not found else torch.as_tensor(arg) if rank > 0 else arg.item()
            for arg, found, rank in zip(args, is_array, ranks, strict=True)
        )

    def _placed(self, args, named):
        """Arguments by position, of some that were given by name."""
        given = dict(zip(self._names, args, strict=False))
        says = f"{self._op.__name__}({self._op.signature})"
        for name, value in named.items():
            # PyTorch's schema has Python's words with an underscore.
            name = name if name in self._names else name.removesuffix("_")
            if name not in self._names:
                raise ArgumentError(f"{says} has no parameter `{name}`")
            if name in given or len(args) > len(self._names):
                raise ArgumentError(f"{says} was given `{name}` twice")
            given[name] = value
        for name in self._names:
            if name not in given:
                raise ArgumentError(f"{says}: `{name}` is missing")
        return tuple(given[name] for name in self._names)

    def _refuse_tangents(self, args):
        """Forward mode would lose them without a word."""
        for arg in args:
            if isinstance(arg, torch.Tensor) and _forward_mode.unpack_dual(arg).tangent is not None:
                raise NotImplementedError(self._says_no_tangents())

    def _says_no_tangents(self):
        return f"{self._op.__name__} has no forward-mode derivative; use reverse mode (backward)"

    # There is one of it in PyTorch's registry.
    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        return _registered, self._origin


def _registered(op, backward, name):
    """What an operator was registered as, in this process or another one."""
    found = _made.get(name)
    return register(op, backward, name=name if found is None or _is_same(found, op, backward) else None)


def _custom(op, name, tensors, rule=None):
    """The custom operator. Parameters without axes are numbers, except for ``tensors``."""
    params, results = _open(op), op.results()
    # Kernels for other devices than CUDA's take tensors of the CPU, and copy them.
    device = "cuda" if op.module.target.startswith("cuda") else "cpu"
    _taken.add(name)
    custom = torch.library.custom_op(
        f"tensorwright::{name}", op.compute, mutates_args=(), schema=_schema(params, results, tensors), device_types=device
    )
    custom.__class__ = Registered
    custom._op, custom._function, custom._transformed = op, None, None
    custom._names = [name for name, *_ in params]
    custom._casts = [getattr(torch, dtype) if rank > 0 and dtype in _REAL else None for _, dtype, rank, _ in params]

    @custom.register_fake
    def infer(*args):
        tensor = _checked(op, params, args)
        made = [tensor.new_empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in _inferred(op, args)]
        return made[0] if len(made) == 1 else tuple(made)

    custom.register_vmap(functools.partial(_batched, custom))

    def autocast(_, *args):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return custom._opoverload(*_cast(args, custom._casts))

    key = getattr(torch._C.DispatchKey, f"Autocast{device.upper()}")
    custom._lib.impl(custom._name, autocast, f"Autocast{device.upper()}", with_keyset=True)
    if rule is not None:
        _differentiate(custom, rule)
    return custom


def _cast(args, casts):
    """Arguments of the element types that are declared, as autocast converts them: not those of ``double``."""
    return tuple(
        arg.to(dtype)
        if dtype is not None and isinstance(arg, torch.Tensor) and arg.is_floating_point() and arg.dtype != torch.double
        else arg
        for arg, dtype in zip(args, casts, strict=True)
    )


def _checked(op, params, args):
    """The first tensor. Nothing reads the memory of those that PyTorch infers shapes with, so their types are looked at here."""
    tensors = [(name, dtype, arg) for (name, dtype, *_), arg in zip(params, args, strict=True) if isinstance(arg, torch.Tensor)]
    first = tensors[0][2]
    for name, dtype, tensor in tensors:
        wanted = getattr(torch, dtype)
        if tensor.dtype != wanted:
            raise ArgumentError(f"{op.__name__}: `{name}` has elements of {tensor.dtype}, and {wanted} is needed")
        if tensor.device != first.device:
            raise ArgumentError(f"{op.__name__}: `{name}` is on {tensor.device}, and other arguments are on {first.device}")
    return first


def _batched(custom, info, in_dims, *args):
    """One call for each element of a batch."""

    def at(number):
        return (arg if dim is None else arg.select(dim, number) for arg, dim in zip(args, in_dims, strict=True))

    if info.batch_size == 0:
        # One element of anything says what results look like.
        one = (arg if dim is None else arg.new_zeros([n for axis, n in enumerate(arg.shape) if axis != dim])
               for arg, dim in zip(args, in_dims, strict=True))  # fmt: skip
        made = custom(*one)
        made = (made,) if isinstance(made, torch.Tensor) else made
        made = tuple(one.new_empty((0, *one.shape)) for one in made)
        return (made[0], 0) if len(made) == 1 else (made, (0,) * len(made))
    made = [custom(*at(number)) for number in range(info.batch_size)]
    if isinstance(made[0], torch.Tensor):
        return torch.stack(made), 0
    return tuple(torch.stack(column) for column in zip(*made, strict=True)), (0,) * len(made[0])


def _open(op):
    """The parameters that calls are given."""
    return [param for param in op.parameters() if param[0] not in op.frozen]


def _schema(params, results, tensors):
    def kind(name, dtype, rank):
        if rank > 0 or name in tensors:
            return "Tensor"
        return _NUMBERS.get(dtype, "SymInt")

    # PyTorch's schemas reserve Python's words, `in` among them.
    names = [name + "_" * keyword.iskeyword(name) for name, *_ in params]
    kinds = [kind(name, dtype, rank) for name, dtype, rank, _ in params]
    taken = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    given = ", ".join("Tensor" for _ in results)
    return f"({taken}) -> {given if len(results) == 1 else f'({given})'}"


def _inferred(op, args):
    """The element types and shapes of the results, without computing anything."""
    shapes, numbers, given = [], {}, iter(args)
    for name, dtype, rank, _ in op.parameters():
        arg = op.frozen[name] if name in op.frozen else next(given)
        shape = getattr(arg, "shape", None) if rank > 0 else None
        shapes.append(None if shape is None else list(shape))
        if rank == 0 and "int" in dtype and not isinstance(arg, torch._subclasses.FakeTensor):
            numbers[name] = arg
    if any(isinstance(number, torch.SymInt) for number in numbers.values()) and _needs_no_numbers(op, shapes):
        # Graphs serve all values of numbers that shape nothing.
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
    return extent.node.hint if isinstance(extent, torch.SymInt) else extent


def _symbolic(op, shapes, numbers):
    """The same where extents are symbols: those of results are sums of multiples of sizes. None if it cannot be said like that."""
    declared = [dims.split(",") if dims else [] for dims in re.findall(r"(?:^|, )(?:const )?\w+(?:\(([^)]*)\))? \w+", op.signature)]
    sizes = {}
    for dims, shape in zip(declared, shapes, strict=True):
        for dim, extent in zip(dims, shape or (), strict=False):
            if not dim.isidentifier() or dim in numbers:
                if isinstance(extent, torch.SymInt):
                    return None
            elif dim in sizes:
                # As calls check it. Graphs are for shapes that agree.
                torch._check(sizes[dim] == extent, lambda dim=dim: f"{op.__name__}: the size `{dim}` of arguments differs")
                sizes[dim] = extent if isinstance(sizes[dim], int) else sizes[dim]
            else:
                sizes[dim] = extent
    hints = {name: _hint(extent) for name, extent in sizes.items()}
    symbols = [name for name, extent in sizes.items() if isinstance(extent, torch.SymInt)]
    if None in hints.values():
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
        """The shapes of results for values of the symbols, if each adds its own part."""
        made = []
        for number, (_, shape) in enumerate(base):
            made.append(list(shape))
            for name, step in steps.items():
                for axis, extent in enumerate(shape):
                    by = step[number][1][axis] - extent
                    if by:
                        made[-1][axis] = made[-1][axis] + by * (values[name] - hints[name])
        return made

    # That they do is tried: quotients, products and minima do not.
    draw, most = random.Random(0), 4 * max([8, *hints.values()])
    for _ in range(32):
        values = {name: draw.randint(1, most) for name in symbols}
        try:
            found = at(**values)
        except (ArgumentError, CompileError):
            continue
        if [shape for _, shape in found] != extents(values):
            return None
    return [(dtype, shape) for (dtype, _), shape in zip(base, extents(sizes), strict=True)]


@contextlib.contextmanager
def _outside():
    """Whatever transform or mode the caller is within, it does not see what is done here."""
    with torch._C._DisableFuncTorch(), torch._C.DisableTorchFunction(), _python_dispatch._disable_current_modes():
        yield


class _Rule:
    """How an operator is differentiated: gradients for those of its arguments that need one. ``tensors`` names parameters without axes
    that are tensors, and no numbers."""

    def __init__(self, op, given, tensors=()):
        self.op, self.given, self.tensors = op, given, tensors
        self.params, self.results = _open(op), op.results()
        self.names = [name for name, *_ in self.params]
        self.real = [name for name, dtype, rank, _ in self.params if dtype in _REAL and (rank > 0 or name in tensors)]
        # Tensors of real numbers on which results depend by conditions or shapes alone: their gradient is zero.
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
        # Whatever the gradient for all takes is kept; that for some takes no more.
        self.kept = [] if self.whole is None else self.whole.kept()

    @_outside()
    def step(self, needs):
        """The gradient for the parameters that need one; None if all of theirs are zero."""
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

    @_outside()
    def passing(self, needs):
        """The forward pass and the gradient for the parameters that need one. Values that are worth it are kept between them."""
        wanted = [] if self.given is not None else self._wanted(needs)
        forward, gradient, saved = self.op.module.training(self.op.__name__, wanted) if wanted else (None, None, {})
        if not saved:
            made = _Pass(self, self.op, self.step(needs), self.kept)
        else:
            if len(forward.results()) == len(self.results):
                forward = self.op
            elif self.frozen:
                forward = forward.freeze(**self.frozen)
            step = _Step(self, self.frozen_in(gradient), wanted, saved)
            # Inputs are kept for a gradient that is differentiated in turn: it computes everything again.
            made = _Pass(self, forward, step, [*self.kept, *(source for source in step.kept() if source not in self.kept)])
        return self.passes.setdefault(needs, made)

    def recording(self, needs):
        """The same for a gradient that is differentiated in turn: it depends on inputs alone."""
        made = self.recorded.get(needs)
        if made is None:
            made = self.recorded.setdefault(needs, _Pass(self, self.op, self.step(needs), self.kept))
        return made

    def _wanted(self, needs):
        for (name, dtype, rank, _), need in zip(self.params, needs, strict=True):
            if need and rank == 0 and dtype in _REAL and name not in self.tensors:
                raise ArgumentError(
                    f"{self.op.__name__}: `{name}` requires a gradient, and numbers have none; "
                    f"declare a tensor of one element, as in `{dtype}(ONE) {name}`, or pass .detach()"
                )
        return [name for name, need in zip(self.names, needs, strict=True) if need and name in self.real]

    def _gradient(self, wanted):
        return self.frozen_in(self.op.module.grad(self.op.__name__, wanted))

    def frozen_in(self, gradient):
        """A gradient for what is frozen."""
        taken = {name: dtype for name, dtype, *_ in gradient.parameters() if name in self.frozen}
        if not taken:
            return gradient
        # Gradients take everything as a variable; what is frozen is constant.
        text = gradient.module.source
        for name, dtype in taken.items():
            text = re.sub(rf"\b{dtype}(\([^)]*\))? {name}\b", rf"const {dtype}\1 {name}", text, count=1)
        frozen = {name: self.frozen[name] for name in taken}
        return gradient.module.like(text)[gradient.__name__].freeze(**frozen)


def _has_derivative(op, names):
    """Whether results depend on the values of these, and not on conditions or shapes alone."""
    try:
        op.module.grad(op.__name__, names)
    except CompileError as error:
        if error.codes == ["E1102"]:
            return False
        raise
    return True


class _Step:
    """A gradient, and where its arguments come from."""

    def __init__(self, rule, op, wrt, saved=None):
        self.op, saved = op, saved or {}
        wanted = [name for name, *_ in _open(op)]
        own = [name for name in wanted if name not in saved]
        self.cotangents = {f"d_{name}": place for place, name in enumerate(rule.results) if f"d_{name}" not in saved}
        made = {name.removeprefix("d_"): place for place, name in enumerate(op.results())}
        if rule.given is None:
            # Ours may have other names, where those were taken; results are in the order that was asked for.
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
        # Where each argument is: an input, a result or a gradient.
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

    @functools.cached_property
    def custom(self):
        """Registered as well: compiled backward passes know its shapes, and it can be differentiated again."""
        with _outside():
            custom = _custom(self.op, _named(self.op), self.tensors)
        _differentiate(custom, None, self.tensors)
        return custom

    def kept(self):
        """What the forward pass keeps for it."""
        return sorted({source for source in self.sources if source[0] != "gradient"})

    def compute(self, values):
        try:
            return self.op.compute(*values)
        except ArgumentError:
            # A batch of gradients (``is_grads_batched``) has no memory of its own; PyTorch takes it apart, or says the same.
            return self.custom._opoverload(*values)


class _Pass:
    """A forward pass and its gradient: what is kept between them, and where the gradient finds its arguments. What is done for each
    call is left to C where it can be: after a kernel has gone through the caches, Python's code comes from memory again."""

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
        # Only of several results can one have no gradient.
        if self.results > 1:
            ctx.like = [(value.shape, value.dtype, value.device) for value in outputs[: self.results]]

    def gradient(self, ctx, gradients, is_recorded):
        """The gradients in the places of the parameters."""
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
    """A function that picks what is in these places of a tuple, as a tuple."""
    match places:
        case []:
            return lambda _: ()
        case [place]:
            return lambda values: (values[place],)
        case _:
            return operator.itemgetter(*places)


def _differentiate(custom, rule, tensors=()):
    """Makes the operator differentiable. Without a rule it is found when it is first needed: few differentiate twice."""
    known = [rule]
    if rule is not None:
        # What is traced cannot be registered meanwhile.
        if rule.whole is not None:
            rule.whole.custom  # noqa: B018

    def found():
        if known[0] is None:
            known[0] = _Rule(custom._op, None, tensors)
        return known[0]

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            rule, needs = found(), ctx.needs_input_grad
            ctx.passing = passing = rule.passes.get(needs) or rule.passing(needs)
            made = passing.compute(*args)
            if not passing.is_tuple:
                made = (made,)
            passing.save(ctx, args, made)
            if passing.results > 1:
                ctx.set_materialize_grads(False)
                return made[: passing.results]
            return made[0]

        @staticmethod
        def backward(ctx, *gradients):
            # A gradient that is differentiated in turn depends on inputs alone; a batch of them is for PyTorch to take apart.
            if _is_grad_enabled() or _transforms() is not None:
                return found().recording(ctx.needs_input_grad).gradient(ctx, gradients, True)
            return ctx.passing.gradient(ctx, gradients, False)

    class Transformed(torch.autograd.Function):
        """For transforms of ``torch.func``, each of which goes through here."""

        @staticmethod
        def forward(*args):
            return custom(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            setup(ctx, inputs, output)

        @staticmethod
        def backward(ctx, *gradients):
            return formula(ctx, *gradients)

        @staticmethod
        def vmap(info, in_dims, *args):
            return _batched(custom, info, in_dims, *args)

    def whole():
        return found().recording(tuple(name in found().real for name in found().names))

    def setup(ctx, inputs, output):
        whole().save(ctx, tuple(inputs), output if isinstance(output, tuple) else (output,))

    def formula(ctx, *gradients):
        return whole().gradient(ctx, gradients, True)

    custom._function, custom._transformed = Function, Transformed
    custom.register_autograd(formula, setup_context=setup)
