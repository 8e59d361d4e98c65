"""Make ids for jobs that were given none: random, and in the order in which one producer asked for them."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_TIME_BITS = 48
# How far the next id of a millisecond lies from the one before: far enough that two processes which go on from the same
# id, as after a fork, do not meet.
_STEP_BITS = 64


class JobIds:
    """Make ULIDs (github.com/ulid/spec): 48 bits of time, then 80 random ones, in Crockford's base 32, 26 characters.

    Each sorts after those made before it, in its millisecond or after a clock that went back, too: jobs that became
    ready in the same millisecond are taken by their id. This holds among threads, too, and so in each of them.
    """

    def __init__(self, draw: Callable[[int], int] = secrets.randbits) -> None:
        self._draw = draw
        self._last = -1
        self._lock, self._pid = threading.Lock(), os.getpid()

    def new(self, now_ms: int) -> str:
        number = (now_ms & ((1 << _TIME_BITS) - 1)) << _RANDOM_BITS | self._draw(_RANDOM_BITS)
        if self._pid != os.getpid():
            # A thread of the parent may have had it at the fork, and does not go on here.
            self._lock, self._pid = threading.Lock(), os.getpid()
        with self._lock:
            if number <= self._last:
                number = self._last + 1 + self._draw(_STEP_BITS)
            self._last = number
        return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))
