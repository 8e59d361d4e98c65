"""Celery with late acknowledgement and its thread pool: one process, as many slots as the others have."""

from __future__ import annotations

import os

from celery import Celery

from bench.peers import SLOTS, URL
from bench.ticks import tick

app = Celery("bench", broker=os.environ[URL])
app.conf.update(task_acks_late=True, task_ignore_result=True)


@app.task
def nothing(payload: str) -> None:
    del payload
    tick()


class Peer:
    concurrent = False
    worker = ("celery", "-A", "bench.peers.celery", "worker", "-P", "threads", "-c", os.environ[SLOTS])
    left = "return redis.call('LLEN', 'celery') + redis.call('HLEN', 'unacked')"

    async def open(self) -> None:
        pass

    async def enqueue(self, payload: str) -> None:
        nothing.delay(payload)
