"""Say in words how a run stands, and what became of asking for one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sluicegate.all_queues import Standing
from sluicegate.gate import PinReason
from sluicegate.remedies import BY_NAME, GATE_OPEN_END_RUN, QUEUE_INIT
from sluicegate.replies import GateAnswer
from sluicegate.run_replies import JournalEntry, RunHistory, RunRecord


@dataclass(frozen=True, slots=True)
class Said:
    """Hold a sentence, and the command that goes on from there."""

    sentence: str
    hint: str = ""


def opening_said(answer: GateAnswer) -> Said:
    """Say whether a named person's run was opened, and if not, which rule stands in its way."""
    match answer.answer:
        case "moved":
            return Said(f"Run {answer.run} is open.")
        case "run_live" | "attached":
            return Said(
                f"Run {answer.run} is live, so no other was opened.",
                f"`sluicegate automation show {answer.run}` says where it is, `sluicegate automation abort "
                f"{answer.run} {BY_NAME}` ends it.",
            )
        case "duplicates":
            return Said(
                "Confirmed duplicates are not acknowledged, so no run was opened.",
                f"Audit their keys, then `sluicegate gate acknowledge {BY_NAME}`.",
            )
        case "unreadable" if answer.pin == PinReason.UNINITIALISED:
            return Said("There is no queue here yet, so no run was opened.", f"`{QUEUE_INIT}` opens it.")
        case "unreadable":
            return Said(
                "The gate's records are missing or unreadable, so no run was opened.",
                "`sluicegate gate show` says what to do.",
            )
        case other:
            return Said(f"No run was opened: {answer.why or other}.")


def not_waiting_said(run: str, step: str) -> str:
    """Say that a word was not taken: the run has not come to this step, has passed it, or it waits for no person."""
    return f"Run {run} does not wait for a person at step {step}, so nothing was changed."


def aborted_said(answer: GateAnswer) -> Said:
    """Say what an abort has done, and who ends the run."""
    return Said(
        f"Run {answer.run} is aborted; the gate is {answer.drain_state}, pinned ({answer.pin}).",
        _hooks_said(),
    )


def rolls_back_said(run: str) -> Said:
    """Say that a run cannot be aborted again, and who ends it."""
    return Said(f"Run {run} rolls back already, so nothing was changed.", _hooks_said())


def _hooks_said() -> str:
    return (
        "A running automation service (`sluicegate automation serve`) finishes its hooks and ends it; "
        f"`{GATE_OPEN_END_RUN}` ends it without one, and opens."
    )


def run_row(run: RunRecord) -> str:
    """Give one run as a line: id, runbook, state, step, who asked and why, and why it rolled back."""
    at = f" at {run.verb}" if run.live and run.verb else ""
    rolled = f" rollback_reason={run.rollback_reason}" if run.rollback_reason else ""
    held = f" held until {_utc(run.held_until_ms)} ({run.held_by})" if run.held else ""
    return f"{run.run_id} {run.runbook} {run.state}{at} (by {run.trigger}, {run.actor}: {run.reason}){rolled}{held}"


def limits_lines(queue: str, own_switch: str, standing: Standing) -> Iterator[str]:
    """Say what forbids runs that no named person asked for, and which runs count as live."""
    yield f"kill switch of queue {queue}: {f'on ({own_switch})' if own_switch else 'off'}"
    for name, ordered in (("kill switch of all queues", standing.kill), ("breaker", standing.breaker)):
        yield f"{name}: {f'on since {_utc(ordered.since_ms)} ({ordered.said})' if ordered else 'off'}"
    for holder in standing.holders:
        yield f"live: run {holder.run} of queue {holder.queue}, since {_utc(holder.since_ms)}"
    if not standing.holders:
        yield "live: no run of any queue"
    if standing.asked:
        yield f"asked for runs lately: {', '.join(standing.asked)}"


def history_lines(history: RunHistory) -> Iterator[str]:
    """Give a run and its journal, a line each: time, step, phase, who, what."""
    yield run_row(history.run)
    if history.run.ended_why:
        yield f"ended by {history.run.ended_by}: {history.run.ended_why}"
    yield from map(entry_line, history.journal)


def entry_line(entry: JournalEntry) -> str:
    """Give one journal entry as a line."""
    step = f"{entry.seq} {entry.verb}".strip()
    return f"  {_utc(entry.at_ms)}  {step:<12} {entry.phase:<11} {entry.actor}  {entry.text}".rstrip()


def _utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
