"""Keep the count of live runs over all queues true for one queue's run, whoever opened it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from sluicegate.all_queues import AllQueues
from sluicegate.errors import StoreError

log = structlog.get_logger(__name__)

_SAY_AGAIN_S = 10.0


class Place:
    """Hold a run's place while it is live and owned here; what can't be said now is said at the next look.

    It is said again now and then: somebody who asked for another run of this queue may have died with its place.
    A run that nobody owns keeps the place it has: whoever needs one looks whether its holder is over.
    """

    def __init__(self, everywhere: AllQueues, queue: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._everywhere = everywhere
        self._queue = queue
        self._monotonic = monotonic
        self._held = ""
        self._said_at = -float("inf")

    async def keep(self, run: str) -> None:
        """Say which run is live and owned here, '' for none."""
        if run == self._held and (not run or self._monotonic() - self._said_at < _SAY_AGAIN_S):
            return
        self._said_at = self._monotonic()
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
