"""A real store that tells what its calls carry, and holds them back where asked to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sluicegate.admission import Decision
from sluicegate.async_connection import AsyncConnection
from sluicegate.calls import Words
from sluicegate.store import Store
from sluicegate.turn import Turn

HELD_AT_MOST_S = 30.0


class WatchedStore(Store):
    """Remember the keys of each call; while `go` is cleared, calls begin and do not go on."""

    batches: list[list[str]]
    at_once: int
    most_at_once: int
    go: threading.Event

    def watch(self) -> None:
        self.batches, self.at_once, self.most_at_once = [], 0, 0
        self.go = threading.Event()
        self.go.set()

    async def admit_async(
        self, connection: AsyncConnection | None, jobs: Sequence[Words], turn: Turn | None = None
    ) -> tuple[Decision, ...]:
        self.batches.append([str(job[0]) for job in jobs])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if not self.go.is_set():
                assert await asyncio.to_thread(self.go.wait, HELD_AT_MOST_S)
            return await super().admit_async(connection, jobs, turn)
        finally:
            self.at_once -= 1


@contextmanager
def watched(url: str) -> Iterator[WatchedStore]:
    store = WatchedStore.connect(url)
    store.watch()
    try:
        yield store
    finally:
        store.go.set()
        store.close()
