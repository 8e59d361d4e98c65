"""Gather what is kept about one run: journal, moves of the gate, jobs that ended, what Prometheus recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from rules.backtest.history import History
from rules.backtest.run import backtest, utilization, warm_up_ms
from rules.backtest.shown import backtest_tables
from rules.scope import Scope
from sluicegate import telemetry as names
from sluicegate.errors import SluicegateError
from sluicegate.prometheus import Prometheus
from sluicegate.replies import GateLogEntry
from sluicegate.run_replies import RunHistory
from sluicegate.settings import Settings
from sluicegate.store import Store

# What led to a run and what came of it lies close by: half as long as it lasted, within these.
_LEAST_MARGIN_MS, _MOST_MARGIN_MS = 30_000, 300_000
_MOST_MOVES = 1000
_MOST_RECORDS = 10_000
_LINES_A_CALL = 1000
_MOST_LINES = 100_000
# Steps of the curves; a run has rarely more than ten thousand seconds.
_STEPS = 600
_LEAST_STEP_MS = 1000
_FIGURES = (
    names.QUEUE_AGE_P95_SECONDS,
    names.OLDEST_JOB_AGE_SECONDS,
    names.DEADLINE_SLACK_P10_SECONDS,
    names.PROVIDER_5XX_RATE,
    names.PROVIDER_TIMEOUT_RATE,
    names.WORKER_INFLIGHT,
)

# Moves of named persons beside those that begin with operator_.
_PERSONAL = frozenset(
    {"init", "run_held", "run_resumed", "settings_applied", "library_replaced", "restore_begun", "restored"}
)

Points = tuple[tuple[int, float | None], ...]


@dataclass(frozen=True, slots=True)
class AlertSpan:
    """Say from when to when an alert fired, in ms."""

    name: str
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """Hold what a Prometheus recorded: the figures, the alerts, and what the rules' replay says; or why not.

    `requeued` counts the jobs that drains put back, None where nobody counted them.
    """

    figures: Mapping[str, Points] = field(default_factory=dict)
    requeued: int | None = None
    alerts: tuple[AlertSpan, ...] = ()
    replay: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """Hold all of it; times in ms of Redis TIME, which Prometheus' clock is taken to agree with.

    `unknown` and `blocked` are how many jobs were so when it was gathered.
    """

    queue: str
    made_at_ms: int
    from_ms: int
    to_ms: int
    history: RunHistory
    moves: tuple[GateLogEntry, ...]
    records: tuple[Mapping[str, str], ...]
    ended_jobs: Mapping[tuple[str, str, str], int]
    unknown: int
    blocked: int
    thresholds: Mapping[str, float]
    recorded: Recorded

    @property
    def persons(self) -> tuple[tuple[int, str, str], ...]:
        """Give what named persons did: when, who, and what with its reason."""
        acts = [(move.at_ms, move.actor, f"{move.reason}: {move.note}") for move in self.moves if _by_a_person(move)]
        acts += [
            (entry.at_ms, entry.actor, f"approved {entry.text}")
            for entry in self.history.journal
            if entry.phase == "approved"
        ]
        acts += [
            (int(record["at"]), record["actor"], _settled(record))
            for record in self.records
            if record.get("source") == "person"
        ]
        return tuple(sorted(acts))


def _settled(record: Mapping[str, str]) -> str:
    return f"{record.get('outcome', '')} {record.get('job', '')}: {record.get('note', '')}"


def gather(store: Store, settings: Settings, history: RunHistory, prometheus: Prometheus | None) -> Incident:
    """Gather it; what a Prometheus does not give is named, and fails nothing."""
    telemetry = store.observe()
    run = history.run
    ended_ms = run.ended_at_ms or telemetry.at_ms
    margin_ms = min(_MOST_MARGIN_MS, max(_LEAST_MARGIN_MS, (ended_ms - run.started_at_ms) // 2))
    from_ms, to_ms = run.started_at_ms - margin_ms, min(telemetry.at_ms, ended_ms + margin_ms)
    return Incident(
        queue=store.queue,
        made_at_ms=telemetry.at_ms,
        from_ms=from_ms,
        to_ms=to_ms,
        history=history,
        moves=tuple(move for move in reversed(store.gate_log(_MOST_MOVES)) if from_ms <= move.at_ms <= to_ms),
        records=tuple(
            record for record in reversed(store.reconcile_log(_MOST_RECORDS)) if from_ms <= int(record["at"]) <= to_ms
        ),
        ended_jobs=Counter(_ended_jobs(store, from_ms, to_ms)),
        unknown=telemetry.unknown,
        blocked=telemetry.blocked,
        thresholds=telemetry.thresholds,
        recorded=_recorded(prometheus, settings, from_ms, to_ms) if prometheus is not None else Recorded(),
    )


def _by_a_person(move: GateLogEntry) -> bool:
    """Say whether a move was a named person's: by what it is, for a name may be anything."""
    asked = move.reason == "run_opened" and move.note.startswith("person:")
    return asked or move.reason.startswith("operator_") or move.reason in _PERSONAL


def _ended_jobs(store: Store, from_ms: int, to_ms: int) -> Iterator[tuple[str, str, str]]:
    """Give class, end and cause of each job that expired or failed meanwhile."""
    day = datetime.fromtimestamp(from_ms / 1000, UTC).date()
    while day <= datetime.fromtimestamp(to_ms / 1000, UTC).date():
        for line in _lines(store, day.isoformat()):
            try:
                row: dict[str, Any] = json.loads(line)
                if from_ms <= int(row["at_ms"]) <= to_ms:
                    yield str(row["queue_class"]), str(row["reason"]), str(row.get("cause") or "")
            except (ValueError, KeyError, TypeError):
                continue  # somebody else's line
        day += timedelta(days=1)


def _lines(store: Store, date: str) -> Iterator[str]:
    for offset in range(0, _MOST_LINES, _LINES_A_CALL):
        lines = store.failures(date, offset, _LINES_A_CALL)
        yield from lines
        if len(lines) < _LINES_A_CALL:
            return


def _recorded(prometheus: Prometheus, settings: Settings, from_ms: int, to_ms: int) -> Recorded:
    step_ms = max(_LEAST_STEP_MS, (to_ms - from_ms) // _STEPS)
    selector = f'{{{names.QUEUE_LABEL}="{settings.queue}"}}'
    figures: dict[str, Points] = {}
    missing: list[str] = []
    requeued: int | None = None
    try:
        for name in _FIGURES:
            found = prometheus.over(name + selector, from_ms, to_ms, step_ms)
            if found:
                figures[name] = found[0].samples
            else:
                missing.append(f"no samples of {name}")
        put_back = prometheus.over(f"sum({names.REQUEUES_TOTAL}{selector})", from_ms, to_ms, step_ms)
        requeued = _grown(put_back[0].samples) if put_back else None
        firing = f'ALERTS{{{names.QUEUE_LABEL}="{settings.queue}", alertstate="firing"}}'
        alerts = tuple(_alert_spans(prometheus, firing, from_ms, to_ms, step_ms))
    except SluicegateError as error:
        return Recorded(figures, requeued, missing=(*missing, str(error)))
    replay, why_not = _replayed(prometheus, settings, from_ms, to_ms)
    return Recorded(figures, requeued, alerts, replay, (*missing, *why_not))


def _grown(samples: Points) -> int:
    """Give by how much a total has grown; one that is smaller than before has begun anew."""
    values = [value for _, value in samples if value is not None]
    return round(sum(now - before if now >= before else now for before, now in pairwise(values)))


def _alert_spans(prometheus: Prometheus, firing: str, from_ms: int, to_ms: int, step_ms: int) -> Iterator[AlertSpan]:
    for series in prometheus.over(firing, from_ms, to_ms, step_ms):
        name = series.labels.get("alertname", "")
        began = last = series.samples[0][0]
        for at_ms, _ in series.samples[1:]:
            if at_ms - last > step_ms:
                yield AlertSpan(name, began, last)
                began = at_ms
            last = at_ms
        yield AlertSpan(name, began, last)


def _replayed(
    prometheus: Prometheus, settings: Settings, from_ms: int, to_ms: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give what the backtest says of these rules over this time, or why it says nothing."""
    scope = Scope(settings)
    try:
        history = History.find(prometheus, scope, from_ms - warm_up_ms(settings), to_ms, None)
        return tuple(backtest_tables(backtest(history, from_ms, utilization(scope)))), ()
    except SluicegateError as error:
        return (), (f"no replay of the rules: {error}",)
