"""How many threads kernels may use where nobody says it."""

from __future__ import annotations

import os
import sys

from . import _native

_chosen: int | None = None


def set_num_threads(threads: int | None) -> None:
    """Sets how many threads the kernels of operators may use that are made from now on and do not say it themselves.

    ``None`` goes back to the default: the environment variable TENSORWRIGHT_THREADS, or ``threads`` in tensorwright.toml, or as many as torch uses
    (``torch.get_num_threads()``, if the program has imported torch), or one for each core that this process may run on, as the command does.
    """
    global _chosen
    _chosen = None if threads is None else checked(threads, "threads")


def get_num_threads() -> int:
    """How many threads the kernels of an operator may use that is made now and does not say it itself."""
    if _chosen is not None:
        return _chosen
    if said := os.environ.get("TENSORWRIGHT_THREADS"):
        return checked(said, "TENSORWRIGHT_THREADS")
    if configured := _native.configured()[0]:
        return configured
    # Who has not imported torch does not wait for it here; a half-imported one has no such function yet.
    if count := getattr(sys.modules.get("torch"), "get_num_threads", None):
        return min(count(), 1024)
    return _native.default_threads()


def checked(said: int | str, what: str) -> int:
    """A number of threads, or a ValueError."""
    try:
        threads = 0 if isinstance(said, (bool, float)) else int(said)
    except (TypeError, ValueError):
        threads = 0
    if not 1 <= threads <= 1024:
        raise ValueError(f"{what} is a number from 1 to 1024, not {said!r}")
    return threads
