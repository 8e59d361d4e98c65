"""Keep the count of live runs over all queues true for one queue's run, whoever opened it."""

from __future__ import annotations

import asyncio

import structlog

from sluicegate.all_queues import AllQueues
from sluicegate.errors import StoreError

log = structlog.get_logger(__name__)


class Place:
    """Hold a run's place while it is live and owned here; what can't be said now is said at the next look.

    A run that nobody owns keeps the place it has: whoever needs one looks whether its holder is over.
    """

    def __init__(self, everywhere: AllQueues, queue: str) -> None:
        self._everywhere = everywhere
        self._queue = queue
        self._held = ""

    async def keep(self, run: str) -> None:
        """Say which run is live and owned here, '' for none."""
        if run == self._held:
            return
        try:
            if run:
                await asyncio.to_thread(self._everywhere.hold_place, self._queue, run)
            else:
                await asyncio.to_thread(self._everywhere.leave_place, self._queue, self._held)
        except StoreError as error:
            # No run waits for its place to be counted.
            log.warning("place_not_counted", run=run or self._held, why=str(error))
            return
        self._held = run
