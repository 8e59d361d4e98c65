"""wait_for: look at the figures until they have been as they should for as long as they should."""

from __future__ import annotations

import json

from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.verbs.step import NoData, VerbName
from runbooks.verbs.wait_for import WaitFor
from runbooks.watch import Judgement, Look, Standing, held_ms
from sluicegate.run_journal import Phase

# How far apart the news is that breaks nothing.
_NEWS_MS = 1000.0


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
    """Write a look down where it says something new, and now and then while it holds.

    What breaks the time for which it has held is written at once, anything else at a pace: a figure that swings about
    its bound fills no journal.
    """
    if is_worth_a_note(looks[-1] if looks else None, Look(turn.telemetry.at_ms, judged.standing), look_ms):
        await turn.commit(
            Phase.PROGRESS,
            text=f"{judged.standing.replace('_', ' ')}: {judged.why}" if judged.why else judged.standing.value,
            detail={"at_ms": turn.telemetry.at_ms, "standing": judged.standing.value},
        )


def is_worth_a_note(last: Look | None, look: Look, look_ms: float) -> bool:
    """Say whether a look is to be written down after the last one that was."""
    if last is None:
        return True
    since_ms, holds = look.at_ms - last.at_ms, look.standing is Standing.HOLDS
    if last.standing is look.standing:
        return holds and since_ms >= look_ms
    return last.standing is Standing.HOLDS or since_ms >= max(look_ms, _NEWS_MS)
