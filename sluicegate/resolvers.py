"""Ask what became of an unknown job: the ledger, and a URL that knows the provider's effects by idempotency key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from sluicegate.job import Effects
from sluicegate.reconcile import LedgerEntry, Verdict, ledger_verdict

_LONGEST_ANSWER = 65_536


class Known(StrEnum):
    """Name what a resolver can say of a job; the comment says what follows."""

    DONE = "done"  # it succeeded
    REPEATABLE = "repeatable"  # it was not done, or a repeat is safe: it runs again under the same key
    UNCLEAR = "unclear"  # the next resolver is asked; without one it stays unknown, and is never repeated by itself


@dataclass(frozen=True, slots=True)
class Unknown:
    """Hold an unknown job as a resolver needs it; `since_ms` by Redis TIME."""

    job_id: str
    since_ms: int
    key: str
    job_class: str
    fence: str
    effects: Effects
    ledger: LedgerEntry

    @property
    def start(self) -> tuple[str, str]:
        """Name the start that nobody saw the end of; jobs of one claim share their fence."""
        return self.job_id, self.fence

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Unknown:
        """Parse a row of `Store.unresolved`."""
        entry = LedgerEntry(bool(row["confirmed"]), str(row["intent_fence"]), bool(row["known_start"]))
        return cls(
            str(row["id"]),
            int(row["since"]),
            str(row["key"]),
            str(row["class"]),
            str(row["fence"]),
            Effects(row["effects"]),
            entry,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Say what is known, why, and how often it was done where that was told."""

    known: Known
    why: str
    times: int | None = None


class Resolver(Protocol):
    """Answer for one kind of witness; never raises for a witness that fails: that is UNCLEAR."""

    name: str

    async def ask(self, job: Unknown) -> Finding: ...


class LedgerResolver:
    """Judge by the queue's own ledger: intent and confirmation."""

    name = "ledger"

    async def ask(self, job: Unknown) -> Finding:
        verdict, why = ledger_verdict(job.ledger, job.fence, job.effects)
        match verdict:
            case Verdict.SUCCEEDED:
                return Finding(Known.DONE, why)
            case Verdict.RETRY:
                return Finding(Known.REPEATABLE, why)
            case _:
                return Finding(Known.UNCLEAR, why)


class HttpResolver:
    """Ask a URL by idempotency key.

    Only `200` with a JSON object `{"done": true}` or `{"done": false}` says anything; `effects` may add how often it
    was done. A 404 may as well come from a wrong address, so it is unclear like every other answer, or none in time.
    """

    name = "http"

    def __init__(self, client: httpx.AsyncClient, url: str, timeout_s: float) -> None:
        self._client = client
        self._url = url
        self._timeout_s = timeout_s

    async def ask(self, job: Unknown) -> Finding:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._answer(self._url.replace("{key}", quote(job.key, safe="")))
        except TimeoutError:
            return Finding(Known.UNCLEAR, f"no answer within {self._timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Finding(Known.UNCLEAR, f"no answer: {type(error).__name__}")

    async def _answer(self, url: str) -> Finding:
        async with self._client.stream("GET", url, follow_redirects=False) as response:
            if response.status_code != httpx.codes.OK:
                return Finding(Known.UNCLEAR, f"it answered {response.status_code}")
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    return Finding(Known.UNCLEAR, f"its answer is longer than {_LONGEST_ANSWER} bytes")
        return finding_of(body)


def finding_of(body: bytes) -> Finding:
    """Read an answer; what contradicts itself is unclear. Pure."""
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        return Finding(Known.UNCLEAR, "its answer is not JSON")
    if not isinstance(answer, dict) or not isinstance(done := answer.get("done"), bool):
        return Finding(Known.UNCLEAR, "its answer does not say whether it was done")
    times = answer.get("effects")
    if times is None:
        return Finding(Known.DONE if done else Known.REPEATABLE, _said(done))
    if isinstance(times, bool) or not isinstance(times, int) or times < 0 or done != (times > 0):
        return Finding(Known.UNCLEAR, "its answer contradicts itself")
    return Finding(Known.DONE if done else Known.REPEATABLE, f"{_said(done)}, effects: {times}", times)


def _said(done: bool) -> str:
    return "the provider says that it was done" if done else "the provider says that it was not done"
