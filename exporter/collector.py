"""Read all queues for one scrape, within its time, and never say more than was read.

Each queue has at most one read at a time; scrapes that overlap share it. A queue is read in the event loop where there
is a way to, else in a thread of its own, which costs more. A read that takes too long costs its queue the samples of
this scrape and nobody else anything. No value outlives its scrape.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog

from exporter.catalogue import QUEUE_FIGURES
from exporter.lines import Lines
from exporter.reading import Failure, Reading, Scrape
from sluicegate.damage import damaged_parts
from sluicegate.errors import StoreError, StoreUnavailable
from sluicegate.telemetry import Telemetry

# Reads one queue in at most the given seconds; raises StoreError.
Observe = Callable[[float], Telemetry]
# Does so in the event loop, within a timeout of its own; gives None where only the other way can.
Direct = Callable[[], Awaitable[Telemetry | None]]

# What is kept of the scraper's own timeout for rendering the page and the way back.
_MARGIN_S = 0.25
_LEAST_WAIT_S = 0.05
# A read is connecting, then asking: both must end before the scrape does, so that the scrape can say why.
READ_SHARE = 0.45

_log = structlog.get_logger(__name__)


def wait_s(scrape_timeout: str | None, budget_s: float, waited_s: float = 0.0) -> float:
    """Give the seconds a scrape may wait: its timeout header minus a margin, at most the budget.

    What it has waited already, for its password to be checked, counts.
    """
    try:
        asked = float(scrape_timeout) if scrape_timeout is not None else math.inf
    except ValueError:
        asked = math.inf
    if math.isnan(asked) or asked <= 0:
        asked = math.inf
    return max(_LEAST_WAIT_S, min(asked - _MARGIN_S, budget_s) - waited_s)


def _nothing() -> None:
    """Break nothing off: a source without a connection ends by itself."""


def _reading_of(queue: str, telemetry: Telemetry, lines: Lines[Telemetry]) -> Reading:
    """Write the lines of one queue; what is damaged in it is a failure beside them."""
    written = lines.write(telemetry)
    damaged = damaged_parts(telemetry)
    if not damaged:
        return Reading(queue, True, telemetry, written)
    detail = f"damaged by hand, and left out: {', '.join(sorted(damaged))}"
    return Reading(queue, True, telemetry, written, Failure.DAMAGED, detail, damaged)


class Collector:
    """Collect scrapes of the given queues; use it inside one event loop.

    `break_off` ends a source's read in its thread that has taken longer than the budget; `direct` reads without one.
    """

    def __init__(
        self,
        sources: Mapping[str, Observe],
        budget_s: float,
        break_off: Mapping[str, Callable[[], None]] | None = None,
        direct: Mapping[str, Direct] | None = None,
    ) -> None:
        self._sources = dict(sources)
        self._break_off = dict(break_off or {})
        self._direct = dict(direct or {})
        self.budget_s = budget_s
        # Each is used by the one read of its queue that may be under way.
        self._lines = {queue: Lines(QUEUE_FIGURES, (queue,)) for queue in self._sources}
        self._threads = ThreadPoolExecutor(max_workers=max(1, len(self._sources)), thread_name_prefix="read")
        self._under_way: dict[str, asyncio.Future[Reading]] = {}
        # Reads in the event loop that no scrape does itself.
        self._directly: set[asyncio.Task[None]] = set()
        self._began: dict[str, float] = {}
        self._said: dict[str, Failure | None] = {}
        self._asked = -math.inf

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self._sources)

    async def scrape(self, wait_seconds: float | None = None) -> Scrape:
        """Read every queue, all at once, and answer within `wait_seconds` (default: the budget)."""
        started = self._asked = time.monotonic()
        limit = self.budget_s if wait_seconds is None else min(wait_seconds, self.budget_s)
        reads = [self._reading(queue, limit) for queue in self._sources]
        # A task for each costs more than the waiting, and one queue is what most have.
        readings = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
        for reading in readings:
            self._say(reading)
        return Scrape(tuple(readings), time.monotonic() - started)

    async def watch(self, every_s: float) -> None:
        """Read every queue now, and again where no scrape came for `every_s`, for ever: the log has what fails."""
        while True:
            if time.monotonic() - self._asked >= every_s:
                await self.scrape()
            await asyncio.sleep(every_s)

    def close(self) -> None:
        """End the reads under way and wait for their threads: then what they read through may be closed. Safe twice."""
        for break_off in self._break_off.values():
            break_off()
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def leave(self) -> None:
        """End the reads of this event loop, whose connections may be closed then; before `close`."""
        for read in self._directly:
            read.cancel()
        await asyncio.gather(*self._directly, return_exceptions=True)

    async def _reading(self, queue: str, limit_s: float) -> Reading:
        read, until = self._under_way.get(queue), time.monotonic() + limit_s
        if read is None or read.done():
            read = self._begin(queue)
            direct = self._direct.get(queue)
            if direct is None:
                self._read_in_thread(queue, read)
            elif limit_s >= self.budget_s * READ_SHARE:
                # It ends by itself before this scrape does, so nobody need wait for it beside.
                await self._read_directly(queue, direct, read)
            else:
                task = asyncio.create_task(self._read_directly(queue, direct, read))
                self._directly.add(task)
                task.add_done_callback(self._directly.discard)
        if read.done():
            return read.result()
        # The event loop may have been asked first, and has handed on to the thread.
        wait_seconds = max(0.0, until - time.monotonic())
        left_s = max(0.0, self._began[queue] + self.budget_s - time.monotonic())
        # Waiting, not cancelling: the read may be another scrape's as well.
        done, _ = await asyncio.wait({read}, timeout=min(wait_seconds, left_s))
        if not done and left_s < wait_seconds:
            # An answer that comes byte by byte is never late for whoever waits for the next byte.
            self._break_off.get(queue, _nothing)()
            done, _ = await asyncio.wait({read}, timeout=wait_seconds - left_s)
        if not done:
            return Reading(queue, False, failure=Failure.LATE, detail=f"no answer within {limit_s:.2f} s")
        return read.result()

    def _begin(self, queue: str) -> asyncio.Future[Reading]:
        read: asyncio.Future[Reading] = asyncio.get_running_loop().create_future()
        self._under_way[queue], self._began[queue] = read, time.monotonic()
        return read

    def _read_in_thread(self, queue: str, read: asyncio.Future[Reading]) -> None:
        def ended(done: asyncio.Future[Reading]) -> None:
            if done.cancelled():
                read.cancel()
            else:
                read.set_result(done.result())

        asyncio.get_running_loop().run_in_executor(self._threads, self._read, queue).add_done_callback(ended)

    async def _read_directly(self, queue: str, direct: Direct, read: asyncio.Future[Reading]) -> None:
        """Read in the event loop, or hand on to the thread; scrapes that wait for the same read get the same."""
        try:
            telemetry = await direct()
        except asyncio.CancelledError:
            read.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (as in a thread: every failure becomes a value)
            read.set_result(self._failed(queue, error))
            return
        if telemetry is None:
            self._read_in_thread(queue, read)
        else:
            read.set_result(self._made(queue, telemetry))

    def _read(self, queue: str) -> Reading:
        """Read one queue and write its lines; every failure becomes a value, so one queue never blanks another."""
        try:
            telemetry = self._sources[queue](self.budget_s * READ_SHARE)
        except Exception as error:  # noqa: BLE001 (a bug in one queue's reading must not cost the whole page)
            return self._failed(queue, error)
        return self._made(queue, telemetry)

    def _made(self, queue: str, telemetry: Telemetry) -> Reading:
        try:
            return _reading_of(queue, telemetry, self._lines[queue])
        except Exception as error:  # noqa: BLE001 (nor must one in its figures)
            return self._failed(queue, error, redis_up=True)

    def _failed(self, queue: str, error: Exception, *, redis_up: bool = False) -> Reading:
        if isinstance(error, StoreError):
            failure = Failure.UNAVAILABLE if isinstance(error, StoreUnavailable) else Failure.REJECTED
            return Reading(queue, False, failure=failure, detail=str(error))
        _log.error("collector_failed", queue=queue, exc_info=error)
        return Reading(queue, redis_up, failure=Failure.INTERNAL, detail=repr(error))

    def _say(self, reading: Reading) -> None:
        """Log a queue's failure when it begins, changes or ends; a scrape every second must not fill a disk."""
        before = self._said.get(reading.queue)
        self._said[reading.queue] = reading.failure
        if reading.failure is not None and reading.failure is not before:
            _log.warning("queue_unreadable", queue=reading.queue, reason=reading.failure.value, detail=reading.detail)
        elif reading.failure is None and before is not None:
            _log.info("queue_readable_again", queue=reading.queue)
