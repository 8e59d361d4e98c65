"""Call a system outside: the intent first, the outcome after it, and what follows where it was lost (contract §7).

All calls of one step carry one idempotency key. Its journal says how far it came, so any executor can go on.
"""

from __future__ import annotations

from enum import StrEnum

import httpx
import structlog

from automation.turn import Turn
from runbooks.verbs.hook import Hook
from runbooks.verbs.step import OnUnknown
from sluicegate.run_journal import Phase

log = structlog.get_logger(__name__)

MOST_CALLS = 3
AGAIN_AFTER_S = 2.0
_CALL_TIMEOUT_S = 5.0
_NOT_SENT = "not sent"
_TOO_MANY = "429"


class Standing(StrEnum):
    """Name how far a call has come."""

    DONE = "done"  # the step goes on
    PENDING = "pending"  # look again
    PERSON = "person"  # a named person decides


async def call_once(turn: Turn, hook: Hook, on_unknown: OnUnknown, probe_url: str | None) -> Standing:
    """Bring the call one look further: make it, or settle what became of it.

    What was certainly not carried out (refused, 429, 5xx) is tried again, up to three calls in all. A lost outcome is
    probed, tried again or left to a person, as the runbook says.
    """
    told = [entry for entry in turn.entries() if entry.phase in (Phase.INTENT, Phase.OUTCOME, Phase.UNKNOWN)]
    if not told:
        return await _call(turn, hook)
    last = told[-1]
    if last.phase == Phase.INTENT:
        await turn.commit(Phase.UNKNOWN, text="an intent without its outcome: the executor or the answer was lost")
        return Standing.PENDING
    if last.phase == Phase.OUTCOME and last.text.startswith("2"):
        return Standing.DONE
    if last.phase == Phase.UNKNOWN and on_unknown is OnUnknown.HOLD:
        return Standing.PERSON
    if last.phase == Phase.UNKNOWN and on_unknown is OnUnknown.PROBE and probe_url and await answers(probe_url):
        await turn.commit(Phase.OUTCOME, text="200 by the probe")
        return Standing.DONE
    if last.phase == Phase.OUTCOME and not last.text.startswith((_NOT_SENT, _TOO_MANY, "5")):
        return Standing.PERSON
    if len(turn.entries(Phase.INTENT)) >= MOST_CALLS:
        return Standing.PERSON
    if turn.telemetry.at_ms - last.at_ms < AGAIN_AFTER_S * 1000:
        return Standing.PENDING
    return await _call(turn, hook)


async def _call(turn: Turn, hook: Hook) -> Standing:
    url = hook.target(turn.context)
    if url is None:
        return Standing.PERSON
    await turn.commit(Phase.INTENT, text=f"call {len(turn.entries(Phase.INTENT)) + 1}")
    outcome = await _outcome(turn, hook, url)
    if outcome is not None:
        await turn.commit(Phase.OUTCOME, text=outcome)
    return Standing.PENDING


async def _outcome(turn: Turn, hook: Hook, url: str) -> str | None:
    """Give the answer's status, what kept the call from being sent, or None where the outcome is not known."""
    headers = {"Idempotency-Key": hook.idempotency_key.resolve(turn.context)}
    try:
        async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
            response = await client.request(hook.method.resolve(turn.context), url, headers=headers)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        return f"{_NOT_SENT}: {_text(error)}"
    except httpx.HTTPError as error:
        log.warning("outcome_unknown", run=turn.run_id, step=turn.step.verb.value, error=_text(error))
        return None
    return str(response.status_code)


async def answers(url: str) -> bool:
    """Say whether a probe answers 2xx now."""
    try:
        async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
            return (await client.get(url)).is_success
    except httpx.HTTPError:
        return False


def _text(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
