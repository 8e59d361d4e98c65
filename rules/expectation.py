"""What one unit test of promtool says: series, and which alert fires when, with what labels and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.alert import Alert


@dataclass(frozen=True, slots=True)
class Expectation:
    """Say that an alert fires, once and with these labels and annotations, or does not, at a time in seconds."""

    at_s: float
    alert: Alert
    fires: bool
    extra_labels: Mapping[str, str]
    why: str

    @property
    def labels(self) -> dict[str, str]:
        return {**self.alert.labels, **self.extra_labels}

    @property
    def annotations(self) -> dict[str, str]:
        """Fill the label placeholders as Prometheus will."""
        filled = {}
        for name, text in self.alert.annotations.items():
            for label, value in self.labels.items():
                text = text.replace("{{ $labels." + label + " }}", value)  # noqa: PLW2901 (one replacement a label)
            filled[name] = text
        return filled


@dataclass(frozen=True, slots=True)
class UnitTest:
    """Hold one test: series as promtool spells them, and what is expected when."""

    name: str
    series: Mapping[str, str]
    expectations: tuple[Expectation, ...]
