"""Put an incident into tables of text, for the page and for Markdown alike. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from automation.incident.gathering import Incident

_MOST_RECORDS = 500
_RECORD_KINDS = {
    "reconcile": "settled by reconciliation",
    "late_worker": "settled by the late worker",
    "stale_write": "late write, refused",
    "duplicate": "duplicate confirmed",
    "entry_dropped": "entry dropped that named no job",
    "lease_put_back": "lease put back",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Hold a table with its heading; `says` stands where it has no rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    says: str


def instant(at_ms: int) -> str:
    """Write an instant in UTC to the millisecond; a dash for never."""
    if not at_ms:
        return "—"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def title(incident: Incident) -> str:
    """Say what happened in one line."""
    run = incident.history.run
    end = f"rolled back: {run.rollback_reason}" if run.state == "rolled_back" else run.state.replace("_", " ")
    return f"{run.runbook} on {incident.queue}: {end}"


def summary(incident: Incident) -> tuple[tuple[str, str], ...]:
    """Give the facts of the run."""
    run = incident.history.run
    lasted_s = ((run.ended_at_ms or incident.made_at_ms) - run.started_at_ms) / 1000
    facts = [
        ("run", run.run_id),
        ("runbook", f"{run.runbook} {run.digest}".strip()),
        ("opened", f"{instant(run.started_at_ms)} UTC by {run.actor} ({run.trigger}): {run.reason}"),
        (
            "ended",
            f"{instant(run.ended_at_ms)} UTC by {run.ended_by}: {run.ended_why}" if run.ended_at_ms else "not yet",
        ),
        ("lasted", f"{lasted_s:.1f} s"),
        ("state", run.state),
        ("rolled back for", run.rollback_reason),
        ("jobs put back by drains", "" if incident.recorded.requeued is None else str(incident.recorded.requeued)),
        ("jobs without an end", f"{incident.unknown} unknown, {incident.blocked} blocked, when this report was made"),
        ("this report", f"made {instant(incident.made_at_ms)} UTC"),
    ]
    return tuple((name, value) for name, value in facts if value)


def tables(incident: Incident) -> tuple[Table, ...]:
    """Give every table, in the order in which they are read."""
    return (
        Table(
            "Who did what",
            ("when (UTC)", "who", "what and why"),
            tuple((instant(at_ms), actor, what) for at_ms, actor, what in incident.persons),
            "No named person did anything in this time.",
        ),
        Table(
            "The gate's moves",
            ("when (UTC)", "from", "to", "reason", "by", "figures then", "note"),
            tuple(_moves(incident)),
            "The gate's log holds no move of this time.",
        ),
        Table(
            "The run's journal",
            ("when (UTC)", "step", "phase", "by", "text"),
            tuple(
                (instant(entry.at_ms), f"{entry.seq} {entry.verb}".strip(), entry.phase, entry.actor, entry.text)
                for entry in incident.history.journal
            ),
            "The journal is empty.",
        ),
        Table(
            "Alerts",
            ("alert", "fired (UTC)", "until"),
            tuple(
                (span.name, instant(span.from_ms), instant(span.to_ms))
                for span in sorted(incident.recorded.alerts, key=lambda span: span.from_ms)
            ),
            "No Prometheus was asked, or it recorded no alert of this queue.",
        ),
        Table(
            "Jobs that expired or failed",
            ("class", "end", "cause", "jobs"),
            tuple((name, end, cause, str(n)) for (name, end, cause), n in sorted(incident.ended_jobs.items())),
            "None.",
        ),
        Table(
            "Unknown jobs and late writes",
            ("when (UTC)", "job", "what", "outcome", "by", "why"),
            tuple(_records(incident)),
            "None.",
        ),
    )


def _moves(incident: Incident) -> Iterator[tuple[str, ...]]:
    for move in incident.moves:
        seen = ", ".join(f"{name} {value:g}" for name, value in move.seen.items() if value is not None)
        yield instant(move.at_ms), move.from_state, move.to_state, move.reason, move.actor, seen, move.note


def _records(incident: Incident) -> Iterator[tuple[str, ...]]:
    """Tell how each was settled, the first of them where there are too many to read."""
    for record in incident.records[:_MOST_RECORDS]:
        yield (
            instant(int(record["at"])),
            record.get("job") or record.get("key", ""),
            _RECORD_KINDS.get(record["kind"], record["kind"]),
            record.get("outcome", ""),
            ", ".join(one for one in (record.get("source", ""), record.get("actor", "")) if one),
            record.get("note", ""),
        )
    more = len(incident.records) - _MOST_RECORDS
    if more > 0:
        yield ("", "", f"and {more} more", "", "", "")
