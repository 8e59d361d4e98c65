"""Read all that the page shows, in one go, from one queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.replies import GateLogEntry, rows
from sluicegate.run_replies import RunHistory, RunRecord
from sluicegate.store import Store
from sluicegate.telemetry import Telemetry

# Of each list the page shows so many; the commands list all.
_JOBS = 20
_RUNS = 15
_MOVES = 15
# What is not seen from the figures to have changed is read again after so long (ms, Redis TIME).
_STALE_MS = 2_000


@dataclass(frozen=True, slots=True)
class JobLine:
    """Hold one unknown or blocked job: since when it is so (ms), and its record as stored."""

    job_id: str
    state: str
    since_ms: int
    record: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold one look at a queue.

    `history` is the lock-holding run's, `besides` are those of the runs beside it, `lists_at_ms` is when the lists were
    read.
    """

    telemetry: Telemetry
    history: RunHistory | None
    besides: tuple[RunHistory, ...]
    jobs: tuple[JobLine, ...]
    runs: tuple[RunRecord, ...]
    moves: tuple[GateLogEntry, ...]
    lists_at_ms: int

    def live(self, run: str) -> RunHistory | None:
        """Give a live run by its id."""
        known = (*((self.history,) if self.history is not None else ()), *self.besides)
        return next((history for history in known if history.run.run_id == run), None)


def read(store: Store, before: Reading | None = None) -> Reading:
    """Read a queue; what `before` already holds and cannot have changed is taken from it. Raises StoreError."""
    telemetry = store.observe()
    gate = telemetry.gate
    history = store.run(gate.run.run_id) if gate.run is not None else None
    besides = tuple(found for beside in gate.besides if (found := store.run(beside.run_id)) is not None)
    if before is not None and _lists_stand(before, telemetry):
        return Reading(telemetry, history, besides, before.jobs, before.runs, before.moves, before.lists_at_ms)
    return Reading(
        telemetry,
        history,
        besides,
        (*_jobs(store, "unknown", telemetry.unknown), *_jobs(store, "blocked", telemetry.blocked)),
        store.runs(_RUNS),
        store.gate_log(_MOVES),
        telemetry.at_ms,
    )


def _lists_stand(before: Reading, now: Telemetry) -> bool:
    was = before.telemetry
    return (was.gate.epoch, was.gate.run, was.gate.besides, was.gate.pin, was.unknown, was.blocked) == (
        now.gate.epoch,
        now.gate.run,
        now.gate.besides,
        now.gate.pin,
        now.unknown,
        now.blocked,
    ) and 0 <= now.at_ms - before.lists_at_ms < _STALE_MS


def _jobs(store: Store, state: str, there: int) -> tuple[JobLine, ...]:
    if not there:
        return ()
    found: list[Mapping[str, Any]] = rows(store.records(store.list_jobs(state, _JOBS)), "jobs")
    lines = [JobLine(str(row["id"]), state, int(row.get("score") or 0), row["job"]) for row in found]
    return tuple(line for line in lines if line.record.get("state") == state)
