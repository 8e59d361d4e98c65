"""Ask the store without holding the event loop up, and say once when it goes away and once when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from structlog.typing import FilteringBoundLogger

from sluicegate.clock import Clock
from sluicegate.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 1.0


class StoreLink:
    """Log the failures of calls once an outage, however many calls meet it.

    Calls overlap, so an answer ends an outage only if it was asked for after the outage began, and a failure begins
    one only if it was asked for after the last one had ended.
    """

    def __init__(self, log: FilteringBoundLogger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._down_since: float | None = None
        self._up_since = clock.monotonic()

    @property
    def down(self) -> bool:
        """Say whether the last call failed."""
        return self._down_since is not None

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call once, in a thread; raises what the store raises."""
        return await self.heard(asyncio.to_thread(function, *args, **kwargs))

    async def heard(self, answer: Awaitable[T]) -> T:
        """Wait for an answer that is being asked for; raises what the store raises."""
        asked = self._clock.monotonic()
        try:
            result = await answer
        except StoreError as error:
            self._failed(error, asked)
            raise
        self._answered(asked)
        return result

    async def until_answered(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Repeat a call until an answer comes, as `until_heard`."""
        return await self.until_heard(seconds, lambda: self.call(function, *args, **kwargs))

    async def until_heard(self, seconds: float, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until an answer comes, for at most `seconds`; then raise what the last try raised.

        Only for calls that may be repeated: those with a request id, or that answer the same twice.
        """
        end = self._clock.monotonic() + seconds
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return await ask()
            except StoreError:
                if self._clock.monotonic() + wait_s > end:
                    raise
            await self._clock.sleep(wait_s)
            wait_s = longer(wait_s)

    def _failed(self, error: StoreError, asked: float) -> None:
        if self._down_since is None and asked >= self._up_since:
            self._down_since = self._clock.monotonic()
            self._log.warning("store_unavailable", error=str(error), kind=type(error).__name__)

    def _answered(self, asked: float) -> None:
        if self._down_since is not None and asked > self._down_since:
            self._up_since = self._clock.monotonic()
            lasted_s = self._up_since - self._down_since
            self._down_since = None
            self._log.info("store_available", outage_s=round(lasted_s, 3))


def longer(wait_s: float) -> float:
    """Give the next wait of a back-off: double, at most a second."""
    return min(_LONGEST_WAIT_S, 2 * wait_s)
