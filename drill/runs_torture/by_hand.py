"""Write to the server as somebody with any Redis client may, past every function. Nobody else here does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

import redis

from sluicegate.keys import Keys

_WITHIN_S = 2.0


class ByHand:
    """Edit one queue's keys; what the server refuses, or does not answer, is left."""

    def __init__(self, redis_url: str, keys: Keys) -> None:
        self._client: Any = redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=_WITHIN_S)
        self._prefix = keys.prefix

    def drain(self) -> None:
        """Set the raw state, as in an emergency."""
        self._quietly(lambda: self._client.set(f"{self._prefix}drain_state", "drain"))

    def write_over_counts(self) -> tuple[str, ...]:
        """Write no number over the provider's counts of the window in force; gives the keys."""

        def write() -> tuple[str, ...]:
            window = self._client.hget(f"{self._prefix}control:gate", "window")
            names = tuple(self._client.scan_iter(f"{self._prefix}provider:{window}:*"))
            for name in names:
                self._client.hset(name, "5xx", "NaN")
            return names

        return cast("tuple[str, ...]", self._quietly(write) or ())

    def take_away(self, names: tuple[str, ...]) -> None:
        """Delete keys."""
        if names:
            self._quietly(lambda: self._client.delete(*names))

    def close(self) -> None:
        self._client.close()

    def _quietly(self, act: Callable[[], object]) -> object:
        with contextlib.suppress(redis.RedisError):
            return act()
        return None
