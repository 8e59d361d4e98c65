"""What the generated unit tests say: situations as series, and how Prometheus' test files spell them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.promql import number


@dataclass(frozen=True, slots=True)
class Signal:
    """Hold a figure over time: its value at time 0 and how much it grows a second."""

    value: float
    slope_per_s: float = 0

    def held(self, at_s: float) -> Signal:
        """Give what stands still at the value of a time."""
        return Signal(self.value + self.slope_per_s * at_s)

    def spell(self, first: int, steps: int, interval_s: float) -> str:
        """Spell samples number `first` to `first + steps - 1`, `interval_s` apart."""
        if math.isnan(self.value):
            # promtool reads no number of times that something is no number.
            return " ".join(["NaN"] * steps)
        start = self.value + self.slope_per_s * first * interval_s
        step = self.slope_per_s * interval_s
        sign = "-" if step < 0 else "+"
        return f"{number(start)}{sign}{number(abs(step))}x{steps - 1}"


def clock(lag_s: float = 0) -> Signal:
    """Give a timestamp that is always `lag_s` seconds behind; the tests' time starts at 0."""
    return Signal(-lag_s, 1)


# A series by its name and its labels beside job, instance and queue; None says that it is missing.
Situation = Mapping[str, Signal | None]


@dataclass(frozen=True, slots=True)
class Case:
    """Hold a lasting situation, as it differs from a healthy queue, and whether the alert fires in it.

    `before` is what it grows out of, for `lead_s` at least; `labels` are those that the expression adds to the alert's
    own, `also` those of further alerts of the same name that the situation raises.
    """

    name: str
    situation: Situation
    fires: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    before: Situation = field(default_factory=dict)
    also: tuple[Mapping[str, str], ...] = ()
    lead_s: float = 0

    @property
    def instances(self) -> tuple[Mapping[str, str], ...]:
        """Give the labels of each alert that it raises."""
        return (self.labels, *self.also) if self.fires else ()


@dataclass(frozen=True, slots=True)
class Phase:
    """Hold a situation that lasts for a number of samples.

    `exporter_up` off ends every series; `is_noticed` off ends them as a scrape's own timestamps do: nothing says so.
    """

    situation: Situation
    samples: int
    exporter_up: bool = True
    is_noticed: bool = True


def spell(key: str, phases: tuple[Phase, ...], interval_s: float) -> str:
    """Spell one series over the phases; where it goes missing it is marked stale, as a failed scrape marks it."""
    parts: list[str] = []
    at, present = 0, False
    for phase in phases:
        signal = phase.situation.get(key) if phase.exporter_up else None
        if signal is not None:
            parts.append(signal.spell(at, phase.samples, interval_s))
        elif present and phase.is_noticed:
            parts.append("stale" if phase.samples == 1 else f"stale _x{phase.samples - 1}")
        else:
            parts.append(f"_x{phase.samples}")
        at, present = at + phase.samples, signal is not None
    return " ".join(parts)
