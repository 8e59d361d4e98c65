"""Make the unit tests of the budget alerts, each pair of windows at a pace of its own.

A step is half the short window, so the long one of every pair (Google SRE Workbook, chapter 5) is as many steps, a test
of three days takes no longer than one of an hour, and what looks back over less than a step sees nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rules.alert import Alert
from rules.burn import FAST, SLOW, Tier, bound
from rules.cases import Phase, Signal
from rules.expectation import Expectation, UnitTest
from rules.exporters import Exporters
from rules.promql import number
from rules.scope import Scope
from rules.situations import key
from sluicegate.records import AlertName
from sluicegate.telemetry import CLASS_DEADLINE_OUTCOMES_TOTAL, CLASS_LABEL, OUTCOME_LABEL

TIERS = {AlertName.DEADLINE_BUDGET_BURN_FAST: FAST, AlertName.DEADLINE_BUDGET_BURN_SLOW: SLOW}
_SHORT = 2
# A thousandth over a bound, and a tenth.
_OVER, _MORE = Fraction(1001, 1000), Fraction(11, 10)
_ONCE: tuple[Mapping[str, str], ...] = ({},)
Spelled = Callable[[tuple[Phase, ...]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Step:
    """Hold what a step brings: misses, of so many deadlines."""

    missed: Fraction
    of: Fraction


_NOTHING = Step(Fraction(0), Fraction(0))
# It outweighs every miss of a test.
_FLOOD = Step(Fraction(0), Fraction(10**9))


def pace_s(tier: Tier) -> float:
    """Give the seconds of a step."""
    return tier.short_s / _SHORT


def burn_tests(scope: Scope, alert: Alert, tier: Tier) -> tuple[UnitTest, ...]:
    """Return the tests of one pair of windows of a budget alert."""
    return tuple(_Maker(scope, alert, tier).make())


class _Maker:
    def __init__(self, scope: Scope, alert: Alert, tier: Tier) -> None:
        pace = {"scrape_interval_s": pace_s(tier), "evaluation_interval_s": pace_s(tier)}
        monitoring = scope.settings.monitoring.model_copy(update=pace)
        self._exporters = Exporters(Scope(scope.settings.model_copy(update={"monitoring": monitoring})))
        self._pace_s = pace_s(tier)
        self._alert = alert
        self._name = f"{alert.name}, {number(tier.factor)} ×"
        self._long = round(tier.long_s / self._pace_s)
        self._rest = self._long - _SHORT
        # As the rule spells it, and so many deadlines a step that the shares tested of them are whole numbers.
        self._share = Fraction(number(bound(scope, tier)))
        self._volume = Fraction(self._share.denominator * 20 * self._rest)
        self._least = scope.settings.monitoring.budget_min_misses
        self._held = math.ceil(round(alert.for_s / self._pace_s, 9))
        self._kept = math.ceil(round(alert.keep_firing_for_s / self._pace_s, 9))
        self._class = next(iter(scope.settings.contract.classes))

    def make(self) -> Iterator[UnitTest]:
        yield self._barely_over()
        at, over = self._of(Fraction(1)), self._of(_MORE)
        under = self._of(1 - (_MORE - 1) * _SHORT / self._rest)
        yield self._silent("the long window at its bound", [*[under] * self._rest, over, over, *[under] * self._held])
        yield self._silent("the short window at its bound", [*[over] * self._rest, at, at, *[at] * self._held])
        yield self._few(self._least - 1, "all missed, but too few", ())
        yield self._few(self._least, "all missed, and enough", _ONCE)
        yield self._silent("no deadline at all", [_NOTHING] * (self._long + self._held))

    def _barely_over(self) -> UnitTest:
        """Let both windows be just over, the short one by every other step; `for` holds it, and then its keep."""
        over, none, twice = self._of(_OVER), self._of(Fraction(0)), self._of(2 * _OVER)
        by_turns = (twice, none) if twice.missed <= twice.of else (over, over)
        lasts = self._long + self._held
        burning = [*[over] * self._rest, *by_turns * (self._held + 1)][:lasts]
        # Half of the short window still sees the last step.
        over_at = lasts + (2 if burning[-1] is twice else 1)
        ends = over_at + self._kept
        moments = (
            Expectation(self._at(lasts - 1), self._alert, why="a moment before `for` has passed"),
            Expectation(self._at(lasts), self._alert, _ONCE, "`for` has passed"),
            Expectation(self._at(ends - 1), self._alert, _ONCE, "to the last moment of its keep"),
            Expectation(self._at(ends), self._alert, why="the short window is over, and so is the keep"),
        )
        steps = [*burning, *[none] * (ends - lasts)]
        return self._test("both windows just over", steps, self._exporters.alone, moments)

    def _few(self, count: int, name: str, fires: tuple[Mapping[str, str], ...]) -> UnitTest:
        """Miss every deadline that there is, most of them early in the long window and the last two at its end."""
        early, *late = (Step(Fraction(misses), Fraction(misses)) for misses in (count - 2, 1, 1))
        steps = [_NOTHING, early, *[_NOTHING] * (self._rest - 2), *late, *[_NOTHING] * self._held]
        expected = Expectation(self._at(len(steps)), self._alert, fires)
        return self._test(name, steps, self._exporters.together, (expected,))

    def _silent(self, name: str, steps: Sequence[Step]) -> UnitTest:
        return self._test(name, steps, self._exporters.alone, (Expectation(self._at(len(steps)), self._alert),))

    def _of(self, times: Fraction) -> Step:
        """Give a step in which so many times the bound is missed."""
        return Step(times * self._share * self._volume, self._volume)

    def _at(self, steps: int) -> float:
        """Give the time at which so many steps have passed since the flood, which takes one."""
        return (steps + 1) * self._pace_s

    def _test(self, name: str, steps: Sequence[Step], spelled: Spelled, expected: tuple[Expectation, ...]) -> UnitTest:
        """Let the steps follow a flood of met deadlines, which silences whatever looks back on it."""
        phases, missed, of = [], Fraction(0), Fraction(0)
        for step in (_NOTHING, _FLOOD, *steps):
            missed, of = missed + step.missed, of + step.of
            phases.append(self._phase(missed, of))
        series = {name: values.replace("+0x0", "") for name, values in spelled(tuple(phases)).items()}
        return UnitTest(f"{self._name}, {name}", series, expected)

    def _phase(self, missed: Fraction, of: Fraction) -> Phase:
        counts = {"missed": missed / 2, "expired": missed / 2, "met": of - missed}
        of_class = {CLASS_LABEL: self._class}
        return Phase(
            {
                key(CLASS_DEADLINE_OUTCOMES_TOTAL, **of_class, **{OUTCOME_LABEL: outcome}): Signal(float(count))
                for outcome, count in counts.items()
            },
            samples=1,
        )
