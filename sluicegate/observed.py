"""Parse one reading of a queue, as `observe` and `tick` answer it, into figures (`_observe.lua` has the shape)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sluicegate.replies import Flat, rows
from sluicegate.telemetry import ClassFigures, GateView, Part, ProviderWindow, RunView, Telemetry

# The totals of the queue or of a class, and the names of those that somebody wrote over: they have no value.
Counters = tuple[Mapping[str, int], frozenset[str]]

# How many values a queue's and a class's figures have before the scores of ages and slack, and how many scores.
_OF_QUEUE, _OF_CLASS, _SCORES = 17, 8, 7


@dataclass(frozen=True, slots=True)
class _Contract:
    """Hold what a reading says of the contract alone."""

    digest: str = ""
    window_seconds: float = 0.0
    canaries_required: int = 0
    age_bounds_seconds: tuple[float, ...] = ()
    cost_classes: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    deadlines_seconds: Mapping[str, float] = field(default_factory=dict)


@lru_cache(maxsize=64)
def _contract(text: str) -> _Contract:
    """Parse it once: it stays the same until somebody applies another one."""
    if not text:
        return _Contract()
    body = json.loads(text)
    return _Contract(
        digest=str(body["digest"]),
        window_seconds=body["window_ms"] / 1000,
        canaries_required=int(body["canaries_required"]),
        thresholds={name: float(value) for name, value in body["thresholds"].items()},
        age_bounds_seconds=tuple(bound / 1000 for bound in rows(body, "age_bounds")),
        cost_classes=tuple(sorted(rows(body, "cost_classes"))),
        deadlines_seconds={name: ms / 1000 for name, ms in body["deadlines_ms"].items()},
    )


def epoch_of(answer: Flat) -> int:
    """Give the gate's epoch of a reading; raises as `telemetry`."""
    return int(answer[2][3])


def telemetry(answer: Flat, queue: str) -> Telemetry:
    """Parse one reading; without stored settings only the gate says something.

    Raises ValueError, TypeError, LookupError, ArithmeticError or AttributeError on what is none.
    """
    at, text, gate, runs, kill, damaged, counted, *measured = answer
    at_ms, contract = int(at), _contract(text)
    counters, broken = _counters(tuple(counted))
    figures, *of_classes = measured or [_NOTHING]
    head, scores = figures[:_OF_QUEUE], figures[_OF_QUEUE:]
    (
        ready, delayed, leases, canaries_running, canaries_waiting, unknown, blocked, inflight, doomed, completions,
        calls, errors, timeouts, wait, ahead, oldest_unknown, snapshot_at,
    ) = head  # fmt: skip
    (p50, p95, p99, oldest_s, oldest_at), (slack_p1, slack_p10, slack_p50) = _ages_and_slacks(scores, at_ms)
    by_class = {str(one[0]): _counters(tuple(one[1])) for one in of_classes}
    return Telemetry(
        queue=queue,
        at_ms=at_ms,
        queue_age_p50_seconds=p50,
        queue_age_p95_seconds=p95,
        queue_age_p99_seconds=p99,
        oldest_job_age_seconds=oldest_s,
        oldest_ready_at_ms=oldest_at,
        deadline_slack_p1_seconds=slack_p1,
        deadline_slack_p10_seconds=slack_p10,
        deadline_slack_p50_seconds=slack_p50,
        provider=ProviderWindow(contract.window_seconds, int(calls), int(errors), int(timeouts)),
        worker_inflight=int(inflight),
        gate=_gate(gate, runs, contract.canaries_required),
        ready=int(ready),
        delayed=int(delayed),
        running=int(leases) - int(canaries_running),
        unknown=int(unknown),
        blocked=int(blocked),
        canaries=int(canaries_waiting) + int(canaries_running),
        doomed=int(doomed),
        completions=int(completions),
        predicted_wait_seconds=_seconds(wait),
        snapshot_at_ms=int(snapshot_at),
        settings_digest=contract.digest,
        counters=counters,
        classes={str(one[0]): _class_figures(one, at_ms, contract) for one in sorted(of_classes, key=_name)},
        class_counters={name: totals for name, (totals, _) in by_class.items()},
        thresholds=contract.thresholds,
        kill_switch=str(kill),
        oldest_unknown_at_ms=None if oldest_unknown is None else int(float(oldest_unknown)),
        age_bounds_seconds=contract.age_bounds_seconds,
        ahead=int(ahead),
        cost_classes=contract.cost_classes,
        damaged=frozenset(map(Part, damaged)),
        broken_counters=frozenset(
            (of, name) for of, (_, names) in (("", (counters, broken)), *by_class.items()) for name in names
        ),
    )


# The figures of a queue without stored settings.
_NOTHING: Flat = (*(0,) * 13, None, 0, None, 0, *(None,) * _SCORES)


def _name(of_class: Flat) -> str:
    return str(of_class[0])


def _class_figures(values: Flat, at_ms: int, contract: _Contract) -> ClassFigures:
    name, _, ready, delayed, running, unknown, blocked, inflight, doomed, wait = values[: 2 + _OF_CLASS]
    scores, younger = values[2 + _OF_CLASS : 2 + _OF_CLASS + _SCORES], values[2 + _OF_CLASS + _SCORES :]
    (p50, p95, p99, oldest_s, oldest_at), (slack_p1, slack_p10, slack_p50) = _ages_and_slacks(scores, at_ms)
    return ClassFigures(
        ready=int(ready),
        delayed=int(delayed),
        running=int(running),
        unknown=int(unknown),
        blocked=int(blocked),
        inflight=int(inflight),
        queue_age_p50_seconds=p50,
        queue_age_p95_seconds=p95,
        queue_age_p99_seconds=p99,
        oldest_job_age_seconds=oldest_s,
        oldest_ready_at_ms=oldest_at,
        deadline_slack_p1_seconds=slack_p1,
        deadline_slack_p10_seconds=slack_p10,
        deadline_slack_p50_seconds=slack_p50,
        doomed=int(doomed),
        predicted_wait_seconds=_seconds(wait),
        deadline_seconds=contract.deadlines_seconds.get(name),
        younger=tuple(int(count) for count in younger),
    )


Ages = tuple[float, float, float, float, int | None]
Slacks = tuple[float | None, float | None, float | None]


def _ages_and_slacks(scores: Flat, at_ms: int) -> tuple[Ages, Slacks]:
    """Take the age p50, p95, p99 and of the oldest, and since when that is ready, then the slack p1, p10 and p50.

    Ages are 0 where nothing is ready, one from the future too; a slack is None without an unfinished job.
    """
    oldest, p50, p95, p99, p1, p10, slack_p50 = scores
    ages = (_age(p50, at_ms), _age(p95, at_ms), _age(p99, at_ms), _age(oldest, at_ms))
    since = None if oldest is None else int(float(oldest))
    return (*ages, since), (_slack(p1, at_ms), _slack(p10, at_ms), _slack(slack_p50, at_ms))


def _age(since: str | None, at_ms: int) -> float:
    return 0.0 if since is None else _finite(max(0.0, at_ms - float(since)) / 1000)


def _slack(deadline: str | None, at_ms: int) -> float | None:
    return None if deadline is None else _finite((float(deadline) - at_ms) / 1000)


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise ValueError("an instant without end is none")
    return seconds


def _seconds(ms: str | None) -> float | None:
    return None if ms is None else float(ms) / 1000


@lru_cache(maxsize=1024)
def _counters(flat: tuple[str, ...]) -> Counters:
    """Parse totals, given as names and values one after the other; many stay the same between two readings."""
    stored = dict(zip(flat[::2], flat[1::2], strict=True))
    counted = {name: int(value) for name, value in stored.items() if _is_total(value)}
    return counted, frozenset(stored) - frozenset(counted)


# A counter of Redis has no more digits.
_MOST_DIGITS = 19


def _is_total(value: str) -> bool:
    return value.isdecimal() and value.isascii() and len(value) <= _MOST_DIGITS


def _gate(values: Flat, runs: Flat, required: int) -> GateView:
    (
        drain_state, readable, initialised, epoch, reason, actor, since, rollback_reason, pin, pin_note, green,
        canary_ok, canary_failed, ramp, limit_at, admitted_percent, seen, duplicates, raw_drain_state, raw_admission,
        decision, decision_reason,
    ) = values  # fmt: skip
    holding, *besides = runs
    return GateView(
        drain_state=str(drain_state),
        readable=bool(readable),
        initialised=bool(initialised),
        epoch=int(epoch),
        reason=str(reason),
        actor=str(actor),
        since_ms=int(since),
        rollback_reason=rollback_reason,
        pin=pin,
        pin_note=str(pin_note),
        green=bool(green),
        canary_ok_count=int(canary_ok),
        canaries_required=required,
        canary_failures=int(canary_failed),
        ramp_percent=None if ramp is None else int(ramp),
        admission_ratio=admitted_percent / 100,
        controller_seen_ms=int(seen),
        duplicates_unacknowledged=int(duplicates),
        limit_at_ms=int(limit_at),
        run=None if holding is None else _run(*holding),
        besides=tuple(_run(*one) for one in besides),
        decision=str(decision),
        decision_reason=str(decision_reason),
        raw_drain_state=raw_drain_state,
        raw_admission=raw_admission,
    )


def _run(run_id: str, runbook: str, state: str, verb: str, started_at: int) -> RunView:
    return RunView(run_id, runbook, verb, state, int(started_at))
