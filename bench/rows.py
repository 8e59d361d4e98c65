"""Hold what was measured: samples of interleaved rounds, their medians, and the targets they are held against. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one measure: a figure or a ratio within each round, and whether more or less of it is better.

    Without samples it was not measured, and `note` says why; without a target nobody is there to compare with yet.
    """

    name: str
    samples: Sequence[float]
    unit: str
    target: float | None
    at_least: bool
    note: str = ""

    @property
    def value(self) -> float | None:
        return median(self.samples) if self.samples else None

    @property
    def met(self) -> bool | None:
        """Say whether the median reaches its target; None where there is none, or nothing was measured."""
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "target": self.target,
            "met": self.met,
            "unit": self.unit,
            "samples": list(self.samples),
            "note": self.note,
        }

    def line(self) -> str:
        """Give the row of the table: median, its range, target, verdict, what dominates."""
        shown = "-" if self.value is None else f"{self.value:.4g} {self.unit}"
        spread = f"({min(self.samples):.4g}–{max(self.samples):.4g})" if self.samples else ""
        bound = "-" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"{self.name:<16} {shown:>14} {spread:<20} {bound:>8} {verdict:<7} {self.note}"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Divide figures of the same round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]
