"""Settlements on real servers: what each outcome does to a job, what a late or repeated one may not (contract §3)."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace

import pytest
import redis

from sluicegate.errors import StoreUnavailable
from sluicegate.job import CallKind, Outcome
from sluicegate.store import Store
from tests.lossy import LossyRelay, connected
from tests.queues import OpenQueue, OpenQueueFunction, wait_until


def test_a_success_is_final_counted_and_confirmed_in_the_ledger(queue: OpenQueue) -> None:
    job = queue.started()
    assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK, reference="inv-7").state == "succeeded"
    telemetry = queue.store.observe()
    assert (telemetry.completions, telemetry.provider.calls, telemetry.counters["met"]) == (1, 1, 1)
    ledger = queue.client.hgetall(f"job:{job.job_id}")
    assert ledger["reference"] == "inv-7"
    assert int(ledger["confirmed"]) >= int(ledger["intent"])


def test_a_failure_is_final_with_its_record(queue: OpenQueue) -> None:
    job = queue.started()
    assert queue.settle(job, Outcome.FAILED, cause="rejected").state == "failed"
    (line,) = (json.loads(line) for key in queue.client.keys("failed:*") for line in queue.client.lrange(key, 0, -1))
    assert (line["job_id"], line["reason"], line["cause"]) == (job.job_id, "failed", "rejected")


def test_a_retry_waits_and_comes_back_with_the_same_key_and_the_next_attempt(queue: OpenQueue) -> None:
    job = queue.started(idempotency_key="k1")
    assert queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=50).state == "delayed"
    assert queue.claim().jobs == ()
    queue.sweep_until(lambda: queue.state(job.job_id) == "ready", "the retry's time")
    again = queue.claimed()
    assert (again.idempotency_key, again.attempt, again.retries_used) == ("k1", 2, 1)
    ready_at = int(queue.record(job.job_id)["ready_at"])
    assert int(queue.record(job.job_id)["eligible"]) == ready_at


def test_the_last_retry_blocks_the_job(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=2)
    job = queue.started()
    assert queue.settle(job, Outcome.RETRY, kind=CallKind.TIMEOUT).state == "ready"
    assert queue.settle(queue.claimed(), Outcome.RETRY, kind=CallKind.STATUS_5XX).state == "blocked"
    assert queue.store.list_jobs("blocked") == (job.job_id,)
    assert queue.record(job.job_id)["cause"] == "retry_budget"


def test_what_was_not_executed_uses_time_but_no_retry(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=2)
    queue.accepted()
    for _ in range(5):
        queue.settle(queue.claimed(), Outcome.NOT_EXECUTED, kind=CallKind.STATUS_OTHER)
    job = queue.claimed()
    assert (job.attempt, job.retries_used) == (6, 0)


@pytest.mark.parametrize("outcome", [Outcome.RETRY, Outcome.NOT_EXECUTED])
def test_a_wait_past_the_deadline_expires_the_job_with_its_event(queue: OpenQueue, outcome: Outcome) -> None:
    job = queue.started(deadline_s=5)
    settled = queue.settle(job, outcome, kind=CallKind.STATUS_5XX, delay_ms=4900)
    assert settled.state == "expired"
    assert settled.event is not None
    assert (settled.event.job_id, settled.event.attempt) == (job.job_id, 1)
    assert 4 < settled.event.deadline_slack_s <= 5


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (CallKind.STATUS_5XX, "no_time_for_retry"),
        (CallKind.TIMEOUT, "no_time_for_retry_call_may_have_happened"),
        (CallKind.DROPPED, "no_time_for_retry_call_may_have_happened"),
    ],
)
def test_an_expired_retry_says_whether_its_last_call_may_have_happened(
    queue: OpenQueue, kind: CallKind, cause: str
) -> None:
    job = queue.started(deadline_s=5)
    assert queue.settle(job, Outcome.RETRY, kind=kind, delay_ms=4900).state == "expired"
    assert queue.record(job.job_id)["cause"] == cause
    (line,) = (json.loads(line) for key in queue.client.keys("failed:*") for line in queue.client.lrange(key, 0, -1))
    assert (line["reason"], line["cause"]) == ("expired", cause)


def test_a_requeue_goes_to_the_head_keeps_its_eligible_since_and_uses_no_retry(queue: OpenQueue) -> None:
    job = queue.started()
    eligible = queue.record(job.job_id)["eligible"]
    time.sleep(0.005)
    others = [queue.accepted() for _ in range(2)]
    assert queue.settle(job, Outcome.REQUEUED, kind=CallKind.CANCELLED).state == "ready"
    assert queue.client.lrange("queue:pending", 0, -1) == [job.job_id, *others]
    assert queue.record(job.job_id)["eligible"] == eligible
    again = queue.claimed()
    assert (again.job_id, again.attempt, again.retries_used) == (job.job_id, 2, 0)
    assert queue.store.observe().provider.calls == 0, "a call that a drain cut says nothing about the provider"


def test_a_requeue_with_too_little_time_left_expires(queue: OpenQueue) -> None:
    job = queue.started(deadline_s=1.0)
    time.sleep(0.65)  # under the margin of 0.4 s
    assert queue.settle(job, Outcome.REQUEUED, kind=CallKind.CANCELLED).state == "expired"


def test_an_ambiguous_end_of_an_unsafe_job_is_unknown_and_counts_no_loss(queue: OpenQueue) -> None:
    job = queue.started("send-mail")
    assert queue.settle(job, Outcome.UNKNOWN, kind=CallKind.TIMEOUT).state == "unknown"
    assert queue.store.list_jobs("unknown") == (job.job_id,)
    assert queue.record(job.job_id)["losses"] == "0"
    assert queue.store.observe().worker_inflight == 0


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_repeated_settlement_answers_the_same_and_counts_once(queue: OpenQueue, outcome: Outcome) -> None:
    job = queue.started()
    first = queue.settle(job, outcome, kind=CallKind.OK, request="s-1")
    counted = queue.counters()
    again = queue.settle(job, outcome, kind=CallKind.OK, request="s-1")
    assert (first.answer, again.answer) == ("ok", "repeat")
    assert again.state == first.state
    assert queue.counters() == counted


def test_a_lost_answer_repeated_counts_once(queue: OpenQueue) -> None:
    job = queue.started()
    settlement = queue.settlement(job, Outcome.RETRY, kind=CallKind.STATUS_5XX)
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        relay.lose_next()
        with pytest.raises(StoreUnavailable):
            store.settle(settlement)
        again = store.settle(settlement)
        store.close()
    assert (again.answer, again.state) == ("repeat", "ready")
    assert queue.record(job.job_id)["retries"] == "1"
    assert queue.store.observe().provider.calls == 1


def test_a_late_write_under_an_old_fence_is_refused_and_logged_once(queue: OpenQueue) -> None:
    old = queue.started()
    queue.settle(old, Outcome.REQUEUED)
    current = queue.claimed(worker="w2")
    late = queue.settlement(old, Outcome.SUCCEEDED, kind=CallKind.OK)
    for _ in range(2):
        answer = queue.store.settle(late)
        assert (answer.answer, answer.state) == ("stale", "running")
    (entry,) = queue.log("stale_write")
    assert (entry["job"], entry["fence"], entry["current"]) == (old.job_id, str(old.fence), str(current.fence))
    assert queue.counters()["stale_writes"] == 1
    assert queue.store.observe().gate.duplicates_unacknowledged == 0, "a keyed job's late write is only suspected"
    assert queue.settle(current, Outcome.SUCCEEDED, kind=CallKind.OK, worker="w2").state == "succeeded"


def test_a_late_success_of_an_unsafe_job_that_has_run_again_is_a_confirmed_duplicate_once(queue: OpenQueue) -> None:
    old = queue.started("send-mail")
    queue.settle(old, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(old.job_id, "retry", actor="ada", reason="nothing was sent", source="person")
    again = queue.claimed(worker="w2")
    late = queue.settlement(old, Outcome.SUCCEEDED, kind=CallKind.OK)
    queue.store.settle(late)
    queue.store.settle(late)
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    assert queue.settle(again, Outcome.SUCCEEDED, kind=CallKind.OK, worker="w2").state == "succeeded"
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    (entry,) = queue.log("duplicate")
    assert entry["key"] == old.idempotency_key


def test_a_late_failure_of_an_unsafe_job_is_no_confirmed_duplicate(queue: OpenQueue) -> None:
    old = queue.started("send-mail")
    queue.settle(old, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(old.job_id, "retry", actor="ada", reason="nothing was sent", source="person")
    queue.claimed(worker="w2")
    assert queue.settle(old, Outcome.RETRY, kind=CallKind.STATUS_5XX).answer == "stale"
    assert queue.store.observe().gate.duplicates_unacknowledged == 0


def test_a_late_success_of_an_unsafe_job_that_did_not_run_again_is_only_suspected(queue: OpenQueue) -> None:
    job = queue.started("send-mail")
    queue.settle(job, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(job.job_id, "failed", actor="ada", reason="given up", source="person")
    assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).answer == "stale"
    assert len(queue.log("stale_write")) == 1
    assert queue.store.observe().gate.duplicates_unacknowledged == 0


def test_a_worker_with_no_fence_at_all_is_refused(queue: OpenQueue) -> None:
    job = queue.started()
    assert queue.settle(job, Outcome.SUCCEEDED, fence="0").answer == "stale"
    assert queue.settle(job, Outcome.SUCCEEDED, id="no-such").state == "gone"
    assert queue.state(job.job_id) == "running"


def test_a_call_of_an_earlier_window_does_not_count_in_the_present_one(queue: OpenQueue) -> None:
    """The errors of the incident must not end the recovery (contract §2)."""
    job = queue.started()
    opening = {"runbook": "drain-and-recover", "trigger": "person", "run": "run-1", "actor": "ada", "reason": "test"}
    queue.store.open_run({**opening, "confirmed": True, "digest": "", "episode": ""})
    fence = queue.store.claim_run("e1", "", "").fence
    step = {"executor": "e1", "run": "run-1", "fence": fence, "request": "q1", "effect": "recover", "seq": 1}
    queue.store.commit_step({**step, "verb": "recover", "phase": "done", "text": "", "detail": "{}"})
    queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX)
    telemetry = queue.store.observe()
    assert telemetry.gate.drain_state == "recovering"
    assert (telemetry.provider.calls, telemetry.provider.status_5xx) == (0, 0)
    assert telemetry.counters["calls:5xx"] == 1


def test_jobs_are_settled_together_each_by_itself(queue: OpenQueue) -> None:
    for _ in range(4):
        queue.accepted()
    done, late, again, repeated = queue.claim(slots=4).jobs
    assert set(queue.store.intents("w1", [(job.job_id, job.fence) for job in (done, late, again)])) == {"go"}
    before = queue.settlement(repeated, Outcome.FAILED)
    queue.store.settle(before)
    settlements = [
        queue.settlement(done, Outcome.SUCCEEDED, kind=CallKind.OK),
        queue.settlement(late, Outcome.SUCCEEDED, fence=str(late.fence - 1)),
        queue.settlement(again, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=500),
        before,
        queue.settlement(done, Outcome.SUCCEEDED, id="no-such"),
    ]
    answers = queue.store.settle_many("w1", settlements)
    assert [(one.answer, one.state) for one in answers] == [
        ("ok", "succeeded"),
        ("stale", "running"),
        ("ok", "delayed"),
        ("repeat", "failed"),
        ("stale", "gone"),
    ]
    assert [one.event is not None for one in answers] == [True, False, True, False, False]
    counted = queue.counters()
    assert (counted["met"], counted["missed"], counted["retried"], counted["stale_writes"]) == (1, 1, 1, 2)
    assert queue.store.observe().provider.calls == 2


def test_intents_are_answered_each_by_itself(queue: OpenQueue) -> None:
    queue.accepted()
    job = queue.claimed()
    starts = [(job.job_id, job.fence), (job.job_id, job.fence - 1), ("no-such", 1)]
    assert queue.store.intents("w1", starts) == ("go", "stale", "stale")
    queue.store.order("drain", "ada", "test")
    assert queue.store.intents("w1", starts[:1]) == ("stop",)


def test_the_last_eight_requests_are_known_and_no_more(queue: OpenQueue) -> None:
    job = queue.started()
    for n in range(10):
        queue.settle(replace(job, fence=job.fence - 1), Outcome.SUCCEEDED, request=f"late-{n}")
    lines = queue.client.hget(f"job:{job.job_id}", "late").splitlines()
    assert lines == [f"stale late-{n}" for n in range(9, 1, -1)]


@pytest.mark.parametrize(
    ("outcome", "given", "stored"),
    [
        (Outcome.EXPIRED, "", "worker"),
        (Outcome.EXPIRED, "drain", "drain"),
        (Outcome.UNKNOWN, "", "ambiguous"),
        (Outcome.UNKNOWN, "dropped", "dropped"),
    ],
)
def test_a_cause_is_kept_and_has_a_name_where_none_is_given(
    queue: OpenQueue, outcome: Outcome, given: str, stored: str
) -> None:
    job = queue.started()
    queue.settle(job, outcome, cause=given)
    assert queue.record(job.job_id)["cause"] == stored


@pytest.mark.parametrize(("kind", "may_have"), [(CallKind.CANCELLED, "_call_may_have_happened"), (None, "")])
def test_a_requeue_without_time_says_whether_the_call_may_have_happened(
    queue: OpenQueue, kind: CallKind | None, may_have: str
) -> None:
    job = queue.started(deadline_s=0.6)
    wait_until(lambda: float(job.deadline_ms) - queue.store.observe().at_ms < 390, "the margin")
    assert queue.settle(job, Outcome.REQUEUED, kind=kind).state == "expired"
    assert queue.record(job.job_id)["cause"] == f"no_time_for_retry{may_have}"


def test_a_settlement_on_a_server_without_a_queue_is_stale(redis_url: str) -> None:
    with closing(Store.connect(redis_url)) as store:
        store.load()
        words = {"worker": "w1", "id": "k1", "fence": "1", "request": "r1", "outcome": "succeeded"}
        answer = store.settle(words)
    assert (answer.answer, answer.state) == ("stale", "gone")
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0


def test_a_success_that_comes_too_late_is_remembered_until_the_unsafe_job_has_run_again(queue: OpenQueue) -> None:
    old = queue.started("send-mail")
    queue.settle(old, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(old.job_id, "retry", actor="ada", reason="nothing was sent", source="person")
    late = queue.settlement(old, Outcome.SUCCEEDED, kind=CallKind.OK)
    for _ in range(2):
        assert (queue.store.settle(late).answer, queue.state(old.job_id)) == ("stale", "ready")
    assert queue.store.observe().gate.duplicates_unacknowledged == 0, "it was done once so far"
    again = queue.claimed(worker="w2")
    assert queue.settle(again, Outcome.SUCCEEDED, kind=CallKind.OK, worker="w2").state == "succeeded"
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    (entry,) = queue.log("duplicate")
    assert (entry["key"], entry["note"]) == (
        old.job_id,
        f"unsafe job {old.job_id} succeeded after a success that came too late to count",
    )
    assert queue.store.settle(late).answer == "stale"
    assert queue.store.observe().gate.duplicates_unacknowledged == 1


@pytest.mark.parametrize(
    ("job_class", "late", "then"),
    [
        ("lint-fix", Outcome.SUCCEEDED, Outcome.SUCCEEDED),
        ("send-mail", Outcome.FAILED, Outcome.SUCCEEDED),
        ("send-mail", Outcome.SUCCEEDED, Outcome.FAILED),
    ],
)
def test_only_two_successes_of_an_unsafe_job_are_a_duplicate(
    queue: OpenQueue, job_class: str, late: Outcome, then: Outcome
) -> None:
    old = queue.started(job_class)
    queue.settle(old, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(old.job_id, "retry", actor="ada", reason="nothing was sent", source="person")
    assert queue.settle(old, late, kind=CallKind.OK).answer == "stale"
    assert queue.settle(queue.claimed(), then, kind=CallKind.OK).answer == "ok"
    assert queue.store.observe().gate.duplicates_unacknowledged == 0
