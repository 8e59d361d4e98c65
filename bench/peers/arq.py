"""arq; a job stays in its sorted set until it is done, and an idle worker looks every half second."""

from __future__ import annotations

import os

from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.worker import func

from bench.peers import SLOTS, URL
from bench.ticks import tick


async def nothing(context: object, payload: str) -> None:
    del context, payload
    tick()


class WorkerSettings:
    functions = (func(nothing, keep_result=0),)
    redis_settings = RedisSettings.from_dsn(os.environ[URL])
    max_jobs = int(os.environ[SLOTS])


class Peer:
    concurrent = True
    worker = ("arq", "bench.peers.arq.WorkerSettings")
    left = "return redis.call('ZCARD', 'arq:queue')"
    _pool: ArqRedis | None = None

    async def open(self) -> None:
        if self._pool is None:
            self._pool = await create_pool(RedisSettings.from_dsn(os.environ[URL]))

    async def enqueue(self, payload: str) -> None:
        if self._pool is not None:
            await self._pool.enqueue_job("nothing", payload)
