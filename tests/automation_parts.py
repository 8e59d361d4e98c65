"""A small fast queue with its real parts on one event loop: worker, controller, episodes and executor.

The provider is a function whose answers a test sets; everything else is what runs in production.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import redis

from automation.controller import Controller
from automation.episodes import Episodes
from automation.executor import Executor
from automation.metrics import AutomationMetrics
from automation.opening import Opening
from automation.service import runbooks_in_force
from automation.starting import start_arguments
from drill.server import ServerKind
from sluicegate.all_queues import AllQueues
from sluicegate.clock import SystemClock
from sluicegate.job import Call, CallKind, Job
from sluicegate.producer import Producer
from sluicegate.run_replies import JournalEntry, RunHistory
from sluicegate.settings import Settings, default_settings, faster, load
from sluicegate.store import Store
from sluicegate.submission import Submission
from sluicegate.telemetry import Telemetry
from sluicegate.worker import Worker

WAIT_S = 30.0

# What takes seconds runs on Redis in every run of the tests, and on Valkey with the slow ones.
ON_BOTH: pytest.MarkDecorator = pytest.mark.parametrize(
    "server",
    [pytest.param(ServerKind.REDIS, id="redis"), pytest.param(ServerKind.VALKEY, id="valkey", marks=pytest.mark.slow)],
    indirect=True,
)
RUNBOOKS = runbooks_in_force(default_settings())
RECOVERY = RUNBOOKS["drain-and-recover"]

# Silence and grace are longer than a busy machine stands still: else the gate rightly refuses what a test submits, or
# rolls a run back. Tests of these two set their own.
_TIMINGS = {
    "tick_s": 0.1,
    "provider_window_s": 3,
    "controller_lease_s": 1,
    "controller_silent_s": 10,
    "reject_dwell_s": 0.6,
    "run_open_after_s": 0.6,
    "limit_grace_s": 3,
    "worker_seen_s": 2,
    "drain_keep_slack_s": 1,
    "fix_timeout_s": 10,
    "fix_page_s": 1,
    "canary_timeout_s": 6,
    "canary_latency_floor_s": 0.3,
    "burn_down_max_s": 6,
    "burn_down_window_s": 1,
    "gate_timeout_s": 2,
    "ramp_step_s": 0.4,
    "run_lease_s": 1,
    "run_cooldown_s": 60,
    "episode_look_s": 0.2,
    "page_repeat_s": 1,
}
_THRESHOLDS = {
    "reject_age_p95_seconds": 1.5,
    "drain_age_p95_seconds": 2.5,
    "recovered_age_p95_seconds": 0.8,
    "reject_slack_p10_seconds": 1.0,
    "recovered_slack_p10_seconds": 2.0,
}
_CLASSES: Mapping[str, Any] = {
    "lint-fix": {"deadline_s": 12, "canary": {"prompt": "canary: lint nothing"}},
    "test-patch": {"deadline_s": 30, "effects": "unsafe", "canary": {"prompt": "canary: patch nothing"}},
}


def quick(folder: Path, **changes: Any) -> Settings:
    """Give the tests' settings: the drill's, five times as fast, and faster still where nothing depends on the machine.

    `timings`, `thresholds`, `automation` are merged, `classes` and any other field of the contract are replaced.
    """
    body = faster(load(None, {}), 5).model_dump(mode="json")
    contract = body["contract"]
    contract["ramp_percents"] = [50, 100]
    contract["expected_service_s"] = 0.05
    contract["timings"] |= _TIMINGS | changes.pop("timings", {})
    contract["thresholds"] |= _THRESHOLDS | changes.pop("thresholds", {})
    contract["classes"] = changes.pop("classes", dict(_CLASSES))
    body["automation"] |= {"snapshot_dir": str(folder / "snapshots"), "port": 0} | changes.pop("automation", {})
    contract.update(changes)
    return Settings.model_validate(body)


@dataclass
class Provider:
    """Answer as a test says: after `latency_s`, with `status`; an event that is clear holds every answer back."""

    latency_s: float = 0.02
    status: int = 200
    seen: list[str] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answers.set()

    async def __call__(self, job: Job, timeout_s: float) -> Call:
        began = time.monotonic()
        self.seen.append(job.idempotency_key)
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(self.latency_s)
                await self.answers.wait()
        except TimeoutError:
            return Call(CallKind.TIMEOUT, time.monotonic() - began)
        kind = CallKind.OK if self.status == 200 else CallKind.STATUS_5XX
        return Call(kind, time.monotonic() - began, self.status)


class Queue:
    """Look at one queue and act on it from outside its parts."""

    def __init__(self, url: str, settings: Settings, *, initialised: bool = True) -> None:
        self.settings = settings.model_copy(update={"redis_url": url})
        self.store = Store.connect(url, settings.queue, timeout_s=2.0)
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self._numbers = itertools.count(1)
        if initialised:
            contract = settings.contract
            answer = self.store.init_queue(contract.for_redis(), contract.digest(), "ada", "a test")
            assert answer.answer == "moved"

    def close(self) -> None:
        self.store.close()
        self.client.close()

    def look(self) -> Telemetry:
        return self.store.observe()

    def state(self) -> tuple[str, str | None, str | None]:
        """Give the gate's effective state, its pin and its rollback reason."""
        gate = self.look().gate
        return gate.drain_state, gate.pin, gate.rollback_reason

    def submit(self, count: int = 1, job_class: str = "lint-fix") -> list[str]:
        """Submit jobs; gives the refusals' reasons, empty for an accepted one."""
        names = [f"j{next(self._numbers)}" for _ in range(count)]
        asked = [Submission(name, job_class, "{}") for name in names]
        return [decision.reason for decision in Producer(self.store).submit_many(asked)]

    def open_run(self, runbook: str = RECOVERY.name) -> str:
        """Open a run as a named person and give its id."""
        answer = self.store.open_run(start_arguments(RUNBOOKS[runbook], "ada", "a test"))
        assert answer.answer == "moved", answer
        return answer.run

    def history(self, run: str) -> RunHistory:
        history = self.store.run(run)
        assert history is not None
        return history

    def journal(self, run: str, phase: str | None = None, verb: str | None = None) -> list[JournalEntry]:
        return [
            entry
            for entry in self.history(run).journal
            if (phase is None or entry.phase == phase) and (verb is None or entry.verb == verb)
        ]

    def reasons(self) -> list[str]:
        """Give the reasons of all gate moves, oldest first."""
        return [entry.reason for entry in reversed(self.store.gate_log(1000))]

    def moves(self) -> list[tuple[str, str, str]]:
        """Give (from, to, reason) of the moves that changed the state, oldest first."""
        log = reversed(self.store.gate_log(1000))
        return [(one.from_state, one.to_state, one.reason) for one in log if one.from_state != one.to_state]

    def approve(self, run: str, step: str) -> None:
        assert self.store.approve(run, step, actor="ada", reason="looked at it") == "moved"

    async def until(self, holds: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
        await until(holds, what, within_s)

    async def until_step(self, run: str, verb: str, within_s: float = WAIT_S) -> None:
        await until(lambda: self.journal(run, "started", verb), f"step {verb} of run {run}", within_s)

    async def until_ended(self, run: str, state: str, within_s: float = WAIT_S) -> RunHistory:
        """Wait until the run has ended, and give it; it must have ended in this state."""
        await until(lambda: not self.history(run).run.live, f"the end of run {run}", within_s)
        history = self.history(run)
        assert history.run.state == state, [(entry.verb, entry.phase, entry.text) for entry in history.journal]
        return history


class Parts(Queue):
    """Run the queue's parts on this event loop for as long as the block lasts."""

    def __init__(
        self,
        url: str,
        settings: Settings,
        *,
        controller: bool = True,
        executor: bool = True,
        episodes: bool = False,
        workers: int = 1,
        initialised: bool = True,
    ) -> None:
        super().__init__(url, settings, initialised=initialised)
        self.provider = Provider()
        self.metrics = AutomationMetrics()
        self._own = Store.connect(url, settings.queue)
        self.everywhere = AllQueues.over(self.settings)
        self.opening = self.opening_on(self._own)
        self.controller = Controller(self.opening, self.settings, RECOVERY, SystemClock(), self.metrics)
        self.executor = Executor(self._own, self.everywhere, self.settings, RUNBOOKS, SystemClock(), self.metrics)
        self.episodes = Episodes(self.opening, self.settings, RUNBOOKS, self.metrics)
        wanted = ((self.controller, controller), (self.executor, executor), (self.episodes, episodes))
        self._services = [service for service, runs in wanted if runs]
        self._workers = [
            Worker(Store.connect(url, settings.queue), self.provider, self.settings.worker, worker_id=f"w{number}")
            for number in range(workers)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(worker.run()) for worker in self._workers]
        for service in self._services:
            await service.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for service in reversed(self._services):
            await service.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._own.close()
        self.everywhere.close()
        self.close()

    def opening_on(self, store: Store) -> Opening:
        """Give another process's way to open runs."""
        url = self.settings.redis_url
        return Opening(store, self.everywhere, lambda queue: Store.connect(url, queue, read_only=True))

    def another_executor(self) -> Executor:
        """Give the executor of another process."""
        store = Store.connect(self.settings.redis_url, self.settings.queue)
        return Executor(store, self.everywhere, self.settings, RUNBOOKS, SystemClock(), self.metrics)

    def figure(self, name: str, **labels: str) -> float | None:
        """Give one of this process's own figures, without the prefix that all of them have."""
        return self.metrics.registry.get_sample_value(f"sluicegate_automation_{name}", labels)


async def until(holds: Callable[[], object], what: str, within_s: float = WAIT_S) -> None:
    """Look again and again until a condition holds, off this loop's thread, and fail past the bound."""
    end = time.monotonic() + within_s
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < end, f"{what} did not come true within {within_s:g} s"
        await asyncio.sleep(0.02)
