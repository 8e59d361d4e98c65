"""fix: remove the fault or point the workers at the known-good endpoint; a named person may always end the wait."""

from __future__ import annotations

import httpx
import structlog

from automation.turn import Done, Phase, Progress, Turn, Wait
from runbooks.verbs.fix import Fix, FixBy
from runbooks.verbs.hook import Hook
from runbooks.verbs.step import OnUnknown

log = structlog.get_logger(__name__)

_CALL_TIMEOUT_S = 5.0


async def fix(turn: Turn) -> Progress:
    """Call the hook once, ask the probe, or wait for a person; page until then (SPEC §7.4)."""
    params = turn.params(Fix)
    approved = turn.approved_by()
    if approved is not None:
        return Done(detail={"by": FixBy.PERSON.value, "approved": approved})
    _page(turn, params)
    by = params.by(turn.context)
    if by is FixBy.HOOK and params.hook is not None and not turn.entries(Phase.OUTCOME):
        await _through_hook(turn, params, params.hook)
        return Wait("the hook was called")
    if by is FixBy.HOOK and not _hook_succeeded(turn):
        return Wait("the hook did not succeed: a named person decides")
    probe = params.probe_url(turn.context)
    if probe is None:
        return Done(detail={"by": by.value}) if by is FixBy.HOOK else Wait("waits for a named person")
    if await _probe(probe):
        return Done(detail={"by": by.value, "probe": "answered 2xx"})
    return Wait("the probe does not answer 2xx yet")


def _hook_succeeded(turn: Turn) -> bool:
    return any(entry.text.startswith("2") for entry in turn.entries(Phase.OUTCOME))


async def _through_hook(turn: Turn, params: Fix, hook: Hook) -> None:
    """Write the intent, call, write the outcome. An intent without outcome is unknown: probe, retry or hold."""
    intents = len(turn.entries(Phase.INTENT))
    if intents and not turn.entries(Phase.UNKNOWN):
        await turn.commit(Phase.UNKNOWN, text="an intent without its outcome: the executor died in between")
    if intents:
        rule = params.on_unknown(turn.context)
        probe = params.probe_url(turn.context)
        if rule is OnUnknown.PROBE and probe is not None and await _probe(probe):
            await turn.commit(Phase.OUTCOME, text="200 by the probe")
            return
        if rule is OnUnknown.HOLD:
            return
    await turn.commit(Phase.INTENT, text=f"call {intents + 1}")
    status = await _call(turn, hook)
    if status is not None:
        await turn.commit(Phase.OUTCOME, text=status)


async def _call(turn: Turn, hook: Hook) -> str | None:
    """Give the answer's status, what refused the connection, or None where the outcome is not known."""
    url = hook.target(turn.context) or ""
    headers = {"Idempotency-Key": hook.idempotency_key.resolve(turn.context)}
    try:
        async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
            response = await client.request(hook.method.resolve(turn.context), url, headers=headers)
    except httpx.ConnectError as error:
        return f"not sent: {error}"
    except httpx.HTTPError as error:
        log.warning("fix_outcome_unknown", run=turn.run_id, error=str(error) or type(error).__name__)
        return None
    return str(response.status_code)


async def _probe(url: str) -> bool:
    try:
        async with httpx.AsyncClient(timeout=_CALL_TIMEOUT_S, follow_redirects=False) as client:
            return (await client.get(url)).is_success
    except httpx.HTTPError:
        return False


def _page(turn: Turn, params: Fix) -> None:
    """Say every page_every that the fix waits, from the second look on."""
    every_s = params.page_every.resolve(turn.context)
    if int(turn.elapsed_s / every_s) > 0 and turn.elapsed_s % every_s < 1:
        log.error("run_waits_for_fix", run=turn.run_id, waited_s=round(turn.elapsed_s), step="fix")
