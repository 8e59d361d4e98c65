"""SAQ; a job is in `incomplete` until its worker has finished it."""

from __future__ import annotations

import os

from saq import Queue

from bench.peers import SLOTS, URL
from bench.ticks import tick


async def nothing(context: object, *, payload: str) -> None:
    del context, payload
    tick()


queue = Queue.from_url(os.environ[URL])
settings = {"queue": queue, "functions": [nothing], "concurrency": int(os.environ[SLOTS])}


class Peer:
    concurrent = True
    worker = ("saq", "bench.peers.saq.settings")
    left = "return redis.call('ZCARD', 'saq:default:incomplete')"

    async def open(self) -> None:
        await queue.connect()

    async def enqueue(self, payload: str) -> None:
        await queue.enqueue("nothing", payload=payload, ttl=-1)
