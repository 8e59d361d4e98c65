"""RQ with its default worker, which forks for every job; one job at a time by design."""

from __future__ import annotations

import os

from redis import Redis
from rq import Queue

from bench.peers import URL
from bench.ticks import tick


def nothing(payload: str) -> None:
    del payload
    tick()


class Peer:
    concurrent = False
    worker = ("rq", "worker", "--url", os.environ[URL], "default")
    left = (
        "return redis.call('LLEN', 'rq:queue:default') + redis.call('LLEN', 'rq:queue:default:intermediate')"
        " + redis.call('ZCARD', 'rq:wip:default')"
    )

    def __init__(self) -> None:
        self._queue = Queue(connection=Redis.from_url(os.environ[URL]))

    async def open(self) -> None:
        pass

    async def enqueue(self, payload: str) -> None:
        self._queue.enqueue(nothing, payload, result_ttl=0)
