"""Sweep and promote on real servers: what they end, what they leave alone, and the records they write (contract §3)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from sluicegate.job import CallKind, Outcome
from sluicegate.store import Store
from tests.function_values import value_of
from tests.queues import ClockedQueue, OpenClockedFunction, OpenQueue, OpenQueueFunction, contract_of


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


def test_a_sweep_ends_no_more_leases_than_its_limit_and_says_that_there_is_more(clocked: ClockedQueue) -> None:
    for _ in range(6):
        clocked.accepted()
    assert len(clocked.claim(slots=6).jobs) == 6
    clocked.wait(clocked.contract.lease_ms)
    first, second = clocked.store.sweep(limit=5), clocked.store.sweep(limit=5)
    assert (len(first.lost), first.more) == (5, True)
    assert (len(second.lost), second.more) == (1, False)


def test_no_more_are_promoted_than_the_limit(clocked: ClockedQueue) -> None:
    for _ in range(3):
        clocked.settle(clocked.started(), Outcome.RETRY, delay_ms=100)
    clocked.wait(100)
    assert [clocked.store.promote(limit=2) for _ in range(3)] == [2, 1, 0]


def test_a_job_expires_by_the_sweep_once_less_than_the_margin_is_left(clocked: ClockedQueue) -> None:
    clocked.accepted(deadline_s=1)
    clocked.wait(1000 - round(clocked.contract.timings.margin_s * 1000))
    assert clocked.store.sweep().expired == ()
    clocked.wait(1)
    assert len(clocked.store.sweep().expired) == 1


def test_without_settings_nothing_is_swept_or_promoted(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(checked=False)
    queue.settle(queue.started(), Outcome.RETRY, delay_ms=100)
    queue.accepted(deadline_s=1)
    queue.wait(1000)
    queue.client.delete("queue:settings")
    assert queue.store.sweep().expired == ()
    assert queue.store.promote() == 0


def test_an_entry_of_a_running_job_without_a_record_is_dropped(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    queue.started()
    queue.client.zadd("running:lint-fix", {"ghost": 1})
    queue.store.sweep()
    assert queue.client.zscore("running:lint-fix", "ghost") is None
    assert [entry["job"] for entry in queue.log("entry_dropped")] == ["ghost"]


def test_where_the_numbers_agree_no_running_job_is_looked_at(queue: OpenQueue) -> None:
    queue.started()
    queue.client.config_resetstat()
    queue.store.sweep()
    assert "cmdstat_zscore" not in queue.client.info("commandstats")


def test_of_a_long_index_each_look_takes_another_part(queue: OpenQueue) -> None:
    def part(members: int, now_ms: int) -> list[str]:
        queue.client.delete("long")
        queue.client.zadd("long", {f"{n:03}": n for n in range(members)})
        found: list[str] = value_of(queue.client, f"J.running_part({{ now = {now_ms} }}, 'long')")
        return found

    assert len(part(200, 0)) == 200
    assert part(201, 0) == [f"{n:03}" for n in range(200)]
    assert part(201, 100) == ["200"]


def test_the_ready_are_listed_oldest_first_and_of_one_age_by_their_ids(clocked: ClockedQueue) -> None:
    """Across classes: each has an index of its own."""
    for job_id, job_class in (("c", "lint-fix"), ("a", "test-patch"), ("b", "lint-fix")):
        clocked.accepted(job_class, idempotency_key=job_id)
    clocked.wait(1)
    clocked.accepted("refactor-plan", idempotency_key="0")
    assert clocked.store.list_jobs("ready") == ("a", "b", "c", "0")
    assert clocked.store.list_jobs("ready", limit=2) == ("a", "b")


def test_a_queue_that_was_never_opened_has_no_duplicate(redis_url: str) -> None:
    store = Store.connect(redis_url)
    store.load()
    store.confirm_duplicate("k", actor="ada", note="two effects")
    assert store.reconcile_log() == ()
    store.close()


def test_a_sweep_ends_no_more_jobs_than_its_limit_however_many_classes_they_are_of(clocked: ClockedQueue) -> None:
    for _ in range(2):
        clocked.settle(clocked.started(deadline_s=3), Outcome.RETRY, delay_ms=1000)
    for job_class in ("lint-fix", "test-patch", "refactor-plan"):
        clocked.producer.submit_many(clocked.producer.prepare(job_class, "{}", deadline_s=3) for _ in range(4))
    clocked.wait(3000)
    swept = [clocked.store.sweep(limit=5) for _ in range(4)]
    assert [(len(one.expired), one.more) for one in swept] == [(5, True), (5, True), (4, False), (0, False)]


def test_names_of_refusals_that_have_lapsed_go_in_parts(clocked: ClockedQueue) -> None:
    now = clocked.clock.now_ms
    clocked.client.zadd("queue:refusals", {f"k{number}": now - 1 for number in range(1500)} | {"live": now})
    left = []
    for _ in range(3):
        clocked.store.sweep()
        left.append(clocked.client.zcard("queue:refusals"))
    assert left == [501, 1, 1]
    assert clocked.client.zrange("queue:refusals", 0, -1) == ["live"]


def test_out_of_a_long_list_a_sweep_takes_fewer_at_once(open_clocked: OpenClockedFunction) -> None:
    queue = open_clocked(max_pending=20_000)
    for start in range(0, 2000, 100):
        queue.producer.submit_many(queue.producer.prepare("refactor-plan", "{}") for _ in range(start, start + 100))
    queue.producer.submit_many(queue.producer.prepare("lint-fix", "{}", deadline_s=3) for _ in range(60))
    queue.wait(3000)
    swept = [queue.store.sweep() for _ in range(2)]
    assert [(len(one.expired), one.more) for one in swept] == [(48, True), (12, False)]


def test_a_list_that_would_be_too_long_is_not_made_again(open_clocked: OpenClockedFunction) -> None:
    higher, lower = contract_of(max_pending=30_000), contract_of(max_pending=20_000)
    queue = open_clocked(checked=False, max_pending=30_000)
    for start in range(0, 20_000, 100):
        queue.producer.submit_many(queue.producer.prepare("lint-fix", "{}") for _ in range(start, start + 100))
    queue.store.apply_settings(lower.for_redis(), lower.digest(), "ada", "no more work")
    assert queue.client.llen("queue:pending") == 20_000
    queue.store.apply_settings(higher.for_redis(), higher.digest(), "ada", "a little more")
    queue.accepted()
    queue.store.apply_settings(lower.for_redis(), lower.digest(), "ada", "no more work")
    assert queue.client.exists("queue:pending") == 0
    assert len(queue.claim(slots=6).jobs) == 6
    assert queue.store.sweep().expired == ()
