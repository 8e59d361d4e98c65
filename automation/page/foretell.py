"""Say what an order on the gate would come to, by the very function that the gate's moves are tested against. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.gate import DrainState, GateState, PinReason, RollbackReason, Runbook, Stored, effective, effective_pin
from sluicegate.gate_events import Answer, OpenRun, Order, Person, Trigger
from sluicegate.replies import GateAnswer
from sluicegate.telemetry import GateView, Telemetry
from sluicegate.transition import Transition, transition


@dataclass(frozen=True, slots=True)
class Foretold:
    """Hold the answer that an order would get now, and the state that it would leave behind."""

    answer: GateAnswer
    state: GateState

    @property
    def moves(self) -> bool:
        return self.answer.answer == Answer.MOVED


def ordered(order: Order, telemetry: Telemetry) -> Foretold:
    """Foretell a named person's order."""
    return _foretold(transition(state_of(telemetry.gate), Person(order)), telemetry, order)


def run_opened(runbook: str, telemetry: Telemetry) -> Foretold:
    """Foretell a named person's asking for a lock-holding run."""
    event = OpenRun(Runbook(runbook), Trigger.PERSON)
    return _foretold(transition(state_of(telemetry.gate), event), telemetry, None)


def state_of(gate: GateView) -> GateState:
    """Give the state that a reading shows; an edit of the raw keys counts as it reads now."""
    stored = Stored.OK if gate.readable else Stored.UNREADABLE
    run = gate.run if gate.run is not None and gate.run.runbook in set(Runbook) else None
    return GateState(
        stored=stored if gate.initialised else Stored.UNINITIALISED,
        drain_state=DrainState(gate.drain_state),
        rollback_reason=RollbackReason(gate.rollback_reason) if gate.rollback_reason else None,
        pin=PinReason(gate.pin) if gate.pin in set(PinReason) else None,
        green=gate.green,
        ramp=gate.ramp_percent is not None,
        run=Runbook(run.runbook) if run is not None else None,
        rolling_back=run is not None and run.state == "rolling_back",
        duplicates=gate.duplicates_unacknowledged > 0,
    )


def _foretold(after: Transition, telemetry: Telemetry, order: Order | None) -> Foretold:
    gate = telemetry.gate
    pin = effective_pin(after.state)
    acknowledges = order is Order.ACKNOWLEDGE and after.answer is Answer.MOVED
    answer = GateAnswer(
        answer=after.answer.value,
        drain_state=effective(after.state).value,
        epoch=gate.epoch,
        pin=pin.value if pin is not None else None,
        run=gate.run.run_id if gate.run is not None else "",
        why="",
        acknowledged=gate.duplicates_unacknowledged if acknowledges else 0,
    )
    return Foretold(answer, after.state)
