"""Let time pass by command: the functions read a key instead of TIME, and what has outlived its TTL is removed.

So a run is the same each time it is repeated, which is what a shrunk trace needs, and an hour passes at once. That the
library as it is reads TIME is proved by every other test of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.machine.contract import GRAIN_MS
from tests.machine.dump import Dump

KEY = "machine:clock"
# 23:55:00 UTC: a day ends within most runs.
START_US = 1_800_057_300_000_000
_READS_TIME = "redis.call('TIME')"
_READS_KEY = f"redis.call('HMGET', '{KEY}', 'seconds', 'micros')"
_A_COMMAND_US = 137
# What really passes between a restore's writing of a TTL and the look at it, at most.
_REAL_TIME_MS = 5_000


def with_clock(source: str) -> str:
    """Give the library's source reading this clock; every place where it reads the time is one."""
    assert source.count(_READS_TIME) == 1, "the library reads the time in one place"
    return source.replace(_READS_TIME, _READS_KEY)


class Clock:
    """Hold the time of one server, and the instant at which each key goes, in ms of this clock."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.now_us = START_US
        self.ends: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._promised: Mapping[str, int] = {}
        self._write()

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    def step(self) -> None:
        """Let a moment pass, so that no two commands are of one µs; several are of one ms."""
        self._pass(_A_COMMAND_US)

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self._pass(ms * 1000)

    def _pass(self, us: int) -> None:
        """Go on; a key goes once its TTL is over, as on any server."""
        self.now_us += us
        self._write()
        gone = [key for key, end in self.ends.items() if self.now_ms > end]
        if gone:
            self._client.delete(*gone)

    def begin_again(self, ends: Mapping[str, int]) -> None:
        """Go on after the server was emptied; what is put back goes at an instant that was set before.

        That is no multiple of the grain from now: a TTL that is near enough to it is taken for it.
        """
        self.ends, self._seen, self._promised = {}, {}, dict(ends)
        self._write()

    def look(self, dump: Dump) -> None:
        """Translate each TTL set since the last look into this clock's time."""
        for key, real_end in dump.ends.items():
            if self._seen.get(key) != real_end:
                left_ms = real_end - dump.read_at_ms
                promised = self._promised.get(key, 0)
                near = 0 <= promised - (self.now_ms + left_ms) <= _REAL_TIME_MS
                self.ends[key] = promised if near else self.now_ms + -(-left_ms // GRAIN_MS) * GRAIN_MS
        self._promised = {}
        self._seen = dict(dump.ends)
        self.ends = {key: end for key, end in self.ends.items() if key in dump.ends}

    def _write(self) -> None:
        seconds, micros = divmod(self.now_us, 1_000_000)
        self._client.hset(KEY, mapping={"seconds": seconds, "micros": micros})
