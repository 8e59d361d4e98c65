"""Runs that hold no lock: one of each, beside the one that does, and of the gate they move only admit → reject_new."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sluicegate.gate import Runbook
from sluicegate.replies import GateAnswer
from sluicegate.run_replies import StepAnswer
from tests.contract.gate_actors import Led, claimed_run, committed, opened, pass_canaries
from tests.queues import OpenQueue, OpenQueueFunction, contract_of

PREPARE, HOLD, RECONCILE = "reject-and-prepare", "hold-recovery", "reconcile-unknown"
RECOVER, AUDIT = Runbook.DRAIN_AND_RECOVER.value, Runbook.ROLLBACK_AND_AUDIT.value
FIVE = (RECOVER, AUDIT, PREPARE, HOLD, RECONCILE)


def asked(queue: OpenQueue, runbook: str, run: str = "beside-1", trigger: str = "webhook", **more: Any) -> GateAnswer:
    return opened(queue, runbook=runbook, run=run, trigger=trigger, **more)


def owned(queue: OpenQueue, runbook: str = PREPARE, run: str = "beside-1") -> str:
    """Open a run beside the lock, own it, and give its fence."""
    assert asked(queue, runbook, run).answer == "moved"
    claim = queue.store.claim_run("e1", "", "", beside=runbook)
    assert claim.owned
    return claim.fence


def done(queue: OpenQueue, fence: str, effect: str, request: str = "r1", **changes: Any) -> StepAnswer:
    return committed(queue, fence, effect, request, **{"run": "beside-1", **changes})


def live_runs(queue: OpenQueue) -> set[str]:
    gate = queue.store.observe().gate
    return {run.runbook for run in (*gate.besides, *([gate.run] if gate.run else []))}


def expected(first: str, second: str, trigger: str) -> tuple[str, set[str]]:
    """Give what SPEC §7 says of asking for `second` while `first` is live: the answer, and who is live afterwards."""
    by_person = trigger == "person"
    if second == AUDIT:
        if first == AUDIT:
            return "attached", {AUDIT}
        return "moved", {AUDIT} if first == RECOVER else {first, AUDIT}  # it outranks, and supersedes
    if first == AUDIT and not by_person:
        return "suppressed", {AUDIT}  # the audit stands at a pinned gate
    if first == second or (second == RECOVER and first == AUDIT):
        return ("run_live" if by_person else "attached"), {first}
    return "moved", {first, second}


def ask_second(queue: OpenQueue, first: str, second: str, trigger: str) -> tuple[str, set[str]]:
    if AUDIT in (first, second):
        queue.store.confirm_duplicate("key-1", actor="ada", note="two effects")
    if first == AUDIT:
        assert asked(queue, AUDIT, "first").answer == "moved"
    elif second == AUDIT:
        # No recovery opens over duplicates: they are found while it runs.
        queue.store.order("acknowledge", "ada", "known")
        assert asked(queue, first, "first", trigger="person").answer == "moved"
        queue.store.confirm_duplicate("key-2", actor="ada", note="two effects")
    else:
        assert asked(queue, first, "first", trigger="person").answer == "moved"
    answer = asked(queue, second, "second", trigger=trigger)
    return answer.answer, live_runs(queue)


@pytest.mark.parametrize("trigger", ["webhook", "person"])
def test_each_ordered_pair_of_the_five_locks_attaches_or_supersedes(redis_url: str, trigger: str) -> None:
    contract, seen, wanted = contract_of(), {}, {}
    for number, (first, second) in enumerate(itertools.product(FIVE, FIVE)):
        queue = OpenQueue(redis_url, contract, f"pair-{number}")
        seen[first, second] = ask_second(queue, first, second, trigger)
        wanted[first, second] = expected(first, second, trigger)
        ended = {run.runbook: run.state for run in queue.store.runs() if not run.live}
        assert ended == ({RECOVER: "superseded"} if (first, second) == (RECOVER, AUDIT) else {})
        queue.close()
    assert len(seen) == 25
    assert seen == wanted


def test_it_closes_admission_and_nothing_else_and_the_controller_may_open_again(queue: OpenQueue) -> None:
    fence = owned(queue)
    answer = done(queue, fence, "reject_new")
    gate = queue.store.observe().gate
    assert (answer.answer, gate.drain_state, gate.pin, gate.reason) == ("moved", "reject_new", None, "run_reject")
    assert [entry.run for entry in queue.store.gate_log(1)] == ["beside-1"]
    assert done(queue, fence, "reject_new", "r2").answer == "unchanged"
    led = Led(queue)
    led.decide("admit", exit_ok=True)
    assert led.record()["ok_since"] != "0"


@pytest.mark.parametrize(
    "effect",
    [
        "recover", "green", "reopen", "ramp", "ramp_end", "rollback", "drain", "burned_down", "canary", "snapshot",
        "endpoint", "restore_endpoint", "no_such_effect",
    ],
)  # fmt: skip
def test_every_other_effect_is_refused_to_it(queue: OpenQueue, effect: str) -> None:
    queue.accepted()
    fence, before = owned(queue), queue.store.observe()
    changes: dict[str, Any] = {
        "keep_ms": 3_600_000,
        "class": "lint-fix",
        "n": 0,
        "payload": "{}",
        "endpoint": "http://x",
    }
    assert done(queue, fence, effect, **changes).answer == "refused"
    after = queue.store.observe()
    assert (after.gate.epoch, after.unfinished, after.canaries) == (before.gate.epoch, before.unfinished, 0)
    assert queue.client.exists("control:endpoint", "control:snapshot") == 0
    assert [entry.phase for entry in queue.store.run("beside-1").journal] == ["opened", "claimed"]  # type: ignore[union-attr]


@pytest.mark.parametrize("order", ["drain", "reject", "hold"])
def test_a_gate_that_is_tighter_or_pinned_stands(queue: OpenQueue, order: str) -> None:
    fence = owned(queue)
    queue.store.order(order, "ada", "a test")
    before = queue.store.observe().gate
    answer = done(queue, fence, "reject_new").answer
    after = queue.store.observe().gate
    assert (after.pin, answer) == ("operator", "moved" if order == "hold" else "unchanged")
    assert after.drain_state == {"drain": "drain", "reject": "reject_new", "hold": "reject_new"}[order]
    assert before.pin == after.pin


def test_in_a_ramp_it_is_refused_for_the_runs_own_gate_decides(queue: OpenQueue) -> None:
    lock = claimed_run(queue)
    assert committed(queue, lock, "recover", "r1").answer == "moved"
    pass_canaries(queue, lock)
    assert committed(queue, lock, "reopen", "r2").answer == "moved"
    fence, ramp = owned(queue), queue.store.observe().gate.ramp_percent
    assert done(queue, fence, "reject_new").answer == "refused"
    assert (queue.store.observe().gate.drain_state, queue.store.observe().gate.ramp_percent) == ("admit", ramp)


def test_an_old_fence_and_the_fence_of_another_run_are_refused(queue: OpenQueue) -> None:
    old, other = owned(queue), owned(queue, HOLD, "beside-2")
    queue.client.hset(queue.store.keys.run("beside-1"), "lease_end", "0")
    taken = queue.store.claim_run("e2", "", "", beside=PREPARE)
    assert taken.owned
    assert taken.besides == (HOLD, PREPARE)
    assert done(queue, old, "reject_new").answer == "stale"
    assert done(queue, other, "reject_new", "r2").answer == "stale"
    assert queue.store.observe().gate.drain_state == "admit"
    assert queue.counters()["fenced_steps"] == 2
    assert done(queue, taken.fence, "journal", "r3", executor="e2").answer == "moved"


def test_another_executors_run_is_not_claimed_while_its_lease_lasts(queue: OpenQueue) -> None:
    owned(queue)
    claim = queue.store.claim_run("e2", "", "", beside=PREPARE)
    assert not claim.owned
    assert claim.run is not None
    assert queue.store.claim_run("e2", "", "", beside=RECONCILE).run is None


@pytest.mark.parametrize("result", ["succeeded", "failed"])
def test_it_ends_by_its_own_word_then_cools_down_and_leaves_the_gate_alone(queue: OpenQueue, result: str) -> None:
    fence, epoch = owned(queue), queue.store.observe().gate.epoch
    assert done(queue, fence, "finish", result="rolled_back").answer == "refused"
    assert done(queue, fence, "finish", "r2", result=result, note="a test").answer == "moved"
    assert done(queue, fence, "finish", "r2", result=result, note="a test").answer == "moved"
    assert queue.store.runs()[0].state == result
    assert queue.store.observe().gate.epoch == epoch
    assert live_runs(queue) == set()
    again = asked(queue, PREPARE, "beside-2")
    assert (again.answer, again.why) == ("refused", "cooldown")
    assert asked(queue, HOLD, "beside-3").answer == "moved"
    assert asked(queue, PREPARE, "beside-4", trigger="person").answer == "moved"


def test_the_hourly_limit_is_of_lock_holding_runs_alone(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(runs_per_hour=1)
    for number, runbook in enumerate((PREPARE, HOLD, RECONCILE)):
        assert asked(queue, runbook, f"beside-{number}").answer == "moved"
    assert opened(queue).answer == "moved"


def test_without_the_figures_word_it_waits_and_a_person_needs_none(queue: OpenQueue) -> None:
    assert asked(queue, PREPARE, confirmed=False).answer == "waiting"
    assert asked(queue, PREPARE, confirmed=False, trigger="person").answer == "moved"


def test_the_kill_switch_ends_them_and_forbids_new_ones(queue: OpenQueue) -> None:
    owned(queue)
    owned(queue, RECONCILE, "beside-2")
    queue.store.kill_switch(on=True, actor="ada", reason="maintenance")
    assert live_runs(queue) == set()
    assert {run.state for run in queue.store.runs()} == {"aborted"}
    refused = asked(queue, HOLD, "beside-3")
    assert (refused.answer, refused.why) == ("refused", "kill_switch")
    assert asked(queue, HOLD, "beside-4", trigger="person").answer == "moved"


def test_a_person_aborts_it_and_the_gate_stays(queue: OpenQueue) -> None:
    fence, epoch = owned(queue), queue.store.observe().gate.epoch
    assert queue.store.abort_beside("beside-1", actor="ada", reason="wrong alert") == "moved"
    assert queue.store.abort_beside("beside-1", actor="ada", reason="wrong alert") == "gone"
    assert queue.store.abort_beside("never", actor="ada", reason="wrong alert") == "gone"
    assert done(queue, fence, "reject_new").answer == "stale"
    assert queue.store.observe().gate.epoch == epoch
    ended = queue.store.runs()[0]
    assert (ended.state, ended.ended_by, ended.ended_why) == ("aborted", "ada", "wrong alert")


def test_a_lock_holding_run_is_not_ended_by_that_word(queue: OpenQueue) -> None:
    claimed_run(queue)
    assert queue.store.abort_beside("run-1", actor="ada", reason="a test") == "gone"
    assert live_runs(queue) == {RECOVER}


def test_what_it_says_is_told_with_its_journal_entry(queue: OpenQueue) -> None:
    fence = owned(queue)
    for _ in range(2):
        assert done(queue, fence, "notify", text="admission is closed").answer == "moved"
    said = [fields for _, fields in queue.client.xrange("notices") if fields["kind"] == "said"]
    assert [(one["run"], one["runbook"], one["text"]) for one in said] == [("beside-1", PREPARE, "admission is closed")]


def test_a_name_that_is_none_and_the_seventeenth_are_refused(queue: OpenQueue) -> None:
    assert asked(queue, "No Name!", trigger="person").why == "no_name"
    for number in range(16):
        assert asked(queue, f"book-{number}", f"beside-{number}").answer == "moved"
    assert asked(queue, "book-16", "beside-16", trigger="person").why == "too_many"


def test_with_the_gates_records_lost_it_does_nothing_and_ends(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    fence, led = owned(queue), Led(queue)
    queue.client.set("control:epoch", "many")
    assert done(queue, fence, "reject_new").answer == "unreadable"
    assert asked(queue, HOLD, "beside-2").answer == "unreadable"
    led.queue.store.move_gate(action="hold", reason="x", exit_ok=False, epoch=0, fence=led.fence, figures="{}")
    assert queue.store.runs()[0].state == "lost"


def test_a_persons_word_counts_for_its_step(queue: OpenQueue) -> None:
    fence = owned(queue)
    assert done(queue, fence, "journal", verb="approve", phase="started").answer == "moved"
    assert queue.store.approve("beside-1", "fix", actor="ada", reason="no such step") == "not_waiting"
    assert queue.store.approve("beside-1", "approve", actor="ada", reason="looked at it") == "moved"
    history = queue.store.run("beside-1")
    assert history is not None
    assert history.approvals == {"1 approve": "ada: looked at it"}
