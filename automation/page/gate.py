"""Show the gate: what it is and why, who did it, what is admitted, and what else is known of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from automation.page.deeds import Deed, Offer
from automation.page.reading import Reading
from sluicegate.gate import DrainState
from sluicegate.gate_sentences import edited_by_hand, gate_lines
from sluicegate.telemetry import GateView


@dataclass(frozen=True, slots=True)
class Fact:
    """Name a fact and say it; `at_ms` is since when it is so, 0 where that is not told."""

    name: str
    text: str
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class GatePanel:
    """Show the gate: `state` in one word, `meaning` in one sentence, `summary` for who hears it instead."""

    queue: str
    state: str
    meaning: str
    summary: str
    facts: tuple[Fact, ...]
    offers: tuple[Offer, ...]


def gate_panel(reading: Reading) -> GatePanel:
    telemetry = reading.telemetry
    gate = telemetry.gate
    meaning = next(gate_lines(telemetry))
    pinned = f", pinned ({gate.pin})" if gate.pin is not None else ""
    return GatePanel(
        telemetry.queue,
        gate.drain_state,
        meaning,
        f"{meaning.rstrip('.')}{pinned}; last decision {gate.decision or 'none'} ({gate.decision_reason or 'none'}).",
        tuple(_facts(reading)),
        tuple(Offer(deed) for deed in (Deed.HOLD, Deed.REJECT, Deed.DRAIN)) if gate.initialised else (),
    )


def _facts(reading: Reading) -> Iterator[Fact]:
    gate = reading.telemetry.gate
    if gate.decision:
        yield Fact("Decision", f"{gate.decision}, for {gate.decision_reason}")
    if gate.readable and edited_by_hand(gate):
        yield Fact(
            "Set by hand",
            f"drain_state {gate.raw_drain_state}, admission {gate.raw_admission}: adopted where it tightens",
        )
    elif gate.readable:
        yield Fact("Why it is so", _why(reading))
        yield Fact("By", gate.actor, gate.since_ms)
    if gate.pin is not None:
        yield Fact("Pinned", gate.pin + (f": {gate.pin_note}" if gate.pin_note else ""))
    else:
        yield Fact("Pinned", "no")
    if gate.rollback_reason is not None:
        yield Fact("Rolled back", gate.rollback_reason)
    yield Fact("Admitted now", _admitted(gate))
    if gate.drain_state == DrainState.RECOVERING:
        green = "green" if gate.green else "not green yet"
        yield Fact("Canaries", f"{gate.canary_ok_count} of {gate.canaries_required} in a row, {green}")
    yield Fact("Epoch", str(gate.epoch))


def _why(reading: Reading) -> str:
    """Give the reason of the last move, and what its actor wrote beside it."""
    gate = reading.telemetry.gate
    note = next((move.note for move in reading.moves if move.epoch == gate.epoch and move.note), "")
    return f"{gate.reason}: {note}" if note else gate.reason


def _admitted(gate: GateView) -> str:
    percent = round(gate.admission_ratio * 100)
    ramp = f", in a ramp at {gate.ramp_percent} %" if gate.ramp_percent is not None else ""
    return f"{percent} % of new jobs{ramp}"
