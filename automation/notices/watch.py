"""Notice what no single write tells of: a pin that nobody comes for, and more unknown or blocked jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from automation.looping import Loop
from sluicegate.clock import Clock
from sluicegate.notice_board import NoticeBoard
from sluicegate.telemetry import Telemetry

_LOOK_EVERY_S = 1.0


class Watch:
    """Look at what the leading controller saw last; `seen` gives None while this process does not lead."""

    def __init__(self, board: NoticeBoard, seen: Callable[[], Telemetry | None], repeat_s: float, clock: Clock) -> None:
        self._board = board
        self._seen = seen
        self._repeat_s = repeat_s
        self._clock = clock
        self._counts: tuple[int, int] | None = None
        self._pinned_at: float | None = None
        self._loop = Loop("notices-watch", _LOOK_EVERY_S, self.turn)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def turn(self) -> None:
        """Write a notice where one is due."""
        seen = self._seen()
        if seen is None:
            self._counts, self._pinned_at = None, None
            return
        if (seen.unknown, seen.blocked) != self._counts:
            await asyncio.to_thread(self._board.rising)
            self._counts = (seen.unknown, seen.blocked)
        await self._repeat(seen)

    async def _repeat(self, seen: Telemetry) -> None:
        if seen.gate.pin is None or seen.gate.drain_state == "admit":
            self._pinned_at = None
            return
        now = self._clock.monotonic()
        if self._pinned_at is None:
            # The pin itself was told of when it was set.
            self._pinned_at = now
        elif now - self._pinned_at >= self._repeat_s:
            await asyncio.to_thread(self._board.still_pinned)
            self._pinned_at = now
