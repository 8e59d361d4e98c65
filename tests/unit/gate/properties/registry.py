"""How a rule of the gate gets its name, and what several rules ask of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluicegate.gate import DrainState, GateState
from sluicegate.gate_events import Order, Person, Step, StepMove
from tests.unit.gate.view import Seen, View

Check = Callable[[Seen], bool]

# What control:gate holds; the run, its hooks, the duplicates and the clock are data of their own.
_GATE_FIELDS = ("stored", "drain_state", "rollback_reason", "pin", "green", "ramp", "behind")


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


class Rules:
    """Collect one file's properties under the names of their functions."""

    def __init__(self) -> None:
        self.properties: dict[str, Property] = {}

    def rule(self, *kinds: type[object]) -> Callable[[Check], Check]:
        """Take a function as the rule for these kinds of event."""

        def register(check: Check) -> Check:
            self.properties[check.__name__] = Property(check, kinds)
            return check

        return register


def is_step(seen: Seen, *moves: StepMove) -> bool:
    return isinstance(seen.event, Step) and seen.event.move in moves


def is_order(seen: Seen, *orders: Order) -> bool:
    return isinstance(seen.event, Person) and seen.event.order in orders


def same_gate(one: GateState, other: GateState) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _GATE_FIELDS)


def closed_with_reason(view: View) -> bool:
    """Say whether the gate is drain, pinned, with a rollback reason: how every rollback ends."""
    state = view.state
    return state.drain_state is DrainState.DRAIN and state.pin is not None and state.rollback_reason is not None
