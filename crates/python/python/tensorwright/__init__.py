"""A tensor compiler and autotuner: write the mathematics of an operator, get fast code.

>>> import numpy, tensorwright as tw
>>> module = tw.define("def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }")
>>> a, b = numpy.ones((2, 3), "float32"), numpy.ones((3, 4), "float32")
>>> module.matmul(a, b).shape
(2, 4)
"""

from ._native import __version__, compilations
from ._operator import Module, Operator, Report, Tuned, define, load
from ._threads import get_num_threads, set_num_threads
from .errors import ArgumentError, CompileError, DeadlineError, Error, IndexOutOfBoundsError, TuningError

__all__ = [
    "ArgumentError",
    "CompileError",
    "DeadlineError",
    "Error",
    "IndexOutOfBoundsError",
    "Module",
    "Operator",
    "Report",
    "Tuned",
    "TuningError",
    "__version__",
    "compilations",
    "define",
    "get_num_threads",
    "load",
    "set_num_threads",
    "torch",
]


def __getattr__(name):
    # Importing torch takes seconds, so it is lazy.
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
