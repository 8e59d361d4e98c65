"""Hand-made readings of a queue, and a short way to look at the families made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from prometheus_client.metrics_core import Metric

from exporter.families import queue_families
from sluicegate.telemetry import ClassFigures, GateView, ProviderWindow, RunView, Telemetry

AT_MS = 1_700_000_000_000

OPEN_GATE = GateView(
    drain_state="admit",
    readable=True,
    initialised=True,
    epoch=7,
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

LINT_FIX = ClassFigures(
    ready=4,
    delayed=2,
    running=3,
    unknown=1,
    blocked=0,
    queue_age_p95_seconds=12.5,
    oldest_job_age_seconds=14.0,
    deadline_slack_p10_seconds=-1.5,
    doomed=2,
    deadline_seconds=60.0,
)

BUSY = Telemetry(
    queue="default",
    at_ms=AT_MS,
    queue_age_p95_seconds=12.5,
    oldest_job_age_seconds=14.25,
    oldest_ready_at_ms=AT_MS - 14_250,
    deadline_slack_p10_seconds=-1.5,
    provider=ProviderWindow(seconds=30.0, calls=60, status_5xx=4, timeouts=2),
    worker_inflight=3,
    gate=OPEN_GATE,
    ready=4,
    delayed=2,
    running=3,
    unknown=1,
    blocked=0,
    canaries=1,
    doomed=2,
    completions=54,
    predicted_wait_seconds=2.25,
    snapshot_at_ms=AT_MS - 90_000,
    settings_digest="0123456789abcdef",
    counters={
        "admitted": 100,
        "replayed": 5,
        "refused:overloaded": 7,
        "refused:lint-fix_limit": 2,
        "calls:ok": 54,
        "calls:5xx": 4,
        "calls:timeout": 2,
        "lease_expired": 1,
        "requeued": 6,
        "canaries_ok": 3,
        "runs:succeeded": 1,
    },
    classes={"lint-fix": LINT_FIX},
    class_counters={"lint-fix": {"met": 40, "missed": 1, "expired": 3, "admitted": 50, "succeeded": 41, "failed": 0}},
    thresholds={"reject_age_p95_seconds": 20.0, "drain_provider_5xx_rate": 0.05},
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

RECOVERY = RunView(run_id="run-1", runbook="drain-and-recover", step="canaries", state="running")


def with_gate(telemetry: Telemetry, **changes: Any) -> Telemetry:
    """Give the reading with another gate."""
    return replace(telemetry, gate=replace(telemetry.gate, **changes))


def samples(families: Iterable[Metric], name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Give label pairs → value of the samples of that name, the queue label apart."""
    return {
        tuple((label, value) for label, value in sample.labels.items() if label != "queue"): sample.value
        for metric in families
        for sample in metric.samples
        if sample.name == name
    }


def values(telemetry: Telemetry, name: str) -> dict[Any, float]:
    """Give what a figure shows of one queue: by its label values, by () without labels of its own."""
    found = samples(queue_families([telemetry]), name)
    return {
        tuple(value for _, value in labels) if len(labels) != 1 else labels[0][1]: at for labels, at in found.items()
    }


def value(telemetry: Telemetry, name: str) -> float | None:
    """Give the value of a figure without labels of its own; None without a sample."""
    return values(telemetry, name).get(())
