"""A queue behind Sentinels with all that uses it: two producers, a worker, the controller, an executor, an exporter."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from automation.controller import Controller
from automation.executor import Executor
from automation.metrics import AutomationMetrics
from automation.opening import Opening
from exporter.reading import Scrape
from exporter.server import Exporter
from sluicegate.admission import Decision
from sluicegate.all_queues import AllQueues
from sluicegate.async_producer import AsyncProducer
from sluicegate.clock import SystemClock
from sluicegate.errors import StoreError
from sluicegate.job import Call, CallKind, Job
from sluicegate.producer import Producer
from sluicegate.settings import Settings
from sluicegate.store import Store
from tests.automation_parts import RECOVERY, RUNBOOKS, quick
from tests.topologies import SERVICE, Watched
from tests.working import RunningWorker

_CLASSES = {"lint-fix": {"deadline_s": 60}, "send-mail": {"deadline_s": 60, "effects": "unsafe"}}
_EVERY_S = 0.02
# Ages grow while there is no primary: here the gate is not to close for them.
_THRESHOLDS = {"reject_age_p95_seconds": 30, "drain_age_p95_seconds": 40, "recovered_age_p95_seconds": 20}


def settings_behind(watched: Watched, folder: Path, **timings: float) -> Settings:
    """Give quick settings of a queue that only the Sentinels know the way to."""
    body = quick(folder, classes=_CLASSES, thresholds=_THRESHOLDS, timings=timings).model_dump(mode="json")
    body |= {
        "redis_url": "redis://nobody.invalid:1/0",
        "redis": {"sentinels": list(watched.sentinels), "service": SERVICE},
    }
    body["exporter"] |= {"port": 0}
    return Settings.model_validate(body)


class Load:
    """Submit jobs of both classes from a thread and from an event loop, each key again until it is decided.

    `calls` holds when each job was called, and under which fence; `scrapes` what the exporter said.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop_submitting, self._stop_watching = threading.Event(), threading.Event()
        self.accepted: dict[str, str] = {}
        self.calls: dict[str, list[tuple[float, int]]] = {}
        self.scrapes: list[Scrape] = []
        self._submitters = [
            threading.Thread(target=self._submit),
            threading.Thread(target=lambda: asyncio.run(self._submit_async())),
        ]
        self._watcher = threading.Thread(target=lambda: asyncio.run(self._watch()))

    def start(self) -> None:
        for thread in (*self._submitters, self._watcher):
            thread.start()

    def end_submitting(self) -> None:
        self._stop_submitting.set()
        for thread in self._submitters:
            thread.join()

    def stop(self) -> None:
        self.end_submitting()
        self._stop_watching.set()
        self._watcher.join()

    def by_both(self, since: int) -> bool:
        """Say whether each producer has had a job accepted after the first `since` of all."""
        return {key[0] for key in tuple(self.accepted)[since:]} == {"t", "l"}

    async def handle(self, job: Job, timeout_s: float) -> Call:
        """Do a job's work."""
        self.calls.setdefault(job.job_id, []).append((time.monotonic(), job.fence))
        await asyncio.sleep(_EVERY_S)
        return Call(CallKind.OK, _EVERY_S, 200)

    def _keys(self, by: str) -> Iterator[tuple[str, str]]:
        number = 0
        while not self._stop_submitting.is_set():
            number += 1
            yield f"{by}{number}", "send-mail" if number % 2 else "lint-fix"

    def _note(self, key: str, job_class: str, decision: Decision) -> None:
        if decision.accepted:
            self.accepted[key] = job_class

    def _submit(self) -> None:
        store = Store.of(self._settings)
        producer = Producer(store)
        for key, job_class in self._keys("t"):
            while not self._stop_submitting.is_set():
                time.sleep(_EVERY_S)
                try:
                    self._note(key, job_class, producer.submit(job_class, "{}", idempotency_key=key))
                    break
                except StoreError:
                    continue
        store.close()

    async def _submit_async(self) -> None:
        store = Store.of(self._settings)
        async with AsyncProducer(store) as producer:
            for key, job_class in self._keys("l"):
                while not self._stop_submitting.is_set():
                    await asyncio.sleep(_EVERY_S)
                    try:
                        self._note(key, job_class, await producer.submit(job_class, "{}", idempotency_key=key))
                        break
                    except StoreError:
                        continue
        store.close()

    async def _watch(self) -> None:
        async with controlled(self._settings):
            exporter = Exporter(self._settings)
            while not self._stop_watching.is_set():
                self.scrapes.append(await exporter.collector.scrape())
                await asyncio.sleep(_EVERY_S)
            exporter.stop()


@asynccontextmanager
async def controlled(settings: Settings) -> AsyncIterator[None]:
    """Run a controller and an executor of a process of its own, which has seen nothing yet."""
    store, everywhere = Store.of(settings), AllQueues.over(settings)
    opening = Opening(store, everywhere, lambda queue: Store.of(settings, queue, read_only=True))
    clock, metrics = SystemClock(), AutomationMetrics()
    parts = (
        Controller(opening, settings, RECOVERY, clock, metrics),
        Executor(store, everywhere, settings, RUNBOOKS, clock, metrics),
    )
    for part in parts:
        await part.start()
    try:
        yield
    finally:
        for part in reversed(parts):
            await part.stop()
        everywhere.close()
        store.close()


@contextmanager
def under_load(settings: Settings) -> Iterator[tuple[Load, RunningWorker]]:
    """Run everything until the block is left."""
    load = Load(settings)
    with ExitStack() as stack:
        worker = stack.enter_context(RunningWorker("", load.handle, store=Store.of(settings), max_inflight=4))
        load.start()
        stack.callback(load.stop)
        yield load, worker
