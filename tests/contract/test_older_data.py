"""A server comes back with older data than was seen: the gate is shut for whoever has seen the newer, then for all.

The torture does the same with a file that is cut off (`drill/torture/conductor.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from sluicegate.producer import Producer
from sluicegate.store import Store
from tests.queues import OpenQueue, contract_of

GATE = ("control:gate", "control:epoch", "drain_state", "admission")


@pytest.fixture
def queue(redis_url: str) -> Iterator[OpenQueue]:
    """Return an open queue whose person's order to drain, which its store has seen, is no longer in the data.

    Its invariants are not checked: one is that the newest log entry is the move that stands.
    """
    opened = OpenQueue(redis_url, contract_of())
    with redis.Redis.from_url(redis_url) as client:
        before = {key: client.dump(key) for key in GATE}
        assert opened.store.order("drain", "ada", "the provider is down").drain_state == "drain"
        for key, dump in before.items():
            assert isinstance(dump, bytes)
            client.restore(key, 0, dump, replace=True)
    yield opened
    opened.close()


def test_whoever_has_seen_the_lost_move_finds_the_gate_shut(queue: OpenQueue) -> None:
    gate = queue.store.observe().gate
    assert (gate.drain_state, gate.pin, gate.readable) == ("drain", "control_data_lost", False)
    refused = queue.submit()
    assert (refused.accepted, refused.reason) == (False, "admission_closed")
    assert queue.claim().jobs == ()


def test_a_process_that_has_seen_nothing_reads_what_the_data_says_until_the_controller_has_looked(
    queue: OpenQueue,
) -> None:
    fresh = Store.connect(queue.url)
    try:
        assert fresh.observe().gate.drain_state == "admit"

        _, fence = queue.store.lead("c1")
        queue.store.tick(fence)
        moved = queue.store.move_gate(action="admit", reason="normal", exit_ok=True, epoch=0, fence=fence, figures="{}")

        assert moved.drain_state == "drain"
        gate = fresh.observe().gate
        assert (gate.drain_state, gate.pin) == ("drain", "control_data_lost")
        assert not Producer(fresh).submit("lint-fix", "{}").accepted
    finally:
        fresh.close()


@pytest.mark.parametrize("tells", ["a worker", "a producer"])
def test_what_a_worker_or_a_producer_has_seen_shuts_the_gate_for_those_who_came_after_it(
    queue: OpenQueue, tells: str
) -> None:
    """As where one machine had the primary and the automation service: nobody who is left may move the gate."""
    fresh = Store.connect(queue.url)
    try:
        assert queue.claim().jobs == () if tells == "a worker" else not queue.submit().accepted
        gate = fresh.observe().gate
        assert (gate.drain_state, gate.pin, gate.readable) == ("drain", "control_data_lost", False)
        assert queue.client.get("drain_state") == "admit", "it is no move"

        _, fence = fresh.lead("c2")
        fresh.tick(fence)
        moved = fresh.move_gate(action="admit", reason="normal", exit_ok=True, epoch=0, fence=fence, figures="{}")

        assert (moved.answer, moved.drain_state) == ("moved", "drain")
        assert fresh.observe().gate.pin == "control_data_lost"
        assert fresh.order("open", "ada", "the provider is back").answer == "moved"
        assert Producer(fresh).submit("lint-fix", "{}").accepted
        assert queue.claimed().job_id
    finally:
        fresh.close()


def test_a_named_person_opens_it_for_all(queue: OpenQueue) -> None:
    fresh = Store.connect(queue.url)
    try:
        assert queue.store.order("open", "ada", "the provider is back").answer == "moved"
        assert queue.submit().accepted
        assert Producer(fresh).submit("lint-fix", "{}").accepted
        assert fresh.observe().gate.epoch == queue.store.epoch_seen
    finally:
        fresh.close()
