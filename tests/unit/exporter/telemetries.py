"""A busy queue, and a short way to look at the families made of a reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from prometheus_client.metrics_core import Metric

from exporter.families import queue_families
from sluicegate.telemetry import ClassFigures, ProviderWindow, Telemetry
from tests.readings import AT_MS, EMPTY, live

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
    queue_age_p50_seconds=6.0,
    queue_age_p99_seconds=13.75,
    oldest_ready_at_ms=AT_MS - 14_000,
    deadline_slack_p1_seconds=-3.0,
    deadline_slack_p50_seconds=20.0,
    inflight=2,
    predicted_wait_seconds=2.25,
    younger=(1, 2, 4, 4, 4, 4),
)

BUSY = replace(
    EMPTY,
    queue_age_p95_seconds=12.5,
    oldest_job_age_seconds=14.25,
    oldest_ready_at_ms=AT_MS - 14_250,
    deadline_slack_p10_seconds=-1.5,
    provider=ProviderWindow(seconds=30.0, calls=60, status_5xx=4, timeouts=2),
    worker_inflight=3,
    ready=4,
    delayed=2,
    running=3,
    unknown=1,
    canaries=1,
    doomed=2,
    completions=54,
    predicted_wait_seconds=2.25,
    snapshot_at_ms=AT_MS - 90_000,
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
    oldest_unknown_at_ms=AT_MS - 7_000,
    queue_age_p50_seconds=6.0,
    queue_age_p99_seconds=14.0,
    deadline_slack_p1_seconds=-3.0,
    deadline_slack_p50_seconds=20.0,
    age_bounds_seconds=(5.0, 10.0, 15.0, 20.0, 25.0, 50.0),
    cost_classes=("browser",),
)

RECOVERY = live("drain-and-recover", step="canary")


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
