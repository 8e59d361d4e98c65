"""Be one caller of a torture: submit one's share of the jobs, ask again, and write down what was sent and answered.

A line is written before each submission and one after its answer, so what was under way when nobody answered is in
the log as well. When all callers have ended, one more looks at every job.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from drill.effects import LineLog
from drill.torture.contract import CLASSES
from drill.torture.doors import ACCEPTED, REFUSED, UNANSWERED, Api, Door, Heard, HttpDoor, LibraryDoor
from drill.torture.plan import Life, Plan, lives
from sluicegate.async_producer import AsyncProducer
from sluicegate.store import Store

# How often a job that keeps being refused is asked for again after it came due.
_DUES = 2
_LIVE_SHARE = 0.35
# What one caller has under way at once; the others wait, unsent.
_ASKS_AT_ONCE = 32
_LOOKS_AT_ONCE = 8
_LOOK_AGAIN_S = 0.5
# What only a person could still change is not waited for.
_SETTLED = frozenset({"succeeded", "failed", "expired", "blocked", "gone"})


class Pen:
    """Write the caller's own log; every line has its time in Unix seconds."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._log = LineLog(path)
        self._now = now
        self._asks = 0

    def asked(self, life: Life, why: str, *, other: bool) -> int:
        """Write down what is about to be sent; gives its number."""
        self._asks += 1
        effects = CLASSES[life.job_class].effects.value
        self._write(
            {"kind": "asked", "ask": self._asks, "key": life.key, "class": life.job_class, "effects": effects}
            | {"why": why, "other": other}
        )
        return self._asks

    def answered(self, ask: int, heard: Heard) -> None:
        """Write down what was answered."""
        self._write(
            {"kind": "answered", "ask": ask, "answer": heard.answer, "job_id": heard.job_id, "reason": heard.reason}
            | {"retry_after_s": heard.retry_after_s, "replayed": heard.replayed}
        )

    def seen(self, key: str, state: str, asked_at: float) -> None:
        """Write down what was told of a job to whoever asked at that instant."""
        self._write({"kind": "seen", "key": key, "state": state, "at": asked_at})

    def now(self) -> float:
        """Give the time of the lines."""
        return self._now()

    def _write(self, line: dict[str, object]) -> None:
        self._log.append(json.dumps({"at": self._now(), **line}, separators=(",", ":")) + "\n")


class Caller:
    """Live the lives that a plan gives to one caller."""

    def __init__(self, plan: Plan, number: int, door: Door, pen: Pen) -> None:
        self._plan = plan
        self._number = number
        self._door = door
        self._pen = pen
        self._random = random.Random(f"{plan.seed}/{number}")
        self._turns = asyncio.Semaphore(_ASKS_AT_ONCE)

    async def run(self) -> None:
        """Submit all, and ask again as each life goes."""
        async with asyncio.TaskGroup() as group:
            for life in lives(self._plan):
                if life.first == self._number:
                    group.create_task(self._live(life, "first", life.at_s))
                if life.twin == self._number:
                    group.create_task(self._live(life, "twin", life.at_s + life.lag_s))

    async def _live(self, life: Life, why: str, at_s: float) -> None:
        """Submit; after a refusal ask again while it is live and after it came due; without an answer, ask again."""
        await self._wait_until(self._plan.starts_at + at_s)
        dues = 0
        while True:
            heard = await self._ask(life, why)
            if life.asks_other and why == "first" and heard.answer in (ACCEPTED, REFUSED):
                await self._ask(life, "other", other=True)
            if heard.answer == UNANSWERED:
                why, wait_s = "unanswered", heard.retry_after_s or 1.0
            elif heard.answer == REFUSED and heard.retry_after_s is not None and dues < _DUES:
                dues += 1
                wait_s = await self._while_live(life, heard.retry_after_s)
                why = "due"
            else:
                break
            if not await self._go_on_after(wait_s):
                return
        if self._random.random() < 0.3 and await self._go_on_after(self._random.uniform(0.05, 1.0)):
            await self._ask(life, "again")

    async def _while_live(self, life: Life, wait_s: float) -> float:
        """Ask once more while the refusal is live, now and then; gives how long to wait until it is due."""
        early_s = self._random.uniform(0.05, 0.8) * wait_s
        if self._random.random() < _LIVE_SHARE and await self._go_on_after(early_s):
            began = time.monotonic()
            await self._ask(life, "live")
            wait_s -= early_s + time.monotonic() - began
        return max(0.0, wait_s) + self._random.uniform(0.02, 0.5)

    async def _ask(self, life: Life, why: str, *, other: bool = False) -> Heard:
        payload: dict[str, object] = {"work": life.number, **({"other": True} if other else {})}
        async with self._turns:
            number = self._pen.asked(life, why, other=other)
            heard = await self._door.submit(life.job_class, payload, life.key)
            self._pen.answered(number, heard)
        return heard

    async def _go_on_after(self, wait_s: float) -> bool:
        """Wait, and tell whether there is still time to ask."""
        await asyncio.sleep(wait_s)
        return time.time() < self._plan.asks_until

    async def _wait_until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - time.time()))


async def call(plan: Plan, number: int, log: Path) -> None:
    """Run caller `number`: the first asks through the API, the others through the library."""
    pen = Pen(log)
    if number == 0:
        with ThreadPoolExecutor(_ASKS_AT_ONCE) as threads:
            await Caller(plan, number, HttpDoor(Api(plan.api_urls), threads), pen).run()
        return
    store = Store.connect(plan.redis_url)
    try:
        async with AsyncProducer(store) as producer:
            await Caller(plan, number, LibraryDoor(producer), pen).run()
    finally:
        store.close()


def look_at_all(plan: Plan, log: Path) -> None:
    """Look at every job of a plan through the API until each is settled or gone, or the time for settling is up.

    That time begins when each has been looked at once: how long this takes says something of the machine alone.
    """
    pen, api = Pen(log), Api(plan.api_urls)
    ends_at = math.inf
    open_keys, last = [life.key for life in lives(plan)], dict[str, str]()

    def look(key: str) -> None:
        asked_at = pen.now()
        state = api.state(key)
        if last.get(key) != state:
            last[key] = state
            pen.seen(key, state, asked_at)

    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as threads:
        while open_keys:
            for _ in threads.map(look, open_keys):
                continue  # what went wrong in a thread is raised here
            open_keys = [key for key in open_keys if last[key] not in _SETTLED]
            if time.monotonic() >= ends_at:
                return
            ends_at = min(ends_at, time.monotonic() + plan.settles_within_s)
            time.sleep(_LOOK_AGAIN_S)
