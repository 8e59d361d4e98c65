"""Make the unit tests of the forecast, each class at a pace of its own: around the floor, the slope and the window.

Figures are in units of the class: a step is a fifteenth of the window or about that, so every class is told the same
stories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rules.alert import Alert
from rules.cases import Phase, Signal
from rules.catalogue.deadline_breach_forecast import STEADY_PER_S
from rules.expectation import Expectation, UnitTest
from rules.exporters import Exporters
from rules.scope import Scope
from rules.situations import key
from sluicegate.telemetry import CLASS_JOBS, CLASS_LABEL, CLASS_SLACK_P10_SECONDS, PENDING_STATE, STATE_LABEL

# Steps in a window, whose slope is of one sample more: the first number by which each is whole ms, as promtool's are.
# There is one for every deadline of whole tenths of a second.
_WINDOWS = (15, 20, 16, 18, 12, 25, 10)
# A glitch of more samples than this would be a fall.
_FEW = 3


def forecast_pace_s(deadline_s: float) -> float:
    """Give the seconds of a step."""
    return deadline_s / 2 / _steps_in_a_window(deadline_s)


def _steps_in_a_window(deadline_s: float) -> int:
    window_ms = round(deadline_s * 500)
    return next((steps for steps in _WINDOWS if window_ms % steps == 0), _WINDOWS[0])


def forecast_tests(scope: Scope, alert: Alert, name: str) -> tuple[UnitTest, ...]:
    """Return the tests of one class's forecast."""
    return tuple(_Maker(scope, alert, name).make())


class _Maker:
    def __init__(self, scope: Scope, alert: Alert, name: str) -> None:
        deadline_s = scope.settings.contract.classes[name].deadline_s
        self._step_s = forecast_pace_s(deadline_s)
        self._window = _steps_in_a_window(deadline_s)
        pace = {"scrape_interval_s": self._step_s, "evaluation_interval_s": self._step_s}
        monitoring = scope.settings.monitoring.model_copy(update=pace)
        self._exporters = Exporters(Scope(scope.settings.model_copy(update={"monitoring": monitoring})))
        self._alert = alert
        self._class = {CLASS_LABEL: name}
        self._floor = scope.thresholds.reject_slack_p10_seconds
        self._half_s = deadline_s / 2
        self._held = math.ceil(round(alert.for_s / self._step_s, 9))

    def make(self) -> Iterator[UnitTest]:
        nudge = max(abs(self._floor), 1) / 500
        yield self._falls(-nudge, self._held, "just under the floor")
        yield self._falls(nudge, self._held + 1, "just over the floor, and a step later under it")
        yield self._slopes(STEADY_PER_S * 1.002, "just steeper than steady", fires=True)
        yield self._slopes(STEADY_PER_S * 0.998, "just as steady", fires=False)
        if 0 < self._held <= _FEW:
            yield self._dips()
        yield self._steps_down()
        yield self._begins()

    def _falls(self, over_s: float, after: int, name: str) -> UnitTest:
        """Let the slack rise for a window, then fall for one: only then it is `over_s` off the bound."""
        slope = 2 * STEADY_PER_S
        lowest = self._floor + slope * self._half_s + over_s
        steps = range(2 * self._window + after + 1)
        values = [lowest + slope * self._step_s * (self._window - abs(step - self._window)) for step in steps]
        first = 2 * self._window + after
        moments = (
            *((Expectation(self._at(first - 1), self._alert, why="a moment before"),) if first else ()),
            Expectation(self._at(first), self._alert, (self._class,), "it is forecast, and `for` has passed"),
        )
        return self._test(name, values, moments)

    def _slopes(self, slope: float, name: str, *, fires: bool) -> UnitTest:
        """Let a slack fall that would be under the floor by half its bound."""
        values = [
            self._floor + STEADY_PER_S * self._half_s / 2 - slope * self._step_s * (step - self._window)
            for step in range(self._window + self._held + 1)
        ]
        ends = Expectation(self._at(len(values) - 1), self._alert, (self._class,) if fires else ())
        return self._test(name, values, (ends,))

    def _dips(self) -> UnitTest:
        """Let as few samples as `for` outlasts be very low: the slope stays negative for long, the slack does not."""
        high = self._floor + self._half_s / 2
        values = [*[high] * self._window, *[high - 3 * self._half_s] * self._held, *[high] * self._window]
        after = self._window + self._held
        moments = tuple(
            Expectation(self._at(step), self._alert, why=f"{step - after} steps after")
            for step in range(after, after + 6)
        )
        return self._test("a dip is no fall", values, moments)

    def _steps_down(self) -> UnitTest:
        """Let the slack take a step: half the window would take it for a fall, the whole one does not."""
        low = self._floor + 1.2 * self._half_s
        values = [*[low + self._half_s / 1.5] * self._window, *[low] * self._window]
        steps = (self._window // 5, 2 * self._window // 5, self._window - 1)
        moments = tuple(Expectation(self._at(self._window + step), self._alert) for step in steps)
        return self._test("a step is no fall", values, moments)

    def _begins(self) -> UnitTest:
        """Let a class have its first job, with a slack that falls: there is no forecast before a window has passed."""
        first = self._window + self._held
        values = [self._floor + self._half_s - step * self._step_s for step in range(first + 1)]
        moments = (
            Expectation(self._at(first - 1), self._alert, why="a window has not passed, or `for` has not"),
            Expectation(self._at(first), self._alert, (self._class,), "both have"),
        )
        return self._test("a class that has just begun", values, moments)

    def _at(self, step: int) -> float:
        return step * self._step_s

    def _test(self, name: str, values: Sequence[float], expected: tuple[Expectation, ...]) -> UnitTest:
        slack = key(CLASS_SLACK_P10_SECONDS, **self._class)
        waiting = key(CLASS_JOBS, **self._class, **{STATE_LABEL: PENDING_STATE})
        phases = tuple(Phase({slack: Signal(value), waiting: Signal(1)}, samples=1) for value in values)
        series: Mapping[str, str] = self._exporters.together(phases)
        tidy = {title: spelled.replace("+0x0", "") for title, spelled in series.items()}
        return UnitTest(f"{self._alert.name}, {self._class[CLASS_LABEL]}, {name}", tidy, expected)
