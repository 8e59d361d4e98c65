"""command: start a program that the settings allow, once; where it fails a named person decides."""

from __future__ import annotations

from automation.command_act import CommandAct
from automation.steps.http import carried_out
from automation.turn import Progress, Turn
from runbooks.verbs.command import Command
from runbooks.verbs.step import OnUnknown


async def command(turn: Turn) -> Progress:
    """Start it, or settle what became of it; all starts of one step carry one key."""
    params = turn.params(Command)
    act = CommandAct(params, turn.context, f"{turn.run_id}/{turn.step.seq}")
    return await carried_out(turn, act, params.on_unknown or OnUnknown.HOLD)
