"""What an answer says, what may loosen the gate, and what never does."""

from __future__ import annotations

from sluicegate.gate import DrainState, GateState, PinReason, RawEdit, Stored
from sluicegate.gate_events import Answer, Apply, HandEdit, Happening, OpenRun, Order, Person, Step, StepMove
from sluicegate.policy import Action
from tests.unit.gate.properties.registry import Rules, is_step, same_gate
from tests.unit.gate.view import Seen

keeps = Rules()
_OPENING_ORDERS = frozenset({Order.OPEN, Order.OPEN_END_RUN})


@keeps.rule()
def an_answer_other_than_moved_leaves_the_gate_alone(seen: Seen) -> bool:
    """Everything but `moved` left the state as adoption left it, but for the two changes that the page names: the
    refusal of a run pins an unpinned drain, and the controller ends the runs of an unreadable gate."""
    if seen.answer is Answer.MOVED or seen.untouched:
        return True
    base, after = seen.base.state, seen.after.state
    if seen.answer is Answer.REFUSED and isinstance(seen.event, OpenRun):
        return base.pin is None and base.drain_state is DrainState.DRAIN and after.pin is PinReason.RUN_REFUSED
    if seen.answer is Answer.UNREADABLE and isinstance(seen.event, Apply):
        return same_gate(base, after) and after.run is None and base.duplicates == after.duplicates
    return False


@keeps.rule()
def an_adoption_is_what_every_move_finds_first(seen: Seen) -> bool:
    """The next tick or move, whichever is first, adopts a hand edit: after a move no raw edit is left."""
    return not seen.is_move or not seen.before.readable or not seen.after.edited


def _loosens_with_proof(seen: Seen) -> bool:
    event, base = seen.event, seen.base.state
    if isinstance(event, Person):
        return event.order in _OPENING_ORDERS or event.order is Order.REJECT
    if isinstance(event, Step):
        return _proven_step(event, base)
    if event is Happening.INIT:
        return base.stored is Stored.UNINITIALISED
    return seen.hysteresis


def _proven_step(event: Step, base: GateState) -> bool:
    if not event.fenced or not base.recovery_live:
        return False
    if event.move is StepMove.RECOVER:
        return base.drain_state is DrainState.DRAIN
    return event.move is StepMove.REOPEN and event.proven and base.green and base.drain_state is DrainState.RECOVERING


@keeps.rule()
def the_gate_gets_looser_only_with_proof(seen: Seen) -> bool:
    """Loosening: the hysteresis, a step of the lock-holding run, `queue init`, or a named person; nothing else."""
    if isinstance(seen.event, HandEdit) or not seen.gets_looser:
        return True
    return _loosens_with_proof(seen)


@keeps.rule()
def adoption_only_tightens_or_writes_back(seen: Seen) -> bool:
    """What the last move wrote is never loosened by a hand edit; only a raw `recovering` may fall back to it."""
    adopted, before = seen.before.adopted, seen.before
    if adopted.stored_tightness < before.stored_tightness:
        return False
    return adopted.tightness >= before.tightness or before.state.raw is RawEdit.RECOVERING


@keeps.rule()
def admission_opens_by_nothing_else(seen: Seen) -> bool:
    """Ordinary jobs are admitted again only after the hysteresis, the run's reopening, init or a named `open`."""
    if isinstance(seen.event, HandEdit) or seen.base.admits or not seen.after.admits:
        return True
    if isinstance(seen.event, Person):
        return seen.event.order in _OPENING_ORDERS
    return seen.hysteresis or is_step(seen, StepMove.REOPEN) or seen.event is Happening.INIT


@keeps.rule()
def workers_pull_the_backlog_only_with_proof(seen: Seen) -> bool:
    """The kept backlog is pulled again only where the gate got looser with proof, or by the live run's green."""
    if isinstance(seen.event, HandEdit) or seen.base.pulls or not seen.after.pulls:
        return True
    green = isinstance(seen.event, Step) and seen.event.move is StepMove.GREEN and seen.event.fenced
    return _loosens_with_proof(seen) or (green and seen.base.live)


@keeps.rule(Apply)
def a_stale_decision_never_loosens(seen: Seen) -> bool:
    """The controller applies a decision only if the epoch still stands."""
    return not (isinstance(seen.event, Apply) and seen.event.stale) or seen.after.tightness >= seen.base.tightness


@keeps.rule(Step)
def an_unfenced_step_never_changes_anything(seen: Seen) -> bool:
    """An executor whose fence is old is refused, whatever it brings."""
    return not (isinstance(seen.event, Step) and not seen.event.fenced) or (
        seen.untouched and seen.answer in (Answer.STALE, Answer.UNREADABLE)
    )


@keeps.rule(Apply)
def old_errors_do_not_end_a_recovery(seen: Seen) -> bool:
    """In recovering before green with a live run no decision moves the gate, but roll_back for duplicates."""
    base = seen.base.state
    waits = seen.base.readable and seen.base.live and base.drain_state is DrainState.RECOVERING and not base.green
    if not (waits and isinstance(seen.event, Apply)):
        return True
    return seen.untouched or (seen.event.action is Action.ROLL_BACK and base.duplicates)
