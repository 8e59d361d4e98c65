"""Every event the gate knows, and every row (state, event, expected) that follows from `transition`.

Two tests share it: the exploration of the pure function, and the contract test that runs the functions inside Redis
through the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields

from sluicegate.gate import GateState, RawEdit, RollbackReason, Runbook, Stored
from sluicegate.gate_events import (
    Answer,
    Apply,
    Beside,
    Event,
    HandEdit,
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
from sluicegate.transition import Transition, transition

Rule = Callable[[GateState, Event], Transition]

_BOTH = (False, True)
_MAY_GO_UNPINNED = frozenset({Order.DRAIN, Order.REJECT, Order.HOLD})


def all_events() -> tuple[Event, ...]:
    """Give every event once; a flag varies wherever the kind of event takes it."""
    return (*_applies(), Overdue(), *_hand_edits(), *_open_runs(), *_steps(), *_besides(), *_persons(), *Happening)


def _applies() -> Iterator[Event]:
    for action in Action:
        for stale in _BOTH:
            for held in _BOTH if action is Action.ADMIT else (False,):
                yield Apply(action, held=held, stale=stale)


def _hand_edits() -> Iterator[Event]:
    yield from (HandEdit(raw) for raw in RawEdit if raw is not RawEdit.NONE)


def _open_runs() -> Iterator[Event]:
    for runbook in Runbook:
        for trigger in Trigger:
            for confirmed in _BOTH:
                for allowed in _BOTH:
                    yield OpenRun(runbook, trigger, confirmed=confirmed, allowed=allowed)


def _steps() -> Iterator[Event]:
    for move in StepMove:
        reasons = list(RollbackReason) if move is StepMove.ROLLBACK else [RollbackReason.MANUAL_OPERATOR_HOLD]
        for reason in reasons:
            for fenced in _BOTH:
                for proven in _BOTH:
                    yield Step(move, fenced=fenced, proven=proven, reason=reason)


def _besides() -> Iterator[Event]:
    yield from (Beside(fenced=fenced) for fenced in _BOTH)


def _persons() -> Iterator[Event]:
    for order in Order:
        for pin in _BOTH if order in _MAY_GO_UNPINNED else (True,):
            yield Person(order, pin=pin)


@dataclass(frozen=True, slots=True)
class Row:
    """Hold one line of the table: the state before, the event, and what must come of them."""

    before: GateState
    event: Event
    after: GateState
    answer: Answer


@dataclass
class Exploration:
    """Walk `rule` from `start` over `events`, breadth first: the trace to a state is a shortest one.

    Equal states are one object, so that they can be compared by `is`.
    """

    rule: Rule = transition
    events: Sequence[Event] = field(default_factory=all_events)
    start: GateState = field(default_factory=GateState)
    states: dict[GateState, GateState] = field(default_factory=dict)
    _came_from: dict[int, tuple[GateState, Event]] = field(default_factory=dict)

    def walk(self) -> Iterator[Row]:
        """Yield each (state, event) pair once, as it is found; a raised error names the trace that led to it."""
        self.states = {self.start: self.start}
        todo = [self.start]
        for before in todo:
            for event in self.events:
                result = self._apply(before, event)
                after = self.states.get(result.state)
                if after is None:
                    after = self.states.setdefault(result.state, result.state)
                    self._came_from[id(after)] = (before, event)
                    todo.append(after)
                yield Row(before, event, after, result.answer)

    def trace(self, state: GateState) -> list[tuple[Event, GateState]]:
        """Give a shortest way from the start: each event with the state after it."""
        way: list[tuple[Event, GateState]] = []
        while state is not self.start:
            before, event = self._came_from[id(state)]
            way.append((event, state))
            state = before
        return way[::-1]

    def told(self, row: Row) -> str:
        """Tell a row with the shortest way to it, one event a line."""
        lines = [describe_state(self.start)]
        lines += [f"  {describe_event(event)} → {describe_state(state)}" for event, state in self.trace(row.before)]
        return "\n".join(
            [*lines, f"* {describe_event(row.event)} → {describe_state(row.after)}, answered {row.answer}"]
        )

    def _apply(self, before: GateState, event: Event) -> Transition:
        try:
            return self.rule(before, event)
        except Exception as error:
            way = " → ".join(describe_event(step) for step, _ in self.trace(before)) or "the start"
            raise AssertionError(f"{describe_event(event)} after {way} is not defined: {error!r}") from error


def covering_rows(rows: Iterable[Row], per_kind: int = 1) -> list[Row]:
    """Choose rows for a slow reader, about 7,000 at one a kind: (event, answer, changed fields with their new values).

    The rows come breadth first, so the chosen states are those with the shortest ways to them.
    """
    chosen: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        kind = (row.event, row.answer, *_changes(row))
        if len(chosen[kind]) < per_kind:
            chosen[kind].append(row)
    return [row for group in chosen.values() for row in group]


def _changes(row: Row) -> list[tuple[str, object]]:
    if row.before is row.after:
        return []
    names = [each.name for each in fields(GateState)]
    pairs = [(name, getattr(row.before, name), getattr(row.after, name)) for name in names]
    return [(name, after) for name, before, after in pairs if before is not after]


def describe_state(state: GateState) -> str:
    """Say a state in the fewest words: what differs from an open gate at rest."""
    if state == GateState():
        return "uninitialised"
    rest = GateState(stored=Stored.OK, drain_state=state.drain_state)
    names = [each.name for each in fields(GateState)]
    odd = [f"{name}={getattr(state, name)}" for name in names if getattr(state, name) != getattr(rest, name)]
    return f"{state.drain_state}({', '.join(odd)})" if odd else f"{state.drain_state}"


def describe_event(event: Event) -> str:
    """Say an event in the fewest words: its subject, and each flag that is not as usual."""
    if isinstance(event, Happening):
        return f"Happening.{event.name}"
    words = []
    for each in fields(event):
        value = getattr(event, each.name)
        if each.default is MISSING:
            words.append(str(value))
        elif value != each.default:
            words.append(f"{each.name}={value}")
    return f"{type(event).__name__}({', '.join(words)})"
