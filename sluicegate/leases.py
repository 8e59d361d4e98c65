"""Hold the leases of one worker: an attempt each, and the report of what became of them when it stops pulling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from structlog.typing import FilteringBoundLogger

from sluicegate.attempt import Attempt, Desk, Setting
from sluicegate.job import Job
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
        self._tasks: set[asyncio.Task[None]] = set()
        self._report: StopReport | None = None
        self.freed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._attempts

    def start(self, job: Job, rules: WorkerRules) -> None:
        """Begin the attempt of a job that was just claimed; one under the same fence goes on.

        One under an earlier fence has lost its lease, or is about to hear that it was settled.
        """
        held = self._attempts.get(job.job_id)
        if held is not None and held.job.fence == job.fence:
            return
        attempt = Attempt(job, rules, self._setting, self._desk)
        self._attempts[job.job_id] = attempt
        self._running.add(attempt)
        task = asyncio.ensure_future(self._run(attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def to_renew(self) -> dict[str, int]:
        """Give job id → fence of the attempts that make progress."""
        return {job_id: attempt.job.fence for job_id, attempt in self._attempts.items() if attempt.progresses()}

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
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        return not self._tasks

    def abandon(self) -> None:
        """Cancel what still runs, without a word to the store: the leases run out."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, attempt: Attempt) -> None:
        ended = Ended.LOST
        try:
            ended = await attempt.run()
        except Exception:  # noqa: BLE001 (one job's bug must not end the worker; its lease runs out and is found)
            self._log.exception("attempt_failed", job_id=attempt.job.job_id, attempt=attempt.job.attempt)
        finally:
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
