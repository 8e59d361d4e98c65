"""Ask the Sentinels now and then whether the primary is still the one that a connection leads to.

One that was only held up goes on as a primary after another took its place: its connections stand, it answers, and what
it accepts is lost. The Sentinels tell it after about ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import redis

from sluicegate.clock import Clock, SystemClock

Place = tuple[str, int]

_EVERY_S = 1.0
_AT_MOST_S = 16.0


class PrimaryWatch:
    """Say whether a place has been left, by asking at most every second; safe to share between threads.

    Where no Sentinel answers nothing has been left, and they are asked less often: each time takes as long as a
    connection may.
    """

    def __init__(self, ask: Callable[[], Place], clock: Clock | None = None) -> None:
        """Take what gives the primary's place, or raises redis-py's errors."""
        self._ask = ask
        self._clock = clock or SystemClock()
        self._every_s = _EVERY_S
        self._due_s = self._clock.monotonic() + _EVERY_S

    def has_left(self, place: Place) -> bool:
        """Say that the primary is elsewhere; False as long as nobody is to be asked, or nobody knows."""
        if self._clock.monotonic() < self._due_s:
            return False
        # Before the answer: what others ask for meanwhile goes on.
        self._due_s = self._clock.monotonic() + self._every_s
        try:
            found = self._ask()
        except redis.exceptions.RedisError:
            self._every_s = min(2 * self._every_s, _AT_MOST_S)
            return False
        self._every_s = _EVERY_S
        self._due_s = self._clock.monotonic() + _EVERY_S
        return found != place
