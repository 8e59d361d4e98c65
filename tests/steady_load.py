"""Steady load of every kind on one open queue, and what it takes of the server's memory and keys meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from sluicegate.job import Call, CallKind, Job
from sluicegate.producer import Producer
from sluicegate.settings import Contract
from sluicegate.store import Store
from sluicegate.submission import Submission
from tests.working import RunningWorker

RATE_PER_S = 120
_BATCH = 12
# What one turn of the load holds, a kind a job; see `_handler` for what becomes of each.
_KINDS = ("ok", "ok", "ok", "once", "once", "fails", "late", "late", "lost", "undeclared", "full", "ok")
_CAP = 10_000
_ALERT = {"status": "firing", "starts_at": 1, "ends_at": 0, "name": "Some", "runbook": "", "labels": "{}"}


def contract_with(retention_s: float) -> Contract:
    """Give a contract that keeps what has ended for so long, with deadlines that fit into it."""
    body: dict[str, Any] = {
        "max_pending": 1000,
        "max_running": 100,
        "lease_ms": 2000,
        "retry_budget": 2,
        "classes": {
            "patch": {"deadline_s": retention_s / 2.5},
            "late": {"deadline_s": 0.25},
            "mail": {"deadline_s": retention_s / 2.5, "effects": "unsafe"},
            "browse": {"deadline_s": retention_s / 2.5, "cost_class": "browser"},
        },
        "cost_classes": {"browser": {"max_running": 1, "max_pending": 1}},
        # The provider fails on purpose: the gate is not what is measured here.
        "thresholds": {"sample_min_calls": 10**9, "sample_min_failed": 10**9},
        "timings": {
            "controller_silent_s": 3600,
            "provider_window_s": min(30.0, retention_s),
            "margin_s": 0.1,
            "call_reserve_s": 0.05,
            "call_timeout_min_s": 0.05,
            "backoff_first_s": 0.05,
            "backoff_max_s": 0.1,
            "class_limit_retry_s": 0.2,
            "overloaded_retry_s": 0.2,
            "closed_retry_s": 0.2,
            "final_retention_s": retention_s,
            "refusal_retention_s": retention_s,
            "failed_retention_s": retention_s,
            "run_retention_s": retention_s,
            "episode_retention_s": retention_s,
        },
    }
    return Contract.model_validate(body)


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold the server's own figures of one instant, seconds since the load began."""

    at_s: float
    used_memory: int
    keys: int


class SteadyLoad:
    """Submit at an even rate, work, fail, expire, refuse, repeat and reconcile until the `with` block ends."""

    def __init__(self, url: str, contract: Contract) -> None:
        self._url = url
        self._store = Store.connect(url)
        self._producer = Producer(self._store)
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._submit, self._be_the_person)]
        self._failure: BaseException | None = None
        self.answers: Counter[str] = Counter()
        answer = self._store.init_queue(contract.for_redis(), contract.digest(), "ada", "a measurement")
        assert answer.answer == "moved"

    def fill_logs(self) -> None:
        """Bring every log to its cap, by the commands that the load writes to it with: below, it grows by design."""
        for _ in range(_CAP // 100 + 2):
            self._hundred_unknown_jobs_are_settled()
        for number in range(_CAP // 4 + 100):
            # Two moves of the gate, two more by the orders, and what a run and an alert leave.
            self._run_comes_and_goes(f"early-{number}")
            self._store.order("hold", "ada", "a move")
            self._store.order("release", "ada", "a move")
        for number in range(_CAP - _CAP // 4):
            self._store.notify("test", "group", [_ALERT | {"fingerprint": f"early-{number % 100}"}])
        self.answers.clear()

    def _hundred_unknown_jobs_are_settled(self) -> None:
        self._producer.submit_many(self._prepared("lost") for _ in range(100))
        jobs = self._store.claim("filler", f"fill-{next(self._numbers)}", 100).jobs
        held = [{"worker": "filler", "id": job.job_id, "fence": str(job.fence)} for job in jobs]
        self._store.settle_many("filler", [one | {"request": "r", "outcome": "unknown"} for one in held])
        for job in jobs:
            self._store.reconcile(job.job_id, "succeeded", actor="ada", reason="looked", source="person")

    def expired(self) -> int:
        """Give how many jobs have expired so far."""
        return self._store.observe().counters["expired"]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the load on; a failure of a thread fails the test."""
        with RunningWorker(self._url, _handler, max_inflight=32):
            for thread in self._threads:
                thread.start()
            try:
                yield
            finally:
                self._stopping.set()
                for thread in self._threads:
                    thread.join()
        self._store.close()
        if self._failure is not None:
            raise self._failure

    def _submit(self) -> None:
        due = time.monotonic()
        before: list[Submission] = []
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += _BATCH / RATE_PER_S
            batch = [self._prepared(kind) for kind in _KINDS]
            try:
                # Each of them is submitted twice.
                for decision in self._producer.submit_many([*batch, *before]):
                    self.answers["accepted" if decision.accepted else decision.reason] += 1
            except BaseException as error:  # noqa: BLE001 (raised again where the test can see it)
                self._failure = error
                return
            before = batch

    def _prepared(self, kind: str) -> Submission:
        job_class = {"late": "late", "lost": "mail", "undeclared": "nothing", "full": "browse"}.get(kind, "patch")
        return self._producer.prepare(job_class, kind, idempotency_key=f"steady:{next(self._numbers)}")

    def _be_the_person(self) -> None:
        """Settle the unknown and blocked, which are kept until somebody does; now and then open a run, and end it."""
        turns = itertools.count(1)
        while not self._stopping.wait(0.1):
            try:
                for state, outcome in (("unknown", "succeeded"), ("blocked", "failed")):
                    for job_id in self._store.list_jobs(state):
                        self._store.reconcile(job_id, outcome, actor="ada", reason="looked", source="person")
                        self.answers[state] += 1
                if (turn := next(turns)) % 5 == 0:
                    self._run_comes_and_goes(f"steady-{turn}")
            except BaseException as error:  # noqa: BLE001 (as above)
                self._failure = error
                return

    def _run_comes_and_goes(self, name: str) -> None:
        self._store.notify("test", "group", [_ALERT | {"fingerprint": name}])
        opening = {"runbook": "drain-and-recover", "trigger": "person", "run": name, "actor": "ada"}
        asked = {"reason": "a run", "confirmed": True, "digest": "", "episode": ""}
        assert self._store.open_run(opening | asked).answer == "moved"
        assert self._store.order("open_end_run", "ada", "enough").answer == "moved"
        self.answers["run"] += 1


async def _handler(job: Job, timeout_s: float) -> Call:
    """Answer at once: well, once badly, always badly, or with a broken connection after the work; or after a while."""
    if job.payload == "full":
        await asyncio.sleep(0.2)
    if job.payload == "late":
        return Call(CallKind.STATUS_5XX, 0.001, 503, retry_after_s=60)  # past its deadline
    if job.payload == "fails" or (job.payload == "once" and job.attempt == 1):
        return Call(CallKind.STATUS_5XX, 0.001, 503)
    if job.payload == "lost":
        return Call(CallKind.DROPPED, 0.001)
    return Call(CallKind.OK, 0.001, 200)


def samples(url: str, for_s: float, every_s: float = 0.25) -> list[Sample]:
    """Take samples of a server for so long."""
    found: list[Sample] = []
    with redis.Redis.from_url(url) as client:
        began = time.monotonic()
        while (at_s := time.monotonic() - began) < for_s:
            client.execute_command("MEMORY", "PURGE")
            memory: Any = client.info("memory")
            found.append(Sample(at_s, int(memory["used_memory"]), int(client.dbsize())))
            time.sleep(every_s)
    return found


_COUNTED_BY = {"list": "LLEN", "zset": "ZCARD", "hash": "HLEN", "set": "SCARD", "stream": "XLEN"}


def lasting_keys(url: str) -> dict[str, int]:
    """Give key → how many entries it has, of the keys that belong to no single job, run or moment."""
    passing = ("job:", "payload:", "run:", "episode:", "done:", "provider:", "approval:")
    found: dict[str, int] = {}
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for key in client.scan_iter(count=1000):
            counted_by = _COUNTED_BY.get(str(client.type(key)))
            if counted_by is not None and not key.startswith(passing):
                found[key] = int(client.execute_command(counted_by, key))
    return found
