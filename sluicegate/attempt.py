"""Take one claimed job through its attempt: re-check the gate, make the call, settle."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from sluicegate.clock import Clock
from sluicegate.errors import StoreError
from sluicegate.job import Call, CallKind, Job, Outcome, Settlement, settle_after
from sluicegate.provider_call import Handler
from sluicegate.queue_clock import QueueClock
from sluicegate.replies import JobEvent, Settled
from sluicegate.shared_calls import SharedCalls
from sluicegate.stop_report import Ended
from sluicegate.store import Store
from sluicegate.store_link import StoreLink
from sluicegate.worker_rules import WorkerRules

# What a call may take past its timeout, to be cancelled and cleaned up, and still count as progress.
CALL_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Hold what all attempts of one worker share; `draw` gives 0..1 for the jitter of back-offs."""

    worker_id: str
    store: Store
    link: StoreLink
    handler: Handler
    clock: Clock
    queue_clock: QueueClock
    log: FilteringBoundLogger
    draw: Callable[[], float]


class Desk:
    """Take the intents and the settlements of all attempts of one worker, those of the same moment in one call."""

    def __init__(self, setting: Setting) -> None:
        call, store, worker_id = setting.link.call, setting.store, setting.worker_id
        self.intents: SharedCalls[tuple[str, int], str] = SharedCalls(
            lambda starts: call(store.intents, worker_id, starts)
        )
        self.settlements: SharedCalls[Mapping[str, object], Settled] = SharedCalls(
            lambda settlements: call(store.settle_many, worker_id, settlements)
        )


class Attempt:
    """Own one lease from its claim to its settlement.

    `cut_short` ends it early; `progresses` says whether its lease deserves to be renewed.
    """

    def __init__(self, job: Job, rules: WorkerRules, setting: Setting, desk: Desk) -> None:
        self.job = job
        self._rules = rules
        self._with = setting
        self._desk = desk
        self._call: asyncio.Task[Call] | None = None
        self._timeout_s = 0.0
        self._cut = False
        self._progress_until_s = setting.clock.monotonic() + rules.lease_s

    def progresses(self) -> bool:
        """Say whether the attempt gets on: a call within its timeout and grace, or a try to reach the store."""
        return self._with.clock.monotonic() < self._progress_until_s

    def stop(self) -> None:
        """Obey a drain: a call in progress goes on only if its slack exceeds its timeout + reserve (contract §3)."""
        remaining_s = self._remaining_s()
        if self._call is None or not self._rules.retry.may_finish_in_drain(remaining_s, self._timeout_s):
            self.cut_short()

    def cut_short(self) -> None:
        """End it now: before its call it is put back, within it the call is cancelled."""
        self._cut = True
        if self._call is not None:
            self._call.cancel()

    async def run(self) -> Ended:
        """Go from the re-check of the gate to the settlement; says how the lease ended."""
        if self._too_late():
            return await self._settle(Settlement(Outcome.EXPIRED), None)
        try:
            start = (self.job.job_id, self.job.fence)
            intent = await self._with.link.until_heard(self._rules.lease_s, lambda: self._desk.intents.ask(start))
        except StoreError:
            return Ended.LOST  # the lease has run out unrenewed: the sweep makes it unknown
        if intent == "stale":
            self._with.log.warning("lease_lost", job_id=self.job.job_id, attempt=self.job.attempt, before="call")
            return Ended.LOST
        # The gate may have been read as closed while the answer was on its way.
        if intent != "go" or self._cut:
            return await self._settle(self._put_back(), None)
        if self._too_late():
            return await self._settle(Settlement(Outcome.EXPIRED), None)
        call = await self._make_call()
        return await self._settle(self._settlement(call), call)

    async def _make_call(self) -> Call:
        self._timeout_s = self._rules.retry.call_timeout_s(self._remaining_s())
        started_s = self._with.clock.monotonic()
        bound_s = self._timeout_s + CALL_GRACE_S
        self._progress_until_s = started_s + bound_s
        self._call = asyncio.ensure_future(self._with.handler(self.job, self._timeout_s))
        try:
            await asyncio.wait({self._call}, timeout=bound_s)
            # A handler that does not end when told to keeps the slot, but its lease is renewed no more.
            self._call.cancel()
            await asyncio.wait({self._call})
        except asyncio.CancelledError:
            self._call.cancel()
            raise
        call = self._result(self._call, self._with.clock.monotonic() - started_s)
        self._progress_until_s = self._with.clock.monotonic() + self._rules.lease_s
        self._report(call)
        return call

    def _result(self, task: asyncio.Task[Call], took_s: float) -> Call:
        if task.cancelled():
            return Call(CallKind.CANCELLED if self._cut else CallKind.TIMEOUT, took_s)
        error = task.exception()
        if error is None:
            said: object = task.result()
            if isinstance(said, Call) and isinstance(said.kind, CallKind):
                return said
            error = TypeError(f"it gave {said!r:.100}, which is no Call of a CallKind")
        # A handler's own fault, at an unknown point of its work: as ambiguous as a broken connection.
        self._with.log.error("handler_failed", job_id=self.job.job_id, attempt=self.job.attempt, error=repr(error))
        return Call(CallKind.DROPPED, took_s)

    def _report(self, call: Call) -> None:
        common = {"job_id": self.job.job_id, "attempt": self.job.attempt}
        if call.kind is CallKind.TIMEOUT:
            self._with.log.info("provider_timeout", **common, timeout_s=round(self._timeout_s, 3))
            return
        self._with.log.info(
            "provider_call", **common, status=call.status, latency_s=round(call.latency_s, 4), kind=call.kind.value
        )

    def _settlement(self, call: Call) -> Settlement:
        settlement = settle_after(call, self.job, self._rules.retry, self._with.draw)
        return self._put_back() if settlement.outcome is Outcome.REQUEUED else settlement

    def _put_back(self) -> Settlement:
        return Settlement(Outcome.EXPIRED if self._too_late() else Outcome.REQUEUED)

    async def _settle(self, settlement: Settlement, call: Call | None) -> Ended:
        job = self.job
        arguments: dict[str, object] = {
            "worker": self._with.worker_id,
            "id": job.job_id,
            "fence": str(job.fence),
            # A fence is given once, and settled once.
            "request": f"{self._with.worker_id}/{job.fence}",
            "outcome": settlement.outcome.value,
            "delay_ms": math.ceil(settlement.delay_s * 1000),
        }
        if call is not None:
            arguments["call"] = {
                "kind": call.kind.value,
                "status": call.status or 0,
                "latency_ms": round(call.latency_s * 1000),
            }
        if self._cut:
            arguments["cause"] = "drain"
        try:
            settled = await self._with.link.until_heard(
                self._rules.lease_s, lambda: self._desk.settlements.ask(arguments)
            )
        except StoreError:
            self._with.log.error(
                "settle_unanswered", job_id=job.job_id, attempt=job.attempt, outcome=settlement.outcome
            )
            return Ended.LOST
        return self._ended(settlement.outcome, settled)

    def _ended(self, outcome: Outcome, settled: Settled) -> Ended:
        job = self.job
        if settled.answer == "stale":
            self._with.log.warning(
                "stale_write", job_id=job.job_id, attempt=job.attempt, outcome=outcome, job_state=settled.state
            )
            return Ended.LOST
        if settled.state == "expired":
            slack_s = settled.event.deadline_slack_s if settled.event else self._remaining_s()
            log_expired(self._with.log, JobEvent(job.job_id, job.job_class, job.attempt, slack_s))
            return Ended.EXPIRED
        if outcome is Outcome.REQUEUED:
            return Ended.REQUEUED
        return Ended.UNKNOWN if settled.state == "unknown" else Ended.FINISHED

    def _remaining_s(self) -> float:
        return self._with.queue_clock.remaining_s(self.job.deadline_ms)

    def _too_late(self) -> bool:
        return self._remaining_s() < self._rules.retry.margin_s


def log_expired(log: FilteringBoundLogger, event: JobEvent) -> None:
    """Write the event `job_expired` (contract §3)."""
    log.info(
        "job_expired",
        job_id=event.job_id,
        queue_class=event.queue_class,
        deadline_slack_s=round(event.deadline_slack_s, 3),
        attempt=event.attempt,
    )
