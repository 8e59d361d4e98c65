"""Every answer to every order is said in a sentence, and every closed gate says what would unblock it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sluicegate.gate import DrainState, PinReason
from sluicegate.gate_events import Answer, Order
from sluicegate.gate_sentences import gate_lines, opening, order_said, unblocks
from sluicegate.replies import GateAnswer
from sluicegate.run_replies import JournalEntry, RunHistory, RunRecord
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


@pytest.mark.parametrize("run", [None, live("drain-and-recover")], ids=["no run", "a run"])
@pytest.mark.parametrize(
    ("seen_ms", "said"), [(0, "has looked here yet"), (EMPTY.at_ms - 16_000, "has looked since 20"), (EMPTY.at_ms, "")]
)
def test_a_closed_gate_without_a_controller_says_that_nothing_goes_on(run: object, seen_ms: int, said: str) -> None:
    first = next(iter(unblocks(telemetry(closed(DrainState.DRAIN, run=run, controller_seen_ms=seen_ms)))))
    assert (said in first and "`sluicegate automation serve`" in first) if said else "No controller" not in first


def test_a_silent_controller_a_live_run_and_duplicates_are_named() -> None:
    (silent,) = unblocks(telemetry(replace(OPEN_GATE, admission_ratio=0.0)))
    assert "sluicegate automation serve" in silent
    run = live("drain-and-recover", step="drain")
    named, abort, last = unblocks(telemetry(closed(DrainState.DRAIN, run=run, pin="rolled_back")))
    assert "`sluicegate automation show run-1`" in named
    assert "`sluicegate automation abort run-1 --as NAME --reason WHY`" in abort
    assert "`sluicegate gate open --end-run --as NAME --reason WHY`" in last
    rolls_back = replace(run, state="rolling_back")
    rolling, last = unblocks(telemetry(closed(DrainState.DRAIN, run=rolls_back, pin="rolled_back")))
    assert "`sluicegate automation serve`" in rolling
    assert "--end-run" in last
    first, _ = unblocks(telemetry(closed(DrainState.DRAIN, duplicates_unacknowledged=2, pin="rolled_back")))
    assert "sluicegate gate acknowledge" in first


def history(*phases: str, verb: str = "fix", state: str = "running", approvals: Mapping[str, str] = {}) -> RunHistory:
    """Give run-1 at its fourth step, with entries of these phases a second apart."""
    run = RunRecord.of({"id": "run-1", "runbook": "drain-and-recover", "state": state, "step": "4", "verb": verb})
    journal = tuple(
        JournalEntry(f"{number}-0", number * 1000, 4, verb, phase, "executor", f"waits for {phase}", "{}")
        for number, phase in enumerate(phases, 1)
    )
    before = JournalEntry("0-0", 0, 3, "drain", "paged", "executor", "an earlier step", "{}")
    return RunHistory(run, (before, *journal), approvals)


@pytest.mark.parametrize("verb", ["fix", "canary", "approve"])
def test_a_run_that_waits_for_a_person_says_since_when_and_names_their_word_then_abort_then_open(verb: str) -> None:
    run = live("drain-and-recover", step=verb)
    seen = replace(telemetry(closed(DrainState.DRAIN, run=run)), at_ms=62_000)
    lines = list(gate_lines(seen, history("started", "paged", "paged", verb=verb)))
    said = next(line for line in lines if "waits for a person" in line)
    assert said == (
        f"It waits for a person since 1970-01-01T00:00:02.000+00:00 (60 s), at step {verb}: waits for paged."
    )
    word, abort, last = lines[-3:]
    assert f"`sluicegate automation approve run-1 {verb} --as NAME --reason WHY`" in word
    assert "`sluicegate automation abort run-1" in abort
    assert "--end-run" in last


@pytest.mark.parametrize(
    "told",
    [
        history("started"),
        history("started", "paged", "done"),
        history("started", "paged", approvals={"4 fix": "ada: mended"}),
        history("started", "paged", state="rolling_back"),
    ],
    ids=["not paged", "done", "approved", "rolls back"],
)
def test_a_run_that_waits_for_nobody_asks_for_no_word(told: RunHistory) -> None:
    text = "\n".join(gate_lines(telemetry(closed(DrainState.DRAIN, run=live("drain-and-recover"))), told))
    assert "waits for a person" not in text
    assert "automation approve" not in text


def test_an_open_gate_whose_controller_is_silent_is_not_said_to_admit() -> None:
    first, *_ = gate_lines(telemetry(replace(OPEN_GATE, admission_ratio=0.0)))
    assert "controller is silent, so no job is admitted" in first
    first, *_ = gate_lines(EMPTY)
    assert first.endswith("is admit: jobs are admitted and pulled.")


def test_keys_that_contradict_each_other_were_set_by_hand() -> None:
    text = "\n".join(gate_lines(telemetry(replace(closed(DrainState.DRAIN), raw_admission="open"))))
    assert "Set by hand: drain_state drain, admission open." in text
    assert "by ada" not in text
    assert "by ada (init)" in "\n".join(gate_lines(EMPTY))


def test_a_queue_that_lost_its_keys_and_not_its_jobs_is_opened_by_apply_and_then_by_gate_open() -> None:
    lost = replace(OPEN_GATE, drain_state="drain", readable=False, initialised=False, pin="uninitialised")
    counted = replace(telemetry(lost), counters={"admitted": 3}, settings_digest="")
    (line,) = unblocks(counted)
    apply, opens = (line.find(f"`sluicegate {word} ") for word in ("queue apply --settings FILE", "gate open"))
    assert 0 < apply < opens
    assert opening(counted) == (
        "sluicegate queue apply --settings FILE --as NAME --reason WHY, then "
        "sluicegate gate open --as NAME --reason WHY"
    )
    never = replace(counted, counters={})
    assert "`sluicegate queue init " in next(unblocks(never))
    assert opening(never).startswith("sluicegate queue init ")


def test_a_lost_contract_is_written_anew_before_the_gate_is_opened() -> None:
    lost = closed(DrainState.DRAIN, readable=False, pin="control_data_lost")
    first, second = unblocks(replace(telemetry(lost), settings_digest=""))
    assert "`sluicegate queue apply " in first
    assert "`sluicegate gate open " in second
