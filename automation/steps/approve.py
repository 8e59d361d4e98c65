"""approve: wait for a named person; in rollback-and-audit their word acknowledges the duplicates known by then."""

from __future__ import annotations

import asyncio

from automation.turn import Done, Progress, Turn, Wait


async def approve(turn: Turn) -> Progress:
    """Be done once a person approved the step, or acknowledged the duplicates by themselves."""
    approved = turn.approved_by()
    if approved is not None:
        actor, _, reason = approved.partition(": ")
        await asyncio.to_thread(turn.store.order, "acknowledge", actor, reason or "approved the audit")
        return Done(detail={"approved": approved})
    if turn.telemetry.gate.duplicates_unacknowledged == 0:
        return Done(detail={"acknowledged": "through the gate's own command"})
    return Wait("waits for a named person to acknowledge the duplicates")
