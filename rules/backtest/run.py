"""Replay every alert over a history, and a plain alert on utilization beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rules.alert import Alert, Severity
from rules.backtest.evaluations import Evaluations
from rules.backtest.harm import Harm
from rules.backtest.history import History, Inputs, Labels
from rules.backtest.replay import Firing, Holding, firings, replay
from rules.generate import catalogue
from rules.promql import number
from rules.scope import Scope
from sluicegate import records
from sluicegate.records import AlertName
from sluicegate.settings import Settings

# What speaks of deadlines: only these can be early, late, or for nothing where no deadline was at risk. The others say
# that something else is wrong, and are shown beside them.
ABOUT_DEADLINES = frozenset(
    {
        AlertName.QUEUE_AGE_HIGH,
        AlertName.DEADLINE_SLACK_LOW,
        AlertName.DEADLINE_BREACH_FORECAST,
        AlertName.NEW_WORK_WILL_MISS,
        AlertName.QUEUE_AGE_CRITICAL,
        AlertName.PROVIDER_ERRORS_HIGH,
        AlertName.PROVIDER_TIMEOUTS_HIGH,
        AlertName.DEADLINE_BUDGET_BURN_FAST,
        AlertName.DEADLINE_BUDGET_BURN_SLOW,
    }
)
UTILIZATION = "utilization"
_BUSY = 0.9
_BUSY_FOR_S = 60.0
# So many samples may a scan make Prometheus look at; windows of days over a week are scanned in larger steps first.
_MOST_SAMPLES = 100_000_000
_RANGE = re.compile(r"\[(\d+)s\]")


@dataclass(frozen=True, slots=True)
class Tried:
    """Hold what is replayed: an alert of the catalogue, or one to compare with. Durations are seconds."""

    name: str
    expression: str
    for_s: float
    keep_s: float
    severity: Severity
    action: str
    looks_back_s: float
    about_deadlines: bool
    labels: Labels

    @classmethod
    def of(cls, alert: Alert) -> Tried:
        """Take an alert of the catalogue."""
        return cls(
            alert.name.value,
            alert.expression,
            alert.for_s,
            alert.keep_firing_for_s,
            alert.severity,
            alert.action.value,
            alert.looks_back_s,
            alert.name in ABOUT_DEADLINES,
            tuple(sorted(alert.labels.items())),
        )

    @property
    def holding(self) -> Holding:
        return Holding(round(self.for_s * 1000), round(self.keep_s * 1000))


def utilization(scope: Scope, expression: str | None = None, for_s: float = _BUSY_FOR_S) -> Tried:
    """Make the alert that many start from: the workers are busy. `expression` is another one to compare with."""
    busy = number(scope.settings.contract.max_running * _BUSY)
    return Tried(
        name=UTILIZATION,
        expression=expression or f"{scope.series(records.INFLIGHT)} >= {busy}",
        for_s=for_s,
        keep_s=0,
        severity=Severity.PAGE,
        action="",
        looks_back_s=0,
        about_deadlines=True,
        labels=(),
    )


@dataclass(frozen=True, slots=True)
class Result:
    """Hold when one alert would have fired: by its labels, and as pages, which are what overlaps of these."""

    tried: Tried
    by_labels: tuple[tuple[Labels, tuple[Firing, ...]], ...]
    pages: tuple[Firing, ...]
    in_vain: tuple[Firing, ...]

    @property
    def false_pages(self) -> int:
        """Count the pages for nothing: of what wakes a person and speaks of deadlines."""
        return len(self.in_vain) if self.tried.severity is Severity.PAGE else 0


@dataclass(frozen=True, slots=True)
class Backtest:
    """Hold a whole replay: what was read, the harm that was seen, each alert's result, and the one beside them."""

    settings: Settings
    inputs: Inputs
    evaluations: Evaluations
    from_ms: int
    to_ms: int
    harm: Harm
    alerts: tuple[Result, ...]
    beside: Result


def warm_up_ms(settings: Settings) -> int:
    """Tell how long before its first instant a replay must begin so that it knows what is pending or kept by then."""
    holdings = (Tried.of(alert).holding for alert in catalogue(settings))
    return max(one.for_ms + one.keep_ms for one in holdings) + round(settings.monitoring.evaluation_interval_s * 2000)


def backtest(
    history: History,
    from_ms: int,
    beside: Tried,
    leave_out: frozenset[AlertName] = frozenset(),
    known: Backtest | None = None,
) -> Backtest:
    """Replay the alerts of the history's settings from an instant on, the watchdog apart.

    `known` is a replay of the same history with other settings: what does not differ is taken from it.
    """
    scope = history.scope
    longest_s = max(declared.deadline_s for declared in scope.settings.contract.classes.values())
    harm = (
        Harm(history.misses(), history.closings(), round(longest_s * 1000), history.unseen)
        if known is None
        else replace(known.harm, reach_ms=round(longest_s * 1000))
    )
    before = {one.tried: one for one in results(known)} if known is not None and known.harm == harm else {}
    told = history.evaluations.since(from_ms)
    tried = [Tried.of(one) for one in catalogue(scope.settings) if one.name not in leave_out | {AlertName.WATCHDOG}]
    return Backtest(
        settings=scope.settings,
        inputs=history.inputs,
        evaluations=history.evaluations,
        from_ms=told[0],
        to_ms=told[-1],
        harm=harm,
        alerts=tuple(before.get(one) or _result(history, one, told, harm) for one in tried),
        beside=before.get(beside) or _result(history, beside, told, harm),
    )


def results(of: Backtest) -> tuple[Result, ...]:
    """Give every result, the one to compare with last."""
    return (*of.alerts, of.beside)


def _result(history: History, tried: Tried, told: Sequence[int], harm: Harm) -> Result:
    stretches = history.evaluations.stretches
    by_labels = tuple(
        ({**dict(labels), **dict(tried.labels)}, firings(replay(stretches, present, tried.holding), told))
        for labels, present in sorted(_present(history, tried).items())
    )
    fired = tuple((tuple(sorted(labels.items())), spans) for labels, spans in by_labels if spans)
    pages = tuple(_joined([firing for _, spans in fired for firing in spans]))
    looks_back_ms = round(tried.looks_back_s * 1000)
    in_vain = tuple(one for one in pages if tried.about_deadlines and not harm.near(one, looks_back_ms))
    return Result(tried, fired, pages, in_vain)


def _joined(spans: list[Firing]) -> Iterator[Firing]:
    """Join stretches that overlap: Alertmanager tells of them together."""
    joined: list[Firing] = []
    for one in sorted(spans, key=lambda firing: (firing.from_ms, firing.to_ms)):
        if joined and one.from_ms <= joined[-1].to_ms:
            joined[-1] = Firing(joined[-1].from_ms, max(joined[-1].to_ms, one.to_ms))
        else:
            joined.append(one)
    return iter(joined)


def _present(history: History, tried: Tried) -> dict[Labels, set[int]]:
    """Tell where the expression gave samples; what looks far back over a long time is scanned coarsely first."""
    step_ms = history.evaluations.interval_ms
    instants = history.evaluations.instants
    cost = len(instants) * tried.looks_back_s * 1000 / step_ms
    windows = [int(seconds) for seconds in _RANGE.findall(tried.expression)]
    # A quarter of the shortest window is the longest step at which nothing of it can slip through.
    longest_step_ms = min(windows, default=0) * 1000 // 4
    coarse_ms = min(round(step_ms * cost / _MOST_SAMPLES), longest_step_ms)
    if coarse_ms <= step_ms:
        return history.present(tried.expression)
    return _refined(history, tried.expression, coarse_ms)


def _refined(history: History, expression: str, coarse_ms: int) -> dict[Labels, set[int]]:
    """Scan in coarse steps, then look at every evaluation between two of them that differ."""
    every = history.evaluations.all
    coarse = history.evaluations.thinned(coarse_ms)
    ends = () if coarse.all[-1] == every[-1] else every[-1:]
    seen = replace(history, evaluations=Evaluations((*coarse.all, *ends), coarse.interval_ms)).present(expression)
    looked = (*coarse.instants, *(one.at_ms for one in ends))
    place = {one.at_ms: number for number, one in enumerate(every)}
    found = {labels: set(instants) for labels, instants in seen.items()}
    for before, after in pairwise(looked):
        between = every[place[before] + 1 : place[after]]
        if any((before in instants) != (after in instants) for instants in seen.values()):
            part = Evaluations(between, history.evaluations.interval_ms)
            for labels, instants in replace(history, evaluations=part).present(expression).items():
                found.setdefault(labels, set()).update(instants)
        else:
            for instants in found.values():
                if before in instants:
                    instants.update(one.at_ms for one in between)
    return found
