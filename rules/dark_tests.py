"""Make the tests of what happens when figures go wrong: no alert ends in silence, and none fires for that alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rules.alert import Alert
from rules.burn import MISSES
from rules.burn_tests import TIERS
from rules.cases import Case, Signal, Situation
from rules.disturbances import BLINDING, Disturbance, Stage, disturb, spell_stages
from rules.expectation import UnitTest, Watch
from rules.exporters import Exporters
from rules.scope import Scope
from rules.situations import healthy, key
from rules.ticks import Ticks
from sluicegate import telemetry
from sluicegate.records import AlertName

TELEMETRY = (
    AlertName.TELEMETRY_ABSENT,
    AlertName.TELEMETRY_STALE,
    AlertName.TELEMETRY_BLIND,
    AlertName.TELEMETRY_DAMAGED,
)
# A budget's windows bridge a disturbance of a few of its samples.
_FEW = 4


class DarkTestMaker:
    """Make the tests of some alerts at one pace; `every` are all of the catalogue, built for the real pace."""

    __test__ = False  # pytest: the name is the thing's, not a test's

    def __init__(self, scope: Scope, every: Sequence[Alert]) -> None:
        self._scope = scope
        self._every = every
        self._ticks = Ticks.of(scope)
        self._exporters = Exporters(scope)
        self._healthy = {**healthy(scope), **_deadlines(scope, missed=0), **_thresholds(scope)}

    def of_a_firing_one(self, alert: Alert) -> Iterator[UnitTest]:
        """Let each disturbance meet the alert while it fires: until figures are back, it fires or the loss is told."""
        case = self._case(alert)
        settles = self._ticks.aligned(alert.seen_after_s) + self._ticks.aligned(alert.for_s) + 2 * self._ticks.step_s
        lead = self._ticks.aligned(max(self._scope.timing.stale_after_s, case.lead_s))
        for kind in Disturbance:
            before = Stage({**self._healthy, **case.before}, self._ticks.samples(lead))
            situation = {**self._healthy, **case.situation}
            fires = Stage(situation, self._ticks.samples(settles))
            samples = self._samples(alert, kind, settles)
            disturbed = disturb(kind, situation, lead + settles, samples, self._scope.timing.scrape_s)
            lasts = samples * self._scope.timing.scrape_s
            told = [one for one in self._every if one.name in {alert.name, *TELEMETRY}]
            watch = Watch(
                lead + settles + lasts - self._ticks.step_s, lasts, self._ticks.evaluation_s, tuple(told), True
            )
            series = spell_stages(self._exporters, (before, fires, *disturbed))
            yield UnitTest(f"{alert.name}, {kind} while it fires", series, (), (watch,)).trimmed()

    def of_a_healthy_queue(self, alerts: Sequence[Alert]) -> Iterator[UnitTest]:
        """Let each disturbance meet a healthy queue: nobody is told of anything but lost figures."""
        lasts = max(self._ticks.aligned(alert.for_s) for alert in alerts) + self._long_s()
        lead = self._ticks.aligned(self._scope.timing.stale_after_s)
        quiet = tuple(one for one in alerts if one.name not in TELEMETRY and one.name != AlertName.WATCHDOG)
        for kind in Disturbance:
            before = Stage(self._healthy, self._ticks.samples(lead))
            samples = self._ticks.samples(lasts)
            disturbed = disturb(kind, self._healthy, lead, samples, self._scope.timing.scrape_s)
            among = quiet if kind in BLINDING else tuple(one for one in alerts if one.name != AlertName.WATCHDOG)
            watch = Watch(lead + lasts - self._ticks.step_s, lead + lasts, self._ticks.evaluation_s, among, False)
            series = spell_stages(self._exporters, (before, *disturbed))
            yield UnitTest(f"{kind} on a healthy queue", series, (), (watch,)).trimmed()

    def _case(self, alert: Alert) -> Case:
        if alert.name in TIERS:
            return Case("every other deadline is missed", _deadlines(self._scope, missed=0.5), fires=True)
        return next(case for case in alert.cases if case.fires)

    def _samples(self, alert: Alert, kind: Disturbance, settles: float) -> int:
        """Count the samples of a disturbance: enough for the alert to lapse; with counters anew, those of its keep."""
        if alert.name in TIERS:
            return _FEW
        kept = self._ticks.aligned(alert.keep_firing_for_s)
        lasts = kept if kind is Disturbance.RESTARTED else kept + self._long_s()
        if "_over_time" in alert.expression and alert.name != AlertName.DEADLINE_BREACH_FORECAST:
            # It is news only for as long as its window reaches back.
            lasts = min(lasts, self._ticks.aligned(alert.looks_back_s - settles))
        return self._ticks.samples(lasts)

    def _long_s(self) -> float:
        """Give a time in which the loss of figures is surely told, whichever of the alerts on it tells."""
        timing = self._scope.timing
        return self._ticks.aligned(2 * (timing.absent_for_s + timing.stale_after_s))


def _deadlines(scope: Scope, missed: float) -> Situation:
    """Let ten deadlines a second end, a share of them missed."""
    name = next(iter(scope.settings.contract.classes))
    shares = {"met": 1 - missed, **{outcome: missed / len(MISSES) for outcome in MISSES}}
    of_class = {telemetry.CLASS_LABEL: name}
    return {
        key(telemetry.CLASS_DEADLINE_OUTCOMES_TOTAL, **of_class, **{telemetry.OUTCOME_LABEL: outcome}): Signal(
            7, 10 * share
        )
        for outcome, share in shares.items()
    }


def _thresholds(scope: Scope) -> Situation:
    """Show the thresholds that the rules were generated from."""
    bounds = asdict(scope.thresholds)
    return {
        key(telemetry.THRESHOLD, **{telemetry.NAME_LABEL: name}): Signal(float(value)) for name, value in bounds.items()
    }
