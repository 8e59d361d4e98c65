"""A healthy queue, and its readings changed where it matters to a runbook."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sluicegate.settings import default_settings
from sluicegate.telemetry import ProviderWindow, Telemetry
from tests.readings import AT_MS, EMPTY, with_gate

HEALTHY = replace(
    EMPTY,
    queue_age_p95_seconds=0.4,
    oldest_job_age_seconds=0.5,
    oldest_ready_at_ms=AT_MS - 500,
    deadline_slack_p10_seconds=58.0,
    provider=ProviderWindow(seconds=30, calls=300, status_5xx=0, timeouts=0),
    worker_inflight=4,
    ready=2,
    running=4,
    completions=300,
    predicted_wait_seconds=0.1,
    settings_digest=default_settings().contract.digest(),
)


def reading(**changes: Any) -> Telemetry:
    """Change figures of the healthy reading."""
    return replace(HEALTHY, **changes)


def gate(**changes: Any) -> Telemetry:
    """Change the gate of the healthy reading."""
    return with_gate(HEALTHY, **changes)


def calls(number: int, status_5xx: int = 0, timeouts: int = 0) -> ProviderWindow:
    """Give a provider window with these calls."""
    return ProviderWindow(seconds=30, calls=number, status_5xx=status_5xx, timeouts=timeouts)
