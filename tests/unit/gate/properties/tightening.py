"""What must tighten the gate, and when."""

from __future__ import annotations

from sluicegate.gate import DrainState, RollbackReason
from sluicegate.gate_events import Apply, Overdue
from sluicegate.policy import Action
from tests.unit.gate.properties.registry import Rules
from tests.unit.gate.view import Seen

keeps = Rules()


@keeps.rule(Apply, Overdue)
def a_breach_after_green_rolls_the_run_back(seen: Seen) -> bool:
    """From green to the ramp's end the controller itself makes the rollback move on a breach or a limit overdue;
    during the ramp a breach of the reject threshold is one too."""
    base = seen.base.state
    if not (seen.base.readable and seen.base.live and (base.green or base.ramp)):
        return True
    event = seen.event
    breach = isinstance(event, Overdue) or (isinstance(event, Apply) and event.action is Action.DRAIN)
    ramp_breach = base.ramp and isinstance(event, Apply) and event.action is Action.REJECT_NEW
    if not (breach or ramp_breach):
        return True
    after = seen.after.state
    return after.rolling_back and after.rollback_reason is RollbackReason.QUEUE_AGE_NOT_RECOVERING


@keeps.rule(Apply)
def a_drain_decision_drains(seen: Seen) -> bool:
    """A tightening move never fails on a comparison: drain closes every gate but a recovery before green."""
    event, base = seen.event, seen.base
    if not (isinstance(event, Apply) and event.action is Action.DRAIN and base.readable):
        return True
    waits = base.live and base.state.drain_state is DrainState.RECOVERING and not base.state.green
    return waits or seen.after.reading is DrainState.DRAIN


@keeps.rule(Overdue)
def canaries_overdue_roll_the_run_back(seen: Seen) -> bool:
    """A canary limit 10 s overdue counts as a breach: a dead executor can't leave the recovery hanging."""
    base = seen.base.state
    waits = seen.base.readable and seen.base.live and base.drain_state is DrainState.RECOVERING and not base.green
    if not (waits and isinstance(seen.event, Overdue)):
        return True
    return seen.after.state.rolling_back and seen.after.state.rollback_reason is RollbackReason.CANARY_FAILED


@keeps.rule(Apply)
def a_recovery_without_its_run_is_closed(seen: Seen) -> bool:
    """In recovering, or in a ramp, without a live run: drain, pinned, at the controller's next look."""
    base = seen.base.state
    orphan = seen.base.readable and not seen.base.live and (base.ramp or base.drain_state is DrainState.RECOVERING)
    looks = isinstance(seen.event, Apply) and (seen.event.action is not Action.ROLL_BACK or base.duplicates)
    if not (orphan and looks):
        return True
    return seen.after.reading is DrainState.DRAIN and seen.after.pin is not None


@keeps.rule(Apply)
def a_second_drain_soon_after_a_reopening_pins(seen: Seen) -> bool:
    """A second drain within 60 min of a reopening pins."""
    drained = (
        isinstance(seen.event, Apply)
        and seen.base.readable
        and seen.base.state.drain_state is not DrainState.DRAIN
        and seen.after.state.drain_state is DrainState.DRAIN
    )
    return not (drained and seen.base.state.reopened) or seen.after.pin is not None
