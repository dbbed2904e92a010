"""The default number of threads for kernels."""

from __future__ import annotations

import os
import sys

from . import _native

_chosen: int | None = None


def set_num_threads(threads: int | None) -> None:
    """Sets the default number of threads for operators created from now on.

    ``None`` goes back to the default: the environment variable TENSORWRIGHT_THREADS, or ``threads`` in tensorwright.toml, or as many as torch uses
    (``torch.get_num_threads()``, if the program has imported torch), or one for each core that this process may run on, as the command does.
    """
    global _chosen
    _chosen = None if threads is None else checked(threads, "threads")


def get_num_threads() -> int:
    """The default number of threads for a new operator."""
    if _chosen is not None:
        return _chosen
    if said := os.environ.get("TENSORWRIGHT_THREADS"):
        return checked(said, "TENSORWRIGHT_THREADS")
    if configured := _native.configured()[0]:
        return configured
    # torch is not imported here; a partially imported one lacks this function.
    if count := getattr(sys.modules.get("torch"), "get_num_threads", None):
        return min(count(), 1024)
    return _native.default_threads()


def checked(said: int | str, what: str) -> int:
    """Checks a number of threads; raises ValueError."""
    try:
        threads = 0 if isinstance(said, (bool, float)) else int(said)
    except (TypeError, ValueError):
        threads = 0
    if not 1 <= threads <= 1024:
        raise ValueError(f"{what} is a number from 1 to 1024, not {said!r}")
    return threads
