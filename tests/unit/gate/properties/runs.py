"""When runs open and end, and what a pin holds."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.gate import DrainState, PinReason, RollbackReason, Runbook
from sluicegate.gate_events import Answer, Apply, Beside, Happening, OpenRun, Order, Person, StepMove
from sluicegate.policy import Action
from tests.unit.gate.properties.registry import Rules, closed_with_reason, is_step, same_gate
from tests.unit.gate.view import Seen, View

keeps = Rules()


@keeps.rule()
def no_run_opens_while_pinned(seen: Seen) -> bool:
    """While pinned no webhook and no timer opens a run; a named person and rollback-and-audit may."""
    opened = seen.after.state.run is not None and seen.after.state.run is not seen.base.state.run
    if not opened or seen.base.pin is None:
        return True
    return seen.by_person or seen.after.state.run is Runbook.ROLLBACK_AND_AUDIT


@keeps.rule()
def only_a_named_person_leaves_a_pin(seen: Seen) -> bool:
    """Only a named person leaves a pin; `queue init` is one."""
    return seen.base.pin is None or seen.after.pin is not None or seen.by_person or seen.event is Happening.INIT


@keeps.rule()
def an_audit_opens_only_for_duplicates(seen: Seen) -> bool:
    """rollback-and-audit opens only for confirmed duplicates that nobody acknowledged, closed, pinned, with reason."""
    opened = (
        seen.after.state.run is Runbook.ROLLBACK_AND_AUDIT and seen.base.state.run is not Runbook.ROLLBACK_AND_AUDIT
    )
    if not opened:
        return True
    reason = seen.after.state.rollback_reason
    named = reason is RollbackReason.DUPLICATE_SIDE_EFFECT
    return seen.base.state.duplicates and named and closed_with_reason(seen.after)


@keeps.rule()
def a_rollback_ends_closed_pinned_with_a_listed_reason(seen: Seen) -> bool:
    """A run that rolled back leaves drain/closed and pinned, with one of the four reasons."""
    base, after = seen.base.state, seen.after.state
    begins = after.rolling_back and not base.rolling_back
    ends = base.rolling_back and is_step(seen, StepMove.END) and seen.answer is Answer.MOVED
    superseded = base.recovery_live and after.run is Runbook.ROLLBACK_AND_AUDIT
    return not (begins or ends or superseded) or closed_with_reason(seen.after)


@keeps.rule()
def while_a_rollback_is_finished_the_gate_stays_closed(seen: Seen) -> bool:
    """A run that rolls back holds drain, pin and reason until its hooks are done or a named person ends it."""
    after = seen.after.state
    hooks = after.rolling_back or after.run is Runbook.ROLLBACK_AND_AUDIT
    return not (hooks and seen.after.readable) or closed_with_reason(seen.after)


@keeps.rule()
def a_live_run_ends_only_by_its_own_end_a_rollback_or_a_loss(seen: Seen) -> bool:
    """A drain-and-recover run stops moving the gate when its ramp has ended, when it rolled back, was superseded,
    when a named person ended it, or when its data was lost."""
    if not seen.base.live or seen.after.live:
        return True
    if isinstance(seen.event, Happening) or seen.by_person:
        return True
    if isinstance(seen.event, Apply) and not seen.base.readable:
        return True
    return is_step(seen, StepMove.RAMP_END) or closed_with_reason(seen.after)


def _drain_without_run_or_pin(view: View) -> bool:
    state = view.state
    return view.readable and state.drain_state is DrainState.DRAIN and state.run is None and state.pin is None


@keeps.rule()
def a_drain_has_a_run_or_a_pin_or_was_left_open_to_one(seen: Seen) -> bool:
    """A drain without a live run is pinned, unless the controller drained an unpinned gate that had not been reopened
    within the hour, a named person drained without a pin or released it, or the run itself was lost."""
    if _drain_without_run_or_pin(seen.base) or not _drain_without_run_or_pin(seen.after):
        return True
    event, base = seen.event, seen.base.state
    if isinstance(event, Apply):
        return event.action is Action.DRAIN and base.pin is None and not base.reopened
    if isinstance(event, Person):
        return event.order is Order.RELEASE or (event.order is Order.DRAIN and not event.pin)
    return event is Happening.LOSE_RUN and base.pin is None


@keeps.rule()
def a_rollback_reason_never_survives_an_open_gate(seen: Seen) -> bool:
    """A new run keeps `rollback_reason` until its ramp has ended; an open gate without a run has none."""
    state = seen.after.state
    at_rest = seen.after.readable and state.drain_state is DrainState.ADMIT and state.run is None and not state.ramp
    return not at_rest or state.rollback_reason is None


@keeps.rule()
def a_ramp_has_its_live_run(seen: Seen) -> bool:
    """A ramp is a step of the live recovery run; only the loss of the run's data parts them."""
    parted = seen.after.readable and seen.after.state.ramp and not seen.after.live
    was_parted = seen.base.state.ramp and not seen.base.live
    return not parted or was_parted or seen.event is Happening.LOSE_RUN


@keeps.rule(OpenRun)
def a_refused_run_never_moves_the_gate(seen: Seen) -> bool:
    """A refusal never moves the gate; where it is already in an unpinned drain it pins it."""
    if not isinstance(seen.event, OpenRun) or seen.answer is Answer.MOVED:
        return True
    asked = seen.event.runbook is Runbook.DRAIN_AND_RECOVER and not seen.event.allowed
    if seen.answer is Answer.REFUSED and asked and _drain_without_run_or_pin(seen.base):
        return seen.after.pin is PinReason.RUN_REFUSED
    return same_gate(seen.base.state, seen.after.state)


@keeps.rule()
def a_new_run_begins_with_its_freeze(seen: Seen) -> bool:
    """Opening the run is its freeze: drain/closed; it clears the pin and keeps the rollback reason."""
    opened = seen.after.state.run is Runbook.DRAIN_AND_RECOVER and seen.base.state.run is not seen.after.state.run
    if not opened:
        return True
    base, after = seen.base.state, seen.after.state
    frozen = (
        after.drain_state is DrainState.DRAIN and after.pin is None and after.rollback_reason is base.rollback_reason
    )
    return frozen and isinstance(seen.event, OpenRun) and not base.duplicates


@keeps.rule(Beside)
def a_run_beside_moves_only_admit_to_reject_new(seen: Seen) -> bool:
    """A run that holds no lock may move only admit → reject_new, never in a ramp, and touches nothing else."""
    if seen.untouched:
        return True
    base = seen.base.state
    allowed = seen.base.readable and base.drain_state is DrainState.ADMIT and not base.ramp
    return allowed and seen.after.state == replace(base, drain_state=DrainState.REJECT_NEW)


@keeps.rule(Beside)
def a_run_beside_under_an_old_fence_changes_nothing(seen: Seen) -> bool:
    """What comes under an old fence is refused and changes nothing."""
    return not isinstance(seen.event, Beside) or seen.event.fenced or seen.untouched
