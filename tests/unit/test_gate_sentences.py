"""Every answer to every order is said in a sentence, and every closed gate says what would unblock it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.gate import DrainState, PinReason
from sluicegate.gate_events import Answer, Order
from sluicegate.gate_sentences import gate_lines, order_said, unblocks
from sluicegate.replies import GateAnswer
from sluicegate.telemetry import GateView, Telemetry
from tests.readings import EMPTY, OPEN_GATE, live


def telemetry(gate: GateView) -> Telemetry:
    return replace(EMPTY, gate=gate)


def closed(state: DrainState, **changes: object) -> GateView:
    raw = {"raw_drain_state": state.value, "raw_admission": "closed", "admission_ratio": 0.0}
    return replace(OPEN_GATE, drain_state=state.value, **raw, **changes)  # type: ignore[arg-type]  # the columns differ


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("answer", Answer)
def test_every_answer_to_every_order_is_said(order: Order, answer: Answer) -> None:
    reply = GateAnswer(answer.value, "drain", 1, pin="operator", run="run-1", acknowledged=2)
    said = order_said(order, reply, telemetry(closed(DrainState.DRAIN)))
    assert said.sentence.endswith(".")
    assert said.done == (answer in (Answer.MOVED, Answer.UNCHANGED))
    assert said.done or "`sluicegate " in said.hint, "what did not go says which command unblocks it"


def test_an_open_gate_needs_no_unblocking() -> None:
    assert list(unblocks(EMPTY)) == []


@pytest.mark.parametrize("pin", PinReason)
def test_every_pin_says_which_command_leaves_it(pin: PinReason) -> None:
    (line,) = unblocks(telemetry(closed(DrainState.DRAIN, pin=pin.value)))
    assert "`sluicegate " in line


@pytest.mark.parametrize("state", [DrainState.REJECT_NEW, DrainState.RECOVERING, DrainState.DRAIN])
def test_every_closed_state_without_a_pin_says_what_comes_next(state: DrainState) -> None:
    (line,) = unblocks(telemetry(closed(state)))
    assert "`sluicegate gate open --as NAME --reason WHY`" in line


def test_a_silent_controller_a_live_run_and_duplicates_are_named() -> None:
    (silent,) = unblocks(telemetry(replace(OPEN_GATE, admission_ratio=0.0)))
    assert "sluicegate automation serve" in silent
    run = live("drain-and-recover", step="drain")
    (named,) = unblocks(telemetry(closed(DrainState.DRAIN, run=run, pin="rolled_back")))
    assert "run-1" in named
    assert "--end-run" in named
    first, _ = unblocks(telemetry(closed(DrainState.DRAIN, duplicates_unacknowledged=2, pin="rolled_back")))
    assert "sluicegate gate acknowledge" in first


def test_keys_that_contradict_each_other_were_set_by_hand() -> None:
    text = "\n".join(gate_lines(telemetry(replace(closed(DrainState.DRAIN), raw_admission="open"))))
    assert "Set by hand: drain_state drain, admission open." in text
    assert "by ada" not in text
    assert "by ada (init)" in "\n".join(gate_lines(EMPTY))
