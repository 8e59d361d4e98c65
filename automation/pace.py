"""Keep questions to a system outside apart: one that is down is not asked at every look of an executor."""

from __future__ import annotations

import time
from collections.abc import Callable

PROBE_EVERY_S = 1.0


class Pace:
    """Remember what was asked lately, in this process."""

    def __init__(self, every_s: float = PROBE_EVERY_S, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._monotonic = monotonic
        self._asked: dict[str, float] = {}

    def due(self, what: str) -> bool:
        """Say whether this may be asked now; whoever hears yes asks."""
        now = self._monotonic()
        self._asked = {one: at for one, at in self._asked.items() if now - at < self._every_s}
        if what in self._asked:
            return False
        self._asked[what] = now
        return True
