"""Make the reading of a queue that a runbook's test gives: a queue that is well, and the figures that are not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from runbooks import conditions
from runbooks.rehearsal_model import Given, GivenGate
from sluicegate import telemetry as names
from sluicegate.gate import DrainState
from sluicegate.settings import Contract
from sluicegate.telemetry import GateView, Part, ProviderWindow, RunView, Telemetry

AT_MS = 1_700_000_000_000
# What a rate is a share of: enough calls for a sample.
_CALLS = 1000

Put = Callable[[Telemetry, float | None], Telemetry]


def reading(given: Given, look: int, at_ms: int, queue: str, contract: Contract) -> Telemetry:
    """Give the reading of one look; a table that is shorter stays at its last value."""
    telemetry = _well(queue, at_ms, contract, _gate(given.gate, at_ms))
    for name, table in given.metrics.items():
        telemetry = _PUT[name](telemetry, table[min(look, len(table) - 1)])
    return replace(telemetry, kill_switch="ada: a test" if given.gate.kill_switch else "")


def looks_given(given: Given) -> int:
    """Count the looks that the tables are for."""
    return max((len(table) for table in given.metrics.values()), default=1)


def _well(queue: str, at_ms: int, contract: Contract, gate: GateView) -> Telemetry:
    bounds = contract.thresholds
    return Telemetry(
        queue=queue,
        at_ms=at_ms,
        queue_age_p95_seconds=0.0,
        oldest_job_age_seconds=0.0,
        oldest_ready_at_ms=None,
        deadline_slack_p10_seconds=2 * bounds.recovered_slack_p10_seconds,
        provider=ProviderWindow(contract.timings.provider_window_s, _CALLS, 0, 0),
        worker_inflight=1,
        gate=gate,
        ready=10,
        delayed=0,
        running=1,
        unknown=0,
        blocked=0,
        canaries=0,
        doomed=0,
        completions=_CALLS,
        predicted_wait_seconds=0.0,
        snapshot_at_ms=0,
        settings_digest=contract.digest(),
    )


def _gate(given: GivenGate, at_ms: int) -> GateView:
    opened = given.drain_state == DrainState.ADMIT
    return GateView(
        drain_state=given.drain_state,
        readable=True,
        initialised=True,
        epoch=at_ms * 1000,
        reason="",
        actor="",
        since_ms=at_ms,
        rollback_reason=None,
        pin=given.pin,
        pin_note="",
        green=False,
        canary_ok_count=0,
        canaries_required=0,
        canary_failures=0,
        ramp_percent=None,
        admission_ratio=1.0 if opened else 0.0,
        controller_seen_ms=at_ms,
        duplicates_unacknowledged=0,
        limit_at_ms=0,
        run=_run(given.run) if given.run is not None else None,
        decision="",
        decision_reason="",
        raw_drain_state=given.drain_state,
        raw_admission="open" if opened else "closed",
        besides=tuple(_run(name) for name in given.beside),
    )


def _run(runbook: str) -> RunView:
    return RunView("the-live-one", runbook, "", "running")


def _rate_5xx(telemetry: Telemetry, value: float | None) -> Telemetry:
    return replace(telemetry, provider=_window(telemetry.provider, value, telemetry.provider.rate_timeout))


def _rate_timeout(telemetry: Telemetry, value: float | None) -> Telemetry:
    return replace(telemetry, provider=_window(telemetry.provider, telemetry.provider.rate_5xx, value))


def _window(window: ProviderWindow, rate_5xx: float | None, rate_timeout: float | None) -> ProviderWindow:
    if rate_5xx is None or rate_timeout is None:
        return replace(window, calls=0, status_5xx=0, timeouts=0)
    return replace(window, status_5xx=round(rate_5xx * _CALLS), timeouts=round(rate_timeout * _CALLS))


def _counted(part: Part, put: Callable[[Telemetry, float], Telemetry]) -> Put:
    """Give what puts a count; without data, what it is counted from is damaged."""
    return lambda seen, value: replace(seen, damaged=seen.damaged | {part}) if value is None else put(seen, value)


def _in_gate(**fields: Callable[[float], object]) -> Put:
    """Give what puts a figure of the gate; without data the gate's own records cannot be read."""

    def put(telemetry: Telemetry, value: float | None) -> Telemetry:
        if value is None:
            return replace(telemetry, gate=replace(telemetry.gate, readable=False))
        changes: dict[str, object] = {name: made(value) for name, made in fields.items()}
        return replace(telemetry, gate=replace(telemetry.gate, **changes))  # type: ignore[arg-type]  # as named below

    return put


def _age(telemetry: Telemetry, value: float | None) -> Telemetry:
    return replace(telemetry, queue_age_p95_seconds=float("nan") if value is None else value)


def _oldest(telemetry: Telemetry, value: float | None) -> Telemetry:
    return replace(telemetry, oldest_job_age_seconds=float("nan") if value is None else value)


# Where each figure that a condition may ask for lies in a reading.
_PUT: Mapping[str, Put] = {
    names.QUEUE_AGE_P95_SECONDS: _age,
    names.OLDEST_JOB_AGE_SECONDS: _oldest,
    names.DEADLINE_SLACK_P10_SECONDS: lambda seen, value: replace(seen, deadline_slack_p10_seconds=value),
    names.PROVIDER_5XX_RATE: _rate_5xx,
    names.PROVIDER_TIMEOUT_RATE: _rate_timeout,
    names.WORKER_INFLIGHT: _counted(
        Part.RUNNING, lambda seen, value: replace(seen, worker_inflight=int(value), running=int(value))
    ),
    names.CANARY_OK_COUNT: _in_gate(canary_ok_count=int),
    names.PREDICTED_WAIT_SECONDS: lambda seen, value: replace(seen, predicted_wait_seconds=value),
    names.DOOMED_JOBS: _counted(Part.DEADLINES, lambda seen, value: replace(seen, doomed=int(value))),
    conditions.UNKNOWN_JOBS: _counted(Part.UNKNOWN, lambda seen, value: replace(seen, unknown=int(value))),
    conditions.OLDEST_UNKNOWN_SECONDS: _counted(
        Part.UNKNOWN,
        lambda seen, value: replace(seen, oldest_unknown_at_ms=seen.at_ms - round(value * 1000)),
    ),
    conditions.CANARIES_GREEN: _in_gate(green=bool),
    conditions.CANARY_FAILURES: _in_gate(canary_failures=int),
    conditions.UNFINISHED_JOBS: _counted(
        Part.READY, lambda seen, value: replace(seen, ready=int(value), delayed=0, running=0)
    ),
    names.DUPLICATE_SIDE_EFFECTS_UNACKNOWLEDGED: _in_gate(duplicates_unacknowledged=int),
}
