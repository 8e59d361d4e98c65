"""Share one reading of the queue among all who watch: twenty open pages ask Redis no more than one does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from automation.looping import Loop
from automation.page.reading import Reading, read
from automation.page.samples import Sample, Samples
from sluicegate.errors import StoreError
from sluicegate.service_settings import PageSettings
from sluicegate.store import Store


@dataclass(frozen=True, slots=True)
class State:
    """Hold what is known now: the last reading, and why there is none after it ('' while reading goes well).

    `version` grows with each look, `since_ms` is this host's time of the first look that failed.
    """

    version: int = 0
    reading: Reading | None = None
    failed: str = ""
    since_ms: int = 0


def _now_ms() -> int:
    return int(time.time() * 1000)


class Feed:
    """Read again and again while somebody watches; `stop` is safe twice and before `start`, and ends every watch.

    While nobody does, only the plots go on, and whoever asks by `now` has everything read then.
    """

    def __init__(self, store: Store, settings: PageSettings, now_ms: Callable[[], int] = _now_ms) -> None:
        self.samples = Samples(settings.plot_s)
        self.state = State()
        self.watchers = 0
        self._store = store
        self._most = settings.watchers
        self._fresh_s = settings.read_every_s
        self._now_ms = now_ms
        self._loop = Loop("page", settings.read_every_s, self._turn)
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._news = asyncio.Event()
        self._ended = False

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        self.end()
        await self._loop.stop()

    def end(self) -> None:
        """End every watch: a server that stops does not wait for people to close their pages."""
        self._ended = True
        self._wake()

    @property
    def full(self) -> bool:
        """Say whether as many watch as may."""
        return self.watchers >= self._most

    async def now(self) -> State:
        """Give a state that is no older than one round; callers of the same moment share it."""
        async with self._reading:
            if time.monotonic() - self._read_at > self._fresh_s:
                with contextlib.suppress(StoreError):  # the state says it
                    await self._read()
        return self.state

    async def anew(self) -> State:
        """Give a state that was read after this call began: for what is decided upon, and what was just changed."""
        async with self._reading:
            with contextlib.suppress(StoreError):  # the state says it
                await self._read()
        return self.state

    async def watch(self) -> AsyncIterator[State]:
        """Give each state as it comes, the newest where some were missed, until the feed ends."""
        self.watchers += 1
        try:
            # Whoever leaves during this first look gives the place back, too.
            await self.now()
            seen = -1
            while not self._ended:
                news = self._news
                if self.state.version != seen:
                    seen = self.state.version
                    yield self.state
                else:
                    await news.wait()
        finally:
            self.watchers -= 1

    async def _turn(self) -> None:
        async with self._reading:
            await (self._read() if self.watchers else self._sample())

    async def _sample(self) -> None:
        """Keep the plots going while nobody watches; the state is read once somebody asks for it."""
        try:
            self.samples.add(Sample.of(await asyncio.to_thread(self._store.observe)))
        except StoreError:
            self.samples.miss(self._now_ms())
            raise

    async def _read(self) -> None:
        before = self.state
        try:
            reading = await asyncio.to_thread(read, self._store, before.reading)
        except StoreError as error:
            now_ms = self._now_ms()
            self.samples.miss(now_ms)
            since_ms = before.since_ms if before.failed else now_ms
            self._tell(State(before.version + 1, before.reading, str(error) or type(error).__name__, since_ms))
            raise
        self.samples.add(Sample.of(reading.telemetry))
        self._tell(State(before.version + 1, reading))

    def _tell(self, state: State) -> None:
        """Let all who watch have a state; a look that was broken off tells none, and the next is made at once."""
        self.state = state
        self._read_at = time.monotonic()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
