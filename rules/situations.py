"""A healthy queue as the exporter shows it, and the situations the catalogue's tests are made of."""

from __future__ import annotations

from rules.cases import Case, Signal, Situation, clock
from rules.promql import matchers
from rules.scope import Scope
from sluicegate import telemetry
from sluicegate.gate import DrainState

# How far over and under a threshold the tests look: a thousandth of it, or of one where it is nothing.
_STEP = 1e-3


def key(metric: str, **labels: str) -> str:
    """Name a series by its metric and its labels beside job, instance and queue."""
    return f"{metric}{{{matchers(labels)}}}" if labels else metric


def jobs(state: str) -> str:
    return key(telemetry.JOBS, **{telemetry.STATE_LABEL: state})


def under(threshold: float) -> float:
    return round(threshold - (threshold or 1) * _STEP, 9)


def over(threshold: float) -> float:
    return round(threshold + (threshold or 1) * _STEP, 9)


def gate(state: DrainState) -> dict[str, Signal | None]:
    """Show the gate in one state: exactly one of the four is 1."""
    return {
        key(telemetry.DRAIN_STATE, **{telemetry.DRAIN_STATE: name.value}): Signal(float(name is state))
        for name in DrainState
    }


def healthy(scope: Scope) -> dict[str, Signal | None]:
    """Show a queue with nothing to say: young jobs, slack, no errors, gate open, readings and controller fresh."""
    bounds = scope.thresholds
    return {
        telemetry.QUEUE_AGE_P95_SECONDS: Signal(bounds.recovered_age_p95_seconds / 5),
        telemetry.OLDEST_JOB_AGE_SECONDS: Signal(bounds.recovered_age_p95_seconds / 4),
        telemetry.DEADLINE_SLACK_P10_SECONDS: Signal(bounds.recovered_slack_p10_seconds * 3),
        telemetry.PROVIDER_5XX_RATE: Signal(0),
        telemetry.PROVIDER_TIMEOUT_RATE: Signal(0),
        telemetry.PROVIDER_WINDOW_CALLS: Signal(bounds.sample_min_calls * 10),
        telemetry.PROVIDER_WINDOW_FAILED_CALLS: Signal(0),
        telemetry.WORKER_INFLIGHT: Signal(scope.settings.contract.max_running),
        telemetry.CANARY_OK_COUNT: Signal(0),
        **gate(DrainState.ADMIT),
        jobs(telemetry.PENDING_STATE): Signal(min(5, scope.settings.contract.effective_max_pending)),
        jobs("running"): Signal(scope.settings.contract.max_running),
        jobs("unknown"): Signal(0),
        jobs("blocked"): Signal(0),
        **_classes(scope),
        telemetry.UNKNOWN_LEFT_TOTAL: Signal(0),
        telemetry.UNKNOWN_RECONCILED_TOTAL: Signal(0),
        telemetry.REJECT_RETURNS_TOTAL: Signal(0),
        telemetry.EXECUTOR_SEEN_TIMESTAMP_SECONDS: clock(),
        telemetry.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED: Signal(0),
        telemetry.CONTROLLER_SEEN_TIMESTAMP_SECONDS: clock(),
        telemetry.SNAPSHOT_TIMESTAMP_SECONDS: clock(),
        **{key(telemetry.COLLECTOR_DAMAGED, **{telemetry.PART_LABEL: part}): Signal(0) for part in telemetry.Part},
        telemetry.REDIS_UP: Signal(1),
        telemetry.GATE_READABLE: Signal(1),
    }


def _classes(scope: Scope) -> dict[str, Signal | None]:
    """Show every class with a job that waits and nearly all of its deadline left."""
    shown: dict[str, Signal | None] = {}
    bounds, margin_s = scope.thresholds, scope.settings.contract.timings.margin_s
    for name, declared in scope.settings.contract.classes.items():
        of_class = {telemetry.CLASS_LABEL: name}
        shown[key(telemetry.CLASS_SLACK_P10_SECONDS, **of_class)] = Signal(declared.deadline_s * 0.75)
        shown[key(telemetry.CLASS_DEADLINE_SECONDS, **of_class)] = Signal(declared.deadline_s)
        waits_s = min(bounds.recovered_age_p95_seconds / 5, (declared.deadline_s - margin_s) / 2)
        shown[key(telemetry.CLASS_PREDICTED_WAIT_SECONDS, **of_class)] = Signal(waits_s)
        waiting = {**of_class, telemetry.STATE_LABEL: telemetry.PENDING_STATE}
        shown[key(telemetry.CLASS_JOBS, **waiting)] = Signal(1)
    return shown


def recovering(*, canaries_ok: int) -> dict[str, Signal | None]:
    """Show the gate in `recovering` after so many canary successes."""
    return {**gate(DrainState.RECOVERING), telemetry.CANARY_OK_COUNT: Signal(canaries_ok)}


def green(scope: Scope) -> dict[str, Signal | None]:
    """Show the gate in `recovering` with its canaries green."""
    return recovering(canaries_ok=scope.settings.contract.canaries_required)


def silent_when_frozen(risk: Situation) -> Case:
    """Make the case in which the same figures are read from telemetry that stands still."""
    frozen = {telemetry.SNAPSHOT_TIMESTAMP_SECONDS: Signal(0)}
    return Case("the same figures in readings that stand still", {**risk, **frozen}, fires=False, before=frozen)


def fires_in_drain(risk: Situation) -> Case:
    """Make the case in which the library itself has closed the gate already: the webhook must still come."""
    return Case("the same, and the gate is in drain already", {**risk, **gate(DrainState.DRAIN)}, fires=True)


def age_cases(scope: Scope, bound: float) -> tuple[Case, ...]:
    """Make the cases of an alert on the age p95: around the bound, and everything that must keep it quiet."""
    age = telemetry.QUEUE_AGE_P95_SECONDS
    risk = {age: Signal(bound)}
    return (
        Case("at the bound", risk, fires=True),
        Case("just over it", {age: Signal(over(bound))}, fires=True),
        Case("just under it", {age: Signal(under(bound))}, fires=False),
        Case("an empty queue", {age: Signal(0), jobs(telemetry.PENDING_STATE): Signal(0)}, fires=False),
        Case("a leftover age while nothing waits", {**risk, jobs(telemetry.PENDING_STATE): Signal(0)}, fires=False),
        Case("no such series", {age: None}, fires=False),
        Case("the kept backlog of a recovery", {**risk, **green(scope)}, fires=False),
        fires_in_drain(risk),
        silent_when_frozen(risk),
    )


def rate_cases(scope: Scope, rate: str, bound: float) -> tuple[Case, ...]:
    """Make the cases of an alert on a provider rate: around its bound and around the sample rule (contract §2)."""
    bounds = scope.thresholds
    calls, failed = telemetry.PROVIDER_WINDOW_CALLS, telemetry.PROVIDER_WINDOW_FAILED_CALLS

    def window(value: float, of_calls: float, of_failed: float) -> dict[str, Signal | None]:
        return {rate: Signal(value), calls: Signal(of_calls), failed: Signal(of_failed)}

    required = scope.settings.contract.canaries_required
    many, enough = bounds.sample_min_calls * 10, max(bounds.sample_min_failed, bounds.drain_min_failed)
    risk = window(bound, many, enough)
    none: Situation = {rate: None, calls: Signal(0), failed: Signal(0)}
    return (
        Case("at the bound", risk, fires=True),
        Case("just over it", window(over(bound), many, enough), fires=True),
        Case("just under it", window(under(bound), many, enough), fires=False),
        Case("as few calls as make a sample", window(1, bounds.sample_min_calls, bounds.drain_min_failed), fires=True),
        Case("a call too few", window(1, bounds.sample_min_calls - 1, bounds.sample_min_failed - 1), fires=False),
        Case("few calls, but enough of them failed", window(1, enough, enough), fires=True),
        Case("a failed call too few", window(1, many, bounds.drain_min_failed - 1), fires=False),
        Case("no call at all", none, fires=False),
        Case("after green", {**risk, **green(scope)}, fires=True),
        Case("a canary short of green", {**risk, **recovering(canaries_ok=required - 1)}, fires=False),
        fires_in_drain(risk),
        silent_when_frozen(risk),
    )
