"""The rules of the gate, each with a way to leave it out of the real `transition` and the property that misses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sluicegate import transition as rules
from sluicegate.gate import DrainState, GateState, PinReason, RawEdit, Runbook, Stored, raw_reading
from sluicegate.gate_events import (
    Answer,
    Apply,
    Beside,
    Event,
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
from sluicegate.transition import Transition
from tests.gate_events import Rule

_REAL = rules.transition


@dataclass(frozen=True)
class LeftOut:
    """Name a rule, the property that misses it, and how to take it out: private functions replaced, or the rule
    wrapped."""

    rule: str
    missed_by: str
    patches: tuple[tuple[str, Callable[..., Any]], ...] = ()
    wrapped: Rule = _REAL


def _told_otherwise(change: Callable[[Event], Event]) -> Rule:
    return lambda state, event: _REAL(state, change(event))


def _after(change: Callable[[GateState, Event, Transition], Transition]) -> Rule:
    return lambda state, event: change(state, event, _REAL(state, event))


def _always_fenced(event: Event) -> Event:
    return replace(event, fenced=True) if isinstance(event, Step) else event


def _always_proven(event: Event) -> Event:
    return replace(event, proven=True) if isinstance(event, Step) else event


def _always_held(event: Event) -> Event:
    return replace(event, held=True) if isinstance(event, Apply) else event


def _never_stale(event: Event) -> Event:
    return replace(event, stale=False) if isinstance(event, Apply) else event


def _always_as_a_person(event: Event) -> Event:
    return replace(event, trigger=Trigger.PERSON) if isinstance(event, OpenRun) else event


def _open_ends_runs(event: Event) -> Event:
    return Person(Order.OPEN_END_RUN) if event == Person(Order.OPEN) else event


def _drain_for_good(event: Event) -> Event:
    return Apply(Action.HOLD) if isinstance(event, Apply) and event.action is Action.DRAIN and event.stale else event


def _overdue_never_noticed(event: Event) -> Event:
    return Apply(Action.HOLD) if isinstance(event, Overdue) else event


def _may_loosen_without(field: str) -> Callable[[GateState], bool]:
    real = rules._may_loosen
    rest: dict[str, Any] = {"pin": None, "rollback_reason": None, "duplicates": False}
    return lambda state: real(replace(state, **{field: rest[field]}))


_REAL_DRAINED = rules._drained


def _drained_before_green(state: GateState) -> GateState:
    return _REAL_DRAINED(replace(state, green=True) if state.recovery_live else state)


def _rolled_back_without(**kept: Any) -> Callable[[GateState, Any], GateState]:
    real = rules._rolled_back

    def roll_back(state: GateState, reason: Any) -> GateState:
        return replace(real(state, reason), **kept)

    return roll_back


def _reopened_before_green(state: GateState, event: Step) -> GateState | None:
    if event.move is StepMove.REOPEN:
        state = replace(state, green=True)
    return _REAL_STEP(state, event)


_REAL_STEP = rules._step_move


def _reopened_over_duplicates(state: GateState, event: Step) -> GateState | None:
    moved = _REAL_STEP(replace(state, duplicates=False), event)
    return moved and replace(moved, duplicates=state.duplicates)


def _reason_kept_after_the_ramp(state: GateState, event: Step) -> GateState | None:
    moved = _REAL_STEP(state, event)
    ended = moved is not None and event.move is StepMove.RAMP_END
    return replace(moved, rollback_reason=state.rollback_reason) if moved is not None and ended else moved


def _any_edit_adopted(state: GateState) -> GateState:
    reading = raw_reading(state.drain_state, state.raw, state.raw_admission)
    clean = replace(state, raw=RawEdit.NONE, raw_admission=RawEdit.NONE)
    return clean if clean == state else replace(clean, drain_state=reading)


def _edit_adopted_without_a_pin(state: GateState) -> GateState:
    adopted = _REAL_ADOPTED(state)
    return replace(adopted, pin=state.pin) if adopted.pin is PinReason.HAND_EDIT else adopted


_REAL_ADOPTED = rules._adopted


def _edits_of_one_key(state: GateState, raw: RawEdit) -> GateState:
    edited = _REAL_EDITED(state, raw)
    return replace(edited, raw=RawEdit.NONE) if raw.on_admission else replace(edited, raw_admission=RawEdit.NONE)


_REAL_EDITED = rules._hand_edited


def _any_init(state: GateState, event: Event, moved: Transition) -> Transition:
    return _REAL(GateState(), event) if event is Happening.INIT else moved


def _readable(state: GateState, event: Event) -> Transition:
    answered = _REAL(replace(state, stored=Stored.OK, behind=False), event)
    return answered if answered.answer is Answer.MOVED else Transition(state, Answer.UNREADABLE)


def _audit_again(state: GateState) -> GateState:
    return _REAL_DUPLICATES(replace(state, audited=False))


_REAL_DUPLICATES = rules._duplicates_rolled_back


def _not_superseded(state: GateState) -> GateState:
    moved = _REAL_DUPLICATES(state)
    return replace(moved, run=state.run) if state.run is Runbook.DRAIN_AND_RECOVER else moved


def _orphans_left_alone(state: GateState, event: Event, moved: Transition) -> Transition:
    orphan = not state.recovery_live and (state.ramp or state.drain_state is DrainState.RECOVERING)
    return Transition(state, Answer.UNCHANGED) if orphan and isinstance(event, Apply) else moved


def _released_for_nothing(state: GateState, event: Event, moved: Transition) -> Transition:
    held = isinstance(event, Person) and event.order in (Order.RELEASE, Order.OPEN)
    return Transition(state, Answer.REFUSED) if held and state.drain_state is DrainState.DRAIN else moved


def _never_pinned_again(state: GateState, event: Event, moved: Transition) -> Transition:
    repeated = moved.state.pin is PinReason.REPEATED_DRAIN
    return replace(moved, state=replace(moved.state, pin=None)) if repeated else moved


def _refused_without_a_pin(state: GateState, event: Event, moved: Transition) -> Transition:
    refused = moved.answer is Answer.REFUSED and moved.state.pin is PinReason.RUN_REFUSED
    return Transition(replace(moved.state, pin=state.pin), moved.answer) if refused else moved


def _duplicates_forgotten(state: GateState, event: Event, moved: Transition) -> Transition:
    ended = isinstance(event, Step) and event.move is StepMove.END
    return replace(moved, state=replace(moved.state, duplicates=False)) if ended else moved


def _rejected_in_a_ramp(state: GateState, event: Beside) -> Transition:
    return _REAL_BESIDE(replace(state, ramp=False), event)


def _rejected_from_anywhere(state: GateState, event: Beside) -> Transition:
    return _REAL_BESIDE(replace(state, drain_state=DrainState.ADMIT, ramp=False), event)


def _rejected_under_any_fence(state: GateState, event: Beside) -> Transition:
    return _REAL_BESIDE(state, Beside())


_REAL_BESIDE = rules._rejected_beside

LEFT_OUT = (
    LeftOut(
        "a run beside the lock leaves a ramp alone",
        "a_run_beside_moves_only_admit_to_reject_new",
        (("_rejected_beside", _rejected_in_a_ramp),),
    ),
    LeftOut(
        "a run beside the lock loosens nothing",
        "the_gate_gets_looser_only_with_proof",
        (("_rejected_beside", _rejected_from_anywhere),),
    ),
    LeftOut(
        "a run beside the lock has a fence",
        "a_run_beside_under_an_old_fence_changes_nothing",
        (("_rejected_beside", _rejected_under_any_fence),),
    ),
    LeftOut(
        "the hysteresis waits for the dwell", "the_gate_gets_looser_only_with_proof", (), _told_otherwise(_always_held)
    ),
    LeftOut("an old epoch loosens nothing", "a_stale_decision_never_loosens", (), _told_otherwise(_never_stale)),
    LeftOut("an old fence is refused", "an_unfenced_step_never_changes_anything", (), _told_otherwise(_always_fenced)),
    LeftOut("reopening needs proof", "the_gate_gets_looser_only_with_proof", (), _told_otherwise(_always_proven)),
    LeftOut(
        "while pinned no webhook opens a run", "no_run_opens_while_pinned", (), _told_otherwise(_always_as_a_person)
    ),
    LeftOut("a refused run pins the drain", "a_refused_run_never_moves_the_gate", (), _after(_refused_without_a_pin)),
    LeftOut(
        "open refuses a live run", "a_plain_open_is_refused_while_a_run_is_live", (), _told_otherwise(_open_ends_runs)
    ),
    LeftOut("tightening ignores the epoch", "a_drain_decision_drains", (), _told_otherwise(_drain_for_good)),
    LeftOut(
        "a limit overdue is a breach", "canaries_overdue_roll_the_run_back", (), _told_otherwise(_overdue_never_noticed)
    ),
    LeftOut(
        "the hysteresis respects a pin",
        "the_gate_gets_looser_only_with_proof",
        (("_may_loosen", _may_loosen_without("pin")),),
    ),
    LeftOut(
        "the hysteresis respects duplicates",
        "nothing_reopens_over_duplicates",
        (("_may_loosen", _may_loosen_without("duplicates")),),
    ),
    LeftOut(
        "old errors don't end a recovery", "old_errors_do_not_end_a_recovery", (("_drained", _drained_before_green),)
    ),
    LeftOut(
        "a rollback pins",
        "a_rollback_ends_closed_pinned_with_a_listed_reason",
        (("_rolled_back", _rolled_back_without(pin=None)),),
    ),
    LeftOut(
        "a rollback has a reason",
        "a_rollback_ends_closed_pinned_with_a_listed_reason",
        (("_rolled_back", _rolled_back_without(rollback_reason=None)),),
    ),
    LeftOut(
        "a rollback drains first",
        "a_rollback_ends_closed_pinned_with_a_listed_reason",
        (("_rolled_back", _rolled_back_without(drain_state=DrainState.ADMIT)),),
    ),
    LeftOut(
        "a rollback ends the ramp", "a_ramp_has_its_live_run", (("_rolled_back", _rolled_back_without(ramp=True)),)
    ),
    LeftOut("only green reopens", "the_gate_gets_looser_only_with_proof", (("_step_move", _reopened_before_green),)),
    LeftOut(
        "duplicates stop a reopening", "nothing_reopens_over_duplicates", (("_step_move", _reopened_over_duplicates),)
    ),
    LeftOut(
        "the ramp's end clears the reason",
        "a_rollback_reason_never_survives_an_open_gate",
        (("_step_move", _reason_kept_after_the_ramp),),
    ),
    LeftOut(
        "a loosening edit is written back", "the_gate_gets_looser_only_with_proof", (("_adopted", _any_edit_adopted),)
    ),
    LeftOut("an adopted edit is pinned", "an_adopted_edit_is_pinned", (("_adopted", _edit_adopted_without_a_pin),)),
    LeftOut("two raw keys stand apart", "a_raw_edit_never_loosens", (("_hand_edited", _edits_of_one_key),)),
    LeftOut("init refuses an existing queue", "init_opens_only_what_never_was", (), _after(_any_init)),
    LeftOut(
        "unreadable data is written by nobody",
        "nothing_writes_an_unreadable_gate_but_init_and_a_person",
        (("_unreadable", _readable),),
    ),
    LeftOut(
        "duplicates are audited once",
        "the_same_duplicates_open_one_audit",
        (("_duplicates_rolled_back", _audit_again),),
    ),
    LeftOut(
        "an audit supersedes the live run",
        "duplicates_close_the_gate_from_anywhere",
        (("_duplicates_rolled_back", _not_superseded),),
    ),
    LeftOut(
        "only a person acknowledges", "only_a_named_person_acknowledges_duplicates", (), _after(_duplicates_forgotten)
    ),
    LeftOut("an orphaned recovery is closed", "a_recovery_without_its_run_is_closed", (), _after(_orphans_left_alone)),
    LeftOut("a second drain pins", "a_second_drain_soon_after_a_reopening_pins", (), _after(_never_pinned_again)),
)

# Liveness: what leaves some state stuck when it is gone.
STUCK_WITHOUT: dict[str, Rule] = {
    "an orphaned recovery is closed": _after(_orphans_left_alone),
    "a named person leaves a pin": _after(_released_for_nothing),
}
