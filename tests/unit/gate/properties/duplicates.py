"""What confirmed duplicate side effects do to the gate."""

from __future__ import annotations

from sluicegate.gate import RollbackReason, Runbook, Stored
from sluicegate.gate_events import Answer, Apply, HandEdit, Happening, Order, StepMove
from sluicegate.policy import Action
from tests.unit.gate.properties.registry import Rules, closed_with_reason, is_order, is_step
from tests.unit.gate.view import Seen

keeps = Rules()


@keeps.rule(Apply)
def resolved_duplicates_roll_nothing_back(seen: Seen) -> bool:
    """Once a named person has acknowledged them, duplicates roll nothing back."""
    asked = isinstance(seen.event, Apply) and seen.event.action is Action.ROLL_BACK
    return not asked or not seen.base.readable or seen.base.state.duplicates or seen.untouched


@keeps.rule(Apply)
def duplicates_close_the_gate_from_anywhere(seen: Seen) -> bool:
    """In any state roll_back is one move to drain/closed, pinned, duplicate_side_effect, no recovery left alive."""
    asked = isinstance(seen.event, Apply) and seen.event.action is Action.ROLL_BACK
    if not asked or not seen.base.readable or not seen.base.state.duplicates:
        return True
    reason = seen.after.state.rollback_reason
    named = reason is RollbackReason.DUPLICATE_SIDE_EFFECT
    return named and closed_with_reason(seen.after) and not seen.after.live and seen.after.state.audited


@keeps.rule()
def the_same_duplicates_open_one_audit(seen: Seen) -> bool:
    """Duplicates that had their audit open no second one, unless a live run must be superseded."""
    base, after = seen.base.state, seen.after.state
    opened = after.run is Runbook.ROLLBACK_AND_AUDIT and base.run is not Runbook.ROLLBACK_AND_AUDIT
    return not opened or not base.audited or base.run is Runbook.DRAIN_AND_RECOVER


@keeps.rule()
def nothing_reopens_over_duplicates(seen: Seen) -> bool:
    """No reopening, no end of a ramp and no hysteresis while a confirmed duplicate is not acknowledged; an `open` by a
    named person acknowledges what is known by then."""
    if not seen.base.state.duplicates or isinstance(seen.event, HandEdit):
        return True
    loosened = seen.after.tightness < seen.base.tightness
    if is_order(seen, Order.OPEN, Order.OPEN_END_RUN) and seen.answer is Answer.MOVED:
        return not seen.after.state.duplicates
    opened = seen.after.admits and loosened
    ended = is_step(seen, StepMove.RAMP_END) and seen.answer is Answer.MOVED
    return not (opened or ended)


@keeps.rule()
def only_a_named_person_acknowledges_duplicates(seen: Seen) -> bool:
    """A confirmed duplicate stays until a named person has acknowledged it, or the data is gone with it."""
    forgotten = seen.base.state.duplicates and not seen.after.state.duplicates
    lost = seen.event in (Happening.LOSE_ALL, Happening.FALL_BEHIND)
    return not forgotten or lost or is_order(seen, Order.OPEN, Order.OPEN_END_RUN, Order.ACKNOWLEDGE)


@keeps.rule(Happening)
def a_damaged_gate_forgets_no_duplicate(seen: Seen) -> bool:
    """A duplicate that is confirmed while the gate's records are damaged or old still waits for a named person."""
    uninitialised = seen.before.state.stored is Stored.UNINITIALISED
    return seen.event is not Happening.DUPLICATE or uninitialised or seen.after.state.duplicates
