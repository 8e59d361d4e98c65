"""Sweep and promote on real servers: what they end, what they leave alone, and the records they write (contract §3)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from sluicegate.job import CallKind, Outcome
from tests.queues import OpenQueue, OpenQueueFunction


def test_overdue_ready_and_delayed_jobs_expire_with_their_records(queue: OpenQueue) -> None:
    delayed = queue.started(deadline_s=1.4)
    assert queue.settle(delayed, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=400).state == "delayed"
    ready = queue.accepted(deadline_s=0.6)
    late = queue.accepted(deadline_s=30)
    time.sleep(1.15)
    events = {event.job_id: event for event in queue.store.sweep().expired}
    assert set(events) == {delayed.job_id, ready}
    assert {event.attempt for event in events.values()} == {0, 1}
    assert all(event.deadline_slack_s < 0.4 for event in events.values())  # the margin, 2 s ÷ 5
    date = datetime.fromtimestamp(queue.store.observe().at_ms / 1000, UTC).date().isoformat()
    lines = [json.loads(line) for line in queue.client.lrange(f"failed:{date}", 0, -1)]
    assert {(line["job_id"], line["reason"], line["cause"]) for line in lines} == {
        (delayed.job_id, "expired", "deadline"),
        (ready, "expired", "deadline"),
    }
    assert queue.client.pttl(f"failed:{date}") > 0
    assert queue.state(late) == "ready"
    assert queue.counters()["expired"] == 2


def test_a_running_job_is_not_expired_by_the_sweep(queue: OpenQueue) -> None:
    job = queue.started(deadline_s=1.0)
    time.sleep(1.05)
    assert queue.store.sweep().expired == ()
    assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    assert queue.counters()["missed"] == 1


def test_a_sweep_ends_at_most_its_limit_and_says_that_there_is_more(queue: OpenQueue) -> None:
    queue.producer.submit_many(queue.producer.prepare("lint-fix", "{}", deadline_s=0.6) for _ in range(7))
    time.sleep(0.25)
    first = queue.store.sweep(limit=5)
    assert (len(first.expired), first.more) == (5, True)
    second = queue.store.sweep(limit=5)
    assert (len(second.expired), second.more) == (2, False)


def test_a_delayed_job_becomes_ready_when_its_time_has_come_and_is_eligible_since_then(queue: OpenQueue) -> None:
    job = queue.started()
    queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=100)
    assert queue.store.promote() == 0
    time.sleep(0.11)
    assert queue.store.promote() == 1
    record = queue.record(job.job_id)
    assert (record["state"], record["eligible"]) == ("ready", record["ready_at"])


def test_sweeps_go_on_in_a_drain(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=100)
    job = queue.started()
    job_id = queue.accepted(deadline_s=0.5)
    queue.store.order("drain", "ada", "test")
    queue.sweep_until(lambda: queue.state(job_id) == "expired", "the deadline")
    queue.sweep_until(lambda: queue.state(job.job_id) == "unknown", "the lease")


def test_two_sweeps_at_once_end_each_job_once(queue: OpenQueue) -> None:
    queue.accepted(deadline_s=0.5)
    time.sleep(0.15)
    assert [len(queue.store.sweep().expired) for _ in range(2)] == [1, 0]
