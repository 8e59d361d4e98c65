"""Named persons' orders and raw edits on real servers, as producers and workers meet them (contract §6)."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from sluicegate.job import CallKind, Outcome
from sluicegate.store import Store
from tests.queues import OpenQueue

RUN = {"runbook": "drain-and-recover", "trigger": "person", "run": "run-1", "actor": "ada", "reason": "test"}


def opened_run(queue: OpenQueue) -> str:
    answer = queue.store.open_run({**RUN, "confirmed": True, "digest": "", "episode": ""})
    assert answer.answer == "moved"
    return answer.run


def confirmed_duplicate(queue: OpenQueue) -> None:
    queue.store.confirm_duplicate("k1", actor="ada", note="two in the provider's log")


def test_a_raw_drain_works_at_once_for_admission_and_for_claims(queue: OpenQueue) -> None:
    queue.accepted()
    queue.client.set("drain_state", "drain")
    assert queue.submit().reason == "admission_closed"
    claimed = queue.claim()
    assert (claimed.drain_state, claimed.jobs) == ("drain", ())


def test_a_raw_closed_reads_as_reject_new(queue: OpenQueue) -> None:
    queue.accepted()
    queue.client.set("admission", "closed")
    assert queue.submit().reason == "admission_closed"
    claimed = queue.claim()
    assert (claimed.drain_state, len(claimed.jobs)) == ("reject_new", 1)


@pytest.mark.parametrize("order", ["reject", "drain"])
@pytest.mark.parametrize("edit", [("admission", "open"), ("drain_state", "admit"), ("drain_state", "recovering")])
def test_a_raw_edit_that_loosens_changes_nothing(queue: OpenQueue, order: str, edit: tuple[str, str]) -> None:
    queue.accepted()
    before = queue.store.order(order, "ada", "test").drain_state
    queue.client.set(*edit)
    assert queue.submit().reason == "admission_closed"
    tighter = "recovering" if edit[1] == "recovering" and before == "reject_new" else before
    assert queue.claim().drain_state == tighter
    # The next tick writes it back, with its log entry.
    _, fence = queue.store.lead("c1")
    queue.store.tick(fence)
    assert queue.client.get("drain_state") == before
    assert queue.client.get("admission") == "closed"
    newest = queue.store.gate_log(1)[0]
    assert (newest.reason, newest.actor, newest.to_state) == ("hand_edit_written_back", "hand", before)
    assert "sluicegate gate open" in newest.note


def test_a_raw_drain_is_adopted_pinned_by_the_next_tick(queue: OpenQueue) -> None:
    queue.client.set("drain_state", "drain")
    _, fence = queue.store.lead("c1")
    gate = queue.store.tick(fence).gate
    assert (gate.drain_state, gate.pin, gate.actor) == ("drain", "hand_edit", "hand")


@pytest.mark.parametrize(
    ("key", "value"), [("drain_state", "wide-open"), ("admission", "maybe"), ("control:epoch", "x")]
)
def test_garbage_reads_as_drain_pinned_until_a_person_opens(queue: OpenQueue, key: str, value: str) -> None:
    queue.accepted()
    queue.client.set(key, value)
    assert queue.submit().reason == "admission_closed"
    assert queue.claim().jobs == ()
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.pin, gate.readable) == ("drain", "control_data_lost", False)
    assert queue.store.order("release", "ada", "test").answer == "unreadable"
    assert queue.store.order("open", "ada", "looked at it").answer == "moved"
    assert queue.submit().accepted


@pytest.mark.parametrize("key", ["drain_state", "admission", "control:gate", "control:epoch", "queue:settings"])
def test_a_missing_part_reads_as_drain(queue: OpenQueue, key: str) -> None:
    queue.accepted()
    text = queue.client.dump(key)
    queue.client.delete(key)
    assert queue.submit().reason == "admission_closed"
    assert queue.claim().jobs == ()
    assert queue.store.observe().gate.pin == "control_data_lost"
    queue.client.restore(key, 0, text)


def test_an_empty_server_is_uninitialised_and_takes_no_order_but_init(redis_url: str) -> None:
    store = Store.connect(redis_url)
    for order in ("open", "open_end_run", "drain", "reject", "hold", "release", "abort", "acknowledge"):
        assert store.order(order, "ada", "test").answer == "unreadable"
    gate = store.observe().gate
    assert (gate.drain_state, gate.pin, gate.initialised) == ("drain", "uninitialised", False)
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
    store.close()


def test_init_is_refused_where_a_queue_lives(queue: OpenQueue) -> None:
    contract = queue.contract
    again = queue.store.init_queue(contract.for_redis(), contract.digest(), "bob", "again")
    assert (again.answer, again.why) == ("not_empty", "queue:settings")
    for key in ("queue:settings", "drain_state", "admission", "control:gate", "control:epoch", "canary_ok_count"):
        queue.client.delete(key)
    again = queue.store.init_queue(contract.for_redis(), contract.digest(), "bob", "again")
    assert (again.answer, again.why) == ("not_empty", "control:log")


@pytest.mark.parametrize(
    ("order", "pin", "drain_state", "reads"),
    [
        ("drain", True, "drain", "operator"),
        ("drain", False, "drain", None),
        ("reject", True, "reject_new", "operator"),
        ("reject", False, "reject_new", None),
        ("hold", True, "admit", "operator"),
        ("hold", False, "admit", "operator"),
    ],
)
def test_a_named_person_tightens_and_pins(
    queue: OpenQueue, order: str, pin: bool, drain_state: str, reads: str | None
) -> None:
    answer = queue.store.order(order, "ada", "looking", pin=pin)
    assert (answer.answer, answer.drain_state, answer.pin) == ("moved", drain_state, reads)
    newest = queue.store.gate_log(1)[0]
    assert (newest.actor, newest.reason, newest.note) == ("ada", f"operator_{order}", "looking")


def test_a_person_opens_and_releases(queue: OpenQueue) -> None:
    queue.store.order("drain", "ada", "test")
    released = queue.store.order("release", "ada", "test")
    assert (released.answer, released.drain_state, released.pin) == ("moved", "drain", None)
    assert queue.store.order("release", "ada", "test").answer == "unchanged"
    assert queue.store.order("open", "ada", "test").drain_state == "admit"
    assert queue.submit().accepted


def test_open_is_refused_while_a_run_is_live_unless_it_ends_it(queue: OpenQueue) -> None:
    run = opened_run(queue)
    refused = queue.store.order("open", "ada", "test")
    assert (refused.answer, refused.run, refused.drain_state) == ("run_live", run, "drain")
    assert queue.store.order("release", "ada", "test").answer == "run_live"
    opened = queue.store.order("open_end_run", "ada", "test")
    assert (opened.answer, opened.drain_state) == ("moved", "admit")
    history = queue.store.run(run)
    assert history is not None
    assert (history.run.state, history.run.ended_by) == ("aborted", "ada")


@pytest.mark.parametrize("order", ["drain", "reject", "hold", "abort"])
def test_an_order_that_closes_rolls_a_live_run_back(queue: OpenQueue, order: str) -> None:
    run = opened_run(queue)
    answer = queue.store.order(order, "ada", "test")
    assert (answer.answer, answer.drain_state, answer.pin) == ("moved", "drain", "rolled_back")
    history = queue.store.run(run)
    assert history is not None
    assert (history.run.state, history.run.rollback_reason) == ("rolling_back", "manual_operator_hold")
    assert queue.store.order("abort", "ada", "test").answer == "unchanged"


def test_an_abort_that_names_its_run_ends_no_other_that_has_taken_its_place(queue: OpenQueue) -> None:
    run = opened_run(queue)
    confirmed_duplicate(queue)
    # The audit outranks the recovery, between a person's look and their word.
    assert queue.store.open_run(
        {"runbook": "rollback-and-audit", "trigger": "webhook", "run": "the-audit", "actor": "am", "reason": "a test",
         "confirmed": True, "digest": "", "episode": ""}
    ).answer == "moved"  # fmt: skip
    before = queue.store.observe().gate.epoch
    answer = queue.store.order("abort", "ada", "test", run=run)
    assert (answer.answer, answer.run) == ("gone", "the-audit")
    live = queue.store.observe().gate
    assert (live.epoch, live.run.run_id if live.run else None) == (before, "the-audit")
    assert queue.store.order("abort", "ada", "test", run="the-audit").answer == "moved"
    assert queue.store.order("abort", "ada", "test", run="the-audit").answer == "gone"


def test_duplicates_are_acknowledged_by_name_and_number(queue: OpenQueue) -> None:
    assert queue.store.order("acknowledge", "ada", "test").answer == "unchanged"
    confirmed_duplicate(queue)
    confirmed_duplicate(queue)
    queue.store.order("hold", "ada", "test")
    assert queue.store.order("release", "ada", "test").answer == "duplicates"
    answer = queue.store.order("acknowledge", "ada", "keys audited")
    assert (answer.answer, answer.acknowledged) == ("moved", 2)
    assert queue.store.observe().gate.duplicates_unacknowledged == 0
    assert "2 confirmed duplicates" in queue.store.gate_log(1)[0].note
    confirmed_duplicate(queue)
    assert queue.store.order("open", "ada", "test").acknowledged == 1


def test_a_job_that_runs_can_be_settled_in_a_drain(queue: OpenQueue) -> None:
    job = queue.started()
    queue.store.order("drain", "ada", "test")
    assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"


def test_the_log_names_every_move_newest_first(queue: OpenQueue) -> None:
    orders: list[Any] = ["reject", "drain", "open"]
    for order in orders:
        queue.store.order(order, "ada", "test")
    moves = [(entry.from_state, entry.to_state, entry.reason) for entry in queue.store.gate_log()]
    assert moves == [
        ("drain", "admit", "operator_open"),
        ("reject_new", "drain", "operator_drain"),
        ("admit", "reject_new", "operator_reject"),
        ("drain", "admit", "init"),
    ]
