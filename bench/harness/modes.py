"""How our kernels are scheduled: not at all, or by one of the modes of `tensorwright tune`."""

from dataclasses import dataclass

MODES = ("untuned", "one-shot", "top5", "autotune")
"""The later ones measure more before they choose."""


@dataclass(frozen=True)
class Kernel:
    """What one column of a report measures."""

    precision: str
    mode: str

    @property
    def tuned(self):
        return self.mode != "untuned"

    def db(self, settings):
        """Its records of tuning: what one mode found must not help another."""
        return settings.db if self.mode == "autotune" else settings.out / f"{self.mode}-records.sqlite3"


def kernels(precisions, modes):
    """The columns of a run by their names: precisions of one mode, or modes of one precision."""
    if len(modes) == 1:
        return {precision: Kernel(precision, modes[0]) for precision in precisions}
    return {mode: Kernel(precisions[0], mode) for mode in modes}
