"""What the state machine found, each as the shortest trace that showed it."""

from __future__ import annotations

import pytest

from sluicegate.job import CallKind, Outcome
from tests.queues import OpenQueue, OpenQueueFunction


def test_the_ledger_entry_of_a_success_without_an_intent_goes_with_its_job(queue: OpenQueue) -> None:
    """It was written after the end had given everything its retention, and stayed for ever."""
    queue.accepted(idempotency_key="k1")
    job = queue.claimed()
    queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
    assert queue.client.hexists("job:k1", "confirmed")
    assert queue.client.pttl(f"job:{job.job_id}") > 0


def test_a_final_refusal_stays_among_the_live_ones_when_the_queue_is_swept(queue: OpenQueue) -> None:
    """It was kept under the instant it comes due, which is none, so the next sweep dropped it from every snapshot."""
    refused = queue.submit("no-such-class", idempotency_key="k1")
    assert refused.reason == "unknown_class"
    queue.store.sweep()
    assert list(queue.client.zrange("queue:refusals", 0, -1)) == ["k1"]
    assert queue.submit("no-such-class", idempotency_key="k1").replayed


def test_a_refusal_leaves_the_index_once_its_record_is_gone(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"refusal_retention_s": 0.05, "closed_retry_s": 0.05})
    queue.submit("no-such-class", idempotency_key="k1")
    queue.sweep_until(lambda: queue.client.exists("queue:refusals") == 0, "the end of the refusal's record")
    assert queue.client.exists("job:k1") == 0


def test_a_settlement_repeated_after_another_worker_settled_is_still_a_repeat(queue: OpenQueue) -> None:
    """Only the last request was remembered: an earlier one counted as a late write."""
    job = queue.started()
    first = queue.settlement(job, Outcome.REQUEUED)
    queue.store.settle(first)
    queue.settle(queue.claimed(worker="w2"), Outcome.REQUEUED)
    again = queue.store.settle(first)
    assert (again.answer, again.state) == ("repeat", "ready")
    assert "stale_writes" not in queue.counters()


def test_two_late_writes_that_come_twice_by_turns_count_once_each(queue: OpenQueue) -> None:
    """Only the last late request was remembered, so a duplicate side effect was confirmed twice."""
    old = queue.started("send-mail")
    queue.settle(old, Outcome.UNKNOWN, kind=CallKind.TIMEOUT)
    queue.store.reconcile(old.job_id, "retry", actor="ada", reason="nothing was sent", source="person")
    queue.claimed(worker="w2")
    late = [queue.settlement(old, outcome) for outcome in (Outcome.SUCCEEDED, Outcome.FAILED)]
    for settlement in (*late, *late):
        assert queue.store.settle(settlement).answer == "stale"
    assert queue.counters()["stale_writes"] == 2
    assert queue.store.observe().gate.duplicates_unacknowledged == 1
    assert len(queue.log("duplicate")) == 1


def test_the_last_retry_before_an_expiry_is_in_the_record(queue: OpenQueue) -> None:
    """A retry that came too late for another start was not counted among those used."""
    job = queue.started(deadline_s=5)
    assert queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=4900).state == "expired"
    assert queue.record(job.job_id)["retries"] == "1"


@pytest.mark.parametrize("strict", [True, False])
def test_a_cost_class_counts_its_delayed_jobs_and_those_of_undeclared_classes(
    open_queue: OpenQueueFunction, strict: bool
) -> None:
    """Pending counts delayed (contract §5); only ready jobs of declared classes were counted."""
    queue = open_queue(cost_classes={"browser": {"max_pending": 1, "max_running": 1}}, strict_classes=strict)
    if strict:
        job = queue.started("browse")
        assert queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=900).state == "delayed"
    else:
        queue.accepted("undeclared", cost_class="browser", deadline_s=30)
    assert queue.submit("browse").reason == "browser_limit"


def test_a_delayed_job_of_a_cost_class_leaves_its_index_with_its_state(queue: OpenQueue) -> None:
    job = queue.started("browse")
    queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=50)
    assert queue.client.zrange("queue:delayed:cost:browser", 0, -1) == [job.job_id]
    queue.sweep_until(lambda: queue.state(job.job_id) == "ready", "the retry's time")
    assert queue.client.exists("queue:delayed:cost:browser") == 0
