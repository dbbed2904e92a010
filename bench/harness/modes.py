"""How our kernels are scheduled: by default, or by a mode of `tensorwright tune`."""

from dataclasses import dataclass

MODES = ("untuned", "one-shot", "top5", "autotune")
"""Later ones measure more before they choose."""


@dataclass(frozen=True)
class Kernel:
    """One column of a report."""

    precision: str
    mode: str

    @property
    def tuned(self):
        return self.mode != "untuned"

    def db(self, settings):
        """Separate tuning records: the results of one mode must not help another."""
        return settings.db if self.mode == "autotune" else settings.out / f"{self.mode}-records.sqlite3"


def kernels(precisions, modes):
    """The columns of a run by name: precisions of one mode, or modes of one precision."""
    if len(modes) == 1:
        return {precision: Kernel(precision, modes[0]) for precision in precisions}
    return {mode: Kernel(precisions[0], mode) for mode in modes}
