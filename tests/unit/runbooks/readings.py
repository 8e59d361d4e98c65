"""Readings of a queue, as plain values that a test changes where it matters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluicegate.settings import default_settings
from sluicegate.telemetry import GateView, ProviderWindow, RunView, Telemetry

HEALTHY_GATE = GateView(
    drain_state="admit",
    readable=True,
    initialised=True,
    epoch=1_700_000_000_000_000,
    reason="init",
    actor="ada",
    since_ms=1_700_000_000_000,
    rollback_reason=None,
    pin=None,
    pin_note="",
    green=False,
    canary_ok_count=0,
    canaries_required=3,
    canary_failures=0,
    ramp_percent=None,
    admission_ratio=1.0,
    controller_seen_ms=1_700_000_000_000,
    duplicates_unacknowledged=0,
    limit_at_ms=0,
    run=None,
    decision="admit",
    decision_reason="normal",
    raw_drain_state="admit",
    raw_admission="open",
)

HEALTHY = Telemetry(
    queue="default",
    at_ms=1_700_000_000_000,
    queue_age_p95_seconds=0.4,
    oldest_job_age_seconds=0.5,
    oldest_ready_at_ms=1_699_999_999_500,
    deadline_slack_p10_seconds=58.0,
    provider=ProviderWindow(seconds=30, calls=300, status_5xx=0, timeouts=0),
    worker_inflight=4,
    gate=HEALTHY_GATE,
    ready=2,
    delayed=0,
    running=4,
    unknown=0,
    blocked=0,
    canaries=0,
    doomed=0,
    completions=300,
    predicted_wait_seconds=0.1,
    snapshot_at_ms=0,
    settings_digest=default_settings().contract.digest(),
)


def reading(**changes: Any) -> Telemetry:
    """Change figures of the healthy reading."""
    return replace(HEALTHY, **changes)


def gate(**changes: Any) -> Telemetry:
    """Change the gate of the healthy reading."""
    return replace(HEALTHY, gate=replace(HEALTHY_GATE, **changes))


def calls(number: int, status_5xx: int = 0, timeouts: int = 0) -> ProviderWindow:
    """Give a provider window with these calls."""
    return ProviderWindow(seconds=30, calls=number, status_5xx=status_5xx, timeouts=timeouts)


def live(runbook: str) -> RunView:
    """Give a live run of a runbook."""
    return RunView(run_id="r-1", runbook=runbook, step="fix", state="running")
