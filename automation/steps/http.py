"""http: make one call outside, once; where it does not succeed a named person decides."""

from __future__ import annotations

from automation.http_act import HttpAct
from automation.outside import Act, Standing, act_once, why_a_person
from automation.turn import Done, Progress, Turn, Wait
from runbooks.verbs.http import Http
from runbooks.verbs.step import OnUnknown


async def http(turn: Turn) -> Progress:
    """Make the call, or settle what became of it."""
    params = turn.params(Http)
    if params.hook.target(turn.context) is None:
        return by_a_person(turn, "the settings name no address: waits for a named person")
    act = HttpAct(params.hook, params.probe_url(turn.context), turn.context)
    return await carried_out(turn, act, params.on_unknown(turn.context))


async def carried_out(turn: Turn, act: Act, on_unknown: OnUnknown) -> Progress:
    """Bring an act further; a person may pass the step where it needs one."""
    approved = turn.approved_by()
    if approved is not None:
        return Done(detail={"approved": approved})
    match await act_once(turn, act, on_unknown):
        case Standing.DONE:
            return Done()
        case Standing.PERSON:
            return by_a_person(turn, f"{why_a_person(turn)}: a named person decides")
        case _:
            return Wait("what became of it is not known yet", _page_every_s(turn))


def by_a_person(turn: Turn, why: str) -> Progress:
    """Wait for a person's word, and take it."""
    approved = turn.approved_by()
    if approved is not None:
        return Done(detail={"approved": approved})
    return Wait(why, _page_every_s(turn), needs_person=True)


def _page_every_s(turn: Turn) -> float:
    return turn.context.contract.timings.fix_page_s
