"""The asyncio producer on real servers: shared calls, their order, and what one caller's end does to the others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from sluicegate.admission import Decision
from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import StoreFull, StoreUnavailable, UsageError
from sluicegate.producer import MAX_BATCH_BYTES, Deferred
from sluicegate.store import Store
from sluicegate.submission import MAX_PAYLOAD_BYTES
from tests.lossy import LossyRelay, connected
from tests.queues import OpenQueue, OpenQueueFunction
from tests.watched import watched

WITHIN_S = 10.0


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WITHIN_S):
            await scenario()

    asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until a condition holds; the scenario's own bound ends the wait."""
    while not holds():  # noqa: ASYNC110 (what is looked at is not this loop's to signal)
        await asyncio.sleep(0.001)


def test_callers_of_the_same_moment_share_calls_of_at_most_25(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            async with AsyncProducer(store) as producer:
                asked = [producer.submit("lint-fix", "{}", idempotency_key=f"k{n}") for n in range(60)]
                decisions = await asyncio.gather(*asked)
            assert all(decision.accepted and not decision.replayed for decision in decisions)
            assert len({decision.job_id for decision in decisions}) == 60
            assert [len(batch) for batch in store.batches] == [25, 25, 10]
            assert [key for batch in store.batches for key in batch] == [f"k{n}" for n in range(60)]

    run(scenario)
    assert queue.counters()["admitted"] == 60


def test_while_two_calls_are_on_their_way_further_callers_join_the_next_one(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            store.go.clear()
            async with AsyncProducer(store) as producer:
                asked = []
                for n in range(12):
                    asked.append(asyncio.ensure_future(producer.submit("lint-fix", "{}", idempotency_key=f"k{n}")))
                    expected = min(2, n + 1)
                    await until(lambda wanted=expected: len(store.batches) == wanted)  # type: ignore[misc]
                await until(lambda: producer.waiting == 10)
                store.go.set()
                await asyncio.gather(*asked)
            assert [len(batch) for batch in store.batches] == [1, 1, 10]
            assert store.most_at_once == 2

    run(scenario)


def test_a_batch_is_decided_in_its_order_where_calls_go_over_threads(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(max_pending=10_000)
    queue.client.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "+@all", "-fcall")
    asked: list[str] = []

    async def scenario() -> None:
        # Of the first two calls each learns for itself that functions are forbidden.
        store = Store.connect(queue.url.replace("redis://", "redis://limited:secret@"))
        async with AsyncProducer(store) as producer:
            for _ in range(10):
                many = [producer.prepare("lint-fix", "{}") for _ in range(200)]
                assert all(decision.accepted for decision in await producer.submit_many(many))
                asked.extend(one.job_id for one in many)
        store.close()

    try:
        run(scenario)
    finally:
        queue.client.execute_command("ACL", "DELUSER", "limited")
    (jobs,) = (queue.client.zrange(key, 0, -1) for key in queue.client.keys("*queue:fifo:*"))
    assert jobs == asked


def test_its_decisions_are_those_of_the_synchronous_producer(queue: OpenQueue) -> None:
    async def scenario() -> None:
        async with AsyncProducer(queue.store) as producer:
            first = await producer.submit("lint-fix", "one", idempotency_key="k1")
            assert await producer.submit("lint-fix", "one", idempotency_key="k1") == queue.submit(
                "lint-fix", "one", idempotency_key="k1"
            )
            assert await producer.submit("lint-fix", "two", idempotency_key="k1") == queue.submit(
                "lint-fix", "two", idempotency_key="k1"
            )
            assert (await producer.submit("no-such", "{}", idempotency_key="k2")).reason == "unknown_class"
            assert queue.submit("no-such", "{}", idempotency_key="k2").replayed
            assert first.accepted
            with pytest.raises(UsageError, match="class"):
                await producer.submit("a b", "{}")

    run(scenario)


def test_one_key_twice_in_one_call_is_one_job_and_the_second_is_the_replay(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            async with AsyncProducer(store) as producer:
                first, second, other = await asyncio.gather(
                    producer.submit("lint-fix", "one", idempotency_key="k1"),
                    producer.submit("lint-fix", "one", idempotency_key="k1"),
                    producer.submit("lint-fix", "two", idempotency_key="k1"),
                )
            assert store.batches == [["k1", "k1", "k1"]]
            assert first.accepted
            assert second == Decision(True, first.job_id, replayed=True)
            assert (other.reason, other.job_id) == ("conflict", first.job_id)

    run(scenario)
    assert queue.counters()["admitted"] == 1


def test_a_key_on_its_way_is_not_sent_beside_itself_so_its_order_holds(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            store.go.clear()
            async with AsyncProducer(store, max_batch=2) as producer:
                keys = ["a", "b", "a", "c", "a", "d"]
                asked = [
                    asyncio.ensure_future(producer.submit("lint-fix", f"p{n}", idempotency_key=key))
                    for n, key in enumerate(keys)
                ]
                await until(lambda: len(store.batches) == 2)
                assert sorted(store.batches) == [["a", "b"], ["c", "d"]]
                store.go.set()
                decisions = await asyncio.gather(*asked)
            assert sorted(store.batches) == [["a", "a"], ["a", "b"], ["c", "d"]]
            assert [decision.reason for decision in decisions] == ["", "", "conflict", "", "conflict", ""]

    run(scenario)


def test_many_callers_of_few_keys_get_one_job_a_key(queue: OpenQueue) -> None:
    async def scenario() -> None:
        async with AsyncProducer(queue.store, max_batch=7) as producer:
            asked = [producer.submit("lint-fix", "{}", idempotency_key=f"k{n % 5}") for n in range(200)]
            decisions = await asyncio.gather(*asked)
        assert len({decision.job_id for decision in decisions}) == 5
        assert Counter(decision.replayed for decision in decisions) == {False: 5, True: 195}
        assert not any(decision.replayed for decision in decisions[:5])

    run(scenario)


def test_a_caller_that_is_cancelled_disturbs_nobody(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            store.go.clear()
            async with AsyncProducer(store, max_batch=3, in_flight=1) as producer:
                asked = [
                    asyncio.ensure_future(producer.submit("lint-fix", "{}", idempotency_key=f"k{n}")) for n in range(6)
                ]
                await until(lambda: len(store.batches) == 1)
                asked[1].cancel()  # on its way
                asked[4].cancel()  # still waiting
                await until(lambda: producer.waiting == 2)
                store.go.set()
                answers = await asyncio.gather(*asked, return_exceptions=True)
            kinds = [type(answer) for answer in answers]
            assert kinds == [Decision, asyncio.CancelledError, Decision, Decision, asyncio.CancelledError, Decision]
            assert store.batches == [["k0", "k1", "k2"], ["k3", "k5"]]

    run(scenario)
    # What was on its way is decided all the same; what was not is unknown to the queue.
    assert queue.submit(idempotency_key="k1").replayed
    assert not queue.submit(idempotency_key="k4").replayed


def test_a_lost_answer_reaches_each_caller_of_its_call_and_a_repeat_counts_once(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with LossyRelay(queue.url) as relay:
            store = connected(relay)
            async with AsyncProducer(store, max_batch=5, in_flight=1) as producer:
                submissions = [producer.prepare("lint-fix", "{}") for _ in range(10)]
                relay.lose_next()
                answers = await asyncio.gather(
                    *(producer.submit_prepared(submission) for submission in submissions), return_exceptions=True
                )
                failures = answers[:5]
                assert {type(failure) for failure in failures} == {StoreUnavailable}
                assert len({id(failure) for failure in failures}) == 5, "each caller has an error of its own"
                assert all(isinstance(answer, Decision) and not answer.replayed for answer in answers[5:])
                again = await producer.submit_many(submissions)
            store.close()
        assert [decision.job_id for decision in again] == [submission.job_id for submission in submissions]
        assert all(decision.accepted and decision.replayed for decision in again)

    run(scenario)
    assert queue.counters()["admitted"] == 10


def test_no_answer_and_a_refusal_are_deferred_with_id_and_key(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with LossyRelay(queue.url) as relay:
            store = connected(relay)
            async with AsyncProducer(store) as producer:
                submission = producer.prepare("lint-fix", "{}", idempotency_key="k1")
                relay.lose_next()
                unanswered = await producer.submit_or_defer(submission)
                assert unanswered == Deferred(submission, "unanswered", 1.0)
                decided = await producer.submit_or_defer(submission)
                assert isinstance(decided, Decision)
                assert decided.accepted
                queue.store.order("reject", "ada", "test")
                refused = producer.prepare("lint-fix", "{}")
                assert await producer.submit_or_defer(refused) == Deferred(refused, "admission_closed", 6.0)
            store.close()

    run(scenario)


def test_an_error_answer_reaches_each_caller_as_what_it_is(queue: OpenQueue) -> None:
    async def scenario() -> None:
        async with AsyncProducer(queue.store) as producer:
            asked = [producer.submit("lint-fix", "{}") for _ in range(3)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreFull}
        assert all("memory is full" in str(answer) for answer in answers)

    queue.client.config_set("maxmemory", 1)
    try:
        run(scenario)
    finally:
        queue.client.config_set("maxmemory", 0)


def test_a_full_producer_takes_no_more_and_recovers(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            store.go.clear()
            async with AsyncProducer(store, max_batch=1, in_flight=1, max_waiting=2) as producer:
                first = asyncio.ensure_future(producer.submit("lint-fix", "{}"))
                await until(lambda: len(store.batches) == 1)
                others = [asyncio.ensure_future(producer.submit("lint-fix", "{}")) for _ in range(2)]
                await until(lambda: producer.waiting == 2)
                with pytest.raises(StoreUnavailable, match="2 submissions wait already"):
                    await producer.submit("lint-fix", "{}", idempotency_key="k1")
                others[0].cancel()
                await until(lambda: producer.waiting == 1)
                later = asyncio.ensure_future(producer.submit("lint-fix", "{}", idempotency_key="k1"))
                await until(lambda: producer.waiting == 2)
                store.go.set()
                decisions = await asyncio.gather(first, others[1], later)
            assert all(decision.accepted and not decision.replayed for decision in decisions)

    run(scenario)


def test_large_payloads_go_in_calls_that_stay_short(queue: OpenQueue) -> None:
    async def scenario() -> None:
        with watched(queue.url) as store:
            async with AsyncProducer(store) as producer:
                payload = "x" * MAX_PAYLOAD_BYTES
                decisions = await asyncio.gather(*(producer.submit("test-patch", payload) for _ in range(9)))
            assert all(decision.accepted for decision in decisions)
            assert {len(batch) for batch in store.batches[:2]} == {MAX_BATCH_BYTES // MAX_PAYLOAD_BYTES}
            assert sum(len(batch) for batch in store.batches) == 9

    run(scenario)


def test_closing_sends_what_waits_and_takes_nothing_more(queue: OpenQueue) -> None:
    async def scenario() -> None:
        producer = AsyncProducer(queue.store, max_batch=2, in_flight=1)
        asked = [asyncio.ensure_future(producer.submit("lint-fix", "{}")) for _ in range(7)]
        await until(lambda: producer.waiting > 0)
        await producer.close()
        await producer.close()
        assert producer.waiting == 0
        assert all(decision.accepted for decision in await asyncio.gather(*asked))
        with pytest.raises(UsageError, match="closed"):
            await producer.submit("lint-fix", "{}")

    run(scenario)
    assert queue.counters()["admitted"] == 7


def test_closing_before_anything_was_asked_is_well(queue: OpenQueue) -> None:
    run(AsyncProducer(queue.store).close)


@pytest.mark.parametrize(
    ("bounds", "named"),
    [({"max_batch": 0}, "max_batch is 0"), ({"max_batch": 101}, "not 1 to 100"), ({"in_flight": 0}, "in_flight is 0")],
)
def test_a_bound_that_cannot_be_is_named(bounds: dict[str, int], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        AsyncProducer(Store.connect("redis://127.0.0.1:1/0"), **bounds)  # type: ignore[arg-type]  # of the table
