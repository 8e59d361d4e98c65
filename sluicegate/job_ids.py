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
_turn = threading.Lock()


def _new_turn() -> None:
    """Let a child process take turns anew: a thread that is not in it may have had the lock when it was forked."""
    global _turn  # noqa: PLW0603 (whoever waits in the parent goes on with the parent's)
    _turn = threading.Lock()


os.register_at_fork(after_in_child=_new_turn)


class JobIds:
    """Make ULIDs (github.com/ulid/spec): 48 bits of time, then 80 random ones, in Crockford's base 32, 26 characters.

    Each sorts after those made before it, in its millisecond or after a clock that went back, too: jobs that became
    ready in the same millisecond are taken by their id. This holds among threads, too, and so in each of them.
    """

    def __init__(self, draw: Callable[[int], int] = secrets.randbits) -> None:
        self._draw = draw
        self._last = -1

    def new(self, now_ms: int) -> str:
        number = (now_ms & ((1 << _TIME_BITS) - 1)) << _RANDOM_BITS | self._draw(_RANDOM_BITS)
        with _turn:
            if number <= self._last:
                number = self._last + 1 + self._draw(_STEP_BITS)
            self._last = number
        return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))
