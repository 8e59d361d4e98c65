"""Measure submissions beside a bare redis-py client, in interleaved rounds on one server."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec

import redis
import redis.asyncio

from bench.lab import CLASS, PAYLOAD, Lab
from bench.rows import Bound, Row, ratios
from sluicegate.async_producer import AsyncProducer
from sluicegate.producer import Producer
from sluicegate.store import Store
from sluicegate.submission import Submission

P = ParamSpec("P")
CALLERS = 50
_BATCH = 100
Encodable = bytes | bytearray | memoryview | str | int | float
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Size:
    """Say how long one round of a measure is."""

    singles: int = 3000
    batches: int = 60
    concurrent: int = 20_000


def _timed(n: int, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> float:
    """Give operations a second."""
    began = time.perf_counter()
    work(*args, **kwargs)
    return n / (time.perf_counter() - began)


def lpush(lab: Lab, n: int) -> float:
    def work() -> None:
        for _ in range(n):
            lab.client.lpush("bare", PAYLOAD)

    rate = _timed(n, work)
    lab.client.delete("bare")
    return rate


def _keys(n: int) -> list[str]:
    return [f"bench-{next(_numbers)}" for _ in range(n)]


def _submit_each(producer: Producer, keys: Sequence[str], job_class: str = CLASS) -> None:
    for key in keys:
        producer.submit(job_class, PAYLOAD, idempotency_key=key)


def one_at_a_time(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure submit_sync, submit_refused and submit_repeated against LPUSH, one caller, one after the other."""
    bare, fresh, refused, repeated = [], [], [], []
    n = size.singles
    for _ in range(rounds):
        store = lab.open_queue()
        producer = Producer(store)
        keys = _keys(n)
        bare.append(lpush(lab, n))
        fresh.append(_timed(n, _submit_each, producer, keys))
        repeated.append(_timed(n, _submit_each, producer, keys))
        refused.append(_timed(n, _submit_each, producer, _keys(n), "no-such-class"))
        store.close()
    wakes = "what a call costs Redis whatever it carries (gate, settings, limits), then two processes' wake-ups"
    return [
        Row("submit_sync", ratios(fresh, bare), "× LPUSH", 0.8, True, wakes),
        Row("submit_refused", ratios(refused, bare), "× LPUSH", 0.85, True, wakes),
        Row("submit_repeated", ratios(repeated, bare), "× LPUSH", 0.85, True, wakes),
    ]


def in_batches(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure submit_many against a pipeline of LPUSH, and Redis CPU against the plain commands it stands for."""
    bare, ours, plain_cpu, our_cpu = [], [], [], []
    n = size.batches * _BATCH
    for _ in range(rounds):
        store = lab.open_queue()
        producer = Producer(store)
        prepared = [producer.prepare(CLASS, PAYLOAD, idempotency_key=key) for key in _keys(n)]
        bare.append(_timed(n, _pipelines, lab, n, _push))
        before = lab.cpu_seconds()
        ours.append(_timed(n, _submit_batches, producer, prepared))
        our_cpu.append((lab.cpu_seconds() - before) / n * 1e6)
        store.close()
        lab.client.flushall()
        before = lab.cpu_seconds()
        _pipelines(lab, n, _plain)
        plain_cpu.append((lab.cpu_seconds() - before) / n * 1e6)
    middle = sorted(our_cpu)[rounds // 2]
    server = f"Redis: {middle:.1f} µs an admission, {sorted(plain_cpu)[rounds // 2]:.1f} µs for the plain commands"
    return [
        Row("submit_many", ratios(ours, bare), "× pipeline", 0.5, True, server),
        Row("redis_cpu", ratios(our_cpu, plain_cpu), "× plain", 0.5, False, server),
    ]


def _submit_batches(producer: Producer, prepared: Sequence[Submission]) -> None:
    for start in range(0, len(prepared), _BATCH):
        producer.submit_many(prepared[start : start + _BATCH])


def _pipelines(lab: Lab, n: int, fill: Callable[[redis.client.Pipeline], None]) -> None:
    for _ in range(n // _BATCH):
        pipe = lab.client.pipeline(transaction=False)
        for _ in range(_BATCH):
            fill(pipe)
        pipe.execute()
    lab.client.delete("bare")


def _push(pipe: redis.client.Pipeline) -> None:
    pipe.lpush("bare", PAYLOAD)


def _record(key: str, now_ms: int) -> dict[Encodable, Encodable]:
    names: tuple[Encodable, ...] = ("state", "class", "cost", "attempt", "key", "deadline", "admitted_at")
    return dict(zip(names, ("ready", CLASS, "-", 0, key, now_ms, now_ms), strict=True))


def _plain(pipe: redis.client.Pipeline) -> None:
    """The ten plain commands that an admission stands for."""
    key, now_ms = f"plain-{next(_numbers)}", int(time.time() * 1000)
    pipe.exists(f"idem:{key}")
    pipe.hset(f"job:{key}", mapping=_record(key, now_ms))
    pipe.set(f"payload:{key}", PAYLOAD)
    pipe.set(f"idem:{key}", key, ex=3600)
    pipe.hset(f"decision:{key}", mapping={"accepted": 1, "reason": "", "at": now_ms})
    pipe.rpush("plain:pending", key)
    pipe.zadd("plain:enqueued", {key: now_ms})
    pipe.zadd("plain:deadlines", {key: now_ms})
    pipe.hincrby("plain:counters", "admitted", 1)
    pipe.zcard("plain:enqueued")


def concurrently(lab: Lab, rounds: int, size: Size) -> list[Row]:
    """Measure 50 asyncio callers that share calls against the same callers on redis-py, and how long one waits."""
    bare, ours, waits = [], [], []
    for _ in range(rounds):
        store = lab.open_queue(max_pending=2 * size.concurrent)
        bare.append(asyncio.run(bare_callers(lab.url, size.concurrent)))
        lab.client.delete("bare")
        rate, p99 = asyncio.run(our_callers(lab.url, size.concurrent, CALLERS, PAYLOAD))
        ours.append(rate)
        waits.append(p99 * 1000)
        store.close()
    note = f"{sorted(ours)[rounds // 2]:.0f} admissions/s; Python: 8 to 11 µs a submission"
    patience = Bound("p99 wait of a caller", waits, "ms", 1.0)
    return [Row("submit_async", ratios(ours, bare), "× LPUSH", 4.0, True, note, also=(patience,))]


async def bare_callers(url: str, n: int) -> float:
    client = redis.asyncio.Redis.from_url(url, decode_responses=True)

    async def caller() -> None:
        for _ in range(n // CALLERS):
            await client.lpush("bare", PAYLOAD)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    rate = n / (time.perf_counter() - began)
    await client.aclose()
    return rate


async def our_callers(url: str, n: int, callers: int, payload: str) -> tuple[float, float]:
    """Submit from so many coroutines at once; gives admissions/s and the seconds that 99 % of them waited at most."""
    store, waits = Store.connect(url, timeout_s=10), []

    async def caller(producer: AsyncProducer) -> None:
        for key in _keys(n // callers):
            asked = time.perf_counter()
            await producer.submit(CLASS, payload, idempotency_key=key)
            waits.append(time.perf_counter() - asked)

    async with AsyncProducer(store) as producer:
        began = time.perf_counter()
        await asyncio.gather(*(caller(producer) for _ in range(callers)))
        rate = n / (time.perf_counter() - began)
    store.close()
    return rate, sorted(waits)[math.ceil(0.99 * len(waits)) - 1]
