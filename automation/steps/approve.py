"""approve: wait for a named person; in rollback-and-audit their word acknowledges the duplicates known by then."""

from __future__ import annotations

from automation.turn import Done, Progress, Turn, Wait
from runbooks.verbs.approve import Approve


async def approve(turn: Turn) -> Progress:
    """Be done once a person approved the step, or acknowledged the duplicates by themselves."""
    approved = turn.approved_by()
    if approved is not None:
        return Done(detail={"approved": approved})
    if turn.telemetry.gate.duplicates_unacknowledged == 0:
        return Done(detail={"acknowledged": "through the gate's own command"})
    every_s = turn.params(Approve).page_every.resolve(turn.context)
    return Wait("waits for a named person to acknowledge the duplicates", every_s, needs_person=True)
