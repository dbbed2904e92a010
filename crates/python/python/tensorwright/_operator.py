"""Modules and operators: the public Python API."""

from __future__ import annotations

import dataclasses
import html
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from . import _native, _progress, _threads

# Element types that PyTorch differentiates.
_REAL = _native.float_types


def define(
    source: str,
    *,
    name: str = "<define>",
    threads: int | None = None,
    precision: Literal["exact", "fast"] = "exact",
    db: str | os.PathLike[str] | None = None,
    target: str | None = None,
    dynamic: bool | Iterable[str] | None = None,
    kernels: int = 64,
) -> Module:
    """Parses a text of definitions.

    ``threads`` is the number of threads for kernels: by default as many as torch uses, or one per core
    (:func:`set_num_threads`);
    ``precision`` is "exact" (may only reorder sums) or "fast" (also algebraic rewrites that round differently: Winograd
    convolutions, factored sums, attention in blocks of keys): faster, about 1e-5 of the largest element off exact sums in
    ``float``, and an infinity or NaN may spread to its neighbours;
    ``db`` is the records file or the ``postgres://`` URL of a server, instead of the default (the environment variable
    TENSORWRIGHT_DB);
    ``target`` is the device: this machine's processor, or a device such as "opencl:0" (``tensorwright machine`` lists
    them). The default comes from the environment variable TENSORWRIGHT_TARGET, or ``target`` in tensorwright.toml. Arrays
    are copied to a device and back on every call; tensors already on "cuda:0" are used in place;
    ``dynamic`` names sizes that vary from call to call (True: all); a few kernels then serve all their values, and a
    warning lists sizes that cannot be dynamic, with reasons. Sizes seen with five values become dynamic automatically;
    with False, each set of shapes has its own kernel;
    ``kernels`` is the most kernels an operator keeps; the least recently used are evicted.
    """
    _check_place(db)
    text = _native.define(source, name)
    if said := text.warnings():
        warnings.warn("\n" + said, stacklevel=2)
    threads = None if threads is None else _threads.checked(threads, "threads")
    configured = _native.configured()[1]
    target = target or os.environ.get("TENSORWRIGHT_TARGET") or configured or "native"
    if not isinstance(kernels, int) or kernels < 1:
        raise ValueError(f"kernels is a number of at least 1, not {kernels!r}")
    for taken in (name for name in text.names() if hasattr(Module, name)):
        warnings.warn(f"module.{taken} is a method of modules; the definition is module[{taken!r}]", stacklevel=2)
    return Module(text, _Choices(threads, precision, db, target, _varying(text, dynamic), kernels))


def load(path: str | os.PathLike[str], **choices: Any) -> Module:
    """Like :func:`define`, for a file."""
    path = pathlib.Path(path)
    return define(path.read_text(encoding="utf-8"), name=str(path), **choices)


def _check_place(db: str | os.PathLike[str] | None) -> None:
    """Rejects an impossible records file; otherwise kernels would silently stay untuned."""
    if db is None or "://" in (path := os.fspath(db)):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(f"db is a file of records, and {path!r} is a directory; name a file in it")
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"db: there is no directory {directory!r}; make it, or name another file")


def _varying(text: _native.Source, dynamic: bool | Iterable[str] | None) -> bool | list[str]:
    """The dynamic sizes; raises TypeError or ValueError for invalid ones."""
    if dynamic is None or isinstance(dynamic, bool):
        return [] if dynamic is None else dynamic
    if not isinstance(dynamic, Iterable):
        raise TypeError(f"dynamic is True, False, or names of sizes, not {dynamic!r}")
    named = [dynamic] if isinstance(dynamic, str) else list(dynamic)
    sizes = text.sizes()
    for name in named:
        if name in text.integer_scalars():
            raise ValueError(
                f"dynamic: {name!r} is a scalar, and sizes are dynamic. A scalar that sets no range and no subscript takes any value "
                f"with the same kernel; make one that does data: write `int64(1) {name}` for it, `{name}(0)` where it is used, and "
                "pass an array of one number"
            )
        if name not in sizes:
            raise ValueError(f"dynamic: no definition has a size {name!r}: there are {', '.join(sizes) or 'none'}")
    return named


@dataclasses.dataclass(frozen=True)
class _Choices:
    """The choices for all operators of a module."""

    threads: int | None
    precision: str
    db: str | os.PathLike[str] | None
    target: str
    dynamic: bool | list[str]
    kernels: int


def _time(call: Callable[[], Any]) -> float:
    """The fastest of a few calls, in seconds; takes about 0.1 s."""
    call()
    best, until = float("inf"), time.perf_counter() + 0.1
    while True:
        begun = time.perf_counter()
        call()
        ended = time.perf_counter()
        best = min(best, ended - begun)
        if ended > until:
            return best


class Module:
    """The definitions of a text, each an attribute: ``module.matmul``, or ``module["matmul"]``."""

    def __init__(self, text: _native.Source, choices: _Choices) -> None:
        self._text = text
        self._choices = choices
        self._operators: dict[str, Operator] = {}
        # One per set of parameters, so that tuning and use share an operator.
        self._gradients: dict[tuple[str, tuple[str, ...]], Operator] = {}
        self._trainings: dict[tuple[str, tuple[str, ...]], tuple[Operator, Operator, dict[str, int]]] = {}

    @property
    def source(self) -> str:
        """The text."""
        return self._text.text

    @property
    def target(self) -> str:
        """The target of the kernels, by its given name."""
        return self._choices.target

    def __getitem__(self, name: str) -> Operator:
        operator = self._operators.get(name)
        if operator is None:
            operator = self._operators.setdefault(name, self._make(Operator, name, self._choices.threads, {}, None))
        return operator

    def _make(
        self, kind: type[Operator], name: str, threads: int | None, frozen: dict[str, Any], like: Operator | None
    ) -> Operator:
        said = self._choices
        threads = threads or _threads.get_num_threads()
        made = kind(
            self._text, name, threads, said.precision, said.db, said.target, said.dynamic, said.kernels, frozen, like
        )
        made.module = self
        return made

    def __getattr__(self, name: str) -> Operator:
        if name == "_text":
            # An incomplete copy.
            raise AttributeError(name)
        if name.startswith("_") or name not in self._text.names():
            names = self._text.names()
            raise AttributeError(f"no definition `{name}`: there {'is' if len(names) == 1 else 'are'} {', '.join(names)}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._text.names()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.names())

    def __len__(self) -> int:
        return len(self._text.names())

    def __call__(self, *_: Any, **__: Any) -> Any:
        calls = " or ".join(f"module.{name}(...)" for name in self)
        raise TypeError(f"a module is not called, but its definitions are: {calls}")

    # Unpickled operators are compiled again, with the records of that machine.
    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._text.text, self._text.name, self._choices)

    def __repr__(self) -> str:
        return f"<module of {', '.join(self._text.names())}>"

    def like(self, source: str) -> Module:
        """A module of another text with the same choices."""
        return Module(_native.define(source, "<define>"), self._choices)

    def grad(self, name: str, wrt: str | Iterable[str] = ()) -> Operator:
        """The gradient of a definition, as an operator. It takes the inputs it needs and the gradients of the
        results, and returns the gradients of the inputs in ``wrt`` (if empty: of all that have one).
        ``.module.source`` is its text."""
        wanted = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        found = self._gradients.get((name, wanted))
        if found is None:
            text, made = self._text.grad(name, list(wanted))
            found = self._gradients.setdefault((name, wanted), Module(text, self._choices)[made])
        return found

    def training(self, name: str, wrt: str | Iterable[str] = ()) -> tuple[Operator, Operator, dict[str, int]]:
        """The forward pass and the gradient of a definition for training. The forward pass returns, after its results,
        the values worth saving, and the gradient takes them instead of recomputing them. The third item maps
        parameters of the gradient to positions in the forward pass's results; if it is empty, the forward pass is the
        operator itself. This gradient cannot be differentiated again; that of :meth:`grad` can."""
        wanted = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        found = self._trainings.get((name, wanted))
        if found is None:
            forward, (text, made), saved = self._text.training(name, list(wanted))
            first = self[name] if forward is None else Module(forward[0], self._choices)[forward[1]]
            second = Module(text, self._choices)[made]
            whole = second if saved else self.grad(name, wanted)
            if whole.module.source == text.text:
                second = whole
            found = self._trainings.setdefault((name, wanted), (first, second, saved))
        return found


def _restored(source: str, name: str, choices: _Choices) -> Module:
    return Module(_native.define(source, name), choices)


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The result of tuning."""

    seconds: float
    """The median time of a call of the winner."""
    default_seconds: float
    """That of the default schedule, measured in turns with the winner."""
    trials: int
    elapsed: float
    gflops: float
    roofline: float
    """The share of the roofline."""
    schedule: str
    origin: str
    defects: int
    """Candidates that show a compiler defect: they were left out and kept for a report."""
    status: str
    run: str
    start_seconds: float = 0.0
    """The time before the first trial: starting processes, computing reference results."""
    search_seconds: float = 0.0
    """The time for trials."""
    finals_seconds: float = 0.0
    """The best candidates, measured again in turns. The three make up ``elapsed``."""
    backward: Tuned | None = None
    """The result of tuning the gradient."""

    @property
    def speedup(self) -> float:
        """The speedup over the default schedule."""
        return self.default_seconds / self.seconds

    def __str__(self) -> str:
        # The roofline assumes all data in memory; cached data can be faster.
        above = " (data stay in caches)" if self.roofline > 1 else ""
        faster = f"{self.speedup:.2f} times as fast as the default schedule"
        if self.speedup < 1.005:
            faster = "no faster than the default schedule"
        line = (
            f"{self.seconds * 1e6:.1f} us, {self.gflops:.1f} GFLOP/s, {100 * self.roofline:.0f} % of the roof{above}, "
            f"{faster} ({self.trials} trials in {self.elapsed:.1f} s: start {self.start_seconds:.1f} s, search "
            f"{self.search_seconds:.1f} s, finals {self.finals_seconds:.1f} s)"
        )
        return line if self.backward is None else f"{line}\nbackward: {self.backward}"


class Report:
    """A tuning report in HTML, shown by notebooks or saved to a file."""

    def __init__(self, page: str) -> None:
        self.html = page
        """The self-contained page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # A frame isolates its styles and scripts from the notebook.
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="800" style="border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<report of {len(self.html)} characters: save it, or show it in a notebook>"


class Operator(_native.Operator):
    """A callable definition. It takes NumPy arrays or torch tensors (on the CPU, or on the target's CUDA device), and
    numbers for scalars. Tensors are used in place, with their strides; non-dense views are copied, with a warning.
    Results are new arrays of the same library, or go to ``out``.

    The first call with new shapes compiles, with the best recorded schedule.
    """

    module: Module
    """Its module."""
    frozen: dict[str, Any] = {}
    """The values copied by :meth:`freeze`, by name."""

    def tune(
        self,
        *args: Any,
        trials: int | None = None,
        time: float | None = None,
        mode: str | None = None,
        strategy: str | None = None,
        seed: int = 0,
        fresh: bool = False,
        fleet: bool | str = False,
        backward: bool | str | Iterable[str] = False,
        progress: bool | Callable[[str, str, float | None], Any] = True,
        **named: Any,
    ) -> Tuned:
        """Searches for a faster schedule for the shapes of these arguments, or for sizes by name.

        ``mode`` is ``"one-shot"`` (the cost model chooses, without measurements), ``"top5"`` (measures the model's five
        best) or ``"autotune"`` (the default: a search with measurements).

        Stops after ``trials`` candidates or ``time`` seconds (default: 200 trials). The time covers the whole call,
        including the start and the finals, which take at least a second. Candidates are built and run in child
        processes, checked against the reference, and recorded at once: Ctrl-C loses nothing, and the same call resumes
        unless ``fresh`` is set. ``progress`` is True, False, or a function of (kind, line, share).

        ``backward`` also tunes training for the same sizes: the gradient with respect to all parameters that have one,
        or to the named ones, and the forward pass that saves values for it, each with its own budget.

        ``fleet`` lets the workers of a fleet try the candidates, through the records server (``db``). The name of a run
        instead of True resumes that run, whose process has ended. Needs a wheel built with the feature ``fleet``.
        """
        for what, number in (("trials", trials), ("seed", seed)):
            if number is not None and not 0 <= number < 2**64:
                raise ValueError(f"{what} is a number of at least 0, not {number!r}")
        shown = _progress.display(progress)
        afar = None if fleet is False else "" if fleet is True else fleet
        try:
            ended = self.search(args, named, trials, time, mode, strategy, seed, fresh, afar, shown)
        finally:
            shown.close()
        if backward is False:
            return Tuned(**ended)
        forward, gradient, _ = self.module.training(
            self.__name__, self.differentiable() if backward is True else backward
        )
        sizes: dict[str, Any] = {**self.sizes(*args, **named)}
        tuned = [
            op.tune(
                trials=trials, time=time, mode=mode, strategy=strategy, seed=seed, fresh=fresh, progress=progress, **sizes
            )
            for op in ([] if forward is self.module[self.__name__] else [forward]) + [gradient]
        ]
        return Tuned(**ended, backward=tuned[-1])

    def differentiable(self) -> list[str]:
        """The parameters with gradients: tensors of real numbers that are not frozen."""
        return [
            name for name, dtype, rank, _ in self.parameters() if rank > 0 and dtype in _REAL and name not in self.frozen
        ]

    def explain(self, *args: Any, **named: Any) -> str:
        """Explains the computation for these arguments or sizes: ranges and their derivation, cost, and the effect of
        the schedule in use (where and how often stages are computed, their memory and traffic). With arrays, also
        measures the time of a call."""
        text = super().explain(*args, **named)
        if not args:
            return text
        # The timed call needs no gradients.
        args = tuple(arg.detach() if hasattr(arg, "detach") else arg for arg in args)
        best = _time(lambda: self(*args, **named))
        moved = self.moved_bytes
        return f"{text}  {best * 1e6:.2f} us a call, measured now: {moved / best / 1e9:.1f} GB/s of what stages move\n"

    def report(self, *args: Any, **named: Any) -> Report:
        """The tuning report for the shapes of these arguments, or for sizes by name: search progress, outcomes of
        candidates, the roofline, the best schedule with its loops. Notebooks show it; ``save`` writes it to a file."""
        return Report(self.page(*args, **named))

    def freeze(self, **constants: Any) -> Operator:
        """The same operator with values for ``const`` parameters, which calls then leave out.

        The values are copied: later changes of the arrays have no effect. They are converted to the kernels' layout
        once, and calls do not check them again. Operators frozen from the same one share their kernels, so a network of
        equal layers compiles one.
        """
        made = self.module._make(type(self), self.__name__, self.threads, constants, self)
        made.frozen = dict(made.constants())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.module, self.__name__, self.frozen)


def _again(module: Module, name: str, frozen: dict[str, Any]) -> Operator:
    return module[name].freeze(**frozen) if frozen else module[name]
