"""How the gate reads and what writes it when its data is lost, damaged or old."""

from __future__ import annotations

from sluicegate.gate import DrainState, GateState, PinReason, Stored
from sluicegate.gate_events import Answer, Apply, Happening, Person
from tests.unit.gate.properties.registry import Rules, same_gate
from tests.unit.gate.view import Seen

keeps = Rules()


@keeps.rule()
def unreadable_reads_as_drain_and_pinned(seen: Seen) -> bool:
    """Missing, unreadable or unknown reads as drain/closed, pinned; so does data older than a caller has seen."""
    if seen.after.readable:
        return True
    closed = not seen.after.admits and not seen.after.pulls
    return (
        closed
        and seen.after.reading is DrainState.DRAIN
        and seen.after.pin
        in (
            PinReason.UNINITIALISED,
            PinReason.CONTROL_DATA_LOST,
        )
    )


@keeps.rule()
def nothing_writes_an_unreadable_gate_but_init_and_a_person(seen: Seen) -> bool:
    """While unreadable nothing but init and a named person writes the gate; what has fallen behind the controller
    closes itself: drain, pinned control_data_lost, no run."""
    if seen.before.readable or same_gate(seen.before.state, seen.after.state):
        return True
    before, after = seen.before.state, seen.after.state
    if isinstance(seen.event, Person):
        return before.stored is not Stored.UNINITIALISED
    if isinstance(seen.event, Apply):
        closed = after.drain_state is DrainState.DRAIN and after.pin is PinReason.CONTROL_DATA_LOST
        return before.stored is Stored.OK and before.behind and closed and after.run is None
    if seen.event is Happening.INIT:
        return before.stored is Stored.UNINITIALISED
    return seen.event in (Happening.LOSE_ALL, Happening.GARBAGE, Happening.FALL_BEHIND)


@keeps.rule(Happening)
def a_loss_is_closed_at_once(seen: Seen) -> bool:
    """Whatever is lost, damaged or falls behind, the gate reads closed with the event itself."""
    lost = seen.event in (Happening.LOSE_ALL, Happening.GARBAGE, Happening.FALL_BEHIND)
    return not lost or (not seen.after.readable and seen.after.reading is DrainState.DRAIN)


@keeps.rule()
def no_run_opens_over_an_unreadable_gate(seen: Seen) -> bool:
    """While unreadable no run starts, not even a person's."""
    return seen.before.readable or seen.after.state.run is None or seen.after.state.run is seen.before.state.run


@keeps.rule(Happening)
def init_opens_only_what_never_was(seen: Seen) -> bool:
    """`queue init` opens a new queue and is refused where anything of one exists."""
    if seen.event is not Happening.INIT:
        return True
    if seen.before.state.stored is not Stored.UNINITIALISED:
        return seen.answer is Answer.NOT_EMPTY and seen.after is seen.before
    return seen.after.state == GateState(stored=Stored.OK, drain_state=DrainState.ADMIT)
