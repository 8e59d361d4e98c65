"""What must hold for every row of the gate, each a sentence of SPEC §6 or §7 under a name.

A property gets a row that was seen and says whether it keeps the rule. The words of its docstring are the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.gate import DrainState, GateState, PinReason, RawEdit, RollbackReason, Runbook, Stored
from sluicegate.policy import Action
from sluicegate.transition import Answer, Apply, HandEdit, Happening, OpenRun, Order, Overdue, Person, Step, StepMove
from tests.unit.gate.view import Seen, View

Check = Callable[[Seen], bool]


@dataclass(frozen=True)
class Property:
    """Pair a rule with the kinds of event that it speaks of; none means every kind."""

    keeps: Check
    kinds: tuple[type[object], ...] = ()

    @property
    def rule(self) -> str:
        return " ".join((self.keeps.__doc__ or "").split())

    def speaks_of(self, seen: Seen) -> bool:
        return not self.kinds or isinstance(seen.event, self.kinds)


PROPERTIES: dict[str, Property] = {}

# What control:gate holds; the run, its hooks, the duplicates and the clock are data of their own.
_GATE_FIELDS = ("stored", "drain_state", "rollback_reason", "pin", "green", "ramp", "behind")
_OPENING_ORDERS = frozenset({Order.OPEN, Order.OPEN_END_RUN})


def _property(*kinds: type[object]) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        PROPERTIES[check.__name__] = Property(check, kinds)
        return check

    return register


def _is_step(seen: Seen, *moves: StepMove) -> bool:
    return isinstance(seen.event, Step) and seen.event.move in moves


def _is_order(seen: Seen, *orders: Order) -> bool:
    return isinstance(seen.event, Person) and seen.event.order in orders


def _same_gate(one: GateState, other: GateState) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _GATE_FIELDS)


def _closed_with_reason(view: View) -> bool:
    state = view.state
    return state.drain_state is DrainState.DRAIN and state.pin is not None and state.rollback_reason is not None


# --- answers -----------------------------------------------------------------------------------------------------


@_property()
def an_answer_other_than_moved_leaves_the_gate_alone(seen: Seen) -> bool:
    """Everything but `moved` left the state as adoption left it, but for the two changes that the page names: the
    refusal of a run pins an unpinned drain, and the controller ends the runs of an unreadable gate."""
    if seen.answer is Answer.MOVED or seen.untouched:
        return True
    base, after = seen.base.state, seen.after.state
    if seen.answer is Answer.REFUSED and isinstance(seen.event, OpenRun):
        return base.pin is None and base.drain_state is DrainState.DRAIN and after.pin is PinReason.RUN_REFUSED
    if seen.answer is Answer.UNREADABLE and isinstance(seen.event, Apply):
        return _same_gate(base, after) and after.run is None and base.duplicates == after.duplicates
    return False


@_property()
def an_adoption_is_what_every_move_finds_first(seen: Seen) -> bool:
    """The next tick or move, whichever is first, adopts a hand edit: after a move no raw edit is left."""
    return not seen.is_move or not seen.before.readable or not seen.after.edited


# --- loosening ---------------------------------------------------------------------------------------------------


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


@_property()
def the_gate_gets_looser_only_with_proof(seen: Seen) -> bool:
    """Loosening: the hysteresis, a step of the lock-holding run, `queue init`, or a named person; nothing else."""
    if isinstance(seen.event, HandEdit) or not seen.gets_looser:
        return True
    return _loosens_with_proof(seen)


@_property()
def adoption_only_tightens_or_writes_back(seen: Seen) -> bool:
    """What the last move wrote is never loosened by a hand edit; only a raw `recovering` may fall back to it."""
    adopted, before = seen.before.adopted, seen.before
    if adopted.stored_tightness < before.stored_tightness:
        return False
    return adopted.tightness >= before.tightness or before.state.raw is RawEdit.RECOVERING


@_property()
def admission_opens_by_nothing_else(seen: Seen) -> bool:
    """Ordinary jobs are admitted again only after the hysteresis, the run's reopening, init or a named `open`."""
    if isinstance(seen.event, HandEdit) or seen.base.admits or not seen.after.admits:
        return True
    if isinstance(seen.event, Person):
        return seen.event.order in _OPENING_ORDERS
    return seen.hysteresis or _is_step(seen, StepMove.REOPEN) or seen.event is Happening.INIT


@_property()
def workers_pull_the_backlog_only_with_proof(seen: Seen) -> bool:
    """The kept backlog is pulled again only where the gate got looser with proof, or by the live run's green."""
    if isinstance(seen.event, HandEdit) or seen.base.pulls or not seen.after.pulls:
        return True
    green = isinstance(seen.event, Step) and seen.event.move is StepMove.GREEN and seen.event.fenced
    return _loosens_with_proof(seen) or (green and seen.base.live)


@_property(Apply)
def a_stale_decision_never_loosens(seen: Seen) -> bool:
    """The controller applies a decision only if the epoch still stands."""
    return not (isinstance(seen.event, Apply) and seen.event.stale) or seen.after.tightness >= seen.base.tightness


@_property(Step)
def an_unfenced_step_never_changes_anything(seen: Seen) -> bool:
    """An executor whose fence is old is refused, whatever it brings."""
    return not (isinstance(seen.event, Step) and not seen.event.fenced) or (
        seen.untouched and seen.answer in (Answer.STALE, Answer.UNREADABLE)
    )


@_property(Apply)
def old_errors_do_not_end_a_recovery(seen: Seen) -> bool:
    """In recovering before green with a live run no decision moves the gate, but roll_back for duplicates."""
    base = seen.base.state
    waits = seen.base.readable and seen.base.live and base.drain_state is DrainState.RECOVERING and not base.green
    if not (waits and isinstance(seen.event, Apply)):
        return True
    return seen.untouched or (seen.event.action is Action.ROLL_BACK and base.duplicates)


# --- tightening --------------------------------------------------------------------------------------------------


@_property(Apply, Overdue)
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


@_property(Apply)
def a_drain_decision_drains(seen: Seen) -> bool:
    """A tightening move never fails on a comparison: drain closes every gate but a recovery before green."""
    event, base = seen.event, seen.base
    if not (isinstance(event, Apply) and event.action is Action.DRAIN and base.readable):
        return True
    waits = base.live and base.state.drain_state is DrainState.RECOVERING and not base.state.green
    return waits or seen.after.reading is DrainState.DRAIN


@_property(Overdue)
def canaries_overdue_roll_the_run_back(seen: Seen) -> bool:
    """A canary limit 10 s overdue counts as a breach: a dead executor can't leave the recovery hanging."""
    base = seen.base.state
    waits = seen.base.readable and seen.base.live and base.drain_state is DrainState.RECOVERING and not base.green
    if not (waits and isinstance(seen.event, Overdue)):
        return True
    return seen.after.state.rolling_back and seen.after.state.rollback_reason is RollbackReason.CANARY_FAILED


@_property(Apply)
def a_recovery_without_its_run_is_closed(seen: Seen) -> bool:
    """In recovering, or in a ramp, without a live run: drain, pinned, at the controller's next look."""
    base = seen.base.state
    orphan = seen.base.readable and not seen.base.live and (base.ramp or base.drain_state is DrainState.RECOVERING)
    looks = isinstance(seen.event, Apply) and (seen.event.action is not Action.ROLL_BACK or base.duplicates)
    if not (orphan and looks):
        return True
    return seen.after.reading is DrainState.DRAIN and seen.after.pin is not None


@_property(Apply)
def a_second_drain_soon_after_a_reopening_pins(seen: Seen) -> bool:
    """A second drain within 60 min of a reopening pins."""
    drained = (
        isinstance(seen.event, Apply)
        and seen.base.readable
        and seen.base.state.drain_state is not DrainState.DRAIN
        and seen.after.state.drain_state is DrainState.DRAIN
    )
    return not (drained and seen.base.state.reopened) or seen.after.pin is not None


# --- runs and pins -----------------------------------------------------------------------------------------------


@_property()
def no_run_opens_while_pinned(seen: Seen) -> bool:
    """While pinned no webhook and no timer opens a run; a named person and rollback-and-audit may."""
    opened = seen.after.state.run is not None and seen.after.state.run is not seen.base.state.run
    if not opened or seen.base.pin is None:
        return True
    return seen.by_person or seen.after.state.run is Runbook.ROLLBACK_AND_AUDIT


@_property()
def only_a_named_person_leaves_a_pin(seen: Seen) -> bool:
    """Only a named person leaves a pin; `queue init` is one."""
    return seen.base.pin is None or seen.after.pin is not None or seen.by_person or seen.event is Happening.INIT


@_property()
def an_audit_opens_only_for_duplicates(seen: Seen) -> bool:
    """rollback-and-audit opens only for confirmed duplicates that nobody acknowledged, closed, pinned, with reason."""
    opened = (
        seen.after.state.run is Runbook.ROLLBACK_AND_AUDIT and seen.base.state.run is not Runbook.ROLLBACK_AND_AUDIT
    )
    if not opened:
        return True
    reason = seen.after.state.rollback_reason
    named = reason is RollbackReason.DUPLICATE_SIDE_EFFECT
    return seen.base.state.duplicates and named and _closed_with_reason(seen.after)


@_property()
def a_rollback_ends_closed_pinned_with_a_listed_reason(seen: Seen) -> bool:
    """A run that rolled back leaves drain/closed and pinned, with one of the four reasons."""
    base, after = seen.base.state, seen.after.state
    begins = after.rolling_back and not base.rolling_back
    ends = base.rolling_back and _is_step(seen, StepMove.END) and seen.answer is Answer.MOVED
    superseded = base.recovery_live and after.run is Runbook.ROLLBACK_AND_AUDIT
    return not (begins or ends or superseded) or _closed_with_reason(seen.after)


@_property()
def while_a_rollback_is_finished_the_gate_stays_closed(seen: Seen) -> bool:
    """A run that rolls back holds drain, pin and reason until its hooks are done or a named person ends it."""
    after = seen.after.state
    hooks = after.rolling_back or after.run is Runbook.ROLLBACK_AND_AUDIT
    return not (hooks and seen.after.readable) or _closed_with_reason(seen.after)


@_property()
def a_live_run_ends_only_by_its_own_end_a_rollback_or_a_loss(seen: Seen) -> bool:
    """A drain-and-recover run stops moving the gate when its ramp has ended, when it rolled back, was superseded,
    when a named person ended it, or when its data was lost."""
    if not seen.base.live or seen.after.live:
        return True
    if isinstance(seen.event, Happening) or seen.by_person:
        return True
    if isinstance(seen.event, Apply) and not seen.base.readable:
        return True
    return _is_step(seen, StepMove.RAMP_END) or _closed_with_reason(seen.after)


def _drain_without_run_or_pin(view: View) -> bool:
    state = view.state
    return view.readable and state.drain_state is DrainState.DRAIN and state.run is None and state.pin is None


@_property()
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


@_property()
def a_rollback_reason_never_survives_an_open_gate(seen: Seen) -> bool:
    """A new run keeps `rollback_reason` until its ramp has ended; an open gate without a run has none."""
    state = seen.after.state
    at_rest = seen.after.readable and state.drain_state is DrainState.ADMIT and state.run is None and not state.ramp
    return not at_rest or state.rollback_reason is None


@_property()
def a_ramp_has_its_live_run(seen: Seen) -> bool:
    """A ramp is a step of the live recovery run; only the loss of the run's data parts them."""
    parted = seen.after.readable and seen.after.state.ramp and not seen.after.live
    was_parted = seen.base.state.ramp and not seen.base.live
    return not parted or was_parted or seen.event is Happening.LOSE_RUN


@_property(OpenRun)
def a_refused_run_never_moves_the_gate(seen: Seen) -> bool:
    """A refusal never moves the gate; where it is already in an unpinned drain it pins it."""
    if not isinstance(seen.event, OpenRun) or seen.answer is Answer.MOVED:
        return True
    asked = seen.event.runbook is Runbook.DRAIN_AND_RECOVER and not seen.event.allowed
    if seen.answer is Answer.REFUSED and asked and _drain_without_run_or_pin(seen.base):
        return seen.after.pin is PinReason.RUN_REFUSED
    return _same_gate(seen.base.state, seen.after.state)


@_property()
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


# --- duplicates --------------------------------------------------------------------------------------------------


@_property(Apply)
def resolved_duplicates_roll_nothing_back(seen: Seen) -> bool:
    """Once a named person has acknowledged them, duplicates roll nothing back."""
    asked = isinstance(seen.event, Apply) and seen.event.action is Action.ROLL_BACK
    return not asked or not seen.base.readable or seen.base.state.duplicates or seen.untouched


@_property(Apply)
def duplicates_close_the_gate_from_anywhere(seen: Seen) -> bool:
    """In any state roll_back is one move to drain/closed, pinned, duplicate_side_effect, no recovery left alive."""
    asked = isinstance(seen.event, Apply) and seen.event.action is Action.ROLL_BACK
    if not asked or not seen.base.readable or not seen.base.state.duplicates:
        return True
    reason = seen.after.state.rollback_reason
    named = reason is RollbackReason.DUPLICATE_SIDE_EFFECT
    return named and _closed_with_reason(seen.after) and not seen.after.live and seen.after.state.audited


@_property()
def the_same_duplicates_open_one_audit(seen: Seen) -> bool:
    """Duplicates that had their audit open no second one, unless a live run must be superseded."""
    base, after = seen.base.state, seen.after.state
    opened = after.run is Runbook.ROLLBACK_AND_AUDIT and base.run is not Runbook.ROLLBACK_AND_AUDIT
    return not opened or not base.audited or base.run is Runbook.DRAIN_AND_RECOVER


@_property()
def nothing_reopens_over_duplicates(seen: Seen) -> bool:
    """No reopening, no end of a ramp and no hysteresis while a confirmed duplicate is not acknowledged; an `open` by a
    named person acknowledges what is known by then."""
    if not seen.base.state.duplicates or isinstance(seen.event, HandEdit):
        return True
    loosened = seen.after.tightness < seen.base.tightness
    if _is_order(seen, Order.OPEN, Order.OPEN_END_RUN) and seen.answer is Answer.MOVED:
        return not seen.after.state.duplicates
    opened = seen.after.admits and loosened
    ended = _is_step(seen, StepMove.RAMP_END) and seen.answer is Answer.MOVED
    return not (opened or ended)


@_property()
def only_a_named_person_acknowledges_duplicates(seen: Seen) -> bool:
    """A confirmed duplicate stays until a named person has acknowledged it, or the data is gone with it."""
    forgotten = seen.base.state.duplicates and not seen.after.state.duplicates
    lost = seen.event in (Happening.LOSE_ALL, Happening.FALL_BEHIND)
    return not forgotten or lost or _is_order(seen, Order.OPEN, Order.OPEN_END_RUN, Order.ACKNOWLEDGE)


@_property(Happening)
def a_damaged_gate_forgets_no_duplicate(seen: Seen) -> bool:
    """A duplicate that is confirmed while the gate's records are damaged or old still waits for a named person."""
    uninitialised = seen.before.state.stored is Stored.UNINITIALISED
    return seen.event is not Happening.DUPLICATE or uninitialised or seen.after.state.duplicates


# --- lost, damaged and old data ----------------------------------------------------------------------------------


@_property()
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


@_property()
def nothing_writes_an_unreadable_gate_but_init_and_a_person(seen: Seen) -> bool:
    """While unreadable nothing but init and a named person writes the gate; what has fallen behind the controller
    closes itself: drain, pinned control_data_lost, no run."""
    if seen.before.readable or _same_gate(seen.before.state, seen.after.state):
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


@_property(Happening)
def a_loss_is_closed_at_once(seen: Seen) -> bool:
    """Whatever is lost, damaged or falls behind, the gate reads closed with the event itself."""
    lost = seen.event in (Happening.LOSE_ALL, Happening.GARBAGE, Happening.FALL_BEHIND)
    return not lost or (not seen.after.readable and seen.after.reading is DrainState.DRAIN)


@_property()
def no_run_opens_over_an_unreadable_gate(seen: Seen) -> bool:
    """While unreadable no run starts, not even a person's."""
    return seen.before.readable or seen.after.state.run is None or seen.after.state.run is seen.before.state.run


@_property(Happening)
def init_opens_only_what_never_was(seen: Seen) -> bool:
    """`queue init` opens a new queue and is refused where anything of one exists."""
    if seen.event is not Happening.INIT:
        return True
    if seen.before.state.stored is not Stored.UNINITIALISED:
        return seen.answer is Answer.NOT_EMPTY and seen.after is seen.before
    return seen.after.state == GateState(stored=Stored.OK, drain_state=DrainState.ADMIT)


# --- hand edits --------------------------------------------------------------------------------------------------


@_property(HandEdit)
def a_raw_drain_works_at_once(seen: Seen) -> bool:
    """`SET drain_state drain` with any client is effective at once, in every state."""
    return seen.event != HandEdit(RawEdit.DRAIN) or seen.after.reading is DrainState.DRAIN


@_property(HandEdit)
def a_raw_close_works_at_once(seen: Seen) -> bool:
    """`SET admission closed` stops admission at once; in admit it reads as reject_new."""
    return seen.event != HandEdit(RawEdit.CLOSED) or not seen.after.admits


@_property(HandEdit)
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


@_property(HandEdit)
def setting_what_stands_does_nothing(seen: Seen) -> bool:
    """Setting a value that already stands does nothing."""
    if not isinstance(seen.event, HandEdit) or not seen.before.readable:
        return True
    state = seen.before.state
    admission = "open" if state.drain_state is DrainState.ADMIT else "closed"
    stands = admission if seen.event.raw.on_admission else state.drain_state.value
    pending = state.raw_admission if seen.event.raw.on_admission else state.raw
    return seen.event.raw.value != stands or pending is not RawEdit.NONE or seen.after is seen.before


@_property(Apply)
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


# --- named persons -----------------------------------------------------------------------------------------------


@_property(Person)
def a_plain_open_is_refused_while_a_run_is_live(seen: Seen) -> bool:
    """`gate open` refuses while a run is live unless `--end-run`."""
    if not _is_order(seen, Order.OPEN) or seen.base.state.stored is Stored.UNINITIALISED:
        return True
    if seen.base.state.run is not None:
        return seen.answer is Answer.RUN_LIVE and seen.untouched
    return seen.after.admits and seen.after.pin is None


@_property(Person)
def a_named_close_rolls_a_live_run_back(seen: Seen) -> bool:
    """`gate drain|reject|hold` and `abort` roll a live run back: drain/closed, pinned, manual_operator_hold."""
    orders = (Order.DRAIN, Order.REJECT, Order.HOLD, Order.ABORT)
    if not (_is_order(seen, *orders) and seen.base.readable and seen.base.live):
        return True
    held = seen.after.state.rollback_reason is RollbackReason.MANUAL_OPERATOR_HOLD
    return held and seen.after.state.rolling_back and _closed_with_reason(seen.after)


@_property(Person)
def a_named_close_pins(seen: Seen) -> bool:
    """`gate drain|reject|hold` pins, unless `--no-pin`; hold always does."""
    event = seen.event
    if not (_is_order(seen, Order.DRAIN, Order.REJECT, Order.HOLD) and isinstance(event, Person)):
        return True
    if seen.base.state.stored is Stored.UNINITIALISED or (not event.pin and event.order is not Order.HOLD):
        return True
    return seen.after.pin is not None


@_property(Person)
def a_named_drain_or_hold_never_loosens(seen: Seen) -> bool:
    """Drain, hold, abort, release and acknowledge leave the gate as tight as it is, or tighten it."""
    orders = (Order.DRAIN, Order.HOLD, Order.ABORT, Order.RELEASE, Order.ACKNOWLEDGE)
    return not _is_order(seen, *orders) or seen.after.tightness >= seen.base.tightness


@_property(Person)
def an_abort_without_a_live_run_changes_nothing(seen: Seen) -> bool:
    """Abort, without a live run or on one that rolls back, changes nothing and says so."""
    if not _is_order(seen, Order.ABORT) or not seen.base.readable or seen.base.live:
        return True
    if seen.base.state.run is Runbook.ROLLBACK_AND_AUDIT:
        return _same_gate(seen.base.state, seen.after.state)
    return seen.untouched and seen.answer is Answer.UNCHANGED
