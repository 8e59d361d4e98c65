"""Call an address under an idempotency key, and ask another whether it has been carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx
import structlog

from automation.outside import Came, Outcome
from runbooks.context import Context
from runbooks.verbs.hook import Hook

log = structlog.get_logger(__name__)

# Of each part of a call, and twice as long for the whole of it: an answer may come drop by drop.
_CALL_TIMEOUT_S = 5.0
# Whoever answers so has taken nothing on.
_NOT_TAKEN = frozenset({429, 503})


class HttpAct:
    """Make one hook's call; redirects are not followed, and nothing of an answer but its status counts."""

    def __init__(self, hook: Hook, probe_url: str | None, context: Context) -> None:
        self._hook = hook
        self._probe_url = probe_url
        self._context = context

    async def make(self) -> Outcome | None:
        url = self._hook.target(self._context)
        if url is None:
            return Outcome(Came.REFUSED, "the settings name no address")
        headers = {"Idempotency-Key": self._hook.idempotency_key.resolve(self._context)}
        try:
            status = await _status(self._hook.method.resolve(self._context), url, headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Outcome(Came.AGAIN, f"not sent: {_text(error)}")
        except httpx.InvalidURL as error:
            return Outcome(Came.REFUSED, f"not sent: {_text(error)}")
        except (httpx.HTTPError, TimeoutError) as error:
            log.warning("outcome_unknown", run=self._context.run_id, error=_text(error))
            return None
        return Outcome(_came(status), str(status))

    async def done(self) -> bool | None:
        if self._probe_url is None:
            return None
        status = await status_of(self._probe_url)
        return None if status is None else 200 <= status < 300


def _came(status: int) -> Came:
    if 200 <= status < 300:
        return Came.DONE
    if status in _NOT_TAKEN:
        return Came.AGAIN
    return Came.UNCLEAR if status >= 500 else Came.REFUSED


async def status_of(url: str) -> int | None:
    """Give what a GET is answered with, or None for no answer."""
    try:
        return await _status("GET", url, {})
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
        return None


async def answers(url: str) -> bool:
    """Say whether a probe answers 2xx now."""
    status = await status_of(url)
    return status is not None and 200 <= status < 300


async def _status(method: str, url: str, headers: Mapping[str, str]) -> int:
    """Make one call and give its status; the answer's body is not read, however long it is."""
    async with asyncio.timeout(2 * _CALL_TIMEOUT_S):
        async with (
            httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client,
            client.stream(method, url, headers=headers) as response,
        ):
            return response.status_code


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
