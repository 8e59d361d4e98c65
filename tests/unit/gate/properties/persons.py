"""What a named person's orders do."""

from __future__ import annotations

from sluicegate.gate import DrainState, RollbackReason, Runbook, Stored
from sluicegate.gate_events import Answer, Order, Person
from tests.unit.gate.properties.registry import Rules, closed_with_reason, is_order, same_gate
from tests.unit.gate.view import Seen

keeps = Rules()


@keeps.rule(Person)
def a_plain_open_is_refused_while_a_run_is_live(seen: Seen) -> bool:
    """`gate open` refuses while a run is live unless `--end-run`."""
    if not is_order(seen, Order.OPEN) or seen.base.state.stored is Stored.UNINITIALISED:
        return True
    if seen.base.state.run is not None:
        return seen.answer is Answer.RUN_LIVE and seen.untouched
    return seen.after.admits and seen.after.pin is None


@keeps.rule(Person)
def a_named_close_rolls_a_live_run_back(seen: Seen) -> bool:
    """`gate drain|reject|hold` and `abort` roll a live run back: drain/closed, pinned, manual_operator_hold."""
    orders = (Order.DRAIN, Order.REJECT, Order.HOLD, Order.ABORT)
    if not (is_order(seen, *orders) and seen.base.readable and seen.base.live):
        return True
    held = seen.after.state.rollback_reason is RollbackReason.MANUAL_OPERATOR_HOLD
    return held and seen.after.state.rolling_back and closed_with_reason(seen.after)


@keeps.rule(Person)
def a_named_close_pins(seen: Seen) -> bool:
    """`gate drain|reject|hold` pins, unless `--no-pin`; hold always does, and so does any over a duplicate.

    Only a reject that would loosen a drain over an unacknowledged duplicate is refused.
    """
    event = seen.event
    if not (is_order(seen, Order.DRAIN, Order.REJECT, Order.HOLD) and isinstance(event, Person)):
        return True
    base = seen.base.state
    if event.order is Order.REJECT and seen.answer is Answer.DUPLICATES:
        return seen.untouched and base.duplicates and base.drain_state is DrainState.DRAIN
    unpinned = not event.pin and event.order is not Order.HOLD and not base.duplicates
    if base.stored is Stored.UNINITIALISED or unpinned:
        return True
    return seen.after.pin is not None


@keeps.rule(Person)
def a_named_drain_or_hold_never_loosens(seen: Seen) -> bool:
    """Drain, hold, abort, release and acknowledge leave the gate as tight as it is, or tighten it."""
    orders = (Order.DRAIN, Order.HOLD, Order.ABORT, Order.RELEASE, Order.ACKNOWLEDGE)
    return not is_order(seen, *orders) or seen.after.tightness >= seen.base.tightness


@keeps.rule(Person)
def an_abort_without_a_live_run_changes_nothing(seen: Seen) -> bool:
    """Abort, without a live run or on one that rolls back, changes nothing and says so."""
    if not is_order(seen, Order.ABORT) or not seen.base.readable or seen.base.live:
        return True
    if seen.base.state.run is Runbook.ROLLBACK_AND_AUDIT:
        return same_gate(seen.base.state, seen.after.state)
    return seen.untouched and seen.answer is Answer.UNCHANGED
