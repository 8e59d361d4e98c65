"""Does the gate stay safe while processes are dead, paused or resumed? The exploration, composed with who is alive.

The whole exploration already lets every event come at any time with any flag. Here the flags follow from what really
happened since a process last looked, and the events are those of the processes that still live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from sluicegate.gate import DrainState, GateState, RollbackReason, Runbook, Stored
from sluicegate.gate_events import (
    Apply,
    Event,
    HandEdit,
    Happening,
    OpenRun,
    Overdue,
    Person,
    Step,
    StepMove,
    Trigger,
)
from sluicegate.policy import Action, Thresholds, decide
from sluicegate.transition import transition
from tests.gate_events import all_events, describe_event, describe_state
from tests.unit.gate.conditions import HEALTHY, Condition, Provider, figures
from tests.unit.gate.view import Explored, Seen, View


def of_controller(event: Event) -> bool:
    """Say whether the controller sends it; the timer is its own."""
    return isinstance(event, Apply | Overdue) or (isinstance(event, OpenRun) and event.trigger is Trigger.TIMER)


def of_person(event: Event) -> bool:
    """Say whether a named person sends it; init and raw edits are people's too."""
    asked = isinstance(event, OpenRun) and event.trigger is Trigger.PERSON
    return asked or isinstance(event, Person) or event is Happening.INIT


def of_executor(event: Event) -> bool:
    """Say whether the executor sends it: every step of a run is its own."""
    return isinstance(event, Step)


def reachable(starts: Iterable[GateState], events: Iterable[Event]) -> set[GateState]:
    """Give every state that these events lead to from the starts, the starts among them."""
    every = list(events)
    known = set(starts)
    todo = list(known)
    for state in todo:
        for event in every:
            after = transition(state, event).state
            if after not in known:
                known.add(after)
                todo.append(after)
    return known


def _loosened(seen: Seen) -> bool:
    return seen.gets_looser and not isinstance(seen.event, HandEdit)


# --- who may loosen -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dead", "still_loosening"),
    [
        ((of_controller,), {"Step", "Person", "Happening"}),
        ((of_executor,), {"Apply", "Person", "Happening"}),
        ((of_controller, of_executor), {"Person", "Happening"}),
        ((of_executor, of_person), {"Apply"}),
        ((of_controller, of_executor, of_person), set()),
    ],
    ids=["controller", "executor", "controller-executor", "executor-and-nobody-there", "everybody"],
)
def test_what_still_loosens_with_these_dead(
    dead: tuple[Callable[[Event], bool], ...], still_loosening: set[str], explored: Explored
) -> None:
    """With the controller dead nothing loosens but the run and persons; with all dead nothing does, from any state.
    Webhooks, hand edits and losses of data never do."""
    alive = [seen for seen in explored.seen if not any(is_dead(seen.event) for is_dead in dead)]
    assert {type(seen.event).__name__ for seen in alive if _loosened(seen)} == still_loosening


def test_a_dead_executor_leaves_no_ramp_open(explored: Explored) -> None:
    """From every ramp one look of the controller at the limit ends it: drain/closed, pinned. A ramp whose run's data
    is lost as well ends as tight as whatever was written by hand, at least rejecting, pinned."""
    ramps = [state for state in explored.exploration.states if View(state).readable and state.ramp]
    assert ramps
    for state in ramps:
        after = View(transition(transition(state, Overdue()).state, Apply(Action.HOLD)).state)
        least = DrainState.DRAIN if state.recovery_live or not View(state).edited else DrainState.REJECT_NEW
        assert after.tightness >= least.tightness, describe_state(state)
        assert after.pin is not None, describe_state(state)
        assert not after.state.ramp, describe_state(state)


def test_with_the_executor_dead_for_ever_a_recovery_only_ends_closed(explored: Explored) -> None:
    """No event of the controller, of a webhook or of the data turns a live recovery into an open gate: whatever is
    reached, a ramp that ended reads drain, pinned. Only a named person opens again."""
    live = [state for state in explored.exploration.states if state.recovery_live and View(state).readable]
    alive = [event for event in all_events() if not (of_executor(event) or of_person(event))]
    alive = [event for event in alive if event is not Happening.FALL_BEHIND]  # its own test: it reads closed at once
    assert live
    for state in reachable(live, alive):
        view = View(state)
        ended = view.readable and not state.ramp and not state.recovery_live and not view.edited
        waiting = ended and state.pin is None
        # An unpinned drain whose run's data was lost may be given a new run; nothing else is left unpinned.
        assert not (ended and view.admits), describe_state(state)
        assert not waiting or state.drain_state in (DrainState.DRAIN, DrainState.RECOVERING), describe_state(state)


def test_a_run_whose_executor_died_is_closed_by_the_controller_alone(explored: Explored) -> None:
    """Live canaries, a burn-down or a ramp without an executor: one overdue look rolls back, with the right reason."""
    for state in explored.exploration.states:
        base = View(state).adopted.state
        moving = base.recovery_live and (base.ramp or base.drain_state is DrainState.RECOVERING)
        if not (View(state).readable and moving and base == state):
            continue
        after = transition(state, Overdue()).state
        canaries = state.drain_state is DrainState.RECOVERING and not state.green
        expected = RollbackReason.CANARY_FAILED if canaries else RollbackReason.QUEUE_AGE_NOT_RECOVERING
        assert after.rolling_back, describe_state(state)
        assert after.rollback_reason is expected, describe_state(state)


def test_a_resumed_executor_finds_its_run_over_and_changes_nothing(explored: Explored) -> None:
    """An executor that slept through its run's rollback, its superseding or a new run holds an old fence."""
    ended = {seen.row.after for seen in explored.seen if seen.base.live and not seen.after.live}
    assert ended
    for state in ended:
        for move in StepMove:
            late = transition(state, Step(move, fenced=False)).state
            assert late == View(state).adopted.state, describe_state(state)


def test_a_revoked_run_has_nothing_left_but_the_end_of_its_hooks(explored: Explored) -> None:
    """Even with a fence that is current, a run that rolls back can't recover, reopen or end its ramp."""
    rolling = [state for state in explored.exploration.states if state.rolling_back and View(state).readable]
    assert rolling
    for state in rolling:
        for move in StepMove:
            after = transition(state, Step(move)).state
            assert after.drain_state is DrainState.DRAIN, describe_event(Step(move))
            assert after.pin is not None


# --- a controller that was paused between looking and applying ----------------------------------------------------

# What changes the data or the raw keys without the library's move code, and so without a new epoch.
_PAST_THE_EPOCH: tuple[Event, ...] = (
    Happening.DUPLICATE,
    Happening.LOSE_RUN,
    Happening.HOUR_PASSED,
    *(event for event in all_events() if isinstance(event, HandEdit)),
)


ONE_OF_EACH = (HEALTHY, Condition(Provider.FINE, 20.0, 50.0), Condition(Provider.HIGH_5XX, 0.0, 50.0))


def _decisions(state: GateState) -> set[Apply]:
    """Give every decision that the figures could have led to in this state, with the dwell served where it may be."""
    seen = (figures(state, condition) for condition in ONE_OF_EACH)
    actions = {decide(each, Thresholds()).action for each in seen}
    return {Apply(action, held=action is Action.ADMIT) for action in actions}


def test_a_decision_read_before_a_move_never_loosens(explored: Explored) -> None:
    """Paused after the look, resumed after any move by anybody: the epoch is another, so the decision is stale."""
    stale = replace(Apply(Action.ADMIT, held=True), stale=True)
    for seen in explored.seen:
        if seen.before.state.drain_state is DrainState.REJECT_NEW and not seen.untouched:
            after = View(transition(seen.row.after, stale).state)
            assert after.tightness >= seen.after.adopted.tightness, explored.exploration.told(seen.row)


def test_a_decision_read_before_changes_that_leave_the_epoch_never_opens_over_them(explored: Explored) -> None:
    """Duplicates, a lost run and hand edits leave the epoch as it was: a resumed `admit` must see them itself."""
    opened = 0
    for state in explored.exploration.states:
        view = View(state)
        if not view.readable or view.edited or state.drain_state is not DrainState.REJECT_NEW:
            continue
        for later in reachable([state], _PAST_THE_EPOCH):
            after = transition(later, Apply(Action.ADMIT, held=True)).state
            if View(after).tightness < View(later).adopted.tightness:
                opened += 1
                assert replace(later, reopened=False) == replace(state, reopened=False), describe_state(later)
                assert not later.duplicates
    assert opened


def test_a_resumed_decision_only_tightens_what_has_moved_on(explored: Explored) -> None:
    """Every decision that could have been read in a state, applied after any one event, leaves the gate as tight as
    the event left it, unless it still stands for what was looked at."""
    could_read: dict[GateState, set[Apply]] = {}
    loosens: dict[tuple[int, Apply], bool] = {}
    for seen in explored.seen:
        if not seen.before.readable or seen.before.edited or seen.after is seen.before:
            continue
        state, later = seen.row.before, seen.row.after
        if replace(later, reopened=False) == replace(state, reopened=False):
            continue
        moved_on = seen.event not in _PAST_THE_EPOCH
        if state not in could_read:
            could_read[state] = _decisions(state)
        for decision in could_read[state]:
            resumed = replace(decision, stale=moved_on)
            if (id(later), resumed) not in loosens:
                after = View(transition(later, resumed).state)
                loosens[id(later), resumed] = after.tightness < seen.after.adopted.tightness
            assert not loosens[id(later), resumed], explored.exploration.told(seen.row)


# --- data that is gone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [Happening.LOSE_ALL, Happening.GARBAGE, Happening.FALL_BEHIND])
def test_after_a_loss_no_process_opens_the_gate(loss: Happening, explored: Explored) -> None:
    """Whatever processes, webhooks, hand edits and further losses do after a loss, the gate reads drain, pinned."""
    lost = {transition(state, loss).state for state in explored.exploration.states}
    nobody = [event for event in all_events() if not of_person(event)]
    for state in reachable(lost, nobody):
        view = View(state)
        assert view.reading is DrainState.DRAIN, describe_state(state)
        assert view.pin is not None, describe_state(state)


def test_a_live_run_over_lost_data_is_ended_by_the_controller(explored: Explored) -> None:
    """Where the gate can't be read no live run goes on: the controller's next look ends it."""
    for state in explored.exploration.states:
        if not View(state).readable:
            after = transition(state, Apply(Action.HOLD)).state
            assert after.run is None, describe_state(state)


def test_a_webhook_alone_only_ever_closes(explored: Explored) -> None:
    """With every process dead but the receiver, alerts can freeze the gate into a run, never loosen it."""
    hooks = [seen for seen in explored.of((OpenRun,)) if seen.event.trigger is Trigger.WEBHOOK]  # type: ignore[union-attr]
    assert any(seen.after.tightness > seen.base.tightness for seen in hooks)
    for seen in hooks:
        assert seen.after.tightness >= seen.base.tightness
        opened = seen.after.state.run is Runbook.DRAIN_AND_RECOVER and seen.base.state.run is None
        assert not opened or seen.base.state.stored is Stored.OK
