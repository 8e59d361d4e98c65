"""Keep calls in order that go over threads, as a connection keeps what is sent on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sluicegate.errors import StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")


class Turn:
    """Call the store in threads, one call after another, in the order in which they were asked for.

    As on a connection, what waits behind a call that got no answer fails with it: waiting for each would take as many
    timeouts as there are calls.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._lost = 0

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call once; raises what it raises, and StoreUnavailable without calling where one before it did."""
        lost = self._lost
        async with self._lock:
            if self._lost != lost:
                raise StoreUnavailable("not sent: the call before it got no answer")
            try:
                return await asyncio.to_thread(function, *args, **kwargs)
            except StoreUnavailable:
                self._lost += 1
                raise
