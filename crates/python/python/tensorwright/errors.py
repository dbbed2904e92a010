"""Exceptions, with the messages of the command `tensorwright`: where, what, and what to do."""


class Error(Exception):
    """The base class of all exceptions of Tensorwright."""

    codes: list[str] = []
    """The codes of the diagnostics, such as ``E0608``."""


class CompileError(Error, ValueError):
    """A text, its sizes or its schedule cannot be compiled."""


class ArgumentError(Error, ValueError, TypeError):
    """An argument of a call is invalid."""


class IndexOutOfBoundsError(Error, IndexError):
    """A subscript computed from data is out of bounds."""


class DeadlineError(Error, TimeoutError):
    """A kernel exceeded the device deadline; this process can no longer use the device."""


class TuningError(Error, RuntimeError):
    """Tuning failed."""
