"""Leases on real servers: what keeps one, what its end does, and how a job leaves unknown and blocked (contract §4)."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest

from sluicegate import functions
from sluicegate.job import CallKind, Job, Outcome
from sluicegate.reconcile import Reconciled, Verdict, by_ledger, by_person
from sluicegate.store import Store
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery

LEASE_S = 0.3


@pytest.fixture
def short(open_queue: OpenQueueFunction) -> OpenQueue:
    """Return a queue whose leases end soon."""
    return open_queue(lease_ms=int(LEASE_S * 1000))


def lost(queue: OpenQueue, job: Job, state: str = "unknown") -> None:
    """Wait until a lease has run out and was found."""
    queue.sweep_until(lambda: queue.state(job.job_id) == state, f"job {job.job_id} being {state}")


def test_a_lease_that_runs_out_makes_the_job_unknown_never_pending(short: OpenQueue) -> None:
    job = short.started()
    assert short.store.sweep().lost == ()
    time.sleep(LEASE_S)
    (event,) = short.store.sweep().lost
    assert (event.job_id, event.state, event.attempt) == (job.job_id, "unknown", 1)
    assert short.store.list_jobs("unknown") == (job.job_id,)
    assert short.claim().jobs == ()
    assert short.counters()["lease_expired"] == 1


def test_a_renewed_lease_stands(short: OpenQueue) -> None:
    job = short.started()
    until = time.monotonic() + 2.5 * LEASE_S
    while time.monotonic() < until:
        assert short.store.renew("w1", {job.job_id: job.fence}).lost == ()
        assert short.store.sweep().lost == ()
        time.sleep(LEASE_S / 5)
    assert short.state(job.job_id) == "running"


def test_a_renewal_under_an_old_fence_or_after_the_loss_says_so(short: OpenQueue) -> None:
    job = short.started()
    assert short.store.renew("w1", {job.job_id: job.fence - 1, "no-such": 1}).lost == (job.job_id, "no-such")
    lost(short, job)
    assert short.store.renew("w1", {job.job_id: job.fence}).lost == (job.job_id,)


def test_a_renewal_tells_the_gate(short: OpenQueue) -> None:
    moved = short.store.order("drain", "ada", "test")
    renewed = short.store.renew("w1", {})
    assert (renewed.drain_state, renewed.epoch) == ("drain", moved.epoch)


def test_the_second_loss_blocks_the_job(short: OpenQueue) -> None:
    first = short.started()
    lost(short, first)
    assert by_ledger(short.store, first.job_id) == Reconciled("moved", "ready")
    second = short.claimed()
    lost(short, second, "blocked")
    assert short.record(first.job_id)["cause"] == "poison"
    assert short.store.list_jobs("blocked") == (first.job_id,)


def test_the_late_worker_itself_settles_its_unknown_job_through_a_record(short: OpenQueue) -> None:
    job = short.started()
    lost(short, job)
    assert short.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    (entry,) = short.log("late_worker")
    assert (entry["job"], entry["actor"], entry["outcome"]) == (job.job_id, "w1", "succeeded")


def test_a_late_worker_that_knows_nothing_leaves_the_job_unknown(short: OpenQueue) -> None:
    job = short.started()
    lost(short, job)
    assert short.settle(job, Outcome.RETRY, kind=CallKind.TIMEOUT).state == "unknown"
    assert short.store.list_jobs("unknown") == (job.job_id,)


def test_a_late_worker_is_refused_before_its_call(short: OpenQueue) -> None:
    short.accepted()
    job = short.claimed()
    lost(short, job)
    assert short.store.intent("w1", job.job_id, job.fence) == "stale"
    assert not short.client.hexists(f"job:{job.job_id}", "intent")
    assert by_ledger(short.store, job.job_id) == Reconciled("moved", "ready")
    assert short.log("reconcile")[0]["note"].startswith("the ledger holds no intent")


def test_unknown_never_expires_and_its_missed_deadline_counts_as_missed(short: OpenQueue) -> None:
    job = short.started(deadline_s=1.0)
    lost(short, job)
    wait_until(lambda: float(short.record(job.job_id)["deadline"]) < short.store.observe().at_ms, "the deadline")
    short.store.sweep()
    assert short.state(job.job_id) == "unknown"
    by_person(short.store, job.job_id, Verdict.SUCCEEDED, actor="ada", reason="seen in the provider's log")
    assert short.counters()["missed"] == 1


@pytest.mark.parametrize(
    ("verdict", "state"), [("succeeded", "succeeded"), ("failed", "failed"), ("retry", "ready"), ("block", "blocked")]
)
def test_a_person_settles_an_unknown_job_and_is_named(short: OpenQueue, verdict: str, state: str) -> None:
    job = short.started(idempotency_key="k1")
    lost(short, job)
    answer = by_person(short.store, job.job_id, Verdict(verdict), actor="ada", reason="asked the provider")
    assert answer == Reconciled("moved", state)
    (entry,) = short.log("reconcile")
    assert (entry["actor"], entry["note"], entry["key"], entry["outcome"]) == (
        "ada",
        "asked the provider",
        "k1",
        verdict,
    )


def test_a_retry_past_its_deadline_expires(short: OpenQueue) -> None:
    job = short.started(deadline_s=1.0)
    lost(short, job)
    wait_until(lambda: float(short.record(job.job_id)["deadline"]) - short.store.observe().at_ms < 400, "the margin")
    assert by_person(short.store, job.job_id, Verdict.RETRY, actor="ada", reason="test").state == "expired"


def test_blocked_leaves_only_by_a_person_who_gives_the_budgets_back(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(retry_budget=1)
    job = queue.started()
    queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX)
    assert by_ledger(queue.store, job.job_id) == Reconciled("refused", "blocked")
    assert queue.store.reconcile(job.job_id, "retry", actor="robot", reason="test", source="provider") == (
        "refused",
        "blocked",
    )
    assert by_person(queue.store, job.job_id, Verdict.BLOCK, actor="ada", reason="test").answer == "refused"
    assert by_person(queue.store, job.job_id, Verdict.RETRY, actor="ada", reason="mended").state == "ready"
    assert queue.claimed().retries_used == 0


@pytest.mark.parametrize("state", ["ready", "running", "succeeded"])
def test_no_other_state_can_be_reconciled(queue: OpenQueue, state: str) -> None:
    job_id = queue.accepted()
    if state != "ready":
        job = queue.claimed()
        if state == "succeeded":
            queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
    assert by_person(queue.store, job_id, Verdict.FAILED, actor="ada", reason="test") == Reconciled("refused", state)
    assert by_person(queue.store, "no-such", Verdict.FAILED, actor="ada", reason="test").answer == "gone"


def test_the_ledger_lets_a_keyed_job_be_repeated_after_its_intent(short: OpenQueue) -> None:
    job = short.started(idempotency_key="k1")
    lost(short, job)
    assert by_ledger(short.store, job.job_id) == Reconciled("moved", "ready")
    assert short.claimed().idempotency_key == "k1"


def test_the_ledger_leaves_an_unsafe_job_to_a_person_after_its_intent(short: OpenQueue) -> None:
    """Recovery does not replay a possibly completed side effect."""
    job = short.started("send-mail")
    lost(short, job)
    assert by_ledger(short.store, job.job_id) == Reconciled("moved", "blocked")
    assert short.claim().jobs == ()


def test_the_ledger_confirms_what_was_done(short: OpenQueue) -> None:
    job = short.started("send-mail")
    lost(short, job)
    short.client.hset(f"job:{job.job_id}", "confirmed", "1")
    assert by_ledger(short.store, job.job_id) == Reconciled("moved", "succeeded")


@pytest.mark.parametrize(("order", "answer"), [("reject", "go"), ("drain", "stop")])
def test_an_intent_checks_the_gate_again(queue: OpenQueue, order: str, answer: str) -> None:
    queue.accepted()
    job = queue.claimed()
    queue.store.order(order, "ada", "test")
    assert queue.store.intent("w1", job.job_id, job.fence) == answer
    assert queue.client.hexists(f"job:{job.job_id}", "intent") == (answer == "go")


def test_an_intent_takes_away_the_confirmation_of_an_earlier_call_and_nothing_else(queue: OpenQueue) -> None:
    queue.accepted()
    job = queue.claimed()
    queue.client.hset(f"job:{job.job_id}", mapping={"confirmed": "1", "reference": "r1"})
    assert queue.store.intent("w1", job.job_id, job.fence) == "go"
    record = queue.client.hgetall(f"job:{job.job_id}")
    assert record.get("confirmed") is None
    assert record.get("reference") is None
    assert (record["intent_worker"], record["intent_fence"]) == ("w1", str(job.fence))


def test_in_a_recovery_only_canaries_may_call_until_it_is_green(queue: OpenQueue) -> None:
    queue.accepted()
    job = queue.claimed()
    recovery = Recovery(queue)
    recovery.step("recover")
    assert queue.store.intent("w1", job.job_id, job.fence) == "stop"
    canary = recovery.canary(0)
    assert queue.store.intent("w1", canary.job_id, canary.fence) == "go"


def test_a_renewal_on_a_server_without_a_queue_is_told_to_drain(redis_url: str) -> None:
    with closing(Store.connect(redis_url, "default")) as store:
        store.load()
        assert store.renew("w1", {"no-such": 1}).drain_state == "drain"
        assert store.hello("w1") == "drain"


def test_a_renewed_canary_is_counted_as_running_for_as_long_as_its_lease(queue: OpenQueue) -> None:
    recovery = Recovery(queue)
    recovery.step("recover")
    canary = recovery.canary(0)
    before = queue.client.zscore("running:canary", canary.job_id)
    wait_until(lambda: queue.store.observe().at_ms > canary_claimed_at(queue, before), "the next ms")
    queue.store.renew("w1", {canary.job_id: canary.fence})
    after = queue.client.zscore("running:canary", canary.job_id)
    assert after > before
    assert after == queue.client.zscore("queue:leases", canary.job_id)


def canary_claimed_at(queue: OpenQueue, lease_end: float) -> float:
    return lease_end - queue.contract.lease_ms


def test_a_worker_that_says_hello_is_seen_with_its_version_report_and_jobs(queue: OpenQueue) -> None:
    assert queue.store.hello("w0") == "admit"
    assert queue.store.hello("w1", "1.2", "action=stop_pull") == "admit"
    assert queue.client.hget("worker:w0", "version") == ""
    assert queue.client.hget("worker:w1", "version") == "1.2"
    queue.accepted()
    queue.accepted()
    queue.claim(slots=2)
    seen = {worker.worker_id: worker for worker in queue.store.workers()}
    assert (seen["w0"].report, seen["w0"].inflight, seen["w0"].epoch) == ("", 0, 0)
    assert (seen["w1"].report, seen["w1"].inflight) == ("action=stop_pull", 2)
    assert seen["w1"].epoch == queue.store.observe().gate.epoch


def test_a_job_whose_record_names_no_worker_is_nobodys(queue: OpenQueue) -> None:
    queue.accepted()
    job = queue.claimed()
    queue.client.hdel(f"job:{job.job_id}", "worker")
    assert [worker.inflight for worker in queue.store.workers()] == [0]
    queue.client.hset(f"job:{job.job_id}", "worker", "w1")


def test_a_hello_is_answered_with_the_digest_of_the_contract_in_force(queue: OpenQueue) -> None:
    answer = json.loads(
        queue.client.fcall(functions.function_name("hello"), 1, "control:gate", "", "0", json.dumps({"worker": "w1"}))
    )
    assert answer["digest"] == queue.contract.digest()
    workers = json.loads(queue.client.fcall(functions.function_name("workers"), 1, "control:gate", "", "0", "{}"))
    assert workers["epoch"] == queue.client.get("control:epoch")


def test_without_settings_a_renewal_and_a_claim_are_told_to_drain_and_write_nothing(queue: OpenQueue) -> None:
    queue.accepted()
    job = queue.claimed()
    settings = queue.client.hgetall("queue:settings")
    before = queue.client.hgetall(f"job:{job.job_id}")
    queue.client.delete("queue:settings")
    assert queue.store.renew("w1", {job.job_id: job.fence}).drain_state == "drain"
    assert queue.claim(worker="w9").drain_state == "drain"
    assert not queue.client.exists("worker:w9")
    assert queue.client.hgetall(f"job:{job.job_id}") == before
    queue.client.hset("queue:settings", mapping=settings)
