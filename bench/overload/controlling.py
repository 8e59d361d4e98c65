"""Be the controller as far as admission goes: look, decide by the stored thresholds, apply (contract §6)."""

from __future__ import annotations

import asyncio

from automation.controller import judge
from sluicegate.store import Store


async def control(store: Store, every_s: float) -> None:
    """Tick until cancelled."""
    while True:
        await asyncio.to_thread(_tick, store)
        await asyncio.sleep(every_s)


def _tick(store: Store) -> None:
    leading, fence = store.lead("bench")
    if not leading:
        return
    telemetry = store.tick(fence)
    decision, exit_ok = judge(telemetry)
    store.move_gate(
        action=decision.action.value,
        reason=decision.reason.value,
        exit_ok=exit_ok,
        epoch=telemetry.gate.epoch,
        fence=fence,
        figures="{}",
    )
