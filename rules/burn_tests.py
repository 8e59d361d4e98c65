"""Make the unit tests of the budget alerts: they last for hours and days, so each has a file and a pace of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rules.alert import Alert
from rules.burn import FAST, SLOW, bound
from rules.expectation import Expectation, UnitTest
from rules.promql import matchers, number
from rules.scope import Scope
from sluicegate.records import AlertName
from sluicegate.telemetry import CLASS_DEADLINE_OUTCOMES_TOTAL, CLASS_LABEL, OUTCOME_LABEL, QUEUE_LABEL

TIERS = {AlertName.DEADLINE_BUDGET_BURN_FAST: FAST, AlertName.DEADLINE_BUDGET_BURN_SLOW: SLOW}
# From one sample to the next: a few in the shortest window, and days that do not take minutes.
STEP_S = {AlertName.DEADLINE_BUDGET_BURN_FAST: 150.0, AlertName.DEADLINE_BUDGET_BURN_SLOW: 3600.0}
# So many deadlines end between two samples that the least number of misses decides only where it is tested.
_A_STEP = 1000.0
_NUDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Stretch:
    """Hold a time in which so many deadlines are missed between two samples, of so many."""

    lasts_s: float
    missed: float
    of: float = _A_STEP


def burn_tests(scope: Scope, alert: Alert) -> tuple[UnitTest, ...]:
    """Return the tests of one budget alert."""
    return tuple(_Maker(scope, alert).make())


class _Maker:
    def __init__(self, scope: Scope, alert: Alert) -> None:
        self._scope = scope
        self._alert = alert
        self._step_s = STEP_S[alert.name]

    def make(self) -> Iterator[UnitTest]:
        least = self._scope.settings.monitoring.budget_min_misses
        first, second = TIERS[self._alert.name]
        for tier in (first, second):
            share, name = bound(self._scope, tier), f"tier {number(tier.factor)}"
            over, under = share * (1 + _NUDGE) * _A_STEP, share * (1 - _NUDGE) * _A_STEP
            long, short = tier.long_s, tier.short_s + 2 * self._step_s
            yield self._test(f"{name}, just over", True, Stretch(long, over))
            # Long enough a quiet time before that the other tier, which is slower, has no reason of its own.
            quiet = Stretch(second.long_s - long, 0)
            yield self._test(f"{name}, just under", False, quiet, Stretch(long, under))
            much = over * 1.2
            if tier is second or much / _A_STEP * long / second.long_s < bound(self._scope, second):
                yield self._test(f"{name}, it is over", False, quiet, Stretch(long, much), Stretch(short, 0))
            yield self._test(f"{name}, it only began", False, Stretch(long, 0), Stretch(short, over))
            steps = long / self._step_s
            few = (Stretch(long, missed=(least + by) / steps, of=(least + by) / steps) for by in (-0.5, 0.5))
            yield self._test(f"{name}, all missed, but too few", False, next(few))
            yield self._test(f"{name}, all missed, and enough", True, next(few))
        longest = max(tier.long_s for tier in TIERS[self._alert.name])
        yield self._test("no deadline at all", False, Stretch(longest, 0, 0))
        yield self._test("no miss at all", False, Stretch(longest, 0))

    def _test(self, name: str, fires: bool, *stretches: Stretch) -> UnitTest:
        ends_s = sum(math.ceil(stretch.lasts_s / self._step_s) for stretch in stretches) * self._step_s
        series = {
            self._series("missed"): self._spell([stretch.missed / 2 for stretch in stretches], stretches),
            self._series("expired"): self._spell([stretch.missed / 2 for stretch in stretches], stretches),
            self._series("met"): self._spell([stretch.of - stretch.missed for stretch in stretches], stretches),
        }
        expected = Expectation(ends_s, self._alert, fires, {}, "")
        return UnitTest(f"{self._alert.name}, {name}", series, (expected,))

    def _series(self, outcome: str) -> str:
        name, _ = next(iter(self._scope.settings.contract.classes.items()))
        labels = {
            "job": self._scope.settings.monitoring.exporter_job,
            "instance": "exporter-1:9108",
            QUEUE_LABEL: self._scope.queue,
            CLASS_LABEL: name,
            OUTCOME_LABEL: outcome,
        }
        return f"{CLASS_DEADLINE_OUTCOMES_TOTAL}{{{matchers(labels)}}}"

    def _spell(self, a_step: Sequence[float], stretches: Sequence[Stretch]) -> str:
        """Spell a counter that grows by so much a step in each stretch, from where the last one left it."""
        parts, at = [], 0.0
        for grows, stretch in zip(a_step, stretches, strict=True):
            steps = math.ceil(stretch.lasts_s / self._step_s)
            if not steps:
                continue
            parts.append(f"{number(at)}+{number(grows)}x{steps - 1}")
            at += grows * steps
        # One sample more: where the last step ends.
        return " ".join((*parts, number(at)))
