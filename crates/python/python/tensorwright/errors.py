"""What can go wrong. Messages are those of the command `tensorwright`: where, what, and what to do."""


class Error(Exception):
    """Whatever Tensorwright raises."""

    codes: list[str] = []
    """The codes of the diagnostics, such as ``E0608``."""


class CompileError(Error, ValueError):
    """A text, its sizes or its schedule cannot be compiled."""


class ArgumentError(Error, ValueError, TypeError):
    """An argument of a call does not fit."""


class IndexOutOfBoundsError(Error, IndexError):
    """A subscript that was computed from data is out of bounds."""


class DeadlineError(Error, TimeoutError):
    """A kernel did not end on its device in time; the process can use the device no more."""


class TuningError(Error, RuntimeError):
    """Tuning could not go on."""
