"""fix: remove the fault or point the workers at the known-good endpoint; a named person may always end the wait."""

from __future__ import annotations

from automation.http_act import HttpAct, answers
from automation.outside import Standing, act_once, why_a_person
from automation.turn import Done, Progress, Turn, Wait
from runbooks.verbs.fix import Fix, FixBy


async def fix(turn: Turn) -> Progress:
    """Call the hook once, ask the probe, or wait for a person; page until then (contract §7.4)."""
    params = turn.params(Fix)
    approved = turn.approved_by()
    if approved is not None:
        return Done(detail={"by": FixBy.PERSON.value, "approved": approved})
    every_s = params.page_every.resolve(turn.context)
    by, probe = params.by(turn.context), params.probe_url(turn.context)
    if by is FixBy.PERSON:
        return Wait("waits for a named person", every_s, needs_person=True)
    if by is FixBy.HOOK and params.hook is not None:
        act = HttpAct(params.hook, probe, turn.context)
        standing = await act_once(turn, act, params.on_unknown(turn.context))
        if standing is Standing.PERSON:
            return Wait(
                f"the hook was called, {why_a_person(turn)}: a named person decides", every_s, needs_person=True
            )
        if standing is Standing.PENDING:
            return Wait("the hook was called", every_s)
    if probe is None:
        return Done(detail={"by": by.value})
    if turn.may_probe() and await answers(probe):
        return Done(detail={"by": by.value, "probe": "answered 2xx"})
    return Wait("the probe does not answer 2xx yet", every_s)
