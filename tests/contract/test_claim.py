"""Claims on real servers: who gets which job, under which gate, and what a repeat gives (contract §3, §5)."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
import redis

from sluicegate.errors import StoreUnavailable
from sluicegate.job import CallKind, Job, Outcome
from sluicegate.store import Store
from tests.lossy import LossyRelay, connected
from tests.queues import ClockedQueue, OpenQueue, OpenQueueFunction, wait_until
from tests.recovery import Recovery


def test_the_oldest_job_comes_first_whatever_its_class(queue: OpenQueue) -> None:
    ids = []
    for job_class in ("refactor-plan", "lint-fix", "test-patch", "lint-fix"):
        ids.append(queue.accepted(job_class))
        time.sleep(0.002)  # the order is by the millisecond
    assert [job.job_id for job in queue.claim(slots=4).jobs] == ids


def test_a_batch_is_taken_in_its_order(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=200, max_running=200)
    batch = [queue.producer.prepare("lint-fix", "{}") for _ in range(100)]
    decisions = queue.producer.submit_many(batch)
    taken = [job.job_id for job in queue.claim(slots=100).jobs]
    assert taken == [decision.job_id for decision in decisions] == [submission.job_id for submission in batch]


def test_the_list_for_people_loses_what_was_claimed_at_its_head_or_anywhere(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(dispatch="edf")
    ids = [queue.accepted(deadline_s=seconds) for seconds in (30, 31, 50, 32, 51, 33)]
    assert len(queue.claim(slots=4).jobs) == 4
    assert queue.client.lrange("queue:pending", 0, -1) == [ids[2], ids[4]]


def test_a_list_for_people_that_is_none_any_more_keeps_nobody_from_working(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    queue.client.set("queue:pending", "garbage")
    assert queue.claimed().job_id == job_id
    assert queue.client.zrange("queue:leases", 0, -1) == [job_id]
    assert queue.client.exists("queue:pending", "queue:fifo:lint-fix:-", "queue:ready:lint-fix:-") == 0


def test_a_claim_hands_over_all_that_a_call_needs(queue: OpenQueue) -> None:
    job_id = queue.accepted("browse", payload='{"url":1}', idempotency_key="k1")
    claimed = queue.claim()
    (job,) = claimed.jobs
    assert (job.job_id, job.idempotency_key, job.payload) == (job_id, "k1", '{"url":1}')
    assert (job.job_class, job.cost_class, job.attempt, job.retries_used, job.canary) == ("browse", "browser", 1, 0, "")
    assert job.epoch == claimed.epoch > 10**15
    assert job.fence > 10**15
    assert abs(claimed.at_ms - queue.store.observe().at_ms) < 1000


def test_of_large_payloads_a_claim_gives_fewer_and_wakes_a_worker_for_the_rest(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_running=20)
    # Three are enough for a call, or just two of the longest.
    payloads = [json.dumps("x" * size) for size in (200_000, 200_000, 200_000, 262_142, 262_142, 10)]
    ids = [queue.accepted(payload=payload) for payload in payloads]
    given: list[Job] = []
    for awaited, wakes in ((3, 1), (2, 1), (1, 0)):
        queue.client.delete("queue:wake")
        jobs = queue.claim(slots=7).jobs
        assert (len(jobs), queue.client.llen("queue:wake")) == (awaited, wakes)
        given += jobs
    assert [(job.job_id, job.payload) for job in given] == list(zip(ids, payloads, strict=True))


def test_a_claim_that_had_its_slots_filled_with_large_payloads_wakes_nobody(queue: OpenQueue) -> None:
    for _ in range(4):
        queue.accepted(payload=json.dumps("x" * 200_000))
    queue.client.delete("queue:wake")
    assert len(queue.claim(slots=3).jobs) == 3
    assert queue.client.exists("queue:wake") == 0


def test_a_payload_that_somebody_made_another_type_of_keeps_no_other_job_from_its_worker(queue: OpenQueue) -> None:
    spoilt, whole = queue.accepted(), queue.accepted(payload='{"n":1}')
    queue.client.delete(f"payload:{spoilt}")
    queue.client.rpush(f"payload:{spoilt}", "garbage")
    jobs = queue.claim(slots=2, request="r-1").jobs
    assert {job.job_id: job.payload for job in jobs} == {spoilt: "", whole: '{"n":1}'}
    assert queue.claim(slots=2, request="r-1").jobs == jobs


def test_a_repeated_request_gives_the_same_jobs_and_starts_none(queue: OpenQueue) -> None:
    for _ in range(3):
        queue.accepted()
    first = queue.claim(slots=2, request="r-1")
    assert queue.claim(slots=2, request="r-1").jobs == first.jobs
    assert queue.store.observe().running == 2


def test_a_lost_answer_repeated_starts_its_jobs_once(queue: OpenQueue) -> None:
    ids = {queue.accepted() for _ in range(3)}
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        relay.lose_next()
        with pytest.raises(StoreUnavailable):
            queue.claim(slots=2, request="r-1", store=store)
        jobs = queue.claim(slots=2, request="r-1", store=store).jobs
        store.close()
    assert len(jobs) == 2
    assert {job.job_id for job in jobs} < ids
    assert {job.attempt for job in jobs} == {1}
    assert queue.store.observe().running == 2


def test_a_job_that_was_settled_is_not_handed_out_by_a_repeat(queue: OpenQueue) -> None:
    queue.accepted()
    (job,) = queue.claim(request="r-1").jobs
    queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
    assert queue.claim(request="r-1").jobs == ()


def test_a_fence_that_is_ahead_of_the_clock_grows_by_one(queue: OpenQueue) -> None:
    ids = [queue.accepted() for _ in range(2)]
    ahead = int((time.time() + 3600) * 1_000_000)
    queue.client.hset(f"job:{ids[0]}", "fence", ahead)
    fences = {job.job_id: job.fence for job in queue.claim(slots=2).jobs}
    assert fences[ids[0]] == ahead + 1
    assert 0 < fences[ids[1]] < ahead
    assert {int(queue.record(job_id)["fence"]) for job_id in ids} == set(fences.values())


def test_fences_only_grow(queue: OpenQueue) -> None:
    fences = []
    queue.accepted()
    for _ in range(3):
        job = queue.claimed()
        fences.append(job.fence)
        queue.settle(job, Outcome.REQUEUED)
    assert fences == sorted(set(fences))


def test_a_full_cost_class_is_passed_over_and_blocks_nobody(queue: OpenQueue) -> None:
    for job_class in ("browse", "browse", "lint-fix"):
        queue.accepted(job_class)
        time.sleep(0.002)  # the order is by the millisecond
    jobs = queue.claim(slots=3).jobs
    assert [job.job_class for job in jobs] == ["browse", "lint-fix"]
    queue.settle(jobs[0], Outcome.SUCCEEDED, kind=CallKind.OK)
    assert [job.job_class for job in queue.claim(slots=3).jobs] == ["browse"]


def test_a_full_class_is_passed_over(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(classes={"test-patch": {"deadline_s": 36, "max_running": 1}})
    for job_class in ("test-patch", "test-patch", "lint-fix"):
        queue.accepted(job_class)
    assert sorted(job.job_class for job in queue.claim(slots=3).jobs) == ["lint-fix", "test-patch"]


def test_no_more_jobs_run_than_the_queue_allows(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_running=2)
    for _ in range(4):
        queue.accepted()
    assert len(queue.claim(slots=4).jobs) == 2
    assert queue.claim(slots=4, worker="w2").jobs == ()


def test_no_job_starts_under_the_margin_it_expires_with_its_record(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"margin_s": 0.5})
    job_id = queue.accepted(deadline_s=0.6, job_id="late")
    time.sleep(0.12)
    claimed = queue.claim()
    assert claimed.jobs == ()
    (event,) = claimed.expired
    assert (event.job_id, event.queue_class, event.attempt) == (job_id, "lint-fix", 0)
    assert event.deadline_slack_s < 0.5
    (line,) = (json.loads(line) for key in queue.client.keys("failed:*") for line in queue.client.lrange(key, 0, -1))
    assert (line["job_id"], line["reason"], line["cause"]) == ("late", "expired", "claim")


@pytest.mark.parametrize(("order", "jobs"), [("reject", 1), ("drain", 0)])
def test_workers_pull_in_reject_new_and_stop_in_drain(queue: OpenQueue, order: str, jobs: int) -> None:
    queue.accepted()
    queue.store.order(order, "ada", "test")
    claimed = queue.claim()
    assert len(claimed.jobs) == jobs
    assert claimed.drain_state == ("drain" if order == "drain" else "reject_new")


def test_a_claim_of_no_job_confirms_the_epoch_for_its_worker(queue: OpenQueue) -> None:
    queue.accepted()
    moved = queue.store.order("drain", "ada", "test")
    assert queue.claim(slots=0).jobs == ()
    (worker,) = queue.store.workers()
    assert (worker.worker_id, worker.epoch, worker.inflight) == ("w1", moved.epoch, 0)


def test_before_green_only_canaries_are_pulled_and_the_backlog_after_it(queue: OpenQueue) -> None:
    job_id = queue.accepted()
    run = Recovery(queue)
    assert run.step("recover") == "moved"
    assert queue.claim().jobs == ()
    canary = run.canary(0)
    assert canary.canary == "run-1"
    assert queue.store.intent("w1", canary.job_id, canary.fence) == "go"
    assert queue.settle(canary, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    for n in (1, 2):
        queue.settle(run.canary(n), Outcome.SUCCEEDED, kind=CallKind.OK)
    assert queue.store.observe().gate.green
    assert queue.claimed().job_id == job_id


def test_a_canary_slower_than_its_class_allows_fails(queue: OpenQueue) -> None:
    run = Recovery(queue)
    run.step("recover")
    slow = {"kind": "ok", "status": 200, "latency_ms": 1500}
    answer = queue.settle(run.canary(0), Outcome.SUCCEEDED, call=slow)
    gate = queue.store.observe().gate
    assert answer.state == "failed"
    assert (gate.canary_ok_count, gate.canary_failures) == (0, 1)


def test_after_green_old_canaries_are_told_to_stop(queue: OpenQueue) -> None:
    run = Recovery(queue)
    run.step("recover")
    slow = run.canary(99)
    run.green()
    assert queue.store.intent("w1", slow.job_id, slow.fence) == "stop"
    assert queue.settle(slow, Outcome.REQUEUED).state == "failed"


def test_an_empty_server_gives_no_job_and_a_worker_writes_nothing_but_its_presence(redis_url: str) -> None:
    store = Store.connect(redis_url)
    claimed = store.claim("w1", "r1", 2)
    assert (claimed.drain_state, claimed.jobs) == ("drain", ())
    store.hello("w1")
    store.sweep()
    store.promote()
    assert store.renew("w1", {"j": 1}).drain_state == "drain"
    assert store.intent("w1", "j", 1) == "stale"
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert set(client.scan_iter()) == {"workers", "worker:w1"}
    store.close()


def test_data_older_than_what_a_worker_has_seen_gives_no_job(queue: OpenQueue) -> None:
    queue.accepted()
    queue.store.order("open", "ada", "a later epoch")
    seen = Store.connect(queue.url)
    seen.observe()
    old_epoch = int(queue.client.get("control:epoch")) - 1_000_000
    queue.client.set("control:epoch", old_epoch)  # as a restore of older data would leave it
    claimed = queue.claim(store=seen)
    assert (claimed.drain_state, claimed.jobs) == ("drain", ())
    seen.close()


def test_an_idle_worker_never_takes_a_job_while_it_waits(queue: OpenQueue) -> None:
    wait_until(lambda: not queue.store.wait_for_work(0.02), "an end of the wake tokens of the opening")
    queue.accepted()
    assert queue.store.wait_for_work(1)
    assert queue.client.llen("queue:pending") == 1


def test_a_claim_and_its_worker_are_told_as_they_are_stored(queue: OpenQueue) -> None:
    queue.accepted()
    claimed = queue.store.claim("w1", "the first", 1, "1.2")
    window = queue.client.hget("control:gate", "window")
    assert (claimed.green, str(claimed.jobs[0].window)) == (False, window)
    assert queue.client.hget(f"job:{claimed.jobs[0].job_id}", "window") == window
    assert queue.client.hget("worker:w1", "version") == "1.2"
    run = Recovery(queue)
    run.step("recover")
    run.green()
    assert queue.claim(slots=0).green


def test_of_two_heads_of_one_age_the_first_pair_by_name_comes_first(queue: OpenQueue) -> None:
    names = ["test-patch", "lint-fix", "refactor-plan"]
    queue.producer.submit_many([queue.producer.prepare(name, "{}") for name in names])
    assert [job.job_class for job in queue.claim(slots=3).jobs] == sorted(names)


def test_a_claim_looks_at_a_hundred_and_then_lets_others_in(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=200, max_running=200)
    queue.producer.submit_many([queue.producer.prepare("lint-fix", "{}") for _ in range(130)])
    ids = queue.client.zrange("queue:fifo:lint-fix:-", 0, 109)
    for job_id in ids:
        queue.client.hset(f"job:{job_id}", "deadline", "1")
        queue.client.zadd("queue:ready:lint-fix:-", {job_id: 1})
    first = queue.claim(slots=5)
    assert (len(first.expired), len(first.jobs)) == (100, 0)
    second = queue.claim(slots=5)
    assert (len(second.expired), len(second.jobs)) == (10, 5)
    assert "canaries_failed" not in queue.counters()


def test_a_claim_alone_writes_nothing_on_an_empty_server(redis_url: str) -> None:
    with closing(Store.connect(redis_url)) as store, redis.Redis.from_url(redis_url) as client:
        assert store.claim("w1", "r1", 2).jobs == ()
        assert client.dbsize() == 0


def test_a_job_is_handed_out_with_the_effects_of_its_class(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(strict_classes=False)
    effects = {}
    for name in ("send-mail", "lint-fix", "no-such"):
        queue.accepted(name, deadline_s=30)
        effects[name] = queue.claimed().effects
    assert effects == {"send-mail": "unsafe", "lint-fix": "keyed", "no-such": "keyed"}


@pytest.mark.parametrize(("short_of_it_ms", "started"), [(0, True), (1, False)])
def test_a_job_with_just_the_margin_left_is_started(clocked: ClockedQueue, short_of_it_ms: int, started: bool) -> None:
    clocked.accepted(deadline_s=1)
    clocked.wait(1000 - round(clocked.contract.timings.margin_s * 1000) + short_of_it_ms)
    claimed = clocked.claim()
    assert (len(claimed.jobs), len(claimed.expired)) == (int(started), int(not started))


def test_a_job_whose_class_is_declared_no_more_is_unsafe_to_repeat(queue: OpenQueue) -> None:
    """Nobody says any more what a repeat of it does, and it may have been unsafe."""
    job_id = queue.accepted("send-mail")
    narrow = queue.contract.model_copy(
        update={"classes": {name: one for name, one in queue.contract.classes.items() if name != "send-mail"}}
    )
    queue.store.apply_settings(narrow.for_redis(), narrow.digest(), "ada", "no more mail")
    job = queue.claimed()
    assert (job.job_id, job.effects) == (job_id, "unsafe")


def test_a_job_of_a_class_that_is_not_declared_is_handed_out_under_its_own_name(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(strict_classes=False)
    queue.accepted("no-such", deadline_s=30)
    assert queue.claimed().job_class == "no-such"
