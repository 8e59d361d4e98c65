"""Is a lasting open gate reachable from every state, with a healthy provider, processes up and persons where pinned?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pytest

from sluicegate.gate import DrainState, GateState, Runbook, Stored, effective_pin
from sluicegate.gate_events import (
    Apply,
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
from sluicegate.policy import Action, Thresholds, decide
from sluicegate.transition import transition
from tests.gate_events import Exploration, Rule, describe_event, describe_state
from tests.unit.gate.conditions import HEALTHY, figures
from tests.unit.gate.view import Explored

Moves = Callable[[GateState], Iterable[Event]]

_TIMER = OpenRun(Runbook.DRAIN_AND_RECOVER, Trigger.TIMER, confirmed=True, allowed=True)
_OWN_STEPS = tuple(Step(move) for move in (StepMove.RECOVER, StepMove.GREEN, StepMove.REOPEN, StepMove.RAMP_END))


def healthy_tick(state: GateState) -> Event:
    """Give what the controller applies when every figure is fine and the exit condition has held for the dwell."""
    action = decide(figures(state, HEALTHY), Thresholds()).action
    return Apply(action, held=action is Action.ADMIT)


def unattended(state: GateState) -> Iterator[Event]:
    """Give what happens by itself: the tick, the timer on a drain, the run's own steps, the end of its hooks."""
    yield healthy_tick(state)
    yield Happening.HOUR_PASSED
    if state.drain_state is DrainState.DRAIN:
        yield _TIMER
    if state.recovery_live:
        yield from _OWN_STEPS
    elif state.run is not None:
        yield Step(StepMove.END)


def attended(state: GateState) -> Iterator[Event]:
    """Add named persons, who act only where the gate is pinned or unreadable, and init where nothing is."""
    yield from unattended(state)
    if state.stored is Stored.UNINITIALISED:
        yield Happening.INIT
    elif effective_pin(state) is not None:
        yield from (Person(order) for order in (Order.OPEN, Order.RELEASE, Order.ACKNOWLEDGE))


def attended_without_open(state: GateState) -> Iterator[Event]:
    """Let persons only release and acknowledge; where the gate is unreadable they close it first."""
    yield from unattended(state)
    if state.stored is Stored.UNINITIALISED:
        yield Happening.INIT
    elif state.stored is not Stored.OK or state.behind:
        yield Person(Order.DRAIN)
    elif state.pin is not None:
        yield from (Person(order) for order in (Order.RELEASE, Order.ACKNOWLEDGE))


def lasting(state: GateState) -> bool:
    """Say whether the gate is open for good: at rest, nothing pending, nobody to wait for."""
    return state == GateState(stored=Stored.OK, drain_state=DrainState.ADMIT, reopened=state.reopened)


def stuck(states: Iterable[GateState], moves: Moves, rule: Rule = transition) -> list[GateState]:
    """Give the states from which no lasting open gate can be reached by these moves, in the order given."""
    comes_from: dict[GateState, list[GateState]] = {}
    every = list(states)
    known = set(every)
    for before in every:  # grows while it is walked: a move may lead outside the given states
        for event in moves(before):
            after = rule(before, event).state
            comes_from.setdefault(after, []).append(before)
            if after not in known:
                known.add(after)
                every.append(after)
    todo = deque(state for state in every if lasting(state))
    saved = set(todo)
    while todo:
        for before in comes_from.get(todo.popleft(), ()):
            if before not in saved:
                saved.add(before)
                todo.append(before)
    return [state for state in every if state not in saved]


def _told(exploration: Exploration, state: GateState) -> str:
    way = [f"  {describe_event(event)} → {describe_state(after)}" for event, after in exploration.trace(state)]
    return "\n".join(["stuck after", *way])


@pytest.mark.parametrize("moves", [attended, attended_without_open])
def test_no_state_is_stuck(moves: Moves, explored: Explored) -> None:
    """From every reachable state, healthy figures, live processes and persons acting where pinned open the gate; that
    they release is enough, `gate open` is never the only way."""
    exploration = explored.exploration
    left = stuck(exploration.states, moves)
    assert not left, _told(exploration, exploration.states[left[0]])


def test_an_unpinned_gate_without_duplicates_opens_by_itself(explored: Explored) -> None:
    """Where nothing is pinned, no duplicate waits and no hand edit is pending, nobody is needed: not even at 3 a.m."""
    exploration = explored.exploration
    left = {state for state in stuck(exploration.states, unattended) if state in exploration.states}
    for state in exploration.states:
        orphan = not state.recovery_live and (state.ramp or state.drain_state is DrainState.RECOVERING)
        edited = state.raw != "none" or state.raw_admission != "none"
        finishing = state.run is not None and not state.recovery_live
        if effective_pin(state) is None and not (state.duplicates or orphan or edited or finishing):
            assert state not in left, _told(exploration, exploration.states[state])


def test_a_pinned_gate_waits_for_its_person(explored: Explored) -> None:
    """By itself no pinned state ever opens: the other half of 'only a named person leaves a pin'."""
    pinned = [state for state in explored.exploration.states if effective_pin(state) is not None]
    left = set(stuck(pinned, unattended))
    assert [describe_state(state) for state in pinned if state not in left] == []


def test_an_open_gate_stays_open_under_healthy_ticks(explored: Explored) -> None:
    """At rest, no healthy tick, no passing hour and no limit moves the gate."""
    at_rest = [state for state in explored.exploration.states if lasting(state)]
    assert at_rest
    for state in at_rest:
        calm: tuple[Event, ...] = (healthy_tick(state), Apply(Action.HOLD), Overdue(), Happening.HOUR_PASSED)
        for event in calm:
            assert lasting(transition(state, event).state), describe_event(event)


@pytest.mark.parametrize("reopened", [False, True])
def test_the_way_of_a_whole_recovery(reopened: bool) -> None:
    """Drain → run → recovering → green → ramp → open, with the controller ticking between any two steps."""
    state = GateState(stored=Stored.OK, drain_state=DrainState.DRAIN, reopened=reopened)
    way: tuple[Event, ...] = (_TIMER, *_OWN_STEPS)
    for event in way:
        state = transition(transition(state, healthy_tick(state)).state, event).state
    assert lasting(state)
    assert state.reopened
