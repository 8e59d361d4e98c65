"""Say what one promise is, how much was looked at, and where it was broken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_EXAMPLES = 5


class Weight(StrEnum):
    """Name what a broken promise means for the verdict."""

    PROMISE = "promise"  # one case fails the run
    LOSS = "loss"  # a server that may lose data may break it: counted, reported, no failure
    FIGURE = "figure"  # said for the reader


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold a promise, how many cases were looked at, and a sentence for each that broke it.

    A promise that nothing was looked at for is not kept: a run that never came to it proves nothing.
    """

    name: str
    says: str
    looked_at: int
    broken: tuple[str, ...] = ()
    weight: Weight = Weight.PROMISE

    @property
    def failed(self) -> bool:
        """Tell whether this alone fails the run."""
        return self.weight is Weight.PROMISE and (bool(self.broken) or self.looked_at == 0)

    @property
    def word(self) -> str:
        """Give the verdict in a word."""
        if self.weight is Weight.FIGURE:
            return "-"
        if self.weight is Weight.LOSS:
            return "lost" if self.broken else "none lost"
        if self.broken:
            return "BROKEN"
        return "kept" if self.looked_at else "NOT LOOKED AT"

    @property
    def examples(self) -> tuple[str, ...]:
        """Give the first sentences of those that broke it."""
        return self.broken[:_EXAMPLES]
