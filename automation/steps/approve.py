"""approve: wait for a named person; in rollback-and-audit their word acknowledges the duplicates known by then."""

from __future__ import annotations

from automation.steps.wait_for import looks_of, note
from automation.turn import Done, Failed, Progress, Turn, Wait
from runbooks.verbs.approve import Acknowledges, Approve
from runbooks.verbs.step import NoData, VerbName
from runbooks.watch import Standing, Watch

_LOOK_MS = 60_000.0


async def approve(turn: Turn) -> Progress:
    """Be done once a person let the step pass, or acknowledged the duplicates by themselves.

    Figures that are watched go on being measured meanwhile: a breach ends the wait, and a word counts only while they
    hold.
    """
    params = turn.params(Approve)
    every_s = params.page_every.resolve(turn.context)
    held_up = await _measured(turn, params.gate) if params.gate is not None else None
    if isinstance(held_up, Failed):
        return held_up
    approved = turn.approved_by()
    if approved is not None:
        return Wait(f"approved, but {held_up}", every_s) if held_up else Done(detail={"approved": approved})
    if params.acknowledges is Acknowledges.NOTHING:
        return Wait("waits for a named person", every_s, needs_person=True)
    if turn.telemetry.gate.duplicates_unacknowledged == 0:
        return Done(detail={"acknowledged": "through the gate's own command"})
    return Wait("waits for a named person to acknowledge the duplicates", every_s, needs_person=True)


async def _measured(turn: Turn, gate: Watch) -> Failed | str | None:
    """Look at the figures; gives what ends the wait, or what keeps a word from counting."""
    judged = gate.judge(turn.telemetry, turn.context, turn.evidence)
    blind = judged.standing is Standing.NO_DATA and gate.no_data is NoData.ROLLBACK
    if judged.standing is Standing.BREACHED or blind:
        return Failed(VerbName.APPROVE, judged.why)
    await note(turn, looks_of(turn), judged, _LOOK_MS)
    return None if judged.standing is Standing.HOLDS else f"the figures do not hold: {judged.why}"
