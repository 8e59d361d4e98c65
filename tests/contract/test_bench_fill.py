"""The exporter's bench measures queues that are laid out as queues are, whatever put the jobs there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import redis

from bench.exporter_lab import CLASSES, fill, list_of, queue_of
from bench.lab import Lab
from drill.server import QueueServer
from sluicegate.store import Store
from tests.invariants import assert_invariants

DEPTHS = (10, 1_003, 7_000)


def test_a_queue_that_is_filled_with_copies_keeps_every_invariant(server: QueueServer) -> None:
    client: Any = redis.Redis.from_url(server.url, decode_responses=True)
    lab = cast("Lab", SimpleNamespace(url=server.url, client=client))

    fill(lab, DEPTHS)

    for depth in DEPTHS:
        store = Store.connect(server.url, queue_of(depth))
        assert_invariants(client, store.keys)
        figures = store.observe()
        assert (figures.ready, figures.counters["admitted"]) == (depth, depth)
        assert sum(figures.classes[name].ready for name in CLASSES) == depth
        assert client.llen(list_of(depth)) == depth
        # Copies are jobs: they are claimed and worked on as any other.
        assert len(store.claim("w1", "r1", 3).jobs) == 3
        store.close()
    client.close()
