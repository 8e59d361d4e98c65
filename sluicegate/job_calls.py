"""Name every command about jobs and workers: one method each, and typed answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis

from sluicegate import keys, replies
from sluicegate.admission import Decision
from sluicegate.async_connection import AsyncConnection, ErrorAnswer
from sluicegate.calls import Arguments, Calls, Words
from sluicegate.errors import NotText, StoreRejected
from sluicegate.redis_errors import refused, translated
from sluicegate.turn import Turn

# A queue without stored settings names no time to come back; this is the default of closed_retry_s.
_CLOSED_RETRY_S = 30.0


class SettlementWords(NamedTuple):
    """Hold one settlement as settle.lua takes it; kind and latency are those of the call, '' where there was none."""

    job_id: str
    fence: int | str
    request: str
    outcome: str
    delay_ms: int = 0
    kind: str = ""
    latency_ms: int | str = ""
    cause: str = ""
    reference: str = ""


class JobCalls(Calls):
    """Admit, claim, confirm, settle and reconcile jobs."""

    def admit(self, jobs: Sequence[Words]) -> tuple[Decision, ...]:
        """Decide a batch of at most 100 submissions in order; each as `Submission.words` renders it."""
        return self._decided(jobs, self._hot("admit", [word for job in jobs for word in job]))

    def async_connection(self) -> AsyncConnection | None:
        """Give a connection for `…_async`, which its owner closes, or None where there is no such connection."""
        return self._server.async_connection()

    async def admit_async(
        self, connection: AsyncConnection | None, jobs: Sequence[Words], turn: Turn | None = None
    ) -> tuple[Decision, ...]:
        """Do what `admit` does without holding the event loop up; answers and failures are the same.

        Batches that share a `turn` are decided in the order in which they were asked for, in threads, too.
        """
        words = [word for job in jobs for word in job]
        return self._decided(jobs, await self._hot_async(connection, "admit", words, turn))

    def _decided(self, jobs: Sequence[Words], answer: list[Any]) -> tuple[Decision, ...]:
        self._saw(int(answer[0]))
        if len(answer) == 1:
            return tuple(Decision(False, str(job[0]), "admission_closed", _CLOSED_RETRY_S) for job in jobs)
        return replies.admissions([str(job[0]) for job in jobs], answer)

    def claim(self, worker: str, request: str, slots: int, version: str = "") -> replies.Claimed:
        """Take up to `slots` jobs and confirm the gate's epoch; the same request id gives the same jobs.

        A payload that is no UTF-8 comes as Python's surrogates.
        """
        words = (worker, request, slots, version)
        try:
            return self._claimed(self._hot("claim", words))
        except NotText:
            return self._claimed(self._hot_keeping_bytes("claim", words))

    async def claim_async(
        self,
        connection: AsyncConnection | None,
        worker: str,
        request: str,
        slots: int,
        version: str = "",
    ) -> replies.Claimed:
        """Do what `claim` does without holding the event loop up; answers and failures are the same."""
        words = (worker, request, slots, version)
        try:
            return self._claimed(await self._hot_async(connection, "claim", words))
        except NotText:
            return self._claimed(await asyncio.to_thread(self._hot_keeping_bytes, "claim", words))

    def _claimed(self, answer: list[Any]) -> replies.Claimed:
        try:
            claimed = replies.Claimed.of(answer)
        except (ValueError, TypeError, LookupError) as error:
            # A job that is given again, because the answer was lost, may have been damaged by hand meanwhile.
            raise StoreRejected(f"claim answered something that is no claim: {error!r:.100}") from error
        self._saw(claimed.epoch)
        return claimed

    def intent(self, worker: str, job_id: str, fence: int) -> str:
        """Record that a side effect may follow; gives go, stop (the gate says no) or stale."""
        return self.intents(worker, [(job_id, fence)])[0]

    def intents(self, worker: str, starts: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """Record the intents of at most 100 starts, each a job id with its fence; gives an answer for each."""
        return self._intended(self._hot("intent", [worker, *(word for start in starts for word in start)]))

    async def intents_async(
        self, connection: AsyncConnection | None, worker: str, starts: Sequence[tuple[str, int]]
    ) -> tuple[str, ...]:
        """Do what `intents` does without holding the event loop up; answers and failures are the same."""
        words = [worker, *(word for start in starts for word in start)]
        return self._intended(await self._hot_async(connection, "intent", words))

    def _intended(self, answer: list[Any]) -> tuple[str, ...]:
        self._saw(int(answer[1]))
        return tuple(answer[2:])

    def settle(self, arguments: Arguments) -> replies.Settled:
        """End a worker's hold on a job (see settle.lua).

        Arguments: worker, id, fence, request and outcome, and where there are any delay_ms, cause, reference and call
        with its kind and latency_ms.
        """
        return self.settle_many(arguments["worker"], [arguments])[0]

    def settle_many(self, worker: str, settlements: Sequence[Arguments]) -> tuple[replies.Settled, ...]:
        """End a worker's holds on at most 100 jobs, each by itself, in order; arguments as in `settle`."""
        words = [word for settlement in settlements for word in _settlement_words(settlement)]
        ids = [settlement["id"] for settlement in settlements]
        return replies.settlements(ids, self._hot("settle", [worker, *words]))

    async def settle_async(
        self, connection: AsyncConnection | None, worker: str, settlements: Sequence[SettlementWords]
    ) -> tuple[replies.Settled, ...]:
        """Do what `settle_many` does without holding the event loop up; answers and failures are the same."""
        words = [word for settlement in settlements for word in settlement]
        answer = await self._hot_async(connection, "settle", [worker, *words])
        return replies.settlements([settlement.job_id for settlement in settlements], answer)

    def renew(self, worker: str, leases: Mapping[str, int]) -> replies.Renewed:
        """Renew at most 100 leases by job id → fence; gives the ids that are no longer this worker's."""
        words = [word for job_id, fence in leases.items() for word in (job_id, fence)]
        renewed = replies.Renewed.of(self._hot("renew", [worker, *words]))
        self._saw(renewed.epoch)
        return renewed

    def hello(self, worker: str, version: str = "", report: str | None = None) -> str:
        """Say that a worker lives, with its stop report if it has one; gives the effective gate."""
        arguments: dict[str, Any] = {"worker": worker, "version": version}
        if report is not None:
            arguments["report"] = report
        return str(self._call("hello", arguments)["drain_state"])

    def goodbye(self, worker: str) -> None:
        """Forget a worker that stops by itself."""
        self._call("goodbye", {"worker": worker})

    def workers(self) -> tuple[replies.WorkerView, ...]:
        """Give the workers seen in the last minute."""
        return tuple(replies.WorkerView.of(row) for row in replies.rows(self._call("workers", {}), "workers"))

    def sweep(self, limit: int = 100) -> replies.Swept:
        """Expire overdue jobs and find leases that ran out."""
        return replies.Swept.of(self._call("sweep", {"limit": limit}))

    def promote(self, limit: int = 100) -> int:
        """Make delayed jobs ready whose time has come; gives how many."""
        return int(self._call("promote", {"limit": limit})["promoted"])

    def reconcile(
        self, job_id: str, outcome: str, *, actor: str, reason: str, source: str, fence: str | None = None
    ) -> tuple[str, str]:
        """Move a job out of unknown or blocked; gives the answer (moved, refused, gone, stale) and its state.

        `fence` is the one seen by whoever judged from a look at the job: after another start the judgement is stale.
        """
        arguments = {"id": job_id, "outcome": outcome, "actor": actor, "reason": reason, "source": source}
        if fence is not None:
            arguments["fence"] = fence
        body = self._call("reconcile", arguments)
        return str(body["answer"]), str(body["state"])

    def confirm_duplicate(self, key: str, *, actor: str, note: str) -> None:
        """Record that provider or ledger shows two effects for one key."""
        self._call("duplicate", {"key": key, "actor": actor, "note": note})

    def job(self, job_id: str) -> Mapping[str, Any] | None:
        """Give one job's record, payload, ledger entry and decision, or None."""
        body = self._call("job", {"id": job_id})
        return body if body["found"] else None

    def list_jobs(self, state: str, limit: int = 100) -> tuple[str, ...]:
        """Give the ids in a state's container, oldest first."""
        return tuple(replies.rows(self._call("list", {"state": state, "limit": limit}), "ids"))

    def failures(self, date: str, offset: int = 0, limit: int = 1000) -> tuple[str, ...]:
        """Give the JSON lines of failed:{date} (UTC, YYYY-MM-DD) from `offset` on, oldest first."""
        body = self._call("failures", {"date": date, "offset": offset, "limit": limit})
        return tuple(replies.rows(body, "lines"))

    def wait_for_work(self, timeout_s: float) -> bool:
        """Block on the wake key for at most `timeout_s`; gives whether something may have changed."""
        try:
            woken = self._server.run(lambda client: client.blpop([self.keys(keys.WAKE)], timeout=timeout_s))
        except redis.exceptions.RedisError as error:
            raise translated(error) from error
        return woken is not None

    async def wait_for_work_async(self, connection: AsyncConnection | None, timeout_s: float) -> bool:
        """Do what `wait_for_work` does without holding the event loop up, on a connection that nobody else uses."""
        if not self.goes_over(connection):
            return await asyncio.to_thread(self.wait_for_work, timeout_s)
        try:
            return await connection.ask(self._wait_words(timeout_s), timeout_s) is not None
        except ErrorAnswer as error:
            raise refused(str(error)) from error
        except redis.exceptions.RedisError as error:
            raise translated(error) from error

    def _wait_words(self, timeout_s: float) -> tuple[str | int, ...]:
        return ("BLPOP", self.keys(keys.WAKE), f"{timeout_s:.3f}")

    def reconcile_log(self, limit: int = 100, kind: str = "") -> tuple[Mapping[str, str], ...]:
        """Give reconcile records, duplicates and late writes, newest first."""
        return tuple(replies.rows(self._call("reconcile_log", {"limit": limit, "kind": kind}), "entries"))

    def unresolved(self, offset: int = 0, limit: int = 100) -> Mapping[str, Any]:
        """Give unknown jobs with what a resolver needs, the longest unknown first (see unresolved.lua)."""
        return self._call("unresolved", {"offset": offset, "limit": limit})


def _settlement_words(settlement: Arguments) -> SettlementWords:
    call: Arguments = settlement.get("call") or {}
    return SettlementWords(
        settlement["id"],
        settlement["fence"],
        settlement["request"],
        settlement["outcome"],
        delay_ms=settlement.get("delay_ms", 0),
        kind=call.get("kind", ""),
        latency_ms=call.get("latency_ms", ""),
        cause=settlement.get("cause", ""),
        reference=settlement.get("reference", ""),
    )
