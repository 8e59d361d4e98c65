"""Compare what was expected of a drill with what was seen: a row for each expectation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drill.child import ChildFailure
from drill.controls import FiringSpan
from drill.effects import Effect
from drill.load import Jobs, Submission
from drill.profile import Profile
from drill.timeline import Timeline
from sluicegate.gate import Runbook
from sluicegate.job import FINAL_STATES
from sluicegate.replies import GateLogEntry
from sluicegate.run_replies import RunHistory
from sluicegate.settings import Settings


@dataclass(frozen=True, slots=True)
class JobEnd:
    """Hold where an accepted job is in the end; `state` is `gone` where it has no record any more."""

    job_id: str
    key: str
    job_class: str
    state: str
    cause: str
    attempt: int = 1
    retries: int = 0

    @property
    def ended(self) -> bool:
        """Tell whether the job is in a final state."""
        return self.state in FINAL_STATES


@dataclass(frozen=True, slots=True)
class Said:
    """Hold one event of a worker's own log; ts in Unix seconds."""

    ts: float
    worker: str
    event: str
    job_id: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """Hold all that was seen of one drill; logs, runs and submissions are oldest first."""

    profile: Profile
    settings: Settings
    timeline: Timeline
    gate_log: tuple[GateLogEntry, ...]
    runs: tuple[RunHistory, ...]
    submissions: tuple[Submission, ...]
    load_errors: tuple[str, ...]
    jobs: tuple[JobEnd, ...]
    failed_records: Mapping[str, str]
    effects: tuple[Effect, ...]
    firing: tuple[FiringSpan, ...]
    targets: Mapping[str, bool]
    died: tuple[ChildFailure, ...]
    ends_closed: bool
    said: tuple[Said, ...] = ()
    jobs_of_its_own: Jobs | None = None

    @property
    def moves(self) -> tuple[GateLogEntry, ...]:
        """Return the log entries that changed the gate's state, the queue's opening aside."""
        return tuple(entry for entry in self.gate_log if entry.from_state != entry.to_state and entry.reason != "init")

    @property
    def recoveries(self) -> tuple[RunHistory, ...]:
        """Return the runs that held the queue's lock; others may have run beside them."""
        return tuple(one for one in self.runs if one.run.runbook in set(Runbook))

    @property
    def recovery(self) -> RunHistory | None:
        """Return the first lock-holding run, None without one."""
        return next(iter(self.recoveries), None)


@dataclass(frozen=True, slots=True)
class Seen:
    """Hold whether an expectation holds, and what was seen of it."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """Name what must hold in the end, and how it is looked for."""

    name: str
    expected: str
    look: Callable[[Evidence], Seen]


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one line of a verdict."""

    name: str
    expected: str
    seen: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold all rows; a drill has passed when every one is ok."""

    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """Tell whether all that was expected was seen."""
        return all(row.ok for row in self.rows)


def judge(expectations: Sequence[Expectation], evidence: Evidence) -> Verdict:
    """Look for every expectation, after the phases themselves and the processes."""
    rows = [_phases(evidence), _processes(evidence)]
    for expectation in expectations:
        seen = expectation.look(evidence)
        rows.append(Row(expectation.name, expectation.expected, seen.text, seen.ok))
    return Verdict(tuple(rows))


def _phases(evidence: Evidence) -> Row:
    missed = [phase for phase in evidence.timeline.phases if not phase.reached]
    expected = "each reaches its condition within its bound"
    if not missed:
        return Row("phases", expected, f"all {len(evidence.timeline.phases)} did", ok=True)
    phase = missed[0]
    waited_s = (phase.to_ms - phase.from_ms) / 1000
    seen = f"`{phase.name}` waited {waited_s:.1f} s for: {phase.waited_for}; seen: {phase.seen}"
    return Row("phases", expected, seen, ok=False)


def _processes(evidence: Evidence) -> Row:
    died = [failure.name for failure in evidence.died]
    seen = f"{', '.join(died)} ended unasked" if died else "none did"
    return Row("processes", "none ends unless the scenario ends it", seen, ok=not died)
