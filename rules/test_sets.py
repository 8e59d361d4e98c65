"""Which unit tests stand in which file? By their pace: what looks back for long is tested at a slow one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rules.alert import Alert
from rules.burn import FAST
from rules.burn_tests import TIERS, burn_tests, pace_s
from rules.dark_tests import DarkTestMaker
from rules.expectation import UnitTest
from rules.forecast_tests import forecast_pace_s, forecast_tests
from rules.promql import duration
from rules.scope import Scope
from rules.unit_tests import TestMaker
from sluicegate.records import AlertName
from sluicegate.settings import Settings

# Alerts that wait for minutes are tested at a slower pace, so that a test takes no more steps than another's.
_PATIENT_S, _PATIENT_PACE_S = 60.0, 10.0
# So is a forecast whose shortest window is long; Prometheus forgets a sample after five minutes.
_LONG_S, _LONG_STEPS, _LONGEST_PACE_S = 900.0, 150, 120.0


@dataclass(frozen=True, slots=True)
class TestSet:
    """Hold the tests of one file, with its pace in seconds."""

    __test__ = False  # pytest: the name is the thing's, not a test's

    file: str
    scrape_s: float
    evaluation_s: float
    tests: tuple[UnitTest, ...]


def test_sets(settings: Settings, alerts: Sequence[Alert]) -> tuple[TestSet, ...]:
    """Make the unit tests of a catalogue, a set for each pace."""
    scope = Scope(settings)
    long = _long(scope, alerts)
    quick = [alert for alert in alerts if alert.for_s < _PATIENT_S and alert not in long]
    patient = [alert for alert in _patient(alerts) if alert not in long]
    return (
        _at_pace("sluicegate.test.yml", scope, quick, alerts),
        _at_pace("sluicegate.minutes.test.yml", _slower(settings, _PATIENT_PACE_S), patient, alerts),
        *(
            [_at_pace("sluicegate.hours.test.yml", _slower(settings, _long_pace_s(scope)), long, alerts)]
            if long
            else []
        ),
        *_forecasts(scope, alerts),
        *_budgets(scope, alerts),
    )


def dark_sets(settings: Settings, alerts: Sequence[Alert]) -> tuple[TestSet, ...]:
    """Make the tests of a catalogue in which figures go wrong, a set for each pace."""
    scope = Scope(settings)
    budgets, long = [alert for alert in alerts if alert.name in TIERS], _long(scope, alerts)
    quick = [alert for alert in alerts if alert.for_s < _PATIENT_S and alert not in (*budgets, *long)]
    patient = [alert for alert in _patient(alerts) if alert not in long]
    return (
        _dark("sluicegate.dark.test.yml", scope, quick, alerts),
        _dark("sluicegate.dark-minutes.test.yml", _slower(settings, _PATIENT_PACE_S), patient, alerts),
        *(
            [_dark("sluicegate.dark-hours.test.yml", _slower(settings, _long_pace_s(scope)), long, alerts)]
            if long
            else []
        ),
        _dark("sluicegate.dark-budgets.test.yml", _slower(settings, pace_s(FAST[0])), budgets, alerts),
    )


def _dark(file: str, scope: Scope, alerts: Sequence[Alert], every: Sequence[Alert]) -> TestSet:
    maker = DarkTestMaker(scope, every)
    firing = (test for alert in alerts if alert.name != AlertName.WATCHDOG for test in maker.of_a_firing_one(alert))
    tests = (*maker.of_a_healthy_queue(alerts), *firing)
    return TestSet(file, scope.timing.scrape_s, scope.timing.evaluation_s, tests)


def _forecasts(scope: Scope, alerts: Sequence[Alert]) -> Iterator[TestSet]:
    """Make a set for each class: the window of its forecast is half its deadline."""
    for alert in alerts:
        if alert.name == AlertName.DEADLINE_BREACH_FORECAST:
            for name, declared in scope.settings.contract.classes.items():
                pace = forecast_pace_s(declared.deadline_s)
                tests = forecast_tests(scope, alert, name)
                yield TestSet(f"sluicegate.forecast-{name}.test.yml", pace, pace, tests)


def _budgets(scope: Scope, alerts: Sequence[Alert]) -> Iterator[TestSet]:
    """Make a set for each pair of windows."""
    for alert in alerts:
        for tier in TIERS.get(alert.name, ()):
            file = f"sluicegate.budget-{duration(tier.long_s)}.test.yml"
            yield TestSet(file, pace_s(tier), pace_s(tier), burn_tests(scope, alert, tier))


def by_alerts(tests: TestSet) -> Iterator[tuple[tuple[str, ...], TestSet]]:
    """Cut a set up by the alerts that its tests say something of."""
    found: dict[tuple[str, ...], list[UnitTest]] = {}
    for test in tests.tests:
        names = tuple(alert.name.value for alert in test.alerts)
        found.setdefault(names, []).append(test)
    for names, those in found.items():
        yield names, replace(tests, tests=tuple(those))


def _long(scope: Scope, alerts: Sequence[Alert]) -> list[Alert]:
    is_long = scope.settings.contract.shortest_deadline_s / 2 > _LONG_S
    return [alert for alert in alerts if is_long and alert.name == AlertName.DEADLINE_BREACH_FORECAST]


def _long_pace_s(scope: Scope) -> float:
    return min(_LONGEST_PACE_S, float(round(scope.settings.contract.shortest_deadline_s / 2 / _LONG_STEPS)))


def _patient(alerts: Sequence[Alert]) -> list[Alert]:
    return [alert for alert in alerts if alert.for_s >= _PATIENT_S]


def _slower(settings: Settings, step_s: float) -> Scope:
    pace = {"scrape_interval_s": step_s, "evaluation_interval_s": step_s}
    return Scope(settings.model_copy(update={"monitoring": settings.monitoring.model_copy(update=pace)}))


def _at_pace(file: str, scope: Scope, alerts: Sequence[Alert], every: Sequence[Alert]) -> TestSet:
    tests = TestMaker(scope, alerts, every).make()
    return TestSet(file, scope.timing.scrape_s, scope.timing.evaluation_s, tests)
