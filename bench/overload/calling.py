"""Ask for jobs as callers do: at their time whatever is answered, and again after a refusal that may be lifted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

from bench.overload.plan import FASTER, MIX, Ask
from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import StoreUnavailable
from sluicegate.store import Store

# A caller that could not be served any more does not ask again: the contract's margin.
_MARGIN_S = 2 / FASTER
_UNANSWERED_S = 0.1


@dataclass(slots=True)
class Asked:
    """Hold what became of one ask: times are Unix ms; `reason` is that of the last refusal."""

    ask: Ask
    job_id: str
    asked_ms: float
    deadline_ms: float
    tries: int = 0
    accepted: bool = False
    reason: str = ""


class Callers:
    """Be all callers of one queue."""

    def __init__(self, store: Store) -> None:
        self._producer = AsyncProducer(store, max_waiting=1_000_000)
        self.asked: list[Asked] = []

    async def call(self, asks: Iterable[Ask]) -> None:
        """Make every ask at its time; gives back when the last one has been made, and drops who still waits."""
        async with self._producer, asyncio.TaskGroup() as group:
            began, tasks = time.monotonic(), set[asyncio.Task[None]]()
            for ask in asks:
                # With 0 where it is late: those who were asked for before must get on all the same.
                await asyncio.sleep(max(0.0, began + ask.at_s - time.monotonic()))
                tasks.add(task := group.create_task(self._one(ask)))
                task.add_done_callback(tasks.discard)
            for task in tuple(tasks):
                task.cancel()

    async def _one(self, ask: Ask) -> None:
        now_s = time.time()
        deadline_s = now_s + MIX[ask.job_class].deadline_s
        payload = json.dumps({"service_s": round(ask.service_s, 5)})
        job_id = f"{ask.job_class}-{ask.number}"
        submission = self._producer.prepare(ask.job_class, payload, job_id=job_id, deadline_ts=deadline_s)
        self.asked.append(asked := Asked(ask, job_id, now_s * 1000, deadline_s * 1000))
        while True:
            asked.tries += 1
            try:
                decision = await self._producer.submit_prepared(submission)
            except StoreUnavailable as error:
                asked.reason, wait_s = f"unanswered: {error}", _UNANSWERED_S
            else:
                asked.accepted, asked.reason = decision.accepted, decision.reason
                if decision.accepted or decision.final or decision.retry_after_s is None:
                    return
                wait_s = decision.retry_after_s
            if time.time() + wait_s > deadline_s - _MARGIN_S:
                return
            await asyncio.sleep(wait_s)
