"""Make promtool's unit tests for a catalogue: around every threshold, around every `for`, and in the dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rules.alert import Alert
from rules.cases import Case, Phase, Signal, Situation
from rules.expectation import Expectation, UnitTest
from rules.exporters import TWIN, Exporters
from rules.scope import Scope
from rules.situations import healthy, jobs
from rules.ticks import Ticks
from sluicegate.records import AlertName
from sluicegate.telemetry import SNAPSHOT_TIMESTAMP_SECONDS, WORKER_INFLIGHT

# One alert that fires once, with no labels beside its own.
_ONCE: tuple[Mapping[str, str], ...] = ({},)


class TestMaker:
    """Make the tests of some alerts of one queue's catalogue; `every` are all of it."""

    __test__ = False  # pytest: the name is the thing's, not a test's

    def __init__(self, scope: Scope, alerts: Sequence[Alert], every: Sequence[Alert]) -> None:
        self._scope = scope
        self._alerts = alerts
        self._every = every
        self._healthy = healthy(scope)
        self._ticks = Ticks.of(scope)
        self._exporters = Exporters(scope)

    def make(self) -> tuple[UnitTest, ...]:
        """Return every test, in the order of the catalogue."""
        return (
            self._quiet("a healthy queue, nothing fires", {}),
            self._quiet("row 1, utilization at 100 % and no deadline at risk, nothing fires", self._busy()),
            *(test.trimmed() for alert in self._alerts for test in self._tests_of(alert)),
        )

    def _tests_of(self, alert: Alert) -> Iterator[UnitTest]:
        firing = [case for case in alert.cases if case.fires]
        silent = [case for case in alert.cases if not case.fires]
        if alert.looks_back_s:
            # What went before would be part of what it sees.
            yield from (self._silent(alert, [case], f", {case.name}") for case in silent)
        elif silent:
            yield self._silent(alert, silent)
        if not firing:
            return
        yield from (self._firing(alert, case) for case in firing)
        if alert.name == AlertName.WATCHDOG:
            return
        if any(f"{window}_over_time" in alert.expression for window in ("min", "max")):
            yield self._forgets(alert, firing[0])
        yield self._from_start_to_end(alert, firing[0])
        if self._outlasts_the_absence(alert):
            yield self._in_the_dark(alert, firing[0])
        if self._scope.unless_frozen in alert.expression:
            yield self._frozen_meanwhile(alert, firing[0])
        if self._scope.frozen in alert.expression:
            yield self._frozen_and_fewer(alert, firing[0])

    def _outlasts_the_absence(self, alert: Alert) -> bool:
        """Say whether the keep is more evaluations than the absence of figures takes to be told, at this pace too."""
        absent = self._named(AlertName.TELEMETRY_ABSENT)
        return self._ticks.evaluated(alert.keep_firing_for_s) > self._ticks.evaluated(absent.for_s)

    def _named(self, name: AlertName) -> Alert:
        return next(candidate for candidate in self._every if candidate.name == name)

    def _busy(self) -> Situation:
        limit = self._scope.settings.contract.max_running
        return {
            WORKER_INFLIGHT: Signal(limit),
            jobs("running"): Signal(limit),
            "process_cpu_seconds_total": Signal(0, 2),
            'node_load1{cpu="all"}': Signal(64),
            "redis_memory_used_bytes": Signal(2**33),
            "redis_memory_max_bytes": Signal(2**33),
        }

    def _quiet(self, name: str, situation: Situation) -> UnitTest:
        lasts = max(self._settles(alert) for alert in self._alerts)
        expected = tuple(
            Expectation(at, alert, _ONCE if alert.name == AlertName.WATCHDOG else ())
            for at in (0, lasts)
            for alert in self._alerts
        )
        return UnitTest(name, self._exporters.alone((self._phase(situation, lasts),)), expected)

    def _silent(self, alert: Alert, cases: Sequence[Case], named: str = "") -> UnitTest:
        """Let one situation follow another: none fires, so none is kept into the next, and one test is enough."""
        phases: list[Phase] = []
        expected: list[Expectation] = []
        now = 0.0
        for case in cases:
            phases.extend(self._lead(case))
            now += self._lasts(phases) - now
            phases.append(self._phase(case.situation, self._settles(alert)))
            now += self._settles(alert)
            # The last scrape of a case is one step before the next begins.
            expected.append(Expectation(now - self._ticks.step_s, alert, why=case.name))
        return UnitTest(f"{alert.name}, silent{named}", self._exporters.together(tuple(phases)), tuple(expected))

    def _lead(self, case: Case) -> tuple[Phase, ...]:
        """Give what a case grows out of, for as long as it takes to be seen."""
        if not case.before:
            return ()
        return (self._phase(case.before, self._ticks.aligned(max(self._scope.timing.stale_after_s, case.lead_s))),)

    def _grown(self, alert: Alert, case: Case) -> tuple[Phase, ...]:
        """Give a case until it surely fires; where windows count, it grows out of a healthy time."""
        before = case if case.before or not alert.looks_back_s else replace(case, before=self._healthy)
        return (*self._lead(before), self._phase(case.situation, self._settles(alert)))

    def _lasts(self, phases: Sequence[Phase]) -> float:
        return sum(phase.samples for phase in phases) * self._scope.timing.scrape_s

    def _firing(self, alert: Alert, case: Case) -> UnitTest:
        phases = self._grown(alert, case)
        expected = Expectation(self._lasts(phases), alert, case.instances)
        return UnitTest(f"{alert.name}, {case.name}", self._exporters.together(phases), (expected,))

    def _forgets(self, alert: Alert, case: Case) -> UnitTest:
        """Let a case go on: it is news for as long as its window reaches back to before it, and kept for its keep."""
        ticks = self._ticks
        begins = ticks.aligned(self._scope.timing.stale_after_s)
        last = ticks.last_evaluation_before(begins)
        over = ticks.evaluated_after(last + alert.looks_back_s) + ticks.evaluated(alert.keep_firing_for_s)
        lasts = ticks.aligned(over - begins) + ticks.step_s
        series = self._exporters.alone((self._phase(case.before, begins), self._phase(case.situation, lasts)))
        expected = (
            Expectation(over - ticks.evaluation_s, alert, case.instances, "it is news, or kept"),
            Expectation(over, alert, (), "it is no news any more"),
        )
        return UnitTest(f"{alert.name}, what lasts is no news", series, expected)

    def _settles(self, alert: Alert) -> float:
        """Give how long a situation lasts until its alert surely fires."""
        return self._ticks.aligned(alert.seen_after_s) + self._ticks.aligned(alert.for_s) + 2 * self._ticks.step_s

    def _from_start_to_end(self, alert: Alert, case: Case) -> UnitTest:
        """Begin and end the situation: silent until `for` has passed, firing until the keep has passed."""
        ticks = self._ticks
        lead = self._phase(case.before, max(self._settles(alert), self._ticks.aligned(case.lead_s)))
        begins = self._lasts((lead,))
        fires = begins + ticks.evaluated(alert.seen_after_s) + ticks.evaluated(alert.for_s)
        ends = ticks.aligned(fires) + ticks.step_s
        over = ends + ticks.evaluated(alert.keep_firing_for_s)
        after = ticks.aligned(over) + ticks.step_s
        series = self._exporters.together(
            (
                lead,
                self._phase(case.situation, ends - begins),
                self._phase({}, after - ends),
            )
        )
        moments = {
            fires - ticks.evaluation_s: (False, "a moment before `for` has passed"),
            fires: (True, "`for` has passed"),
            over - ticks.evaluation_s: (True, "it is over, and kept for a moment more"),
            over: (False, "the keep has passed"),
        }
        expected = tuple(
            Expectation(at, alert, case.instances if firing else (), why) for at, (firing, why) in moments.items()
        )
        return UnitTest(f"{alert.name}, begins and ends", series, expected)

    def _in_the_dark(self, alert: Alert, case: Case) -> UnitTest:
        """Let the exporter vanish while the alert fires: the absence must be told before the alert lapses."""
        ticks = self._ticks
        absent = self._named(AlertName.TELEMETRY_ABSENT)
        lit = self._grown(alert, case)
        dark = self._lasts(lit)
        told = dark + ticks.evaluated(absent.for_s)
        lapses = dark + ticks.evaluated(alert.keep_firing_for_s)
        series = self._exporters.alone(
            (
                *lit,
                Phase({}, ticks.samples(ticks.aligned(lapses - dark)), exporter_up=False),
            )
        )
        expected = (
            Expectation(told, absent, _ONCE, "the absence is told"),
            Expectation(told, alert, case.instances, "while the alert is kept"),
            Expectation(lapses - ticks.evaluation_s, alert, case.instances, "to its last moment"),
            Expectation(lapses, absent, _ONCE, "and the absence still is when it lapses"),
        )
        return UnitTest(f"{alert.name}, the exporter vanishes and it does not end in silence", series, expected)

    def _frozen_meanwhile(self, alert: Alert, case: Case) -> UnitTest:
        """Let the readings stand still while the alert fires: it ends, kept, once they have stood still for long."""
        ticks = self._ticks
        lit = self._grown(alert, case)
        freezes = self._lasts(lit)
        # What is repeated from then on is the reading of one scrape before, and it was recorded by the next evaluation.
        last = freezes - self._scope.timing.scrape_s
        seen_frozen = ticks.evaluated(last) + ticks.evaluated(self._scope.timing.stale_after_s)
        lapses = seen_frozen + ticks.evaluated(alert.keep_firing_for_s)
        whole = {**self._healthy, **case.situation}
        frozen = {key: signal and signal.held(last) for key, signal in whole.items()}
        series = self._exporters.alone(
            (
                *lit,
                self._phase(frozen, ticks.aligned(lapses - freezes) + ticks.step_s),
            )
        )
        expected = (
            Expectation(lapses - ticks.evaluation_s, alert, case.instances, "the figures may still be of now"),
            Expectation(lapses, alert, (), "they have stood still for too long"),
        )
        return UnitTest(f"{alert.name}, the readings come to stand still", series, expected)

    def _frozen_and_fewer(self, alert: Alert, case: Case) -> UnitTest:
        """Let one of two exporters vanish while both stand still: that is no reading that moves."""
        ticks = self._ticks
        stale_after = ticks.aligned(self._scope.timing.stale_after_s)
        still = {SNAPSHOT_TIMESTAMP_SECONDS: Signal(1)}
        lead = self._phase({**case.before, **still}, stale_after + self._settles(alert))
        rest = self._phase({**case.situation, **still}, stale_after)
        series = {
            **self._exporters.alone((lead, rest)),
            **self._exporters.alone((lead, replace(rest, exporter_up=False)), TWIN),
        }
        is_what_it_watches = alert.expression == self._scope.frozen
        expected = Expectation(
            self._lasts((lead, rest)) - ticks.step_s,
            alert,
            case.instances if is_what_it_watches else (),
            "neither of the two has moved",
        )
        return UnitTest(f"{alert.name}, one of two that stand still vanishes", series, (expected,))

    def _phase(self, situation: Situation, seconds: float) -> Phase:
        return Phase({**self._healthy, **situation}, self._ticks.samples(seconds))
