"""reconcile: ask about the unknown jobs until none is left; what nobody can answer stays unknown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from automation.turn import Done, Progress, Turn, Wait
from sluicegate.damage import WRITTEN_OVER, was_measured
from sluicegate.reconciler import Reconciler
from sluicegate.run_journal import Phase
from sluicegate.settings import ReconcileSettings
from sluicegate.store import Store
from sluicegate.telemetry import Part


class Reconciling:
    """Go through the unknown jobs of one queue in their time, whichever run asks for it.

    Several processes may do so at once: a verdict that comes late does nothing.
    """

    def __init__(
        self, store: Store, settings: ReconcileSettings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._reconciler = Reconciler(store, settings, monotonic)
        self._every_s = settings.every_s
        self._monotonic = monotonic
        self._due_at = -float("inf")
        self._turning = asyncio.Lock()

    async def __call__(self, turn: Turn) -> Progress:
        """Be done when no job is unknown."""
        measured = was_measured(turn.telemetry, Part.UNKNOWN)
        if measured and turn.telemetry.unknown == 0:
            return Done(detail={"settled": _settled(turn)})
        async with self._turning:
            if self._monotonic() >= self._due_at:
                self._due_at = self._monotonic() + self._every_s
                settled = await self._reconciler.turn()
                if settled:
                    await turn.commit(Phase.PROGRESS, text=f"{settled} jobs settled", detail={"settled": settled})
        every_s = turn.context.contract.timings.fix_page_s
        unknown = f"{turn.telemetry.unknown} jobs are unknown"
        return Wait(unknown if measured else f"how many jobs are unknown is not known: {WRITTEN_OVER}", every_s)


def _settled(turn: Turn) -> list[str]:
    return [entry.text for entry in turn.entries(Phase.PROGRESS)]
