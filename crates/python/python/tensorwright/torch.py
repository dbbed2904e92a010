"""Custom operators for PyTorch, with autograd, ``torch.compile`` and ``torch.func``.

>>> import torch, tensorwright as tw
>>> module = tw.define("def scale(float(N) A, float s) -> (B) { B(i) = s * A(i) }")
>>> scale = tw.torch.register(module.scale, backward=True)
>>> a = torch.ones(3, requires_grad=True)
>>> scale(a, 2.0).sum().backward()
>>> a.grad
tensor([2., 2., 2.])
"""

import functools
import hashlib
import itertools
import keyword
from typing import Any

import torch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch._library.custom_ops import CustomOpDef
from torch._subclasses.functional_tensor import FunctorchFunctionalizeAPI

from . import _native
from ._operator import _REAL, Operator
from ._torch_gradients import (
    Rule,
    has_tangent,
    numbers_of,
    open_parameters,
    outside,
    registering,
    requires_gradient,
    without_gradient,
)
from ._torch_shapes import inferred
from .errors import ArgumentError

_NUMBERS = {**dict.fromkeys(_REAL, "float"), "bool": "bool"}
_TYPES = {name: getattr(torch, own, None) for name, own in _native.torch_types.items()}
# Registered operators, and their names and those of their gradients. Registering a name twice would redefine it.
_made: dict[str, "Registered"] = {}
_taken: set[str] = set()

# Whether a mode or transform other than autograd is active. Each check takes a fraction of a microsecond.
_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_TRANSFORM, _is_wrapped = torch._C._functorch.TransformType, torch._C._functorch.is_functorch_wrapped_tensor
# Of ``is_grads_batched``, which is not a transform of ``torch.func``.
_is_batch = torch._C._functorch.is_legacy_batchedtensor
_tracing = torch._C._get_tracing_state
_is_autocast = torch._C._is_any_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled
_forward_mode = torch.autograd.forward_ad
_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter


def register(op: Operator, backward: Operator | bool | None = None, *, name: str | None = None) -> Any:
    """Registers an operator as a ``torch.library`` custom operator: with shape inference, usable under
    ``torch.compile`` and ``torch.func``, and differentiable if ``backward`` is given. Frozen parameters are left out.

    ``backward`` is a gradient operator, as made by ``module.grad``. Its parameters are named like those of ``op``, like its
    results (values of the forward pass), or ``d_`` and the name of a result (its gradient); its results are ``d_`` and the
    name of a parameter. True derives this gradient, computes only the needed parts, and can be differentiated again.

    ``name`` is the name in the namespace ``tensorwright`` of PyTorch's registry (default: generated). Registering the same
    operator again returns the existing one.
    """
    if name is not None and not (name.isascii() and name.isidentifier() and not keyword.iskeyword(name)):
        raise ValueError(f"name is that of an operator in the namespace tensorwright, such as {op.__name__!r}, not {name!r}")
    if all(rank == 0 for _, _, rank, _ in open_parameters(op)):
        raise ValueError(f"{op.__name__} takes no tensors, so there is nothing for PyTorch to look at; call the operator itself")
    with registering:
        if name in _made and _is_same(_made[name], op, backward):
            return _made[name]
        if name in _taken:
            raise ValueError(
                f"the name {name!r} is that of another operator, whose compiled code would change; give another one, or none"
            )
        rule = None
        if backward is not None and backward is not False:
            rule = Rule(op, None if backward is True else backward, _again)
        name = name or _named(op)
        made = _custom(op, name, (), rule)
        made._origin = op, backward, name
        _made[name] = made
    return made


def _is_same(made, op, backward):
    """Whether registering an operator would repeat an earlier registration."""
    first, before, _ = made._origin
    if isinstance(before, Operator) and isinstance(backward, Operator):
        return _computes_same(first, op) and _computes_same(before, backward)
    return before is backward and _computes_same(first, op)


def _computes_same(one, other):
    """Whether two operators have the same text, choices and frozen values."""
    if (one.__name__, one.module.source, one.module._choices) != (other.__name__, other.module.source, other.module._choices):
        return False
    if one.frozen.keys() != other.frozen.keys():
        return False
    return all(_is_equal(one.frozen[name], value) for name, value in other.frozen.items())


def _is_equal(one, other):
    """Whether two frozen values are bitwise equal (NaN equals NaN, zeros have signs)."""
    if not hasattr(one, "shape") and not hasattr(other, "shape"):
        return repr(one) == repr(other) or one == other != 0
    try:
        with outside():
            one, other = torch.as_tensor(one), torch.as_tensor(other)
            if (one.dtype, one.shape) != (other.dtype, other.shape):
                return False
            return torch.equal(*(value.reshape(-1).contiguous().view(torch.uint8) for value in (one, other)))
    except (TypeError, RuntimeError):
        # Types that PyTorch does not know, or two devices.
        return False


def _named(op):
    """A name derived from the computation: PyTorch caches compiled code by name, across processes."""
    said = "\n".join([op.module.source, op.__name__, op.module.target, *sorted(op.frozen)])
    name = f"{op.__name__}_{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in _taken)


class Registered(CustomOpDef):
    """A custom operator. Calls bypass PyTorch's dispatcher if no mode or transform except autograd is active."""

    _op: Operator
    _function: Any
    _transformed: Any
    _casts: list[torch.dtype | None]
    _names: list[str]
    _takes_tensor: list[bool]
    _numbers: list[tuple[int, str, str]]
    _origin: tuple[Operator, Operator | bool | None, str]

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if _is_compiling():
            if _forward_mode._current_level >= 0:
                raise NotImplementedError(self._says_no_tangents())
            return self._opoverload(*args, **named)
        if named:
            args = self._placed(args, named)
        if len(args) != len(self._casts):
            # Reports the missing argument.
            return self._op.compute(*args)
        if _forward_mode._current_level >= 0:
            self._refuse_tangents(args)
        transform = _transforms()
        if transform is not None:
            return self._within(transform, args)
        if _dispatch_modes() or _function_modes() or _tracing() is not None:
            return self._dispatched(args)
        records = False
        for arg in args:
            kind = type(arg)
            if kind is _TENSOR or kind is _PARAMETER:
                if arg.requires_grad:
                    records = True
            elif kind is not float and kind is not int and hasattr(kind, "__torch_function__"):
                return self._dispatched(args)
            elif hasattr(kind, "__array_interface__"):
                return self(*self._converted(args))
        if _is_autocast() and torch.is_autocast_enabled("cpu"):
            args = _cast(args, self._casts)
        try:
            if records and _is_grad_enabled():
                if self._function is not None:
                    return self._function.apply(*args)
                if not self._takes_all(args):
                    # Reports the invalid argument.
                    self._op.compute(*args)
                # Without a rule, PyTorch reports it when the gradient is requested.
                return self._dispatched(args)
            return self._op.compute(*args)
        except (ArgumentError, TypeError):
            if self._takes_all(args) and self._has_no_memory(args):
                return self._dispatched(args)
            raise

    def __getattr__(self, name: str) -> Any:
        # The other methods of operators: ``tune``, ``explain``, ``compile``, ``kernels``.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._op, name)

    def _within(self, transform, args):
        """The call within a transform of ``torch.func``."""
        self._refuse_numbers(args)
        if not any(isinstance(arg, torch.Tensor) and _is_wrapped(arg) for arg in args):
            # Not part of the transform.
            return self._opoverload(*args)
        if transform.key() != _TRANSFORM.Functionalize:
            return self._transformed.apply(*args)
        # `autograd.Function` has no rule for it; nothing is changed in place here.
        level = FunctorchFunctionalizeAPI(retrieve_current_functorch_interpreter())
        with level.redispatch_to_next():
            made = self(*level.unwrap_tensors(args))
        return level.wrap_tensors(made)

    def _dispatched(self, args):
        """The call through PyTorch's dispatcher."""
        self._refuse_numbers(args)
        return self._opoverload(*args)

    def _refuse_numbers(self, args):
        """Rejects zero-dimensional tensors with gradients: PyTorch converts them to numbers and silently drops the gradients."""
        if self._numbers and _is_grad_enabled():
            for place, name, dtype in self._numbers:
                if isinstance(args[place], torch.Tensor) and requires_gradient(args[place]):
                    raise without_gradient(self._op, name, dtype)

    def _takes_all(self, args):
        """Whether all tensor parameters get torch tensors."""
        places = zip(args, self._takes_tensor, strict=True)
        return all(isinstance(arg, torch.Tensor) for arg, is_wanted in places if is_wanted)

    def _has_no_memory(self, args):
        """Whether arguments have no memory of their own (meta tensors, batches), so that only PyTorch can handle them."""
        tensors = [arg for arg, is_wanted in zip(args, self._takes_tensor, strict=True) if is_wanted]
        return all(arg.is_meta for arg in tensors) or any(map(_is_batch, tensors))

    def _converted(self, args):
        """Arguments with NumPy arrays converted to tensors, and NumPy scalars to Python numbers."""
        ranks = [rank for _, _, rank, _ in open_parameters(self._op)]
        is_array = [hasattr(type(arg), "__array_interface__") for arg in args]
        return tuple(
            arg if not found else torch.as_tensor(arg) if rank > 0 else arg.item()
            for arg, found, rank in zip(args, is_array, ranks, strict=True)
        )

    def _placed(self, args, named):
        """Positional arguments, with named ones in their places."""
        given = dict(zip(self._names, args, strict=False))
        says = f"{self._op.__name__}({self._op.signature})"
        for name, value in named.items():
            # PyTorch's schema adds an underscore to Python keywords.
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
        """Rejects tensors with tangents, which forward mode would silently drop."""
        for arg in args:
            if isinstance(arg, torch.Tensor) and has_tangent(arg):
                raise NotImplementedError(self._says_no_tangents())

    def _says_no_tangents(self):
        return f"{self._op.__name__} has no forward-mode derivative; use reverse mode (backward)"

    # PyTorch's registry holds the only one.
    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        return _registered, self._origin


def _registered(op, backward, name):
    """Restores a registered operator, from this process or another one."""
    with registering:
        if name not in _taken or (name in _made and _is_same(_made[name], op, backward)):
            return register(op, backward, name=name)
        # Another operator has this name here.
        found = next((made for made in _made.values() if _is_same(made, op, backward)), None)
        return register(op, backward) if found is None else found


def _custom(op, name, tensors, rule=None):
    """The custom operator. Parameters without axes are numbers, except for ``tensors``."""
    _taken.add(name)
    try:
        return _defined(op, name, tensors, rule)
    except BaseException:
        # The name stays free.
        _taken.discard(name)
        raise


def _defined(op, name, tensors, rule):
    params, results = open_parameters(op), op.results()
    # Kernels for devices other than CUDA take CPU tensors and copy them.
    device = "cuda" if op.module.target.startswith("cuda") else "cpu"
    custom = torch.library.custom_op(
        f"tensorwright::{name}", op.compute, mutates_args=(), schema=_schema(params, results, tensors), device_types=device
    )
    custom.__class__ = Registered
    custom._op, custom._function, custom._transformed = op, None, _transformed(custom)
    custom._names = [name for name, *_ in params]
    custom._takes_tensor = [rank > 0 or name in tensors for name, _, rank, _ in params]
    custom._numbers = numbers_of(op, tensors)
    custom._casts = [_TYPES[dtype] if rank > 0 and dtype in _REAL else None for _, dtype, rank, _ in params]

    @custom.register_fake
    def infer(*args):
        tensor = _checked(op, params, args)
        made = [tensor.new_empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in inferred(op, args)]
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


def _transformed(custom, setup=None, formula=None):
    """The autograd function for transforms of ``torch.func``: within a batch, PyTorch's dispatcher forgets the levels below."""

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*args):
            return custom(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            if setup is not None:
                setup(ctx, inputs, output)

        @staticmethod
        def backward(ctx, *gradients):
            if formula is None:
                says = f"{custom._op.__name__} has no gradient; register it with backward=True, or pass .detach()"
                raise NotImplementedError(says)
            return formula(ctx, *gradients)

        @staticmethod
        def vmap(info, in_dims, *args):
            return _batched(custom, info, in_dims, *args)

    return Transformed


def _cast(args, casts):
    """Arguments converted to the declared element types as by autocast, which leaves ``double`` alone."""
    return tuple(
        arg.to(dtype)
        if dtype is not None and isinstance(arg, torch.Tensor) and arg.is_floating_point() and arg.dtype != torch.double
        else arg
        for arg, dtype in zip(args, casts, strict=True)
    )


def _checked(op, params, args):
    """The first tensor. Also checks types, because shape inference never reads the memory of its tensors."""
    tensors = [(name, dtype, arg) for (name, dtype, *_), arg in zip(params, args, strict=True) if isinstance(arg, torch.Tensor)]
    first = tensors[0][2]
    for name, dtype, tensor in tensors:
        wanted = _TYPES[dtype]
        if tensor.dtype != wanted:
            raise ArgumentError(f"{op.__name__}: `{name}` has elements of {tensor.dtype}, and {wanted} is needed")
        if tensor.device != first.device:
            raise ArgumentError(f"{op.__name__}: `{name}` is on {tensor.device}, and other arguments are on {first.device}")
    return first


def _batched(custom, info, in_dims, *args):
    """One call per element of a batch."""

    def at(number):
        return (arg if dim is None else arg.select(dim, number) for arg, dim in zip(args, in_dims, strict=True))

    if info.batch_size == 0:
        # One arbitrary element gives the shape of the results.
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


def _schema(params, results, tensors):
    def kind(name, dtype, rank):
        if rank > 0 or name in tensors:
            return "Tensor"
        return _NUMBERS.get(dtype, "SymInt")

    # PyTorch's schemas reserve Python keywords such as `in`.
    names = [name + "_" * keyword.iskeyword(name) for name, *_ in params]
    kinds = [kind(name, dtype, rank) for name, dtype, rank, _ in params]
    taken = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, names, strict=True))
    given = ", ".join("Tensor" for _ in results)
    return f"({taken}) -> {given if len(results) == 1 else f'({given})'}"


def _again(op, tensors):
    """A custom operator for a gradient, which can be differentiated again."""
    with registering:
        custom = _custom(op, _named(op), tensors)
        _differentiate(custom, None, tensors)
        return custom


def _differentiate(custom, rule, tensors=()):
    """Makes the operator differentiable. A missing rule is derived on first use: second derivatives are rare."""
    known = [rule]
    if rule is not None:
        # Operators cannot be registered during tracing.
        if rule.whole is not None:
            rule.whole.custom  # noqa: B018

    def found():
        if known[0] is None:
            with registering:
                known[0] = known[0] or Rule(custom._op, None, _again, tensors)
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
            # A gradient that is differentiated again depends on inputs only; PyTorch splits batches of them.
            # Kernels would drop tangents of gradients.
            if _is_grad_enabled() or _transforms() is not None or _forward_mode._current_level >= 0:
                return found().recording(ctx.needs_input_grad).gradient(ctx, gradients, True)
            return ctx.passing.gradient(ctx, gradients, False)

    def whole():
        return found().recording(tuple(name in found().real for name in found().names))

    def setup(ctx, inputs, output):
        whole().save(ctx, tuple(inputs), output if isinstance(output, tuple) else (output,))

    def formula(ctx, *gradients):
        return whole().gradient(ctx, gradients, True)

    custom._function, custom._transformed = Function, _transformed(custom, setup, formula)
    custom.register_autograd(formula, setup_context=setup)
