"""taskiq on Redis streams, which acknowledges; acknowledged entries stay in the stream, so the group is asked."""

from __future__ import annotations

import os

from taskiq_redis import RedisStreamBroker

from bench.peers import SLOTS, URL
from bench.ticks import tick

broker = RedisStreamBroker(url=os.environ[URL])


@broker.task
async def nothing(payload: str) -> None:
    del payload
    tick()


class Peer:
    concurrent = True
    worker = ("taskiq", "worker", "bench.peers.taskiq:broker", "--workers", "1", "--max-async-tasks", os.environ[SLOTS])
    left = """
        local group, fields = redis.call('XINFO', 'GROUPS', 'taskiq')[1], {}
        for i = 1, #group, 2 do fields[group[i]] = group[i + 1] end
        return fields.pending + fields.lag
    """

    async def open(self) -> None:
        await broker.startup()

    async def enqueue(self, payload: str) -> None:
        await nothing.kiq(payload)
