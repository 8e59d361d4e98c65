"""What does a run's journal say of it: of which phase is an entry, and does the run wait for a person?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sluicegate.run_replies import RunHistory


class Phase(StrEnum):
    """Name the phases a step's journal entries are of."""

    STARTED = "started"  # its line, as in the plan
    INTENT = "intent"  # a call outside follows
    OUTCOME = "outcome"  # what that call came to
    UNKNOWN = "unknown"  # its outcome was lost
    PROGRESS = "progress"  # a part of the step's effect
    PAGED = "paged"  # people were told that the step waits
    OPENED = "opened"  # the gate opened, the ramp goes on
    DONE = "done"  # the next step may start
    FAILED = "failed"  # the run rolls back


@dataclass(frozen=True, slots=True)
class WaitsForPerson:
    """Say at which step a run waits for a person, since when (ms, Redis TIME), and why."""

    step: str
    since_ms: int
    why: str


def waits_of(history: RunHistory | None) -> WaitsForPerson | None:
    """Give what a running run waits for, or None: people were paged for its step, which nobody has let pass since."""
    if history is None:
        return None
    run = history.run
    entries = [entry for entry in history.journal if entry.seq == run.step and entry.verb == run.verb]
    paged = [entry for entry in entries if entry.phase == Phase.PAGED]
    passed = f"{run.step} {run.verb}" in history.approvals or any(entry.phase == Phase.DONE for entry in entries)
    if run.state != "running" or not paged or passed:
        return None
    why = paged[-1].text
    return WaitsForPerson(run.verb, next(entry.at_ms for entry in paged if entry.text == why), why)
