"""Tuning progress: an updated line in a terminal, a bar in a notebook, occasional lines elsewhere."""

import os
import sys
import time

WIDTH = 24


class Quiet:
    """No progress output."""

    def __call__(self, kind, line, share):
        pass

    def close(self):
        pass


class Lines(Quiet):
    """For files and pipes."""

    SELDOM = 10.0

    def __init__(self, stream):
        self.stream, self.last = stream, time.monotonic()

    def __call__(self, kind, line, share):
        now = time.monotonic()
        if kind in ("trial", "waiting") and now - self.last < self.SELDOM:
            return
        self.last = now
        print(line, file=self.stream, flush=True)


class Terminal(Quiet):
    """One updated line, never wider than the terminal."""

    OFTEN = 0.1

    def __init__(self, stream):
        self.stream, self.last = stream, 0.0

    @property
    def width(self):
        """The usable columns: the last one stays free, since some terminals wrap there."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return (columns or 80) - 1

    @property
    def columns(self):
        """The columns for a line of the tuner, next to the bar if there is room for one."""
        return self.width - len(self.bar(0.0))

    def bar(self, share):
        return f"{bar(share)} " if self.width >= 3 * WIDTH else ""

    def __call__(self, kind, line, share):
        now = time.monotonic()
        if kind in ("trial", "waiting") and now - self.last < self.OFTEN:
            return
        self.last = now
        if share is None:
            self.stream.write(f"\r\x1b[K{line}\n")
        else:
            self.stream.write("\r\x1b[K" + f"{self.bar(share)}{line}"[: self.width])
        self.stream.flush()

    def close(self):
        self.stream.write("\r\x1b[K")
        self.stream.flush()


class Notebook(Quiet):
    """A bar with its line below, in the output of a cell."""

    OFTEN = 0.2

    def __init__(self):
        from IPython.display import display  # type: ignore[import-not-found]

        self.last = 0.0
        self.handle = display(self.page("starting", 0.0), display_id=True)

    @staticmethod
    def page(line, share):
        import html

        from IPython.display import HTML  # type: ignore[import-not-found]

        return HTML(
            f'<progress value="{share:.4f}" max="1" style="width: 24em"></progress> '
            f"<code>{html.escape(line)}</code>"
        )

    def __call__(self, kind, line, share):
        now = time.monotonic()
        if share is None or (kind in ("trial", "waiting") and now - self.last < self.OFTEN):
            return
        self.last = now
        self.handle.update(self.page(line, share))

    def close(self):
        self.handle.update(self.page("done", 1.0))


class Given(Quiet):
    """Calls a user function."""

    def __init__(self, function):
        self.function = function

    def __call__(self, kind, line, share):
        self.function(kind, line, share)


def bar(share):
    full = round(WIDTH * share)
    return "[" + "#" * full + "." * (WIDTH - full) + "]"


def display(wanted):
    """The progress display: ``wanted`` is True, False, or a function of (kind, line, share)."""
    if not wanted:
        return Quiet()
    if callable(wanted):
        return Given(wanted)
    if _in_notebook():
        return Notebook()
    return Terminal(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)


def _in_notebook():
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell else None
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"
