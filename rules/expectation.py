"""What one unit test of promtool says: series, and which alert fires when, with what labels and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.alert import Alert


@dataclass(frozen=True, slots=True)
class Expectation:
    """Say how often an alert fires at a time in seconds: once for each set of labels beside its own, or not at all."""

    at_s: float
    alert: Alert
    instances: tuple[Mapping[str, str], ...] = ()
    why: str = ""

    @property
    def fires(self) -> bool:
        return bool(self.instances)

    @property
    def labels(self) -> tuple[dict[str, str], ...]:
        """Give the labels of each alert that fires."""
        return tuple({**self.alert.labels, **extra} for extra in self.instances)

    def annotations(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Fill the label placeholders as Prometheus will."""
        filled = {}
        for name, text in self.alert.annotations.items():
            for label, value in labels.items():
                text = text.replace("{{ $labels." + label + " }}", value)  # noqa: PLW2901 (one replacement a label)
            filled[name] = text
        return filled


@dataclass(frozen=True, slots=True)
class UnitTest:
    """Hold one test: series as promtool spells them, and what is expected when."""

    name: str
    series: Mapping[str, str]
    expectations: tuple[Expectation, ...]
