"""Say in words how the gate stands, what would unblock it, and what became of an order. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sluicegate import remedies
from sluicegate.gate import Admission, DrainState, PinReason
from sluicegate.gate_events import Answer, Order
from sluicegate.replies import GateAnswer, GateLogEntry
from sluicegate.run_journal import waits_of
from sluicegate.run_replies import RunHistory
from sluicegate.run_sentences import run_unblocks
from sluicegate.telemetry import GateView, Telemetry

_OPEN = f"`{remedies.GATE_OPEN}`"
_INIT = f"`{remedies.QUEUE_INIT}`"
_RELEASE = f"`{remedies.GATE_RELEASE}`"
_RUN = f"`{remedies.RUN}`"
_ACKNOWLEDGE = f"`{remedies.GATE_ACKNOWLEDGE}`"

_MEANS = {
    DrainState.ADMIT: "jobs are admitted and pulled",
    DrainState.REJECT_NEW: "no job is admitted, workers go on",
    DrainState.RECOVERING: "no job is admitted; canaries are pulled, the backlog after green",
    DrainState.DRAIN: "no job is admitted or pulled",
}
# The queue's own bound is not among what was read: after its default nobody is looking, or the next look is due.
_LONG_S = 15.0
_SILENT = "but its controller is silent, so no job is admitted; workers go on"

_PIN_UNBLOCKS = {
    PinReason.UNINITIALISED: f"There is no queue here yet: {_INIT} opens it.",
    PinReason.CONTROL_DATA_LOST: (
        f"Control data is missing, damaged or older than what was seen: look at `sluicegate queue stats`, then {_OPEN}."
    ),
    PinReason.OPERATOR: f"A person pinned it: {_RELEASE} lets the controller go on, {_OPEN} opens it.",
    PinReason.HAND_EDIT: f"A raw key was edited: {_RELEASE} lets the controller go on, {_OPEN} opens it.",
    PinReason.ROLLED_BACK: (f"A run rolled back: read `sluicegate gate log`, mend the cause, then {_RUN}, or {_OPEN}."),
    PinReason.REPEATED_DRAIN: (f"The last reopening did not hold: mend the cause, then {_RUN}, {_RELEASE} or {_OPEN}."),
    PinReason.RUN_LOST: f"The run that held the gate is gone: {_RUN} starts a new one, or {_OPEN}.",
    PinReason.RUN_REFUSED: f"A run was refused: {_RELEASE} asks again, {_RUN} is bound by no limit.",
    PinReason.RESTORED: f"The data came from a snapshot: check it, then {_RUN}, or {_OPEN}.",
}


_REBUILD = (
    f"A queue lived here, and its contract and gate are lost: `{remedies.REBUILD[0]}` writes the contract anew, then "
    f"`{remedies.REBUILD[1]}` opens the gate."
)


@dataclass(frozen=True, slots=True)
class Said:
    """Hold what a command says: whether it did what was asked, a sentence, and the command that unblocks it."""

    done: bool
    sentence: str
    hint: str = ""


def gate_lines(telemetry: Telemetry, history: RunHistory | None = None) -> Iterator[str]:
    """Say how the gate stands: state, why, pin, run, last decision, then what would unblock it.

    `history` is the live run's, which tells what it waits for.
    """
    gate = telemetry.gate
    state = DrainState(gate.drain_state)
    yield f"The gate of queue {telemetry.queue} is {state}: {_SILENT if silent(gate) else _MEANS[state]}."
    if gate.readable and edited_by_hand(gate):
        yield (
            f"Set by hand: drain_state {gate.raw_drain_state}, admission {gate.raw_admission}. The controller's next "
            "tick adopts what tightens, pinned, and writes back what loosens."
        )
    elif gate.readable:
        ago_s = max(0, telemetry.at_ms - gate.since_ms) / 1000
        yield f"So since {_utc(gate.since_ms)} ({ago_s:.0f} s), by {gate.actor} ({gate.reason}); epoch {gate.epoch}."
    percent = round(gate.admission_ratio * 100)
    ramp = f", in a ramp at {gate.ramp_percent} %" if gate.ramp_percent is not None else ""
    yield f"Admitted now: {percent} % of new jobs{ramp}."
    if gate.pin is not None:
        yield f"Pinned: {gate.pin}{f' ({gate.pin_note})' if gate.pin_note else ''}."
    if gate.rollback_reason is not None:
        yield f"Rolled back: {gate.rollback_reason}."
    if gate.run is not None:
        yield f"Run {gate.run.run_id} ({gate.run.runbook}) is {gate.run.state}, at step {gate.run.step or 'none yet'}."
    if (waits := waits_of(history)) is not None:
        ago_s = max(0, telemetry.at_ms - waits.since_ms) / 1000
        yield f"It waits for a person since {_utc(waits.since_ms)} ({ago_s:.0f} s), at step {waits.step}: {waits.why}."
    if state is DrainState.RECOVERING:
        green = "green" if gate.green else "not green yet"
        yield f"Canaries: {gate.canary_ok_count} of {gate.canaries_required} in a row, {green}."
    if gate.decision:
        yield f"The controller's last decision: {gate.decision} ({gate.decision_reason})."
    yield from unblocks(telemetry, history)


def lost_its_keys(telemetry: Telemetry) -> bool:
    """Say whether a queue lived here of which contract and gate are gone: what it counted is left."""
    return not telemetry.gate.initialised and bool(telemetry.counters)


def opening(telemetry: Telemetry) -> str:
    """Give the command, or the two, that open a queue whose gate was never opened or is lost."""
    if telemetry.gate.initialised or lost_its_keys(telemetry):
        return ", then ".join(remedies.REBUILD)
    return remedies.QUEUE_INIT


def silent(gate: GateView) -> bool:
    """Say whether an open gate admits nothing: no controller has looked for too long (contract §6)."""
    return gate.readable and gate.drain_state == DrainState.ADMIT and gate.admission_ratio == 0


def edited_by_hand(gate: GateView) -> bool:
    """Say whether the two raw keys contradict each other, which no move of the library leaves behind."""
    return (gate.raw_drain_state == DrainState.ADMIT) != (gate.raw_admission == Admission.OPEN)


def unblocks(telemetry: Telemetry, history: RunHistory | None = None) -> Iterator[str]:
    """Say what would let jobs in again; nothing where they are admitted in full."""
    gate = telemetry.gate
    if gate.readable and gate.drain_state == DrainState.ADMIT and gate.admission_ratio == 1:
        return
    if gate.duplicates_unacknowledged:
        yield (
            f"Confirmed duplicates: {gate.duplicates_unacknowledged} that nobody has acknowledged. Audit their keys, "
            f"then {_ACKNOWLEDGE}; `gate open` acknowledges them, too."
        )
    if gate.initialised and not telemetry.settings_digest:
        yield f"The stored contract is lost: `{remedies.QUEUE_APPLY}` writes it anew; then the gate can be opened."
    yield from _silence(telemetry)
    if gate.run is not None:
        yield from run_unblocks(gate.run, waits_of(history))
    elif gate.pin is not None:
        if lost_its_keys(telemetry):
            yield _REBUILD
            return
        yield _PIN_UNBLOCKS.get(_pin(gate.pin), f"It is pinned: {_OPEN}.")
    else:
        yield from _unpinned(gate)


def _silence(telemetry: Telemetry) -> Iterator[str]:
    """Say where nobody is there to go on: the service that holds the controller makes the steps of runs as well."""
    gate = telemetry.gate
    if silent(gate):
        yield "The controller is silent: `sluicegate automation serve` starts it."
    elif gate.initialised and (telemetry.at_ms - gate.controller_seen_ms) / 1000 > _LONG_S:
        since = f"since {_utc(gate.controller_seen_ms)}" if gate.controller_seen_ms else "here yet"
        yield f"No controller has looked {since}; where none runs, `sluicegate automation serve` starts it."


def _pin(text: str) -> PinReason:
    return PinReason(text) if text in set(PinReason) else PinReason.CONTROL_DATA_LOST


def _unpinned(gate: GateView) -> Iterator[str]:
    match DrainState(gate.drain_state):
        case DrainState.REJECT_NEW:
            yield f"It opens by itself once queue age and slack are well inside their bounds for a while; or {_OPEN}."
        case DrainState.DRAIN:
            yield f"The next alert, or the controller by itself, opens a run; or {_RUN}, or {_OPEN}."
        case DrainState.RECOVERING:
            yield f"Its run is gone: the controller closes it at the next tick; then {_OPEN}."
        case DrainState.ADMIT:
            return


def order_said(order: Order, answer: GateAnswer, telemetry: Telemetry) -> Said:
    """Say what became of a named person's order; `telemetry` was read after it."""
    queue = telemetry.queue
    match Answer(answer.answer):
        case Answer.MOVED:
            return Said(True, _moved(order, answer, queue))
        case Answer.UNCHANGED:
            return Said(True, _unchanged(order, answer, queue))
        case Answer.RUN_LIVE:
            return _run_live(order, answer)
        case Answer.DUPLICATES:
            return Said(False, "Confirmed duplicates are not acknowledged.", f"Audit their keys, then {_ACKNOWLEDGE}.")
        case Answer.STALE:
            sentence = f"The gate of queue {queue} has changed since you looked; nothing was changed."
            return Said(False, sentence, "`sluicegate gate show` says what it is now.")
        case Answer.RESTORING:
            sentence = f"A restore into queue {queue} is not complete, so its gate can't be {_DONE[order]}."
            return Said(False, sentence, "`sluicegate queue restore FILE` with the same file completes it.")
        case Answer.UNREADABLE:
            sentence = f"The gate of queue {queue} can't be read, so it stays closed and takes no such order."
            return Said(False, sentence, "\n".join(unblocks(telemetry)))
        case other:
            return Said(False, f"The gate of queue {queue} answered {other}.", "`sluicegate gate show` says more.")


def _moved(order: Order, answer: GateAnswer, queue: str) -> str:
    known = f" {answer.acknowledged} confirmed duplicates are acknowledged." if answer.acknowledged else ""
    if order is Order.ACKNOWLEDGE:
        return known.strip()
    if order is Order.RELEASE:
        return f"The gate of queue {queue} is pinned no more and stays {answer.drain_state}."
    ended = f" Run {answer.run} was live: it is ended or rolls back." if answer.run else ""
    pinned = f", pinned ({answer.pin})" if answer.pin else ""
    return f"The gate of queue {queue} is {answer.drain_state} now{pinned}.{ended}{known}"


def _unchanged(order: Order, answer: GateAnswer, queue: str) -> str:
    if order is Order.ACKNOWLEDGE:
        return "There is no confirmed duplicate to acknowledge; nothing was changed."
    if order is Order.RELEASE:
        return f"The gate of queue {queue} is not pinned; nothing was changed."
    if answer.run:
        return f"Run {answer.run} holds the gate of queue {queue} closed already; nothing was changed."
    return f"The gate of queue {queue} stays {answer.drain_state}; nothing was changed."


def _run_live(order: Order, answer: GateAnswer) -> Said:
    hint = (
        f"`sluicegate gate show` says what it waits for, `{remedies.abort(answer.run)}` ends it closed; "
        f"last, `{remedies.GATE_OPEN_END_RUN}` ends it and opens."
    )
    return Said(False, f"Run {answer.run} is live, so the gate can't be {_DONE[order]}.", hint)


_DONE = {
    Order.OPEN: "opened",
    Order.OPEN_END_RUN: "opened",
    Order.DRAIN: "drained",
    Order.REJECT: "put to reject_new",
    Order.HOLD: "held",
    Order.RELEASE: "released",
    Order.ABORT: "aborted",
    Order.ACKNOWLEDGE: "acknowledged",
}


def log_line(entry: GateLogEntry) -> str:
    """Give one gate move as a line: time, from → to, reason, actor, pin and note."""
    pin = f" pin={entry.pin}" if entry.pin else ""
    note = f" ({entry.note})" if entry.note else ""
    return f"{_utc(entry.at_ms)} {entry.from_state} → {entry.to_state} {entry.reason} by {entry.actor}{pin}{note}"


def gate_body(telemetry: Telemetry, history: RunHistory | None = None) -> dict[str, Any]:
    """Give the fields of `gate show --json`."""
    gate = telemetry.gate
    run = gate.run
    waits = waits_of(history)
    return {
        "queue": telemetry.queue,
        "drain_state": gate.drain_state,
        "readable": gate.readable,
        "initialised": gate.initialised,
        "epoch": gate.epoch,
        "reason": gate.reason,
        "actor": gate.actor,
        "since_ms": gate.since_ms,
        "pin": gate.pin,
        "pin_note": gate.pin_note,
        "rollback_reason": gate.rollback_reason,
        "green": gate.green,
        "canary_ok_count": gate.canary_ok_count,
        "canaries_required": gate.canaries_required,
        "admission_ratio": gate.admission_ratio,
        "ramp_percent": gate.ramp_percent,
        "run": {"id": run.run_id, "runbook": run.runbook, "step": run.step, "state": run.state} if run else None,
        "decision": gate.decision,
        "decision_reason": gate.decision_reason,
        "duplicates_unacknowledged": gate.duplicates_unacknowledged,
        "waits": asdict(waits) if waits is not None else None,
        "unblocks": list(unblocks(telemetry, history)),
    }


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
