"""What a worker makes of a lease that is no longer its own, and of a job that nobody can read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

import pytest

from sluicegate.async_connection import AsyncConnection
from sluicegate.errors import StoreRejected
from sluicegate.job import Call, CallKind, Job
from sluicegate.job_calls import SettlementWords
from sluicegate.replies import Renewed, Settled
from sluicegate.store import Store
from tests.queues import OpenQueue, OpenQueueFunction, wait_until
from tests.working import RunningWorker


async def at_once(job: Job, timeout_s: float) -> Call:
    """Succeed at once."""
    return Call(CallKind.OK, 0.001, 200)


class CrossingStore(Store):
    """Be a store in which one renewal that was asked for arrives behind the settlement of its job.

    The settlement's answer is held until the renewal has its own.
    """

    def __init__(self, queue: OpenQueue) -> None:
        super().__init__(queue.client, "default")
        self.settled, self.renewed = threading.Event(), threading.Event()
        self.reached, self.lost = threading.Event(), list[str]()

    def renew(self, worker: str, leases: Mapping[str, int]) -> Renewed:
        if self.settled.is_set():
            # The worker comes again once it has seen what became of the renewal before.
            self.renewed.set()
        self.reached.set()
        assert self.settled.wait(10)
        renewed = super().renew(worker, leases)
        self.lost += renewed.lost
        return renewed

    async def settle_async(
        self, connection: AsyncConnection | None, worker: str, settlements: Sequence[SettlementWords]
    ) -> tuple[Settled, ...]:
        answered = await super().settle_async(connection, worker, settlements)
        self.settled.set()
        assert await asyncio.to_thread(self.renewed.wait, 10)
        return answered


def test_a_renewal_that_crosses_a_settlement_is_no_loss(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(lease_ms=600)
    store = CrossingStore(queue)

    async def until_asked(job: Job, timeout_s: float) -> Call:
        assert await asyncio.to_thread(store.reached.wait, 10)
        return Call(CallKind.OK, 0.001, 200)

    job_id = queue.accepted()
    with RunningWorker(queue.url, until_asked, store=store) as worker:
        wait_until(store.renewed.is_set, "the renewal's answer")
        wait_until(lambda: queue.state(job_id) == "succeeded", "the job's end")
    assert set(store.lost) == {job_id}
    assert worker.said("lease_lost") == []


def test_a_lease_that_somebody_else_has_is_said_to_be_lost(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False, lease_ms=600)
    ends_now = threading.Event()

    async def until_told(job: Job, timeout_s: float) -> Call:
        assert await asyncio.to_thread(ends_now.wait, 10)
        return Call(CallKind.OK, 0.001, 200)

    job_id = queue.accepted()
    with RunningWorker(queue.url, until_told) as worker:
        wait_until(lambda: bool(queue.record(job_id).get("intent")), "the call")
        queue.client.hincrby(f"job:{job_id}", "fence", 1)
        worker.wait_for("lease_lost", job_id=job_id, before="renewal")
        ends_now.set()
        worker.wait_for("stale_write", job_id=job_id)


def test_a_payload_that_is_no_text_fails_by_itself_and_costs_no_other_job_anything(queue: OpenQueue) -> None:
    spoilt, sound = queue.accepted(), queue.accepted()
    queue.client.set(f"payload:{spoilt}", b'{"n":1}\xff')
    with pytest.raises(StoreRejected, match="what is no UTF-8"):
        queue.store.job(spoilt)
    with RunningWorker(queue.url, at_once) as worker:
        wait_until(lambda: queue.state(sound) == "succeeded", "the sound job's end")
        wait_until(lambda: queue.state(spoilt) == "failed", "the other's end")
        assert [event["job_id"] for event in worker.said("payload_not_text")] == [spoilt]
        assert [event["job_id"] for event in worker.said("provider_call")] == [sound]
    record = queue.record(spoilt)
    assert (record["cause"], record["attempt"], "intent" in record) == ("payload_not_text", "1", False)
    assert queue.counters()["admitted"] == 2


@pytest.mark.parametrize("forbidden", [False, True])
def test_without_a_connection_of_the_loop_it_costs_the_others_nothing_either(
    queue: OpenQueue, forbidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster, behind Sentinels, and where functions are forbidden, which is the second case."""
    store = Store.connect(queue.url)
    monkeypatch.setattr(store, "_function_forbidden", forbidden)
    monkeypatch.setattr(store, "async_connection", lambda: None)
    spoilt, sound = queue.accepted(), queue.accepted()
    queue.client.set(f"payload:{spoilt}", b"\xff")
    (one, _) = queue.store.claim("by-hand", "r1", 2).jobs
    assert (one.job_id, one.payload) == (spoilt, "\udcff")
    for job_id in (spoilt, sound):
        fence = queue.record(job_id)["fence"]
        queue.store.settle(
            {"worker": "by-hand", "id": job_id, "fence": fence, "request": f"s{job_id}", "outcome": "requeued"}
        )
    with RunningWorker(queue.url, at_once, store=store) as worker:
        wait_until(lambda: queue.state(sound) == "succeeded", "the sound job's end")
        wait_until(lambda: queue.state(spoilt) == "failed", "the other's end")
        assert worker.said("lease_expired") == []


def test_an_id_that_is_no_text_costs_no_other_job_anything(open_queue: OpenQueueFunction) -> None:
    queue = open_queue(checked=False)
    sound = queue.accepted()
    raw = b"odd\xff"
    queue.client.hset(b"job:" + raw, mapping=queue.client.hgetall(f"job:{sound}"))
    deadline = queue.record(sound)["deadline"]
    queue.client.zadd("queue:fifo:lint-fix:-", {raw: 1})
    queue.client.zadd("queue:ready:lint-fix:-", {raw: deadline})
    with RunningWorker(queue.url, at_once) as worker:
        wait_until(lambda: queue.state(sound) == "succeeded", "the sound job's end")
        assert worker.said("job_id_not_text")[0]["job_id"] == "odd\N{REPLACEMENT CHARACTER}"
