"""Take one claimed job through its attempt: re-check the gate, make the call, settle."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from structlog.typing import FilteringBoundLogger

from sluicegate.async_connection import AsyncConnection
from sluicegate.clock import Clock
from sluicegate.errors import StoreError
from sluicegate.job import Call, CallKind, Job, Outcome, Settlement, settle_after
from sluicegate.job_calls import SettlementWords
from sluicegate.printable import is_text
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
# No call takes a year.
_LONGEST_CALL_S = 3e7

_NO_TEXT = "payload_not_text"
_IN_A_THREAD = (
    "The handler is a plain function, so no lease is renewed and no gate is seen while it works: give the worker "
    "ThreadHandler(function) of sluicegate.thread_handler, or write it as `async def`."
)
# Of a handler's error, the innermost calls: enough to find the line, and no more than a line of the log.
_FRAMES = 5


@dataclass(frozen=True, slots=True)
class Setting:
    """Hold what all attempts of one worker share; `draw` gives 0..1 for the jitter of back-offs.

    Without a connection of the event loop's own the store is asked in threads.
    """

    worker_id: str
    store: Store
    link: StoreLink
    handler: Handler
    clock: Clock
    queue_clock: QueueClock
    log: FilteringBoundLogger
    draw: Callable[[], float]
    connection: AsyncConnection | None = None


class Desk:
    """Take the intents and the settlements of all attempts of one worker, those of the same moment in one call."""

    def __init__(self, setting: Setting) -> None:
        self._with = setting
        heard, store, worker_id = setting.link.heard, setting.store, setting.worker_id
        self._settlements: SharedCalls[SettlementWords, Settled] = SharedCalls(
            lambda settlements: heard(store.settle_async(setting.connection, worker_id, settlements))
        )

    async def intents(self, jobs: Sequence[Job], lease_s: float) -> Sequence[str]:
        """Record the intents of jobs that were claimed together, at most 100: go, stop or stale for each.

        Raises StoreError where no answer came within the lease.
        """
        setting, starts = self._with, [(job.job_id, job.fence) for job in jobs]
        link, store, worker_id = setting.link, setting.store, setting.worker_id
        return await link.until_heard(
            lease_s, lambda: link.heard(store.intents_async(setting.connection, worker_id, starts))
        )

    async def settle(self, words: SettlementWords, lease_s: float) -> Settled:
        """Settle one job; raises as `intents`."""
        return await self._with.link.until_heard(lease_s, lambda: self._settlements.ask(words))


class Attempt:
    """Own one lease from its claim to its settlement.

    `cut_short` ends it early; `progresses` says whether its lease deserves to be renewed.
    """

    def __init__(self, job: Job, rules: WorkerRules, setting: Setting, desk: Desk) -> None:
        self.job = job
        self._rules = rules
        self._with = setting
        self._desk = desk
        # The task that makes the call, as long as it does.
        self._calling: asyncio.Task[object] | None = None
        self._timeout_s = 0.0
        self._cut = False
        self._abandoned = False
        self._readable = is_text(job.payload)
        # Whether its lease is about to end by its own word.
        self.settling = False
        self._progress_until_s = setting.clock.monotonic() + rules.lease_s

    def progresses(self) -> bool:
        """Say whether the attempt gets on: a call within its timeout and grace, or a try to reach the store."""
        return self._with.clock.monotonic() < self._progress_until_s

    def may_call(self) -> bool:
        """Say whether there may be a call: enough time is left, and its payload can be read."""
        return self._readable and not self._too_late()

    def _too_late(self) -> bool:
        return self._remaining_s() < self._rules.retry.margin_s

    def stop(self) -> None:
        """Obey a drain: a call in progress goes on only if its slack exceeds its timeout + reserve (contract §3)."""
        remaining_s = self._remaining_s()
        if self._calling is None or not self._rules.retry.may_finish_in_drain(remaining_s, self._timeout_s):
            self.cut_short()

    def cut_short(self) -> None:
        """End it now: before its call it is put back, within it the call is cancelled."""
        self._cut = True
        self._end_call()

    def abandon(self) -> None:
        """Say that its task is about to be cancelled for good: every other cancellation is of the call alone."""
        self._abandoned = True

    async def run(self, intent: str) -> Ended:
        """Go on from what its intent was answered, '' where it was not asked for; says how the lease ended."""
        if intent == "stale":
            self._with.log.warning("lease_lost", job_id=self.job.job_id, attempt=self.job.attempt, before="call")
            return Ended.LOST
        if intent and (intent != "go" or self._cut):
            # The gate may have been read as closed while the answer was on its way.
            return await self._settle(self._put_back(), None)
        if not self._readable:
            self._with.log.error(_NO_TEXT, job_id=self.job.job_id, attempt=self.job.attempt)
            return await self._settle(Settlement(Outcome.FAILED), None, _NO_TEXT)
        remaining_s = self._remaining_s()
        if not intent or remaining_s < self._rules.retry.margin_s:
            return await self._settle(Settlement(Outcome.EXPIRED), None)
        call = await self._make_call(remaining_s)
        return await self._settle(self._settlement(call), call)

    async def _make_call(self, remaining_s: float) -> Call:
        self._timeout_s = self._rules.retry.call_timeout_s(remaining_s)
        started_s = self._with.clock.monotonic()
        bound_s = self._timeout_s + CALL_GRACE_S
        self._progress_until_s = started_s + bound_s
        task: asyncio.Task[object] = cast("asyncio.Task[object]", asyncio.current_task())
        self._calling = task
        # A handler that does not end when told to keeps the slot, but its lease is renewed no more.
        timer = asyncio.get_running_loop().call_later(bound_s, self._end_call)
        said: object = None
        try:
            answer: object = self._with.handler(self.job, self._timeout_s)
            said = await answer if inspect.isawaitable(answer) else self._said_at_once(answer)
        except asyncio.CancelledError:
            said = CallKind.CANCELLED if self._cut else CallKind.TIMEOUT
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise  # the process is to end, or the task's frame is being taken down
        except BaseException as error:  # noqa: BLE001 (whatever it was, the call is over, and its end ambiguous)
            said = error
        finally:
            self._calling = None
            timer.cancel()
        if task.cancelling():
            await self._forget_cancellation(task)
        ended_s = self._with.clock.monotonic()
        call = self._result(said, ended_s - started_s)
        self._progress_until_s = ended_s + self._rules.lease_s
        self._report(call)
        return call

    def _said_at_once(self, said: object) -> object:
        """Believe a plain function: its work is done, and a call that counted as failed would do it again."""
        self._with.log.error("handler_blocks", job_id=self.job.job_id, attempt=self.job.attempt, hint=_IN_A_THREAD)
        return said

    def _end_call(self) -> None:
        if self._calling is not None:
            self._calling.cancel()

    async def _forget_cancellation(self, task: asyncio.Task[object]) -> None:
        """Go on after the call was told to end, or a handler cancelled itself; raises CancelledError if abandoned."""
        # What the handler did not get any more would reach the settlement.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        while task.cancelling():
            task.uncancel()
        if self._abandoned:
            raise asyncio.CancelledError

    def _result(self, said: object, took_s: float) -> Call:
        if isinstance(said, Call) and isinstance(said.kind, CallKind):
            return _with_sound_figures(said, took_s)
        if isinstance(said, CallKind):
            return Call(said, took_s)
        if not isinstance(said, BaseException):
            said = TypeError(f"it gave {said!r:.100}, which is no Call of a CallKind")
        # A handler's own fault, at an unknown point of its work: as ambiguous as a broken connection.
        self._with.log.error(
            "handler_failed",
            job_id=self.job.job_id,
            attempt=self.job.attempt,
            error=repr(said),
            where=_where(said),
        )
        return Call(CallKind.DROPPED, took_s)

    def _report(self, call: Call) -> None:
        common = {"job_id": self.job.job_id, "attempt": self.job.attempt}
        if call.kind is CallKind.TIMEOUT:
            self._with.log.info("provider_timeout", **common, timeout_s=round(self._timeout_s, 3))
            return
        self._with.log.info(
            "provider_call", **common, status=call.status, latency_s=round(call.latency_s, 4), kind=call.kind
        )

    def _settlement(self, call: Call) -> Settlement:
        settlement = settle_after(call, self.job, self._rules.retry, self._with.draw)
        return self._put_back() if settlement.outcome is Outcome.REQUEUED else settlement

    def _put_back(self) -> Settlement:
        return Settlement(Outcome.EXPIRED if self._too_late() else Outcome.REQUEUED)

    async def _settle(self, settlement: Settlement, call: Call | None, cause: str = "") -> Ended:
        self.settling = True
        job = self.job
        words = SettlementWords(
            job.job_id,
            job.fence,
            # A fence is given once, and settled once.
            f"{self._with.worker_id}/{job.fence}",
            settlement.outcome,
            delay_ms=math.ceil(settlement.delay_s * 1000),
            kind=call.kind if call is not None else "",
            latency_ms=round(call.latency_s * 1000) if call is not None else "",
            cause=cause or ("drain" if self._cut else ""),
        )
        try:
            settled = await self._settled(words)
        except StoreError:
            self._with.log.error(
                "settle_unanswered", job_id=job.job_id, attempt=job.attempt, outcome=settlement.outcome
            )
            return Ended.LOST
        return self._ended(settlement.outcome, settled)

    async def _settled(self, words: SettlementWords) -> Settled:
        """Settle whatever the handler left behind cancels the task meanwhile: the same request again counts once."""
        while True:
            try:
                return await self._desk.settle(words, self._rules.lease_s)
            except asyncio.CancelledError:
                if self._abandoned:
                    raise

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


def _with_sound_figures(call: Call, took_s: float) -> Call:
    """Give the call as its handler tells it, but for figures that are none: its kind alone decides."""
    is_timed = _is_seconds(call.latency_s)
    has_status = call.status is None or isinstance(call.status, int)
    has_wait = call.retry_after_s is None or isinstance(call.retry_after_s, int | float)
    if is_timed and has_status and has_wait:
        return call
    return Call(
        call.kind,
        call.latency_s if is_timed else took_s,
        call.status if has_status else None,
        call.retry_after_s if has_wait else None,
    )


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _LONGEST_CALL_S


def log_expired(log: FilteringBoundLogger, event: JobEvent) -> None:
    """Write the event `job_expired` (contract §3)."""
    log.info(
        "job_expired",
        job_id=event.job_id,
        queue_class=event.queue_class,
        deadline_slack_s=round(event.deadline_slack_s, 3),
        attempt=event.attempt,
    )


def _where(error: BaseException) -> str:
    """Say through which lines a handler's error came, the innermost last; '' where it was not raised there."""
    # The first frame is the attempt's own.
    frames = traceback.extract_tb(error.__traceback__)[1:][-_FRAMES:]
    return " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
