"""reject: close admission where it is open, as a run that holds no lock."""

from __future__ import annotations

from automation.turn import Done, Progress, Turn, Wait


async def reject(turn: Turn) -> Progress:
    """Make the move together with the step's last journal entry; in a ramp it is refused, so wait for its end."""
    gate = turn.telemetry.gate
    if gate.ramp_percent is not None:
        return Wait("a ramp goes on: the live run's own gate decides")
    return Done("reject_new", {"was": gate.drain_state})
