"""Say in words what a queue holds, what became of a job and what was decided. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sluicegate.admission import Decision
from sluicegate.telemetry import Telemetry

_COUNTS = ("ready", "delayed", "running", "unknown", "blocked")
_TIMES = frozenset({"deadline", "eligible", "admitted_at", "started_at", "ended_at", "ready_at", "lease_end"})


def stats_body(telemetry: Telemetry) -> dict[str, Any]:
    """Give the figures of `queue stats --json`; times in seconds, null without a sample."""
    return {
        "queue": telemetry.queue,
        "at_ms": telemetry.at_ms,
        "drain_state": telemetry.gate.drain_state,
        "queue_age_p95_seconds": telemetry.queue_age_p95_seconds,
        "oldest_job_age_seconds": telemetry.oldest_job_age_seconds,
        "deadline_slack_p10_seconds": telemetry.deadline_slack_p10_seconds,
        "worker_inflight": telemetry.worker_inflight,
        "jobs": {name: getattr(telemetry, name) for name in (*_COUNTS, "canaries", "doomed")},
        "classes": {
            name: {count: getattr(figures, count) for count in (*_COUNTS, "doomed")}
            for name, figures in sorted(telemetry.classes.items())
        },
        "settings_digest": telemetry.settings_digest,
    }


def stats_lines(telemetry: Telemetry) -> Iterator[str]:
    """Give the same for people, a line each."""
    slack = telemetry.deadline_slack_p10_seconds
    pin = telemetry.gate.pin
    yield f"queue {telemetry.queue}: gate {telemetry.gate.drain_state}{f', pinned: {pin}' if pin else ''}"
    yield (
        f"age p95 {telemetry.queue_age_p95_seconds:.1f} s, oldest {telemetry.oldest_job_age_seconds:.1f} s, "
        f"slack p10 {'no unfinished job' if slack is None else f'{slack:.1f} s'}"
    )
    yield f"{'':<20}" + "".join(f"{name:>9}" for name in _COUNTS)
    for name, figures in sorted(telemetry.classes.items()):
        yield f"{name:<20}" + "".join(f"{getattr(figures, count):>9}" for count in _COUNTS)
    yield f"{'all':<20}" + "".join(f"{getattr(telemetry, count):>9}" for count in _COUNTS)


def decision_sentence(decision: Decision, key: str | None) -> str:
    """Say what was decided, and when coming back may help; without a key of its own a job's id is its key."""
    if decision.accepted:
        again = "was accepted before" if decision.replayed else "is accepted"
        return f"Job {decision.job_id} {again}."
    refused = f"Job {decision.job_id} is refused: {decision.reason}."
    if decision.reason == "conflict":
        return f"{refused}\nThe key belongs to another job: take one of its own."
    if decision.retry_after_s is None:
        return f"{refused}\nThat is final for this key."
    return f"{refused}\nRepeat it after {decision.retry_after_s:g} s with --key {key or decision.job_id}."


def job_lines(job_id: str, record: Mapping[str, Any]) -> Iterator[str]:
    """Show a job's record, then its decision and its ledger entry, a `name: value` line each; times in UTC."""
    job: Mapping[str, str] = record["job"]
    yield f"job: {job_id}"
    for name in sorted(job, key=lambda field: (field != "state", field)):
        if job[name]:
            yield f"{name}: {_instant(job[name]) if name in _TIMES else job[name]}"
    yield f"payload: {record['payload']}"
    for part in ("decision", "ledger"):
        fields: Mapping[str, str] = record.get(part) or {}
        if fields:
            yield f"{part}: " + " ".join(f"{name}={value}" for name, value in sorted(fields.items()) if value)


def _instant(ms: str) -> str:
    return datetime.fromtimestamp(int(ms) / 1000, UTC).isoformat(timespec="milliseconds")
