"""What raw edits of the two keys do, at once and after adoption."""

from __future__ import annotations

from sluicegate.gate import DrainState, RawEdit, RollbackReason
from sluicegate.gate_events import Apply, HandEdit
from sluicegate.policy import Action
from tests.unit.gate.properties.registry import Rules
from tests.unit.gate.view import Seen

keeps = Rules()


@keeps.rule(HandEdit)
def a_raw_drain_works_at_once(seen: Seen) -> bool:
    """`SET drain_state drain` with any client is effective at once, in every state."""
    return seen.event != HandEdit(RawEdit.DRAIN) or seen.after.reading is DrainState.DRAIN


@keeps.rule(HandEdit)
def a_raw_close_works_at_once(seen: Seen) -> bool:
    """`SET admission closed` stops admission at once; in admit it reads as reject_new."""
    return seen.event != HandEdit(RawEdit.CLOSED) or not seen.after.admits


@keeps.rule(HandEdit)
def a_raw_edit_never_loosens(seen: Seen) -> bool:
    """No raw edit makes the effective gate looser, not even before it is adopted; taking back one's own edit of the
    same key, before any move saw it, gives the gate back as the last move wrote it and no looser."""
    if not isinstance(seen.event, HandEdit):
        return True
    if seen.after.tightness >= seen.before.tightness:
        return seen.after.stored_tightness == seen.before.stored_tightness
    before = seen.before.state
    pending = before.raw_admission if seen.event.raw.on_admission else before.raw
    return pending is not RawEdit.NONE and seen.after.tightness >= seen.after.stored_tightness


@keeps.rule(HandEdit)
def setting_what_stands_does_nothing(seen: Seen) -> bool:
    """Setting a value that already stands does nothing."""
    if not isinstance(seen.event, HandEdit) or not seen.before.readable:
        return True
    state = seen.before.state
    admission = "open" if state.drain_state is DrainState.ADMIT else "closed"
    stands = admission if seen.event.raw.on_admission else state.drain_state.value
    pending = state.raw_admission if seen.event.raw.on_admission else state.raw
    return seen.event.raw.value != stands or pending is not RawEdit.NONE or seen.after is seen.before


@keeps.rule(Apply)
def an_adopted_edit_is_pinned(seen: Seen) -> bool:
    """The next tick adopts a tightening edit as actor `hand`, pinned; a live run rolls back with
    manual_operator_hold."""
    before = seen.before
    tightens = before.readable and before.adopted.stored_tightness > before.stored_tightness
    if not tightens or seen.event != Apply(Action.HOLD):
        return True
    if before.live:
        return seen.after.state.rollback_reason is RollbackReason.MANUAL_OPERATOR_HOLD and seen.after.state.rolling_back
    return seen.after.pin is not None and seen.after.tightness >= before.adopted.tightness
