"""Canaries on real servers: which result counts, and what the run's journal says of it (SPEC §7.5)."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.job import CallKind, Job, Outcome
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery


@pytest.fixture
def recovery(queue: OpenQueue) -> Recovery:
    """Return a run that has put the gate into recovering."""
    run = Recovery(queue)
    assert run.step("recover") == "moved"
    return run


def call(latency_ms: int, kind: CallKind = CallKind.OK) -> dict[str, object]:
    return {"kind": kind.value, "status": 200, "latency_ms": latency_ms}


def counted(queue: OpenQueue) -> tuple[int, int]:
    gate = queue.store.observe().gate
    return gate.canary_ok_count, gate.canary_failures


def journal(queue: OpenQueue) -> list[str]:
    history = queue.store.run("run-1")
    assert history is not None
    return [entry.text for entry in history.journal if entry.phase == "canary"]


def passed(queue: OpenQueue, canary: Job) -> None:
    assert queue.settle(canary, Outcome.SUCCEEDED, call=call(1)).state == "succeeded"


def test_a_canary_passes_up_to_its_latency_and_not_beyond(queue: OpenQueue, recovery: Recovery) -> None:
    bound_ms = round(queue.contract.canary_max_latency_s("lint-fix") * 1000)
    assert queue.settle(recovery.canary(0), Outcome.SUCCEEDED, call=call(bound_ms)).state == "succeeded"
    assert counted(queue) == (1, 0)
    assert queue.settle(recovery.canary(1), Outcome.SUCCEEDED, call=call(bound_ms + 1)).state == "failed"
    assert counted(queue) == (0, 1)


def test_a_canary_without_a_latency_proves_nothing(queue: OpenQueue, recovery: Recovery) -> None:
    assert queue.settle(recovery.canary(0), Outcome.SUCCEEDED).state == "failed"
    assert counted(queue) == (0, 1)


def test_the_journal_says_of_each_canary_how_it_ended_and_why(queue: OpenQueue, recovery: Recovery) -> None:
    canaries = []
    ends: tuple[tuple[Outcome, dict[str, Any]], ...] = (
        (Outcome.SUCCEEDED, {"call": call(1)}),
        (Outcome.SUCCEEDED, {"call": call(60_000)}),
        (Outcome.FAILED, {"cause": "wrong answer", "call": call(1)}),
    )
    for n, (outcome, fields) in enumerate(ends):
        canary = recovery.canary(n)
        canaries.append(canary.job_id)
        queue.settle(canary, outcome, **fields)
    first, second, third = canaries
    assert journal(queue) == [f"{first} passed", f"{second} failed: slow", f"{third} failed: wrong answer"]
    assert [queue.record(job_id)["cause"] for job_id in canaries] == ["", "slow", "wrong answer"]
    history = queue.store.run("run-1")
    assert history is not None
    assert {entry.actor for entry in history.journal if entry.phase == "canary"} == {"w1"}
    counters = queue.counters()
    assert (counters["canaries_ok"], counters["canaries_failed"]) == (1, 2)
    assert counted(queue) == (0, 2)


def test_a_canary_that_gave_no_cause_is_told_by_its_outcome(queue: OpenQueue, recovery: Recovery) -> None:
    canary = recovery.canary(0)
    queue.settle(canary, Outcome.RETRY, call=call(1, CallKind.STATUS_5XX))
    assert journal(queue) == [f"{canary.job_id} failed: retry"]


def test_a_canary_after_green_is_in_the_journal_and_counts_for_nothing(queue: OpenQueue, recovery: Recovery) -> None:
    slow = recovery.canary(99)
    recovery.green()
    before = counted(queue)
    queue.settle(slow, Outcome.FAILED, cause="late", call=call(1))
    assert counted(queue) == before
    assert journal(queue)[-1] == f"{slow.job_id} failed: late (not counted)"


def test_a_canary_after_an_abort_counts_for_nothing(queue: OpenQueue, recovery: Recovery) -> None:
    canary = recovery.canary(0)
    queue.store.order("abort", "ada", "test")
    passed(queue, canary)
    assert counted(queue) == (0, 0)
    assert journal(queue) == [f"{canary.job_id} passed (not counted)"]


def test_a_hand_on_the_gate_is_adopted_before_a_canary_counts(queue: OpenQueue, recovery: Recovery) -> None:
    for n in range(queue.contract.canaries_required - 1):
        passed(queue, recovery.canary(n))
    last = recovery.canary(9)
    queue.client.set("drain_state", "drain")
    passed(queue, last)
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.green, gate.rollback_reason) == ("drain", False, "manual_operator_hold")


def test_a_canary_of_another_window_is_told_to_stop_before_its_call(queue: OpenQueue, recovery: Recovery) -> None:
    canary = recovery.canary(0)
    assert queue.store.intent("w1", canary.job_id, canary.fence) == "go"
    queue.client.hset(f"job:{canary.job_id}", "window", "1")
    assert queue.store.intent("w1", canary.job_id, canary.fence) == "stop"
    queue.settle(canary, Outcome.REQUEUED)


def test_a_canary_is_no_completion(queue: OpenQueue, recovery: Recovery) -> None:
    passed(queue, recovery.canary(0))
    assert queue.store.observe().completions == 0


def test_a_canary_that_nobody_took_in_time_is_in_the_journal_and_belongs_to_no_window(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(classes={"lint-fix": {"deadline_s": 1.0, "canary": {}}})
    run = Recovery(queue)
    run.step("recover")
    canary = run.put_canary(0)
    wait_until(
        lambda: float(queue.record(canary)["deadline"]) - queue.store.observe().at_ms < 400, "the margin of the canary"
    )
    assert queue.claim().jobs == ()
    assert counted(queue) == (0, 0)
    assert journal(queue) == [f"{canary} failed: expired (not counted)"]
