"""Pull jobs within the gate and the deadlines, and let go of them as the gate asks (contract §3).

The gate is learnt from the claims alone, at least every 250 ms (with all slots taken a claim asks for no job), so two
answers can't overtake each other. Workers read the gate and never write it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog
from structlog.typing import FilteringBoundLogger

from sluicegate import __version__
from sluicegate.attempt import CALL_GRACE_S, Setting, log_expired
from sluicegate.clock import Clock, SystemClock
from sluicegate.errors import StoreError, UsageError
from sluicegate.gate import DrainState
from sluicegate.gate_sentences import opening
from sluicegate.leases import Leases
from sluicegate.provider_call import Handler
from sluicegate.queue_clock import QueueClock
from sluicegate.replies import Claimed
from sluicegate.settings import WorkerSettings
from sluicegate.stop_report import StopReport
from sluicegate.store import Store
from sluicegate.store_link import StoreLink, longer
from sluicegate.upkeep import Upkeep

# Points a handler at a provider's address; '' is where it was made for.
Point = Callable[[str], None]
GATE_WATCH_S = 0.25
_FIRST_BACKOFF_S = 0.1
_REPORT_WITHIN_S = 5.0
_LONGEST_NAME = 64
# Threads for the loops' own store calls, beside one for each job.
_SPARE_THREADS = 6


class Worker:
    """Work on one queue with `max_inflight` jobs at once until `stop` is called.

    A server that is away, a gate that can't be read and a queue that was never opened are the same to it: it pulls
    nothing and keeps trying. Make it inside the event loop that runs it.
    """

    def __init__(
        self,
        store: Store,
        handler: Handler,
        settings: WorkerSettings | None = None,
        *,
        worker_id: str | None = None,
        log: FilteringBoundLogger | None = None,
        clock: Clock | None = None,
        point: Point | None = None,
    ) -> None:
        """`point` is told where the provider is, '' for where the settings say, whenever the gate has moved.

        Raises UsageError on a worker's id that is none.
        """
        self.worker_id = _checked_name(worker_id) if worker_id is not None else f"worker-{secrets.token_hex(4)}"
        self._settings = settings or WorkerSettings()
        self._store = store
        self._clock = clock or SystemClock()
        self._log: FilteringBoundLogger = (log or structlog.get_logger("worker")).bind(worker_id=self.worker_id)
        self._link = StoreLink(self._log, self._clock)
        self._queue_clock = QueueClock(self._clock)
        # One for what is answered at once, and one that waits for the wake key.
        self._connection = store.async_connection()
        self._waiting = store.async_connection()
        setting = Setting(
            self.worker_id,
            store,
            self._link,
            handler,
            self._clock,
            self._queue_clock,
            self._log,
            random.random,
            self._connection,
        )
        self._leases = Leases(setting, self._reported)
        self._upkeep = Upkeep(setting, self._leases, self._settings.sweep_ms)
        self._reports: set[asyncio.Task[None]] = set()
        self._wake: asyncio.Task[bool] | None = None
        self._gate: str | None = None
        self._stopping = False
        # Tells this process's claims from those of an earlier one with the same id.
        self._instance = secrets.token_hex(4)
        self._claims = 0
        self._unanswered = False
        self._said_not_open = False
        self._point = point
        self._pointed_at = -1

    def stop(self) -> None:
        """Stop pulling and let go as in a drain; the second time end every call at once. Safe before `run`."""
        if self._stopping:
            self._leases.cut_all()
        self._stopping = True
        self._leases.freed.set()

    async def run(self) -> None:
        """Work until stopped; then finish or release what is held and say goodbye."""
        threads = self._settings.max_inflight + _SPARE_THREADS
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="store"))
        self._log.info("worker_started", queue=self._store.queue, max_inflight=self._settings.max_inflight)
        upkeep = asyncio.ensure_future(self._upkeep.run())
        upkeep.add_done_callback(self._upkeep_ended)
        try:
            await self._pull()
            await self._let_go()
        finally:
            upkeep.cancel()
            self._leases.abandon()
            await asyncio.gather(upkeep, *filter(None, (self._wake,)), return_exceptions=True)
            for connection in filter(None, (self._connection, self._waiting)):
                await connection.close()
        if not upkeep.cancelled() and (error := upkeep.exception()) is not None:
            raise error
        self._log.info("worker_stopped")

    def _upkeep_ended(self, upkeep: asyncio.Future[None]) -> None:
        # Without renewals and sweeps a worker does harm: it stops, and `run` raises what happened.
        if not upkeep.cancelled():
            self._log.error("upkeep_failed", error=repr(upkeep.exception()))
            self.stop()

    async def _pull(self) -> None:
        wait_s = _FIRST_BACKOFF_S
        while not self._stopping:
            try:
                await self._turn()
                wait_s = _FIRST_BACKOFF_S
            except StoreError:
                await self._pause(wait_s)
                wait_s = longer(wait_s)

    async def _turn(self) -> None:
        """Claim what there is room for, see the gate, and wait for a reason to claim again."""
        self._leases.freed.clear()
        rules = self._upkeep.rules or await self._upkeep.learn_rules()
        free = max(0, self._settings.max_inflight - len(self._leases)) if rules is not None else 0
        claimed = await self._claim(free)
        if rules is None:
            await self._say_not_open()
        for event in claimed.expired:
            log_expired(self._log, event)
        if self._point is not None and claimed.epoch != self._pointed_at:
            await self._look_where(self._point, claimed.epoch)
        if rules is not None and claimed.jobs:
            self._leases.start(claimed.jobs, rules)
        self._see_gate(claimed)
        if free == 0 or len(claimed.jobs) >= free:
            await self._pause(GATE_WATCH_S)
        else:
            await self._work_or_room()

    async def _look_where(self, point: Point, epoch: int) -> None:
        """Learn where the provider is before a job is begun under a gate that has moved.

        Where the server does not say, the jobs claimed go where the last ones went, and the next claim asks again.
        """
        with contextlib.suppress(StoreError):  # logged by the link
            point(await self._link.call(self._store.endpoint))
            self._pointed_at = epoch

    async def _say_not_open(self) -> None:
        """Say once that there is nothing to pull by, and which command changes that."""
        if not self._said_not_open:
            unblock = opening(await self._link.call(self._store.observe))
            self._said_not_open = True
            self._log.warning("queue_not_open", queue=self._store.queue, unblock=unblock)

    async def _claim(self, slots: int) -> Claimed:
        """Claim under a request id that is kept until it is answered: the same answer comes again.

        It is sent once the wait for work is over. Right behind that wait it would save a round trip, and be carried out
        for a worker that hangs, or that is gone without its connection: its jobs would be lost to it.
        """
        repeats = self._unanswered
        if not repeats:
            self._claims += 1
        self._unanswered = True
        request = f"{self._instance}-{self._claims}"
        words = (self.worker_id, request, slots, __version__)
        sent_s = self._clock.monotonic()
        claimed = await self._link.heard(self._store.claim_async(self._connection, *words))
        self._queue_clock.learn(claimed.at_ms, sent_s, self._clock.monotonic())
        self._unanswered = False
        if repeats and claimed.jobs:
            # These leases began with an answer that was lost.
            self._upkeep.renew_soon()
        return claimed

    def _see_gate(self, claimed: Claimed) -> None:
        if claimed.drain_state == self._gate:
            return
        before, self._gate = self._gate, claimed.drain_state
        self._log.info("gate_seen", drain_state=claimed.drain_state, before=before or "", epoch=claimed.epoch)
        if claimed.drain_state == DrainState.DRAIN and before is not None:
            self._leases.stop_all()

    async def _work_or_room(self) -> None:
        """Wait until the wake key says that something may have changed, a slot is free, or the gate is due."""
        if self._wake is None:
            wait_s = min(self._settings.idle_wait_s, GATE_WATCH_S)
            asked = self._store.wait_for_work_async(self._waiting, wait_s)
            self._wake = asyncio.ensure_future(self._link.heard(asked))
        room = asyncio.ensure_future(self._leases.freed.wait())
        await asyncio.wait({self._wake, room}, return_when=asyncio.FIRST_COMPLETED)
        room.cancel()
        if self._wake.done():
            wake, self._wake = self._wake, None
            wake.result()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._leases.freed.wait()

    async def _let_go(self) -> None:
        self._leases.stop_all()
        rules = self._upkeep.rules
        if rules is not None:
            longest_s = rules.retry.call_timeout_max_s + CALL_GRACE_S + rules.lease_s
            if not await self._leases.all_ended(longest_s):
                self._log.error("stopped_with_leases", held=len(self._leases))
        if self._reports:
            await asyncio.wait(self._reports)
        with contextlib.suppress(StoreError):  # logged; the entry lapses by itself
            await self._link.call(self._store.goodbye, self.worker_id)

    def _reported(self, report: StopReport) -> None:
        self._log.info("stop_pull", **report.fields())
        task = asyncio.ensure_future(self._send(report))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _send(self, report: StopReport) -> None:
        with contextlib.suppress(StoreError):  # logged; the event on stdout has it
            await self._link.until_answered(
                _REPORT_WITHIN_S, self._store.hello, self.worker_id, __version__, report.line()
            )


def _checked_name(worker_id: str) -> str:
    """Check the name that stands in logs, in records and, a line each, in what a settlement was answered."""
    if not re.fullmatch(rf"[!-~]{{1,{_LONGEST_NAME}}}", worker_id):
        raise UsageError(
            f"The worker's id {worker_id[:_LONGEST_NAME]!r} is not 1 to {_LONGEST_NAME} printable ASCII characters "
            "without spaces.",
            "Leave it out to get a random one.",
        )
    return worker_id
