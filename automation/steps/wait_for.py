"""wait_for: look at the figures until they have been as they should for as long as they should."""

from __future__ import annotations

import json

from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.verbs.step import NoData, VerbName
from runbooks.verbs.wait_for import WaitFor
from runbooks.watch import Judgement, Look, Standing, held_ms
from sluicegate.run_journal import Phase


async def wait_for(turn: Turn) -> Progress:
    """Look once; the journal keeps what was seen, so whoever takes over goes on, or begins anew after a gap."""
    params = turn.params(WaitFor)
    judged = params.watch.judge(turn.telemetry, turn.context, turn.evidence)
    if judged.standing is Standing.BREACHED:
        return Failed(VerbName.WAIT_FOR, judged.why)
    if judged.standing is Standing.NO_DATA and params.watch.no_data is NoData.ROLLBACK:
        return Failed(VerbName.WAIT_FOR, f"no data: {judged.why}")
    looks = looks_of(turn)
    all_looks = [*looks, Look(turn.telemetry.at_ms, judged.standing)]
    held_s = held_ms(all_looks, params.longest_gap_ms(turn.context)) / 1000
    if params.has_held(all_looks, turn.context):
        return Done(detail={"held_s": held_s})
    await note(turn, looks, judged, params.look_ms(turn.context))
    if judged.standing is Standing.NO_DATA:
        return Wait(f"no data: {judged.why}", turn.context.contract.timings.fix_page_s)
    return Wait(judged.why or f"holds for {held_s:.1f} s")


def looks_of(turn: Turn) -> list[Look]:
    """Give the looks that were written down, in their order."""
    told = (json.loads(entry.detail) for entry in turn.entries(Phase.PROGRESS))
    return [Look(body["at_ms"], Standing(body["standing"])) for body in told]


async def note(turn: Turn, looks: list[Look], judged: Judgement, look_ms: float) -> None:
    """Write a look down where it says something new, and now and then while it holds."""
    last = looks[-1] if looks else None
    due = judged.standing is Standing.HOLDS and last is not None and turn.telemetry.at_ms - last.at_ms >= look_ms
    if last is None or last.standing is not judged.standing or due:
        await turn.commit(
            Phase.PROGRESS,
            text=f"{judged.standing.replace('_', ' ')}: {judged.why}" if judged.why else judged.standing.value,
            detail={"at_ms": turn.telemetry.at_ms, "standing": judged.standing.value},
        )
