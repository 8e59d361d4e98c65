"""Dramatiq on Redis: one process with as many threads as the others have slots."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers import SLOTS, URL
from bench.ticks import tick

dramatiq.set_broker(RedisBroker(url=os.environ[URL]))


@dramatiq.actor
def nothing(payload: str) -> None:
    del payload
    tick()


class Peer:
    concurrent = False
    worker = ("dramatiq", "bench.peers.dramatiq", "--processes", "1", "--threads", os.environ[SLOTS])
    left = "return redis.call('HLEN', 'dramatiq:default.msgs')"

    async def open(self) -> None:
        pass

    async def enqueue(self, payload: str) -> None:
        nothing.send(payload)
