"""Make one HTTP call to the provider and say what it came to."""

from __future__ import annotations

import asyncio
import email.utils
import json
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import httpx
import structlog

from sluicegate.clock import Clock, SystemClock
from sluicegate.errors import UsageError
from sluicegate.job import Call, CallKind, Job

log = structlog.get_logger("provider_call")

PATH = "/v1/complete"
KEY_HEADER = "Idempotency-Key"


class Handler(Protocol):
    """Do a job's work within `timeout_s` and say what the call came to.

    Cancelled, it stops at once and lets the cancellation through. It says nothing about the job's future: that is
    decided from the call (`job.settle_after`).
    """

    async def __call__(self, job: Job, timeout_s: float) -> Call: ...


class ProviderCall:
    """POST jobs to one provider; the connection pool lives as long as the `async with` block."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        """Take the provider's address; raises UsageError where it is not an HTTP address."""
        self._own_url = self._url = _checked(url)
        self._clock = clock or SystemClock()
        # The worker bounds the whole call. A proxy named by the environment would answer for a provider that refuses.
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, limits=httpx.Limits(max_connections=None))  # noqa: S113 (as above)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    def point_at(self, url: str) -> None:
        """Call another address from the next call on, '' for the own one; what is no address changes nothing."""
        try:
            pointed = _checked(url) if url else self._own_url
        except UsageError as error:
            log.error("endpoint_not_valid", why=str(error))
            return
        if pointed != self._url:
            log.warning("endpoint_changed", host=pointed.host, port=pointed.port)
            self._url = pointed

    async def __call__(self, job: Job, timeout_s: float) -> Call:
        """Make the call; every way it can end is a Call, but for a cancellation from outside."""
        started = self._clock.monotonic()

        def ended(kind: CallKind, answer: httpx.Response | None = None) -> Call:
            status = answer.status_code if answer is not None else None
            retry_after = answer.headers.get("Retry-After") if answer is not None else None
            return Call(kind, self._clock.monotonic() - started, status, parse_retry_after(retry_after, self._now_s))

        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._client.post(self._url, content=body_of(job), headers=_headers(job))
        except TimeoutError:
            return ended(CallKind.TIMEOUT)
        except httpx.ConnectError:
            return ended(CallKind.REFUSED)
        except httpx.HTTPError:
            # The request was on its way: whether it was carried out is not known.
            return ended(CallKind.DROPPED)
        return ended(kind_of(answer.status_code), answer)

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000


def body_of(job: Job) -> bytes:
    """Render a job as the provider gets it: `{"job_id", "class", "payload", "canary"}`."""
    fields = {"job_id": job.job_id, "class": job.job_class, "payload": job.payload, "canary": bool(job.canary)}
    return json.dumps(fields, separators=(",", ":")).encode()


def _headers(job: Job) -> dict[str, str]:
    return {KEY_HEADER: job.idempotency_key, "Content-Type": "application/json"}


def kind_of(status: int) -> CallKind:
    """Sort a status: 200 is done, nothing else is (contract §3)."""
    if status == 200:
        return CallKind.OK
    return CallKind.STATUS_5XX if 500 <= status <= 599 else CallKind.STATUS_OTHER


def parse_retry_after(value: str | None, now_s: Callable[[], float]) -> float | None:
    """Give the seconds a Retry-After header asks for, named as seconds or as an HTTP date; None for anything else."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - now_s())


def _checked(url: str) -> httpx.URL:
    if any(character.isspace() or not character.isprintable() for character in url):
        raise UsageError(f"The provider's address {url!r} holds a space or a control character.", _URL_HINT)
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"The provider's address {url!r} is not valid: {error}.", _URL_HINT) from error
    if base.scheme not in ("http", "https") or not base.host:
        raise UsageError(f"The provider's address {url!r} is not an HTTP address.", _URL_HINT)
    return base.copy_with(raw_path=base.path.rstrip("/").encode() + PATH.encode())


_URL_HINT = "Use http://HOST:PORT."
