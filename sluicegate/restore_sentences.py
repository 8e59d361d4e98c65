"""Say in words what a snapshot holds and what a restore did, or why it did nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sluicegate.gate_sentences import Said
from sluicegate.job import JobState
from sluicegate.remedies import BY_NAME, QUEUE_APPLY
from sluicegate.restore import Restored, Wish
from sluicegate.snapshot_file import Written

_PENDING = frozenset({JobState.READY.value, JobState.DELAYED.value})
_STATES = tuple(state.value for state in JobState)


def written_body(path: Path, written: Written) -> dict[str, Any]:
    """Give what `queue snapshot --json` says."""
    return {"path": str(path), **{name: getattr(written, name) for name in written.__slots__}}


def written_lines(path: Path, written: Written) -> Iterator[str]:
    """Say what was written, and how far it can be trusted to be of one instant."""
    yield f"{path} holds {written.jobs} jobs and {written.refusals} refusals, sha256 {written.sha256}."
    if written.still:
        yield f"All of it is as it was at {_instant(written.until_ms)}, the gate in {written.drain_state}."
    else:
        yield (
            f"Jobs moved while it was written: each is as it was at some time from {_instant(written.at_ms)} to "
            f"{_instant(written.until_ms)}. With the gate in drain all of it is of one instant."
        )


def restored_body(result: Restored) -> dict[str, Any]:
    """Give what `queue restore --json` says; `counts` by the state jobs came back in, kept, refusal and lapsed."""
    return {
        "answer": result.answer,
        "sha256": result.content.sha256,
        "at_ms": result.header.at_ms,
        "jobs": result.jobs,
        "counts": dict(sorted(result.counts.items())),
    }


def restored_lines(queue: str, wish: Wish, result: Restored) -> Iterator[str]:
    """Say what came back, what a person has to look at, and how the queue is opened again."""
    counts, header = result.counts, result.header
    states = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state]) or "none"
    verb = "would come back" if wish.dry_run else "are back"
    yield f"{result.jobs} jobs of {_instant(header.at_ms)} {verb} in queue {queue}: {states}."
    yield f"{counts['refusal']} refusals {verb}; {counts['kept']} were there already, {counts['lapsed']} have lapsed."
    if header.queue != queue:
        yield f"The snapshot was taken of queue {header.queue}."
    if not result.content.still:
        yield "The snapshot was taken while jobs moved: it is not of one instant."
    if result.answer != "clean" and header.digest != result.digest:
        yield f"The queue's own contract {result.digest} stays in force, not the snapshot's {header.digest}."
    unsafe = result.content.counts.of(_PENDING, header.unsafe_of(result.content.counts.classes))
    if unsafe and not wish.suspect_unsafe:
        yield (
            f"{unsafe} pending jobs in it are unsafe to repeat: if they ran after the snapshot, they will run again "
            "(--suspect-unsafe brings them back unknown)."
        )
    if wish.dry_run:
        yield "Nothing was written."
        return
    yield (
        "The gate is in drain, closed and pinned (restored): look at `sluicegate queue unknown`, then "
        "`sluicegate automation run drain-and-recover` or `sluicegate gate open`, --as NAME --reason WHY."
    )


def refused_said(queue: str, result: Restored) -> Said:
    """Say why nothing was restored, and what to do."""
    hints: dict[str, tuple[str, str]] = {
        "other": (
            f"Another restore into queue {queue} is not complete: {result.why[:16]}.",
            "Complete it with its own file, or give it up with --take-over.",
        ),
        "other_wish": (
            f"This restore into queue {queue} was begun {result.why} --suspect-unsafe.",
            "Give the same command again. With --take-over it goes on as asked now, and what is back stays as it is.",
        ),
        "not_empty": (
            f"Queue {queue} is not open, and yet the key {result.why} is there: a part of it was lost.",
            f"Restore onto an empty server, or first `{QUEUE_APPLY}`, then `sluicegate gate drain {BY_NAME}`.",
        ),
        "unreadable": (
            f"The gate of queue {queue} can't be read.",
            "`sluicegate gate drain --as NAME --reason WHY` makes it whole, closed and pinned.",
        ),
        "other_queue": (
            f"The snapshot is of queue {result.header.queue}, and queue {queue} lives: their jobs are not to be mixed.",
            f"Name the queue that it is of: `--queue {result.header.queue}`.",
        ),
        "run_live": (
            f"Run {result.why} is live in queue {queue}.",
            "`sluicegate automation abort --as NAME --reason WHY` ends it.",
        ),
        "undeclared": (
            f"The snapshot holds jobs of `{result.why}`, which the contract of queue {queue} does not declare.",
            f"Declare it, then `{QUEUE_APPLY}`: else nobody knows its limits, nor what a repeat of its jobs does.",
        ),
        "too_old": (
            f"Which jobs of {_instant(result.header.at_ms)} ran since can't be told: queue {queue} has forgotten them.",
            "The gate stays closed until this restore is given up: take a snapshot of the queue as it is under another "
            "name, and restore that with --take-over."
            if result.why
            else "Restore it onto an empty server and look.",
        ),
        "interrupted": (
            f"The restore into queue {queue} was taken over by another, or its gate was lost.",
            "`sluicegate gate show` says more; the same restore may be given again.",
        ),
    }
    sentence, hint = hints.get(result.answer, (f"Queue {queue} answered {result.answer}.", ""))
    return Said(False, f"{sentence} Nothing more was restored.", hint)


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
