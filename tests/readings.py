"""Hand-made readings of a queue as plain values: a test changes what matters to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluicegate.telemetry import GateView, ProviderWindow, RunView, Telemetry

AT_MS = 1_700_000_000_000

OPEN_GATE = GateView(
    drain_state="admit",
    readable=True,
    initialised=True,
    epoch=AT_MS * 1000,
    reason="init",
    actor="ada",
    since_ms=AT_MS - 60_000,
    rollback_reason=None,
    pin=None,
    pin_note="",
    green=False,
    canary_ok_count=0,
    canaries_required=3,
    canary_failures=0,
    ramp_percent=None,
    admission_ratio=1.0,
    controller_seen_ms=AT_MS - 400,
    duplicates_unacknowledged=0,
    limit_at_ms=0,
    run=None,
    decision="admit",
    decision_reason="normal",
    raw_drain_state="admit",
    raw_admission="open",
)

EMPTY = Telemetry(
    queue="default",
    at_ms=AT_MS,
    queue_age_p95_seconds=0.0,
    oldest_job_age_seconds=0.0,
    oldest_ready_at_ms=None,
    deadline_slack_p10_seconds=None,
    provider=ProviderWindow(seconds=30.0, calls=0, status_5xx=0, timeouts=0),
    worker_inflight=0,
    gate=OPEN_GATE,
    ready=0,
    delayed=0,
    running=0,
    unknown=0,
    blocked=0,
    canaries=0,
    doomed=0,
    completions=0,
    predicted_wait_seconds=None,
    snapshot_at_ms=0,
    settings_digest="0123456789abcdef",
)


def with_gate(telemetry: Telemetry, **changes: Any) -> Telemetry:
    """Give the reading with another gate."""
    return replace(telemetry, gate=replace(telemetry.gate, **changes))


def live(runbook: str, step: str = "fix") -> RunView:
    """Give a live run of a runbook that stands at a step."""
    return RunView(run_id="run-1", runbook=runbook, step=step, state="running")
