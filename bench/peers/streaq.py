"""streaQ; its stream holds a job until it is acknowledged and deleted."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

from streaq import Worker

from bench.peers import SLOTS, URL
from bench.ticks import tick

worker = Worker(redis_url=os.environ[URL], concurrency=int(os.environ[SLOTS]))


@worker.task(ttl=0)
async def nothing(payload: str) -> None:
    del payload
    tick()


class Peer:
    concurrent = True
    worker = ("streaq", "run", "bench.peers.streaq:worker")
    left = "return redis.call('XLEN', 'streaq:default:queues:normal')"

    def __init__(self) -> None:
        self._connected: AsyncExitStack | None = None

    async def open(self) -> None:
        if self._connected is not None:
            await self._connected.aclose()
        self._connected = AsyncExitStack()
        await self._connected.enter_async_context(worker)

    async def enqueue(self, payload: str) -> None:
        await nothing.enqueue(payload)
