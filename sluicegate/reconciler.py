"""Settle unknown jobs whose resolver can answer, again and again; leave the others to a person (contract §4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx
import structlog

from sluicegate.job import Effects
from sluicegate.reconcile import Reconciled, Verdict
from sluicegate.replies import rows
from sluicegate.resolvers import Finding, HttpResolver, Known, LedgerResolver, Resolver, Unknown
from sluicegate.settings import ReconcileSettings
from sluicegate.store import Store

log = structlog.get_logger(__name__)

_PAGE = 100
_VERDICTS = {Known.DONE: Verdict.SUCCEEDED, Known.REPEATABLE: Verdict.RETRY}


@dataclass(slots=True)
class _Patience:
    """Hold when a job is asked about again (monotonic s), and how long the wait was."""

    again_at: float
    wait_s: float


class Reconciler:
    """Ask resolvers in order about every unknown job that is due; several processes may do so at once.

    What a verdict was based on is compared with the job as it stands, so a late verdict does nothing.
    """

    def __init__(
        self, store: Store, settings: ReconcileSettings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._settings = settings
        self._monotonic = monotonic
        self._patience: dict[tuple[str, str], _Patience] = {}

    async def turn(self) -> int:
        """Go once through the unknown jobs; gives how many left that state. Raises StoreError."""
        due = await self._due()
        async with httpx.AsyncClient(timeout=self._settings.http_timeout_s) as client:
            resolvers = self._resolvers(client)
            settled = await asyncio.gather(*(self._settle(job, resolvers) for job in due))
        return sum(one is not None and one.answer == "moved" for one in settled)

    async def one(self, job_id: str, asked_by: str) -> tuple[Reconciled, Finding | None]:
        """Ask about one job now, in a person's name: `refused` if it is not unknown, `unclear` if nobody can tell."""
        for job, unknown_ms in await asyncio.to_thread(self._unknown):
            if job.job_id == job_id:
                async with httpx.AsyncClient(timeout=self._settings.http_timeout_s) as client:
                    finding, resolver = await _ask(job, self._resolvers(client))
                if unknown_ms < self._settings.after_s * 1000:
                    finding = _in_time(job, finding, resolver, self._settings.after_s)
                done = await self._carry_out(job, finding, resolver, f" (asked by {asked_by})")
                return done or Reconciled("unclear", "unknown"), finding
        record = await asyncio.to_thread(self._store.job, job_id)
        state = str(record["job"]["state"]) if record is not None else "gone"
        return Reconciled("refused" if record is not None else "gone", state), None

    def _resolvers(self, client: httpx.AsyncClient) -> Sequence[Resolver]:
        """Give the ledger first: it costs nothing, and what it knows is certain."""
        url = self._settings.http_url
        asked = [HttpResolver(client, url, self._settings.http_timeout_s)] if url is not None else []
        return [LedgerResolver(), *asked]

    def _unknown(self) -> list[tuple[Unknown, int]]:
        """Give every unknown job and for how long it is unknown, in ms."""
        found: list[tuple[Unknown, int]] = []
        while True:
            body = self._store.unresolved(len(found), _PAGE)
            page = [Unknown.of(row) for row in rows(body, "rows")]
            found += [(job, int(body["now"]) - job.since_ms) for job in page]
            if len(page) < _PAGE:
                return found

    async def _due(self) -> list[Unknown]:
        unknown = await asyncio.to_thread(self._unknown)
        # Who has left is forgotten; who comes back has another fence.
        there = {job.start for job, _ in unknown}
        self._patience = {start: patience for start, patience in self._patience.items() if start in there}
        now = self._monotonic()
        due = [
            job
            for job, unknown_ms in unknown
            if unknown_ms >= self._settings.after_s * 1000
            and (job.start not in self._patience or self._patience[job.start].again_at <= now)
        ]
        return due[: self._settings.asks_a_turn]

    async def _settle(self, job: Unknown, resolvers: Sequence[Resolver]) -> Reconciled | None:
        finding, resolver = await _ask(job, resolvers)
        done = await self._carry_out(job, finding, resolver, "")
        if done is None:
            self._wait(job, finding, resolver)
        else:
            log.info(
                "reconciled", job_id=job.job_id, by=resolver, why=finding.why, answer=done.answer, state=done.state
            )
        return done

    async def _carry_out(self, job: Unknown, finding: Finding, resolver: str, asked: str) -> Reconciled | None:
        """Write what is known; None where nothing is."""
        verdict = _VERDICTS.get(finding.known)
        if verdict is None:
            return None
        if finding.times is not None and finding.times > 1:
            note = f"{finding.times} effects for the key of job {job.job_id}"
            await asyncio.to_thread(self._store.confirm_duplicate, job.key, actor=resolver, note=note)
        answer, state = await asyncio.to_thread(
            self._store.reconcile,
            job.job_id,
            verdict,
            actor=resolver,
            reason=finding.why + asked,
            source=resolver,
            fence=job.fence,
        )
        return Reconciled(answer, state)

    def _wait(self, job: Unknown, finding: Finding, resolver: str) -> None:
        before = self._patience.get(job.start)
        wait_s = min(2 * before.wait_s, self._settings.ask_again_max_s) if before else self._settings.ask_again_s
        self._patience[job.start] = _Patience(self._monotonic() + wait_s, wait_s)
        if before is None:
            log.warning("unresolved", job_id=job.job_id, by=resolver, why=finding.why, unblock=_UNBLOCK)


def _in_time(job: Unknown, finding: Finding, resolver: str, after_s: float) -> Finding:
    """Believe no early `not done` where a repeat does harm: a call under way may do its work after the answer."""
    early = finding.known is Known.REPEATABLE and resolver == HttpResolver.name and job.effects is Effects.UNSAFE
    if not early:
        return finding
    why = f"{finding.why}, but a call may be under way until it has been unknown for {after_s:g} s"
    return Finding(Known.UNCLEAR, why, finding.times)


_UNBLOCK = "`sluicegate queue reconcile JOB --outcome OUTCOME --as NAME --reason WHY`"


async def _ask(job: Unknown, resolvers: Sequence[Resolver]) -> tuple[Finding, str]:
    """Give the first finding that is clear, else the last, and whose it is."""
    finding, name = Finding(Known.UNCLEAR, "nobody was asked"), ""
    for resolver in resolvers:
        finding, name = await resolver.ask(job), resolver.name
        if finding.known is not Known.UNCLEAR:
            break
    return finding, name
