"""Hold the leases of one worker: an attempt each, and the report of what became of them when it stops pulling."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from sluicegate.attempt import Attempt, Desk, Setting
from sluicegate.errors import StoreError
from sluicegate.job import Job
from sluicegate.printable import is_text, printable
from sluicegate.stop_report import Ended, StopReport
from sluicegate.worker_rules import WorkerRules


class Leases:
    """Run the attempts of one worker on its event loop.

    `freed` is set whenever one has ended. `on_report` gets each stop report once it is whole.
    """

    def __init__(self, setting: Setting, on_report: Callable[[StopReport], None]) -> None:
        self._setting = setting
        self._desk = Desk(setting)
        self._log: FilteringBoundLogger = setting.log
        self._on_report = on_report
        # All that take a slot, and of each job the newest.
        self._running: set[Attempt] = set()
        self._attempts: dict[str, Attempt] = {}
        # Of each attempt that has begun, and of those whose intents are being asked for.
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._report: StopReport | None = None
        self.freed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, jobs: Sequence[Job], rules: WorkerRules) -> None:
        """Begin the attempts of jobs that were just claimed together; those under the same fence go on.

        One under an earlier fence has lost its lease, or is about to hear that it was settled.
        """
        asked = []
        for job in jobs:
            if not is_text(job.job_id):
                # No command can name it: its lease runs out.
                self._log.error("job_id_not_text", job_id=printable(job.job_id))
                continue
            held = self._attempts.get(job.job_id)
            if held is not None and held.job.fence == job.fence:
                continue
            attempt = Attempt(job, rules, self._setting, self._desk)
            self._attempts[job.job_id] = attempt
            self._running.add(attempt)
            if attempt.may_call():
                asked.append(attempt)
            else:
                self._begin(attempt, "")
        if asked:
            task = asyncio.get_running_loop().create_task(self._ask(asked, rules))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _ask(self, attempts: Sequence[Attempt], rules: WorkerRules) -> None:
        """Record the intents, then begin; without an answer the leases have run out and the sweep finds them."""
        try:
            intents = await self._desk.intents([attempt.job for attempt in attempts], rules.lease_s)
        except StoreError:  # logged by the link
            self._lose(attempts)
            return
        except Exception:  # noqa: BLE001 (a bug must not end the worker; the leases run out and are found)
            self._log.exception("intents_failed", job_ids=[attempt.job.job_id for attempt in attempts])
            self._lose(attempts)
            return
        for attempt, intent in zip(attempts, intents, strict=True):
            self._begin(attempt, intent)

    def _lose(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._end(attempt, Ended.LOST)

    def _begin(self, attempt: Attempt, intent: str) -> None:
        self._tasks[attempt] = asyncio.get_running_loop().create_task(self._run(attempt, intent))

    def to_renew(self) -> dict[str, int]:
        """Give job id → fence of the attempts that make progress."""
        return {job_id: attempt.job.fence for job_id, attempt in self._attempts.items() if attempt.progresses()}

    def expects(self, job_id: str, fence: int) -> bool:
        """Say whether the lease of a job under this fence is still to be held: nobody here is ending it."""
        attempt = self._attempts.get(job_id)
        return attempt is not None and attempt.job.fence == fence and not attempt.settling

    def stop_all(self) -> None:
        """Let go of every lease as a drain asks, and report when none of them is held."""
        held = frozenset(self._attempts)
        # A report that is not whole yet goes on: its leases are still held.
        before = self._report or StopReport(frozenset())
        self._report = replace(before, waiting=before.waiting | held)
        for attempt in self._running:
            attempt.stop()
        self._say_if_whole()

    def cut_all(self) -> None:
        """End every attempt now."""
        for attempt in self._running:
            attempt.cut_short()

    async def all_ended(self, within_s: float) -> bool:
        """Wait until no lease is held; False where some still are after `within_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._running:
                    self.freed.clear()
                    await self.freed.wait()
        return not self._running

    def abandon(self) -> None:
        """Cancel what still runs, without a word to the store: the leases run out."""
        for attempt in self._tasks:
            attempt.abandon()
        for task in (*self._asking, *self._tasks.values()):
            task.cancel()

    async def _run(self, attempt: Attempt, intent: str) -> None:
        ended = Ended.LOST
        try:
            ended = await attempt.run(intent)
        except Exception:  # noqa: BLE001 (one job's bug must not end the worker; its lease runs out and is found)
            self._log.exception("attempt_failed", job_id=attempt.job.job_id, attempt=attempt.job.attempt)
        finally:
            self._tasks.pop(attempt, None)
            self._end(attempt, ended)

    def _end(self, attempt: Attempt, ended: Ended) -> None:
        job_id = attempt.job.job_id
        self._running.discard(attempt)
        self.freed.set()
        if self._attempts.get(job_id) is not attempt:
            return  # its lease was gone already; the newer one tells what becomes of the job
        del self._attempts[job_id]
        if self._report is not None:
            self._report = self._report.after(job_id, ended)
            self._say_if_whole()

    def _say_if_whole(self) -> None:
        if self._report is not None and self._report.whole:
            report, self._report = self._report, None
            self._on_report(report)
