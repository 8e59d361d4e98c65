"""Admission on real servers: durable decisions, refusals with their times, and what a repeat changes (contract §5)."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from drill.server import AppendFsync, ServerKind, ServerOptions
from sluicegate import functions
from sluicegate.admission import Decision
from sluicegate.errors import StoreRejected, StoreUnavailable, UsageError
from sluicegate.job import CallKind, Outcome
from sluicegate.producer import Deferred, Producer
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.lossy import LossyRelay, connected
from tests.queues import ClockedQueue, OpenQueue, OpenQueueFunction, contract_of, wait_until
from tests.servers import MakeServer


def test_an_accepted_job_is_ready_with_the_deadline_of_its_class(queue: OpenQueue) -> None:
    before_ms = queue.store.observe().at_ms
    job_id = queue.accepted("lint-fix", payload="{}")
    record = queue.record(job_id)
    assert record["state"] == "ready"
    assert record["key"] == job_id
    assert 0 <= int(record["deadline"]) - before_ms - 12_000 < 1000  # 60 s ÷ 5


def test_a_deadline_may_be_given_as_a_time_from_now_or_as_an_instant(queue: OpenQueue) -> None:
    at_ms = queue.store.observe().at_ms
    from_now = queue.accepted(deadline_s=7.5)
    instant = queue.accepted(deadline_ts=at_ms / 1000 + 9)
    assert 0 <= int(queue.record(from_now)["deadline"]) - at_ms - 7500 < 1000
    assert int(queue.record(instant)["deadline"]) == at_ms + 9000


def test_the_same_key_again_is_the_same_job_and_counts_once(queue: OpenQueue) -> None:
    first = queue.submit(idempotency_key="k1")
    again = queue.submit(idempotency_key="k1")
    assert again == Decision(True, first.job_id, replayed=True)
    assert queue.counters()["admitted"] == 1
    assert queue.store.observe().ready == 1


def test_a_lost_answer_repeated_counts_once(queue: OpenQueue) -> None:
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        producer = Producer(store)
        submission = producer.prepare("lint-fix", "{}")
        relay.lose_next()
        with pytest.raises(StoreUnavailable):
            producer.submit_many([submission])
        (decision,) = producer.submit_many([submission])
        store.close()
    assert relay.lost == 1
    assert decision == Decision(True, submission.job_id, replayed=True)
    assert queue.counters()["admitted"] == 1


def test_no_answer_is_deferred_and_handed_in_again_with_its_key(queue: OpenQueue) -> None:
    with LossyRelay(queue.url) as relay:
        store = connected(relay)
        producer = Producer(store)
        relay.lose_next()
        deferred = producer.submit_or_defer(producer.prepare("lint-fix", "{}", idempotency_key="k1"))
        assert isinstance(deferred, Deferred)
        assert deferred.reason == "unanswered"
        decision = producer.submit_or_defer(deferred.submission)
        store.close()
    assert isinstance(decision, Decision)
    assert decision.accepted
    assert queue.counters()["admitted"] == 1


def test_the_same_key_with_another_payload_is_a_conflict_and_changes_nothing(queue: OpenQueue) -> None:
    first = queue.submit(payload="one", idempotency_key="k1")
    other = queue.submit(payload="two", idempotency_key="k1")
    assert (other.accepted, other.reason, other.final) == (False, "conflict", True)
    assert queue.client.get(f"payload:{first.job_id}") == "one"
    assert queue.submit(payload="one", idempotency_key="k1").accepted


def test_the_id_is_the_key_under_either_name(queue: OpenQueue) -> None:
    assert queue.accepted(idempotency_key="k1") == "k1"
    assert queue.submit(job_id="k1") == Decision(True, "k1", replayed=True)
    assert queue.submit(job_id="k1", idempotency_key="k1").replayed
    with pytest.raises(UsageError, match="one identity"):
        queue.submit(job_id="j1", idempotency_key="k1")


def test_a_refusal_makes_no_job_and_lapses_with_its_record(queue: OpenQueue) -> None:
    refused = queue.submit("no-such", idempotency_key="k1")
    assert queue.store.job(refused.job_id) is None
    assert queue.record("k1") == {}
    assert not queue.client.exists("payload:k1")
    assert queue.client.pttl("job:k1") > 0
    assert queue.submit("lint-fix", idempotency_key="k1").reason == "conflict"


def test_a_job_that_was_refused_before_has_no_end_until_it_ends(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"closed_retry_s": 0.05})
    queue.store.order("reject", "ada", "test")
    assert not queue.submit(idempotency_key="k1").accepted
    queue.store.order("open", "ada", "test")
    time.sleep(0.06)  # the refusal is due
    assert queue.submit(idempotency_key="k1") == Decision(True, "k1")
    assert queue.client.pttl("job:k1") == -1
    assert queue.client.zrange("queue:refusals", 0, -1) == []


def test_one_key_from_many_callers_at_once_is_one_job(queue: OpenQueue) -> None:
    with ThreadPoolExecutor(8) as pool:
        decisions = list(pool.map(lambda _: queue.submit(idempotency_key="k1"), range(40)))
    assert len({decision.job_id for decision in decisions}) == 1
    assert Counter(decision.replayed for decision in decisions) == {False: 1, True: 39}


def test_a_batch_is_decided_in_order_each_job_by_itself(queue: OpenQueue) -> None:
    producer = queue.producer
    batch = [producer.prepare("lint-fix" if n % 2 else "no-such", "{}", job_id=f"j{n}") for n in range(150)]
    decisions = producer.submit_many(batch)
    assert [decision.job_id for decision in decisions] == [f"j{n}" for n in range(150)]
    assert [decision.accepted for decision in decisions] == [n % 2 == 1 for n in range(150)]


def test_a_live_refusal_is_repeated_until_it_is_due_and_decided_again_under_the_same_id(
    open_queue: OpenQueueFunction,
) -> None:
    queue = open_queue(timings={"closed_retry_s": 1})
    queue.store.order("reject", "ada", "test")
    refused = queue.submit(idempotency_key="k1")
    assert (refused.accepted, refused.reason, refused.retry_after_s) == (False, "admission_closed", 1.0)
    queue.store.order("open", "ada", "test")
    again = queue.submit(idempotency_key="k1")
    assert (again.accepted, again.reason, again.job_id, again.replayed) == (False, refused.reason, refused.job_id, True)
    assert again.retry_after_s is not None
    assert 0 < again.retry_after_s <= 1
    time.sleep(again.retry_after_s + 0.01)
    assert queue.submit(idempotency_key="k1") == Decision(True, refused.job_id)


def test_a_refusal_is_deferred_with_its_id_and_key(queue: OpenQueue) -> None:
    queue.store.order("reject", "ada", "test")
    submission = queue.producer.prepare("lint-fix", "{}", idempotency_key="k1")
    deferred = queue.producer.submit_or_defer(submission)
    assert deferred == Deferred(submission, "admission_closed", 6.0)  # 30 s ÷ 5
    final = queue.producer.submit_or_defer(queue.producer.prepare("lint-fix", "other", idempotency_key="k1"))
    assert isinstance(final, Decision)


def test_an_undeclared_class_is_refused_for_good_unless_classes_are_not_strict(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    refused = queue.submit("no-such")
    assert (refused.reason, refused.retry_after_s, refused.final) == ("unknown_class", None, True)
    changed = contract_of(strict_classes=False)
    queue.store.apply_settings(changed.for_redis(), changed.digest(), "ada", "test")
    job_id = queue.accepted("no-such", deadline_s=30)
    assert queue.record(job_id)["class"] == "other"


def test_a_deadline_under_the_margin_is_unreachable(queue: OpenQueue) -> None:
    refused = queue.submit(deadline_s=0.3)
    assert (refused.reason, refused.final) == ("deadline_unreachable", True)


def test_a_wait_is_predicted_only_from_enough_completions(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_running=100, prediction_min_completions=3, max_pending=1000)
    queue.producer.submit_many(queue.producer.prepare("lint-fix", "{}") for _ in range(203))
    assert queue.submit(deadline_s=3).accepted, "too few completions: no prediction, no refusal"
    for job in queue.claim(slots=3).jobs:
        queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
    # 200 jobs at 3 in 6 s take 400 s.
    assert queue.submit(deadline_s=3).reason == "deadline_unreachable"


def test_a_full_queue_is_overloaded_and_delayed_jobs_count(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=2)
    job = queue.started()
    assert queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=5000).state == "delayed"
    queue.accepted()
    refused = queue.submit()
    assert (refused.reason, refused.retry_after_s) == ("overloaded", 6.0)  # 30 s ÷ 5


def test_a_full_class_is_refused_by_its_own_name_and_delayed_jobs_count(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(classes={"lint-fix": {"deadline_s": 12, "max_pending": 1}})
    job = queue.started()
    queue.settle(job, Outcome.RETRY, kind=CallKind.STATUS_5XX, delay_ms=5000)
    refused = queue.submit("lint-fix")
    assert (refused.reason, refused.retry_after_s) == ("lint-fix_limit", 3.0)  # 15 s ÷ 5
    queue.accepted("test-patch")


def test_a_full_cost_class_is_refused_by_its_name(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(cost_classes={"browser": {"max_pending": 1}})
    queue.accepted("browse")
    assert queue.submit("browse").reason == "browser_limit"
    assert queue.submit("lint-fix", cost_class="browser").reason == "browser_limit"
    queue.accepted("lint-fix")


def test_a_silent_controller_admits_nothing_but_workers_go_on(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"controller_silent_s": 0.5})
    queue.accepted()
    time.sleep(0.55)
    assert queue.submit().reason == "controller_silent"
    assert len(queue.claim().jobs) == 1


def test_an_empty_server_is_closed_and_a_producer_writes_nothing(redis_url: str) -> None:
    store = Store.connect(redis_url)
    decision = Producer(store).submit("lint-fix", "{}")
    assert (decision.accepted, decision.reason, decision.final) == (False, "admission_closed", False)
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
    store.close()


def test_with_memory_full_no_job_is_added_but_one_that_runs_can_be_settled(queue: OpenQueue) -> None:
    job = queue.started()
    queue.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreRejected, match="maxmemory"):
            queue.submit()
        assert queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK).state == "succeeded"
    finally:
        queue.client.config_set("maxmemory", 0)


@pytest.mark.parametrize("kind", [ServerKind.REDIS, ServerKind.VALKEY], ids=str)
def test_jobs_and_decisions_survive_a_restart_of_the_server(
    kind: ServerKind, make_server: MakeServer, tmp_path: Path
) -> None:
    options = ServerOptions(kind=kind, folder=tmp_path, append_only=True, append_fsync=AppendFsync.ALWAYS)
    server = make_server(options)
    queue = OpenQueue(server.url, contract_of())
    keys = [f"k{n}" for n in range(20)]
    before = [queue.submit(idempotency_key=key).job_id for key in keys]
    refused = queue.submit("no-such", idempotency_key="kx")
    server.restart()
    queue.close()
    after = Store.connect(server.url)
    again = [Producer(after).submit("lint-fix", "{}", idempotency_key=key) for key in keys]
    assert again == [Decision(True, job_id, replayed=True) for job_id in before]
    assert Producer(after).submit("no-such", "{}", idempotency_key="kx").job_id == refused.job_id
    assert after.observe().ready == 20
    after.close()


def test_a_batch_fills_the_queue_and_no_more(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=3)
    batch = [queue.producer.prepare("lint-fix", "{}") for _ in range(5)]
    decisions = queue.producer.submit_many(batch)
    assert [decision.reason or "" for decision in decisions] == ["", "", "", "overloaded", "overloaded"]


def test_a_batch_fills_a_class_and_a_cost_class_and_no_more(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(
        classes={"lint-fix": {"deadline_s": 12, "max_pending": 2}}, cost_classes={"browser": {"max_pending": 1}}
    )
    names = ["lint-fix", "browse", "lint-fix", "browse", "lint-fix", "test-patch"]
    decisions = queue.producer.submit_many([queue.producer.prepare(name, "{}") for name in names])
    assert [decision.reason or "" for decision in decisions] == ["", "", "", "browser_limit", "lint-fix_limit", ""]


def test_a_key_that_comes_twice_in_a_batch_is_one_job(queue: OpenQueue) -> None:
    batch = [
        queue.producer.prepare("lint-fix", payload, idempotency_key=key)
        for key, payload in (("k1", "{}"), ("k2", "{}"), ("k1", "{}"), ("k1", "[]"))
    ]
    first, second, again, other = queue.producer.submit_many(batch)
    assert (first.accepted, second.accepted) == (True, True)
    assert (again.accepted, again.replayed) == (True, True)
    assert other.reason == "conflict"
    assert queue.counters()["admitted"] == 2


def test_jobs_that_still_run_after_the_limit_was_lowered_take_places_in_flight(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=3, max_running=3)
    for _ in range(3):
        queue.accepted()
    assert len(queue.claim(slots=3).jobs) == 3
    lowered = contract_of(max_pending=3, max_running=1)
    queue.store.apply_settings(lowered.for_redis(), lowered.digest(), "ada", "test")
    queue.accepted()
    assert queue.submit().reason == "overloaded", "1 pending and 3 running are as many as 3 and 1"


def test_time_that_is_just_the_margin_is_too_little(queue: OpenQueue) -> None:
    margin_s = queue.contract.timings.margin_s
    assert queue.submit(deadline_s=margin_s).reason == "deadline_unreachable"
    assert queue.submit(deadline_s=margin_s + 0.2).accepted


def test_a_share_of_the_ramp_is_those_whose_number_is_below_it(queue: OpenQueue) -> None:
    numbers = {f"k{n}": int(hashlib.sha1(f"k{n}".encode()).hexdigest()[:8], 16) % 100 for n in range(2_000)}  # noqa: S324
    edge, inside = (next(key for key, number in numbers.items() if number == wanted) for wanted in (10, 9))
    queue.client.hset("control:gate", "ramp", "10")
    assert queue.submit(idempotency_key=edge).reason == "ramp"
    assert queue.submit(idempotency_key=inside).accepted
    queue.client.hset("control:gate", "ramp", "")


def test_a_job_of_a_class_that_is_not_declared_is_told_by_its_own_name(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(strict_classes=False)
    named = queue.accepted("no-such", deadline_s=30)
    costly = queue.accepted("no-such", deadline_s=30, cost_class="browser")
    plain = queue.accepted("lint-fix", cost_class="browser")
    stored = [queue.client.hmget(f"job:{job_id}", "class", "declared", "cost") for job_id in (named, costly, plain)]
    assert stored == [["other", "no-such", None], ["other", "no-such", "browser"], ["lint-fix", None, "browser"]]
    assert queue.submit("lint-fix", cost_class="no-such").reason == "unknown_class"
    assert queue.submit("no-such").reason == "deadline_unreachable", "it has no deadline of its own"


def test_a_final_refusal_is_repeated_as_final(queue: OpenQueue) -> None:
    first, again = (queue.submit("no-such", idempotency_key="k1") for _ in range(2))
    assert (first.reason, first.retry_after_s, first.replayed) == ("unknown_class", None, False)
    assert (again.reason, again.retry_after_s, again.replayed) == ("unknown_class", None, True)


def test_a_repeat_tells_the_epoch_too(queue: OpenQueue) -> None:
    queue.submit(idempotency_key="k1")
    with closing(Store.connect(queue.url)) as other:
        assert Producer(other).submit("lint-fix", "{}", idempotency_key="k1").replayed
        assert other.epoch_seen == queue.store.observe().gate.epoch


def test_a_submission_wakes_as_many_as_there_are_jobs(queue: OpenQueue) -> None:
    queue.client.delete("queue:wake")
    queue.producer.submit_many([queue.producer.prepare("no-such", "{}")] * 2)
    assert queue.client.llen("queue:wake") == 0
    queue.producer.submit_many([queue.producer.prepare("lint-fix", "{}") for _ in range(2)])
    assert queue.client.llen("queue:wake") == 2


def test_a_batch_knows_what_was_admitted_before_it(queue: OpenQueue) -> None:
    queue.accepted(idempotency_key="k1")
    decisions = queue.producer.submit_many(
        [queue.producer.prepare("lint-fix", "{}", idempotency_key=key) for key in ("k0", "k1")]
    )
    assert [decision.replayed for decision in decisions] == [False, True]
    assert queue.counters()["admitted"] == 2


def test_kinds_of_one_class_are_told_apart_in_a_batch_and_share_an_index_where_they_are_one(queue: OpenQueue) -> None:
    wished = [("lint-fix", "browser"), ("lint-fix", "no-such"), ("browse", ""), ("browse", "browser"), ("lint-fix", "")]
    decisions = queue.producer.submit_many(
        [queue.producer.prepare(name, "{}", cost_class=cost or None) for name, cost in wished]
    )
    assert [decision.reason or "" for decision in decisions] == ["", "unknown_class", "", "", ""]
    assert queue.client.zcard("queue:fifo:browse:browser") == 2
    assert queue.client.zcard("queue:fifo:lint-fix:browser") == 1


@pytest.mark.parametrize(("max_pending", "kept"), [(20_000, 1), (20_001, 0)])
def test_the_list_for_people_is_kept_up_to_a_bound(open_queue: OpenQueueFunction, max_pending: int, kept: int) -> None:
    queue = open_queue(max_pending=max_pending)
    queue.accepted()
    assert queue.client.llen("queue:pending") == kept
    asked = [queue.producer.prepare("lint-fix", "{}") for _ in range(2)]
    assert all(decision.accepted for decision in queue.producer.submit_many(asked))
    assert queue.client.llen("queue:pending") == 3 * kept
    assert len(queue.claim(slots=3).jobs) == 3


def test_a_final_refusal_is_told_by_minus_one_each_time(queue: OpenQueue) -> None:
    words = ("k1", "no-such", "fp", "{}", "")
    answers = [
        queue.client.fcall(functions.function_name("admit"), 1, "control:gate", "", "0", *words) for _ in range(2)
    ]
    assert [answer[1:] for answer in answers] == [[0, "unknown_class", -1], [2, "unknown_class", -1]]


def test_a_wait_as_long_as_what_is_left_is_no_reason_to_refuse(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_running=100, prediction_min_completions=2, max_pending=1000)
    queue.producer.submit_many(queue.producer.prepare("lint-fix", "{}") for _ in range(203))
    for job in queue.claim(slots=3).jobs:
        queue.settle(job, Outcome.SUCCEEDED, kind=CallKind.OK)
    # 200 jobs at 3 in 6 s take 400 s; the margin is 0.4 s.
    assert queue.submit(deadline_s=400.399).reason == "deadline_unreachable"
    assert queue.submit(deadline_s=400.4).accepted


def test_a_call_without_jobs_tells_the_epoch_alone(queue: OpenQueue) -> None:
    answer = queue.client.fcall(functions.function_name("admit"), 1, "control:gate", "", "0")
    assert answer == [queue.client.get("control:epoch")]


def test_the_share_that_is_admitted_is_told_with_ramp_closing_and_silence(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(timings={"controller_silent_s": 0.5})
    assert queue.store.observe().gate.admission_ratio == 1
    queue.client.hset("control:gate", "ramp", "10")
    assert queue.store.observe().gate.admission_ratio == 0.1
    queue.client.hset("control:gate", "ramp", "")
    wait_until(lambda: queue.store.observe().gate.admission_ratio == 0, "the silence")
    queue.client.set("control:seen", int(queue.store.observe().at_ms))
    assert queue.store.observe().gate.admission_ratio == 1
    queue.store.order("reject", "ada", "test")
    queue.client.set("control:seen", int(queue.store.observe().at_ms))
    assert queue.store.observe().gate.admission_ratio == 0


def test_a_refusal_stands_until_the_very_instant_at_which_it_comes_due(clocked: ClockedQueue) -> None:
    clocked.store.order("reject", "ada", "a test")
    refused = clocked.submit(idempotency_key="k")
    assert (refused.accepted, refused.reason) == (False, "admission_closed")
    retry_ms = round(clocked.contract.timings.closed_retry_s * 1000)
    clocked.store.order("open", "ada", "a test")
    clocked.clock.now_us = clocked.clock.now_us // 1000 * 1000
    decided_ms = int(clocked.client.hget("job:k", "decided_at"))
    clocked.wait(decided_ms + retry_ms - clocked.clock.now_ms - 1)
    again = clocked.submit(idempotency_key="k")
    assert (again.accepted, again.replayed, again.retry_after_s) == (False, True, 0.001)
    clocked.wait(1)
    assert clocked.submit(idempotency_key="k").accepted


def test_no_caller_leaves_the_cost_class_of_its_class(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(cost_classes={"browser": {"max_pending": 1, "max_running": 1}})
    queue.accepted("browse")
    assert queue.submit("browse").reason == "browser_limit"
    assert queue.submit("browse", cost_class="-").reason == "unknown_class"


@pytest.mark.parametrize(
    "words",
    [
        ("SET", "drain_state", "drain"),
        ("SET", "admission", "closed"),
        ("HDEL", "control:gate", "since"),
        ("HDEL", "control:gate", "drain_state"),
        ("HSET", "control:gate", "pin", "nonsense"),
        ("HSET", "control:duplicates", "confirmed", "many"),
        ("SET", "control:duplicates", "of another type"),
        ("DEL", "control:epoch"),
        ("SET", "control:epoch", "1"),
        ("DEL", "control:seen"),
        ("DEL", "queue:settings"),
    ],
    ids=" ".join,
)
def test_what_was_known_of_an_open_gate_lets_nobody_in_once_it_is_another(
    queue: OpenQueue, words: tuple[str, ...]
) -> None:
    assert queue.submit().accepted
    assert queue.submit().accepted
    queue.client.copy(words[1], f"aside:{words[1]}")
    queue.client.execute_command(*words)
    assert queue.submit().reason in ("admission_closed", "controller_silent")
    batch = [queue.producer.prepare("lint-fix", "{}") for _ in range(2)]
    assert not any(decision.accepted for decision in queue.producer.submit_many(batch))
    queue.client.delete(words[1])
    if queue.client.exists(f"aside:{words[1]}"):
        queue.client.rename(f"aside:{words[1]}", words[1])
    assert queue.submit().accepted, "what was known of it while it was damaged is forgotten"


def test_who_has_seen_a_later_epoch_is_let_in_by_no_gate_and_nobody_is_after_it_told_so(queue: OpenQueue) -> None:
    def verdict(key: str, seen: int) -> int:
        words = (key, "lint-fix", "fp", "{}", "")
        answer = queue.client.fcall(functions.function_name("admit"), 1, "control:gate", "", str(seen), *words)
        return int(answer[1])

    epoch = int(queue.client.get("control:epoch"))
    assert [verdict(f"a{n}", seen) for n, seen in enumerate((0, epoch, epoch))] == [1, 1, 1]
    assert verdict("later", epoch + 1) == 0
    assert [verdict(key, seen) for key, seen in (("b", epoch), ("c", 0))] == [0, 0]


_ADMIT = functions.function_name("admit")


@pytest.mark.parametrize("seen", [str(2**52 + 1), str(2**53), "9" * 16, "1" * 19, "1e300", "nan", "-1", "x"])
def test_a_caller_who_brings_what_nobody_can_have_seen_shuts_the_gate_for_nobody_else(
    queue: OpenQueue, seen: str
) -> None:
    queue.client.fcall(_ADMIT, 1, "control:gate", "", seen, "k", "lint-fix", "fp", "{}", "")
    assert queue.store.observe().gate.readable
    assert queue.submit().accepted


def test_a_named_person_opens_what_the_last_epoch_that_counts_has_shut_and_moves_go_on(queue: OpenQueue) -> None:
    queue.client.fcall(_ADMIT, 1, "control:gate", "", str(2**52), "k", "lint-fix", "fp", "{}", "")
    assert not queue.submit().accepted
    orders = [queue.store.order(word, "ada", "a client brings nonsense") for word in ("open", "hold", "open")]
    assert [one.answer for one in orders] == ["moved"] * 3
    assert [int(one.epoch) for one in orders] == [2**52 + 1, 2**52 + 2, 2**52 + 3]
    assert queue.submit().accepted


@pytest.mark.parametrize("limited", ["classes", "cost_classes"])
def test_a_limit_holds_where_every_class_has_one(open_queue: OpenQueueFunction, limited: str) -> None:
    of_class = {"max_pending": 3} if limited == "classes" else {}
    of_cost = {"max_pending": 3, "max_running": 1} if limited == "cost_classes" else {"max_running": 1}
    names = contract_of().classes
    queue = open_queue(
        classes={name: {"deadline_s": 60, "cost_class": "browser", **of_class} for name in names},
        cost_classes={"browser": of_cost},
    )
    queue.accepted("lint-fix")
    asked = [queue.producer.prepare("lint-fix", "{}") for _ in range(3)]
    assert [decision.accepted for decision in queue.producer.submit_many(asked)] == [True, True, False]
    assert queue.submit("lint-fix").reason == ("lint-fix_limit" if limited == "classes" else "browser_limit")


def test_a_wait_that_is_too_long_refuses_a_class_with_a_limit_as_well(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(prediction_min_completions=2, classes={"lint-fix": {"deadline_s": 12, "max_pending": 100}})
    for _ in range(2):
        queue.settle(queue.started("lint-fix"), Outcome.SUCCEEDED, call={"kind": CallKind.OK.value, "latency_ms": 100})
    # Two completions in the window: so long as one window for two of those that wait.
    decisions = [queue.submit("lint-fix", deadline_s=12) for _ in range(20)]
    assert decisions[-1].reason == "deadline_unreachable"


def test_a_key_that_is_known_is_answered_as_before_wherever_it_stands_in_a_batch(queue: OpenQueue) -> None:
    queue.accepted("lint-fix", idempotency_key="known")
    keys = ("a", "known", "b", "known", "a")
    asked = [queue.producer.prepare("lint-fix", "{}", idempotency_key=key) for key in keys]
    decisions = queue.producer.submit_many(asked)
    assert [decision.replayed for decision in decisions] == [False, True, False, True, True]
    assert queue.counters()["admitted"] == 3
    assert queue.client.lrange("queue:pending", 0, -1) == ["known", "a", "b"]


def test_a_refused_key_that_comes_twice_in_a_batch_is_refused_once(queue: OpenQueue) -> None:
    asked = [queue.producer.prepare("no-such", "{}", idempotency_key="k") for _ in range(2)]
    decisions = queue.producer.submit_many(asked)
    assert [(decision.reason, decision.replayed) for decision in decisions] == [
        ("unknown_class", False),
        ("unknown_class", True),
    ]


def test_jobs_of_a_class_that_is_not_declared_keep_its_name_in_a_batch(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(strict_classes=False)
    asked = [queue.producer.prepare("no-such", "{}", deadline_s=60) for _ in range(2)]
    assert all(decision.accepted for decision in queue.producer.submit_many(asked))
    assert [job.job_class for job in queue.claim(slots=2).jobs] == ["no-such"] * 2


def test_a_repeat_tells_no_epoch_that_is_none(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    words = ("k", "lint-fix", "fp", "{}", "")
    for epoch, told in ((queue.client.get("control:epoch"), queue.client.get("control:epoch")), ("x", "0")):
        queue.client.set("control:epoch", epoch)
        answers = [
            queue.client.fcall(functions.function_name("admit"), 1, "control:gate", "", "0", *words) for _ in range(2)
        ]
        assert answers[1] == [told, 3]


def test_a_batch_stores_what_single_calls_store(queue: OpenQueue) -> None:
    wished: list[tuple[str, dict[str, Any]]] = [
        ("lint-fix", {}), ("lint-fix", {}), ("lint-fix", {"deadline_s": 50}), ("lint-fix", {}), ("browse", {}),
        ("browse", {}), ("lint-fix", {"cost_class": "browser"}), ("lint-fix", {}),
    ]  # fmt: skip

    def submissions(start: str) -> list[Submission]:
        return [
            queue.producer.prepare(name, f"{number}", idempotency_key=f"{start}{number}", **fields)
            for number, (name, fields) in enumerate(wished)
        ]

    def stored(key: str) -> tuple[object, ...]:
        record = queue.client.hgetall(f"job:{key}")
        admitted_at, deadline = int(record.pop("admitted_at")), int(record.pop("deadline"))
        pair = f"{record['class']}:{record.get('cost', '-')}"
        scores = (queue.client.zscore(f"queue:fifo:{pair}", key), queue.client.zscore(f"queue:ready:{pair}", key))
        assert scores == (admitted_at, deadline)
        return record, deadline - admitted_at, queue.client.get(f"payload:{key}")

    assert all(decision.accepted for decision in queue.producer.submit_many(submissions("b")))
    for one in submissions("s"):
        assert queue.store.admit((one.words(),))[0].accepted
    count = len(wished)
    assert [stored(f"b{n}") for n in range(count)] == [stored(f"s{n}") for n in range(count)]
    assert queue.client.lrange("queue:pending", 0, -1) == [f"{start}{n}" for start in "bs" for n in range(count)]
    assert queue.counters()["admitted"] == 2 * count


def test_a_new_contract_counts_from_the_next_submission_on(open_queue: OpenQueueFunction) -> None:
    queue = open_queue()
    assert queue.submit("browse").accepted
    changed = contract_of(classes={"browse": {"deadline_s": 60, "max_pending": 1}})
    queue.store.apply_settings(changed.for_redis(), changed.digest(), "alice", "fewer")
    assert queue.submit("browse").reason == "browse_limit"
