"""Every answer to every order is said in a sentence, and every closed gate says what would unblock it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.gate import DrainState, PinReason
from sluicegate.gate_sentences import gate_lines, order_said, unblocks
from sluicegate.replies import GateAnswer
from sluicegate.telemetry import GateView, ProviderWindow, RunView, Telemetry
from sluicegate.transition import Answer, Order

OPEN = GateView(
    drain_state="admit",
    readable=True,
    initialised=True,
    epoch=1,
    reason="init",
    actor="ada",
    since_ms=1000,
    rollback_reason=None,
    pin=None,
    pin_note="",
    green=False,
    canary_ok_count=0,
    canaries_required=3,
    canary_failures=0,
    ramp_percent=None,
    admission_ratio=1.0,
    controller_seen_ms=1000,
    duplicates_unacknowledged=0,
    limit_at_ms=0,
    run=None,
    decision="admit",
    decision_reason="normal",
    raw_drain_state="admit",
    raw_admission="open",
)


def telemetry(gate: GateView) -> Telemetry:
    return Telemetry(
        queue="default",
        at_ms=5000,
        queue_age_p95_seconds=0.0,
        oldest_job_age_seconds=0.0,
        oldest_ready_at_ms=None,
        deadline_slack_p10_seconds=None,
        provider=ProviderWindow(30, 0, 0, 0),
        worker_inflight=0,
        gate=gate,
        ready=0,
        delayed=0,
        running=0,
        unknown=0,
        blocked=0,
        canaries=0,
        doomed=0,
        completions=0,
        predicted_wait_seconds=None,
        snapshot_at_ms=0,
        settings_digest="d",
    )


def closed(state: DrainState, **changes: object) -> GateView:
    raw = {"raw_drain_state": state.value, "raw_admission": "closed", "admission_ratio": 0.0}
    return replace(OPEN, drain_state=state.value, **raw, **changes)  # type: ignore[arg-type]  # the columns differ


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("answer", Answer)
def test_every_answer_to_every_order_is_said(order: Order, answer: Answer) -> None:
    reply = GateAnswer(answer.value, "drain", 1, pin="operator", run="run-1", acknowledged=2)
    said = order_said(order, reply, telemetry(closed(DrainState.DRAIN)))
    assert said.sentence.endswith(".")
    assert said.done == (answer in (Answer.MOVED, Answer.UNCHANGED))
    assert said.done or "`sluicegate " in said.hint, "what did not go says which command unblocks it"


def test_an_open_gate_needs_no_unblocking() -> None:
    assert list(unblocks(telemetry(OPEN))) == []


@pytest.mark.parametrize("pin", PinReason)
def test_every_pin_says_which_command_leaves_it(pin: PinReason) -> None:
    (line,) = unblocks(telemetry(closed(DrainState.DRAIN, pin=pin.value)))
    assert "`sluicegate " in line


@pytest.mark.parametrize("state", [DrainState.REJECT_NEW, DrainState.RECOVERING, DrainState.DRAIN])
def test_every_closed_state_without_a_pin_says_what_comes_next(state: DrainState) -> None:
    (line,) = unblocks(telemetry(closed(state)))
    assert "`sluicegate gate open --as NAME --reason WHY`" in line


def test_a_silent_controller_a_live_run_and_duplicates_are_named() -> None:
    (silent,) = unblocks(telemetry(replace(OPEN, admission_ratio=0.0)))
    assert "sluicegate automation serve" in silent
    run = RunView("run-1", "drain-and-recover", "drain", "running")
    (live,) = unblocks(telemetry(closed(DrainState.DRAIN, run=run, pin="rolled_back")))
    assert "run-1" in live
    assert "--end-run" in live
    first, _ = unblocks(telemetry(closed(DrainState.DRAIN, duplicates_unacknowledged=2, pin="rolled_back")))
    assert "sluicegate gate acknowledge" in first


def test_keys_that_contradict_each_other_were_set_by_hand() -> None:
    text = "\n".join(gate_lines(telemetry(replace(closed(DrainState.DRAIN), raw_admission="open"))))
    assert "Set by hand: drain_state drain, admission open." in text
    assert "by ada" not in text
    assert "by ada (init)" in "\n".join(gate_lines(telemetry(OPEN)))
