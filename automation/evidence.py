"""Ask a Prometheus for what a step's gate needs, no more often than every two seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from automation.own_threads import OwnThreads
from runbooks.evidence import NOT_SET, Evidence, Sample
from runbooks.prometheus import ANSWER_WITHIN_S, ask

_FRESH_S = 2.0


class Prometheus:
    """Answer queries by their text; whoever does not answer in time has said nothing."""

    def __init__(self, url: str | None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, Sample]] = {}
        self._threads = OwnThreads()

    async def samples(self, queries: Iterable[str]) -> Evidence:
        """Give each query's sample; several are asked at once, each in a thread of its own."""
        wanted = list(queries)
        found = await asyncio.gather(*(self._sample(query) for query in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _sample(self, query: str) -> Sample:
        if self._url is None:
            return NOT_SET
        asked_at, known = self._known.get(query, (-float("inf"), NOT_SET))
        if self._monotonic() - asked_at < _FRESH_S:
            return known
        sample = await self._within(self._url, query)
        self._known = {text: held for text, held in self._known.items() if self._monotonic() - held[0] < _FRESH_S}
        self._known[query] = (self._monotonic(), sample)
        return sample

    async def _within(self, url: str, query: str) -> Sample:
        """Ask; one that hangs on, drip by drip, is left to end by itself, and not asked again before."""
        try:
            return await self._threads.call(query, ANSWER_WITHIN_S, ask, url, query)
        except TimeoutError:
            return Sample(None, f"no answer within {ANSWER_WITHIN_S:g} s")
