"""Say in words what became of a job and what was decided. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sluicegate.admission import Decision, RefusalReason

_OF_THE_GATE = frozenset({RefusalReason.ADMISSION_CLOSED, RefusalReason.RAMP, RefusalReason.CONTROLLER_SILENT})
_TIMES = frozenset({"deadline", "eligible", "admitted_at", "started_at", "ended_at", "ready_at", "lease_end"})


def decision_sentence(decision: Decision, key: str | None) -> str:
    """Say what was decided, and when coming back may help; without a key of its own a job's id is its key."""
    if decision.accepted:
        again = "was accepted before" if decision.replayed else "is accepted"
        return f"Job {decision.job_id} {again}."
    refused = f"Job {decision.job_id} is refused: {decision.reason}."
    if decision.reason == RefusalReason.CONFLICT:
        return f"{refused}\nThe key belongs to another job: take one of its own."
    if decision.retry_after_s is None:
        declared = (
            " `sluicegate queue stats` lists the declared classes."
            if decision.reason == RefusalReason.UNKNOWN_CLASS
            else ""
        )
        return f"{refused}\nThat is final for this key.{declared}"
    why = "; `sluicegate gate show` says why" if decision.reason in _OF_THE_GATE else ""
    return f"{refused}\nRepeat it after {decision.retry_after_s:g} s with --key {key or decision.job_id}{why}."


def unanswered_sentence(job_id: str) -> str:
    """Say how a submission is repeated whose answer did not come."""
    return f"Whether job {job_id} was admitted is not known. Repeat it with --key {job_id}: it counts once."


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
