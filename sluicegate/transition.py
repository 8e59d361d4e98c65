"""Say which gate move may follow which: one pure function over (state, event) (contract §6, §7).

Every pair is defined. The functions in `functions/` do the same inside Redis; `tests/contract/test_gate_rows.py` runs
both through the same rows, and `tests/unit/gate/test_exploration.py` explores this one exhaustively.

Tighten freely, loosen with proof: what loosens is the hysteresis, a step of the lock-holding run, `queue init` or a
named person, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluicegate.gate import DrainState, GateState, PinReason, RawEdit, RollbackReason, Runbook, Stored, raw_reading
from sluicegate.gate_events import (
    Answer,
    Apply,
    Beside,
    Event,
    HandEdit,
    Happening,
    OpenRun,
    Order,
    Overdue,
    Person,
    Step,
    StepMove,
    Trigger,
)
from sluicegate.policy import Action


@dataclass(frozen=True, slots=True)
class Transition:
    """Pair the state after the event with what became of the event."""

    state: GateState
    answer: Answer


def transition(state: GateState, event: Event) -> Transition:
    """Give the state after the event; every (state, event) pair is defined."""
    if isinstance(event, HandEdit):
        return Transition(_hand_edited(state, event.raw), Answer.MOVED)
    if isinstance(event, Happening):
        return _happened(state, event)
    if isinstance(event, Person):
        return _ordered(_adopted(state), event)
    if state.stored is not Stored.OK or state.behind:
        return _unreadable(state, event)
    adopted = _adopted(state)
    if isinstance(event, Apply):
        # Adoption is a move: it makes the decision's epoch an old one.
        return _applied(adopted, event if adopted == state else replace(event, stale=True))
    if isinstance(event, Overdue):
        return _overdue(adopted)
    if isinstance(event, OpenRun):
        return _opened(adopted, event)
    if isinstance(event, Beside):
        return _rejected_beside(adopted, event)
    # A rollback revokes the run's fence, the one that the step came with.
    revoked = state.recovery_live and not adopted.recovery_live
    return _stepped(adopted, replace(event, fenced=False) if revoked else event)


def _hand_edited(state: GateState, raw: RawEdit) -> GateState:
    if state.stored is not Stored.OK:
        return state
    # Setting a value that already stands does nothing.
    stands = {state.drain_state.value, "open" if state.drain_state is DrainState.ADMIT else "closed"}
    edit = RawEdit.NONE if raw.value in stands else raw
    return replace(state, raw_admission=edit) if raw.on_admission else replace(state, raw=edit)


def _adopted(state: GateState) -> GateState:
    """Adopt a tightening hand edit as actor `hand`, pinned; write back any other."""
    edited = state.raw is not RawEdit.NONE or state.raw_admission is not RawEdit.NONE
    if state.stored is not Stored.OK or state.behind or not edited:
        return state
    # Nobody can put a gate into recovering by hand; what was written beside it still counts.
    raw = RawEdit.NONE if state.raw is RawEdit.RECOVERING else state.raw
    reading = raw_reading(state.drain_state, raw, state.raw_admission)
    clean = replace(state, raw=RawEdit.NONE, raw_admission=RawEdit.NONE)
    if reading.tightness <= state.drain_state.tightness:
        return clean
    if state.recovery_live:
        return _rolled_back(clean, RollbackReason.MANUAL_OPERATOR_HOLD)
    return replace(clean, drain_state=reading, pin=PinReason.HAND_EDIT, green=False, ramp=False)


def _rolled_back(state: GateState, reason: RollbackReason) -> GateState:
    """Make the run's rollback move: drain/closed first, pinned, ramp ended; the hooks follow."""
    return replace(
        state,
        drain_state=DrainState.DRAIN,
        rollback_reason=reason,
        pin=PinReason.ROLLED_BACK,
        green=False,
        ramp=False,
        rolling_back=True,
    )


def _unreadable(state: GateState, event: Event) -> Transition:
    """Answer closed. The controller ends live runs, and closes what has fallen behind."""
    if isinstance(event, Apply):
        if state.behind and state.stored is Stored.OK:
            return Transition(_closed(replace(state, behind=False), PinReason.CONTROL_DATA_LOST), Answer.MOVED)
        return Transition(replace(state, run=None, rolling_back=False), Answer.UNREADABLE)
    return Transition(state, Answer.UNREADABLE)


def _closed(state: GateState, pin: PinReason | None) -> GateState:
    """Close to drain with no run and no recovery left over."""
    return replace(
        state,
        stored=Stored.OK,
        drain_state=DrainState.DRAIN,
        pin=pin,
        green=False,
        ramp=False,
        run=None,
        rolling_back=False,
        raw=RawEdit.NONE,
        raw_admission=RawEdit.NONE,
    )


def _applied(state: GateState, event: Apply) -> Transition:
    moved = _apply_move(state, event)
    return Transition(moved, Answer.MOVED if moved != state else Answer.UNCHANGED)


def _apply_move(state: GateState, event: Apply) -> GateState:
    if event.action is Action.ROLL_BACK:
        return _duplicates_rolled_back(state) if state.duplicates else state
    if not state.recovery_live and (state.drain_state is DrainState.RECOVERING or state.ramp):
        return _closed(state, PinReason.RUN_LOST)
    if event.action is Action.DRAIN:
        return _drained(state)
    if event.action is Action.REJECT_NEW and state.drain_state is DrainState.ADMIT:
        if state.ramp:
            return _rolled_back(state, RollbackReason.QUEUE_AGE_NOT_RECOVERING)
        return replace(state, drain_state=DrainState.REJECT_NEW)
    if event.action is Action.ADMIT and event.held and not event.stale and _may_loosen(state):
        return replace(state, drain_state=DrainState.ADMIT)
    return state


def _may_loosen(state: GateState) -> bool:
    return (
        state.drain_state is DrainState.REJECT_NEW
        and state.run is None
        and state.pin is None
        and state.rollback_reason is None
        and not state.duplicates  # confirmed after the figures were read: it leaves the epoch as it was
    )


def _drained(state: GateState) -> GateState:
    if state.drain_state is DrainState.DRAIN:
        return state
    if state.recovery_live:
        if state.drain_state is DrainState.RECOVERING and not state.green:
            return state  # canaries alone decide before green: the incident's errors must not end the recovery
        return _rolled_back(state, RollbackReason.QUEUE_AGE_NOT_RECOVERING)
    pin = state.pin or (PinReason.REPEATED_DRAIN if state.reopened else None)
    return replace(state, drain_state=DrainState.DRAIN, pin=pin)


def _duplicates_rolled_back(state: GateState) -> GateState:
    """Close, pin and put rollback-and-audit in the live run's place; nothing twice for the same duplicates."""
    opens_audit = state.run is not Runbook.ROLLBACK_AND_AUDIT and not state.audited
    supersedes = state.run is Runbook.DRAIN_AND_RECOVER
    run = Runbook.ROLLBACK_AND_AUDIT if opens_audit or supersedes else state.run
    return replace(
        state,
        drain_state=DrainState.DRAIN,
        rollback_reason=RollbackReason.DUPLICATE_SIDE_EFFECT,
        pin=PinReason.ROLLED_BACK,
        green=False,
        ramp=False,
        run=run,
        rolling_back=False,
        audited=True,
    )


def _overdue(state: GateState) -> Transition:
    if not state.recovery_live:
        return Transition(state, Answer.UNCHANGED)
    if state.drain_state is DrainState.RECOVERING and not state.green:
        return Transition(_rolled_back(state, RollbackReason.CANARY_FAILED), Answer.MOVED)
    if state.drain_state is DrainState.RECOVERING or state.ramp:
        return Transition(_rolled_back(state, RollbackReason.QUEUE_AGE_NOT_RECOVERING), Answer.MOVED)
    return Transition(state, Answer.UNCHANGED)


def _opened(state: GateState, event: OpenRun) -> Transition:
    if event.runbook is Runbook.ROLLBACK_AND_AUDIT:
        return _audit_opened(state)
    if event.trigger is not Trigger.PERSON:
        return _opened_by_machine(state, event)
    if state.run is not None:
        return Transition(state, Answer.RUN_LIVE)
    return Transition(state, Answer.DUPLICATES) if state.duplicates else Transition(_frozen(state), Answer.MOVED)


def _opened_by_machine(state: GateState, event: OpenRun) -> Transition:
    if state.pin is not None:
        return Transition(state, Answer.SUPPRESSED)
    if state.run is not None:
        return Transition(state, Answer.ATTACHED)
    drained = state.drain_state is DrainState.DRAIN
    if state.reopened and not drained:
        # The last reopening did not hold: the controller drains and pins, and no machine runs into that again.
        return Transition(state, Answer.SUPPRESSED)
    if not (event.confirmed or drained):
        return Transition(state, Answer.WAITING)
    if state.duplicates:
        return Transition(state, Answer.DUPLICATES)
    if not event.allowed:
        return Transition(replace(state, pin=PinReason.RUN_REFUSED) if drained else state, Answer.REFUSED)
    return Transition(_frozen(state), Answer.MOVED)


def _audit_opened(state: GateState) -> Transition:
    if not state.duplicates:
        return Transition(state, Answer.REFUSED)
    moved = _duplicates_rolled_back(state)
    if moved != state:
        return Transition(moved, Answer.MOVED)
    # Once audited, the same duplicates open no second run: there may be none to attach to.
    return Transition(state, Answer.ATTACHED if state.run is not None else Answer.UNCHANGED)


def _frozen(state: GateState) -> GateState:
    """Open the run: its first move is the freeze; the pin goes, the rollback reason stays until the ramp's end."""
    return replace(
        state,
        drain_state=DrainState.DRAIN,
        pin=None,
        green=False,
        ramp=False,
        run=Runbook.DRAIN_AND_RECOVER,
        rolling_back=False,
    )


def _stepped(state: GateState, event: Step) -> Transition:
    if not event.fenced or state.run is None:
        return Transition(state, Answer.STALE)
    if event.move is StepMove.END:
        if state.recovery_live:
            return Transition(state, Answer.REFUSED)
        return Transition(replace(state, run=None, rolling_back=False), Answer.MOVED)
    if not state.recovery_live:
        return Transition(state, Answer.REFUSED)
    moved = _step_move(state, event)
    return Transition(moved or state, Answer.MOVED if moved else Answer.REFUSED)


def _step_move(state: GateState, event: Step) -> GateState | None:
    recovering = state.drain_state is DrainState.RECOVERING
    match event.move:
        case StepMove.RECOVER if state.drain_state is DrainState.DRAIN:
            return replace(state, drain_state=DrainState.RECOVERING, green=False)
        case StepMove.GREEN if recovering and not state.green and event.proven:
            return replace(state, green=True)
        case StepMove.REOPEN if recovering and state.green and event.proven and not state.duplicates:
            return replace(state, drain_state=DrainState.ADMIT, green=False, ramp=True, reopened=True)
        case StepMove.RAMP_END if state.ramp and event.proven and not state.duplicates:
            return replace(state, ramp=False, rollback_reason=None, run=None)
        case StepMove.ROLLBACK:
            return _rolled_back(state, event.reason)
        case _:
            return None


def _rejected_beside(state: GateState, event: Beside) -> Transition:
    """Let a run without the lock close admission: a tighter gate stands, and in a ramp the live run's gate decides."""
    if not event.fenced:
        return Transition(state, Answer.STALE)
    if state.drain_state is not DrainState.ADMIT:
        return Transition(state, Answer.UNCHANGED)
    if state.ramp:
        return Transition(state, Answer.REFUSED)
    return Transition(replace(state, drain_state=DrainState.REJECT_NEW), Answer.MOVED)


def _ordered(state: GateState, event: Person) -> Transition:
    """Carry out a named person's order; what it refuses it says, and leaves the gate as it was."""
    if state.stored is Stored.UNINITIALISED:
        return Transition(state, Answer.UNREADABLE)
    match event.order:
        case Order.OPEN if state.run is not None:
            return Transition(state, Answer.RUN_LIVE)
        case Order.OPEN | Order.OPEN_END_RUN:
            return Transition(_opened_by_name(state), Answer.MOVED)
        case Order.DRAIN | Order.REJECT | Order.HOLD:
            return _closed_by_name(state, event)
        case _ if state.stored is not Stored.OK or state.behind:
            return Transition(state, Answer.UNREADABLE)
        case Order.ACKNOWLEDGE:
            acknowledged = replace(state, duplicates=False, audited=False)
            return Transition(acknowledged, Answer.MOVED if state.duplicates else Answer.UNCHANGED)
        case Order.ABORT:
            return _aborted(state)
        case Order.RELEASE:
            return _released(state)


def _opened_by_name(state: GateState) -> GateState:
    closed = _closed(replace(state, behind=False), None)
    return replace(
        closed,
        drain_state=DrainState.ADMIT,
        rollback_reason=None,
        duplicates=False,
        audited=False,
        reopened=True,
    )


def _aborted(state: GateState) -> Transition:
    if state.recovery_live:
        return Transition(_rolled_back(state, RollbackReason.MANUAL_OPERATOR_HOLD), Answer.MOVED)
    if state.run is Runbook.ROLLBACK_AND_AUDIT:
        return Transition(replace(state, run=None), Answer.MOVED)
    return Transition(state, Answer.UNCHANGED)


def _released(state: GateState) -> Transition:
    if state.run is not None:
        return Transition(state, Answer.RUN_LIVE)
    if state.duplicates:
        return Transition(state, Answer.DUPLICATES)
    if state.pin is None:
        return Transition(state, Answer.UNCHANGED)
    drained = state.drain_state is DrainState.DRAIN
    reason = state.rollback_reason if drained else None
    return Transition(replace(state, pin=None, rollback_reason=reason), Answer.MOVED)


def _closed_by_name(state: GateState, event: Person) -> Transition:
    """Carry out drain, reject or hold: they pin, and roll a live run back."""
    if state.stored is not Stored.OK or state.behind:
        return Transition(_closed(replace(state, behind=False), PinReason.OPERATOR), Answer.MOVED)
    if state.recovery_live:
        return Transition(_rolled_back(state, RollbackReason.MANUAL_OPERATOR_HOLD), Answer.MOVED)
    if state.run is not None:
        return Transition(state, Answer.RUN_LIVE if event.order is Order.REJECT else Answer.UNCHANGED)
    if state.duplicates and event.order is Order.REJECT and state.drain_state is DrainState.DRAIN:
        return Transition(state, Answer.DUPLICATES)
    pinned = event.pin or event.order is Order.HOLD or state.duplicates
    pin = PinReason.OPERATOR if pinned else None
    if event.order is Order.HOLD:
        held = _closed(state, pin) if state.drain_state is DrainState.RECOVERING else replace(state, pin=pin)
        return Transition(held, Answer.MOVED)
    if event.order is Order.DRAIN:
        return Transition(_closed(state, pin), Answer.MOVED)
    rejecting = replace(_closed(state, pin), drain_state=DrainState.REJECT_NEW, rollback_reason=None)
    return Transition(rejecting, Answer.MOVED)


def _happened(state: GateState, event: Happening) -> Transition:
    match event:
        case Happening.INIT:
            if state.stored is not Stored.UNINITIALISED:
                return Transition(state, Answer.NOT_EMPTY)
            return Transition(GateState(stored=Stored.OK, drain_state=DrainState.ADMIT), Answer.MOVED)
        case Happening.LOSE_ALL:
            return Transition(GateState(), Answer.MOVED)
        case Happening.GARBAGE:
            damaged = Stored.UNREADABLE if state.stored is Stored.OK else state.stored
            return Transition(
                replace(state, stored=damaged, raw=RawEdit.NONE, raw_admission=RawEdit.NONE), Answer.MOVED
            )
        case Happening.LOSE_RUN:
            return Transition(replace(state, run=None, rolling_back=False), Answer.MOVED)
        case Happening.FALL_BEHIND:
            return Transition(_fallen_behind(state), Answer.MOVED)
        case Happening.DUPLICATE:
            known = state.stored is not Stored.UNINITIALISED  # a damaged gate forgets no duplicate
            return Transition(replace(state, duplicates=True, audited=False) if known else state, Answer.MOVED)
        case Happening.HOUR_PASSED:
            return Transition(replace(state, reopened=False), Answer.MOVED)


def _fallen_behind(state: GateState) -> GateState:
    """Lose the tail of the data: the worst case is a gate that stood open, without pin or run."""
    if state.stored is not Stored.OK:
        return state
    return replace(
        _closed(state, None),
        drain_state=DrainState.ADMIT,
        rollback_reason=None,
        duplicates=False,
        audited=False,
        behind=True,
    )
