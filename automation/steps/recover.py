"""recover: move the gate to recovering; the provider window starts anew."""

from __future__ import annotations

from automation.turn import Done, Progress, Turn


async def recover(turn: Turn) -> Progress:
    """Make the move together with the step's last journal entry."""
    return Done("recover")
