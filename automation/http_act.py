"""Call an address under an idempotency key, and ask another whether it has been carried out."""

from __future__ import annotations

import httpx
import structlog

from automation.outside import Came, Outcome
from runbooks.context import Context
from runbooks.verbs.hook import Hook

log = structlog.get_logger(__name__)

_CALL_TIMEOUT_S = 5.0
_TOO_MANY = 429


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
            async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
                response = await client.request(self._hook.method.resolve(self._context), url, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return Outcome(Came.AGAIN, f"not sent: {_text(error)}")
        except httpx.HTTPError as error:
            log.warning("outcome_unknown", run=self._context.run_id, error=_text(error))
            return None
        return Outcome(_came(response.status_code), str(response.status_code))

    async def done(self) -> bool | None:
        if self._probe_url is None:
            return None
        status = await status_of(self._probe_url)
        return None if status is None else 200 <= status < 300


def _came(status: int) -> Came:
    if 200 <= status < 300:
        return Came.DONE
    return Came.AGAIN if status == _TOO_MANY or status >= 500 else Came.REFUSED


async def status_of(url: str) -> int | None:
    """Give what a GET is answered with, or None for no answer."""
    try:
        async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
            return (await client.get(url)).status_code
    except httpx.HTTPError:
        return None


async def answers(url: str) -> bool:
    """Say whether a probe answers 2xx now."""
    status = await status_of(url)
    return status is not None and 200 <= status < 300


def _text(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
