"""Who owns a run, whose word counts for a step, and what the kill switch does, on real servers (SPEC §7)."""

from __future__ import annotations

from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery


def phases(queue: OpenQueue, phase: str) -> list[str]:
    history = queue.store.run("run-1")
    assert history is not None
    return [entry.actor for entry in history.journal if entry.phase == phase]


def approved(queue: OpenQueue, run: str, step: str) -> str:
    return queue.store.approve(run, step, actor="ada", reason="seen")


def reasons(queue: OpenQueue) -> list[tuple[str, str]]:
    return [(entry.reason, entry.actor) for entry in queue.store.gate_log(5)]


def test_a_run_has_one_owner_until_its_lease_ends(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"run_lease_s": 0.5})
    Recovery(queue)
    fence = queue.client.hget("run:run-1", "fence")
    other = queue.store.claim_run("e2", "", "")
    assert other.run is not None
    assert (other.run.run_id, other.owned) == ("run-1", False)
    for executor, run, known in (("e2", "run-1", fence), ("e1", "run-1", "1"), ("e1", "run-2", fence)):
        assert not queue.store.claim_run(executor, run, known).owned
    wait_until(lambda: queue.store.claim_run("e2", "", "").owned, "the end of the lease")
    taken = queue.client.hgetall("run:run-1")
    assert (taken["owner"], int(taken["fence"]) > int(fence)) == ("e2", True)
    assert phases(queue, "claimed")[-1] == "e2"


def test_an_owner_renews_under_its_fence_and_is_written_down_once(queue: OpenQueue) -> None:
    Recovery(queue)
    fence = queue.client.hget("run:run-1", "fence")
    lease_end = int(queue.client.hget("run:run-1", "lease_end"))
    wait_until(lambda: queue.store.claim_run("e1", "run-1", fence).owned and later(queue, lease_end), "a later end")
    assert queue.client.hget("run:run-1", "fence") == fence
    assert phases(queue, "claimed") == ["e1"]


def later(queue: OpenQueue, lease_end: int) -> bool:
    return int(queue.client.hget("run:run-1", "lease_end")) > lease_end


def test_without_a_run_there_is_none_to_own(queue: OpenQueue) -> None:
    assert approved(queue, "run-1", "fix") == "gone"
    claim = queue.store.claim_run("e1", "", "")
    assert (claim.run, claim.owned) == (None, False)


def test_a_word_counts_for_the_step_that_the_run_is_in_and_once(queue: OpenQueue) -> None:
    run = Recovery(queue)
    assert approved(queue, "run-1", "fix") == "not_waiting"
    assert run.step("journal", verb="fix", phase="started") == "moved"
    assert approved(queue, "run-2", "fix") == "gone"
    assert approved(queue, "run-1", "recover") == "not_waiting"
    assert approved(queue, "run-1", "fix") == "moved"
    assert approved(queue, "run-1", "fix") == "unchanged"
    assert phases(queue, "approved") == ["ada"]


def test_a_step_that_is_done_takes_no_word(queue: OpenQueue) -> None:
    run = Recovery(queue)
    run.step("journal", verb="fix", phase="done")
    assert approved(queue, "run-1", "fix") == "not_waiting"


def test_where_canaries_are_declared_no_word_stands_for_them(queue: OpenQueue) -> None:
    run = Recovery(queue)
    run.step("journal", verb="canary", phase="started")
    assert approved(queue, "run-1", "canary") == "not_waiting"


def test_a_run_that_rolls_back_takes_no_word(queue: OpenQueue) -> None:
    run = Recovery(queue)
    run.step("journal", verb="fix", phase="started")
    queue.store.order("abort", "ada", "test")
    assert approved(queue, "run-1", "fix") == "gone"


def test_the_kill_switch_rolls_a_recovery_back_and_stands_until_it_is_taken_off(queue: OpenQueue) -> None:
    Recovery(queue)
    queue.store.kill_switch(on=True, actor="ada", reason="enough")
    assert queue.client.get("kill") == "ada: enough"
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.rollback_reason) == ("drain", "manual_operator_hold")
    assert reasons(queue)[0] == ("kill_switch_on", "ada")
    queue.store.kill_switch(on=False, actor="bob", reason="mended")
    assert queue.client.get("kill") is None
    assert reasons(queue)[0] == ("kill_switch_off", "bob")
    assert queue.store.observe().gate.epoch == gate.epoch


def test_taking_the_switch_off_leaves_a_recovery_alone(queue: OpenQueue) -> None:
    Recovery(queue)
    before = queue.store.observe().gate
    queue.store.kill_switch(on=False, actor="ada", reason="test")
    after = queue.store.observe().gate
    assert (after.epoch, after.drain_state, after.rollback_reason) == (before.epoch, "drain", before.rollback_reason)


def test_the_switch_adopts_a_hand_edit_first(queue: OpenQueue) -> None:
    queue.client.set("drain_state", "reject_new")
    queue.store.kill_switch(on=True, actor="ada", reason="test")
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.pin) == ("reject_new", "hand_edit")
    assert reasons(queue)[:2] == [("kill_switch_on", "ada"), ("hand_edit", "hand")]


def test_the_switch_is_set_where_the_gate_cannot_be_read(queue: OpenQueue) -> None:
    record = queue.client.hgetall("control:gate")
    queue.client.delete("control:gate")
    queue.store.kill_switch(on=True, actor="ada", reason="test")
    assert queue.client.get("kill") == "ada: test"
    assert not queue.client.exists("control:gate")
    queue.client.hset("control:gate", mapping=record)
