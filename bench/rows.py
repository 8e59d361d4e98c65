"""Hold what was measured: samples of interleaved rounds, their medians, and the targets they are held against. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Bound:
    """Hold a further condition of a row: what its median must not exceed."""

    name: str
    samples: Sequence[float]
    unit: str
    at_most: float

    @property
    def value(self) -> float | None:
        return median(self.samples) if self.samples else None

    @property
    def met(self) -> bool:
        return self.value is not None and self.value <= self.at_most

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "target": self.at_most,
            "met": self.met,
            "unit": self.unit,
            "samples": list(self.samples),
        }

    def text(self) -> str:
        shown = "-" if self.value is None else f"{self.value:.3g} ({min(self.samples):.3g}–{max(self.samples):.3g})"
        return f"{self.name} {shown} {self.unit}, ≤ {self.at_most:g}{'' if self.met else ' MISSED'}"


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one measure: a figure or a ratio within each round, and whether more or less of it is better.

    Without samples it was not measured, and `note` says why. A row is met when its median and all of `also` are.
    """

    name: str
    samples: Sequence[float]
    unit: str
    target: float | None
    at_least: bool
    note: str = ""
    also: Sequence[Bound] = ()

    @property
    def value(self) -> float | None:
        return median(self.samples) if self.samples else None

    @property
    def met(self) -> bool | None:
        """Say whether the target is reached; None where there is none. What was not measured is not met."""
        if self.target is None:
            return None
        if self.value is None:
            return False
        reached = self.value >= self.target if self.at_least else self.value <= self.target
        return reached and all(bound.met for bound in self.also)

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "target": self.target,
            "met": self.met,
            "unit": self.unit,
            "better": "more" if self.at_least else "less",
            "samples": list(self.samples),
            "note": self.note,
            "also": [bound.as_json() for bound in self.also],
        }

    def line(self) -> str:
        """Give the row of the table: median, its range, target, verdict, its further conditions, what dominates."""
        shown = "-" if self.value is None else f"{self.value:.4g} {self.unit}"
        spread = f"({min(self.samples):.4g}–{max(self.samples):.4g})" if self.samples else ""
        bound = "-" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        says = "; ".join([*(bound.text() for bound in self.also), *([self.note] if self.note else [])])
        return f"{self.name:<16} {shown:>18} {spread:<20} {bound:>8} {verdict:<7} {says}"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Divide figures of the same round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]
