"""Run something again and again until told to stop; a failure is logged and the loop goes on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from sluicegate.errors import StoreError

log = structlog.get_logger(__name__)


class Service(Protocol):
    """Start and stop; stop is safe twice and before start."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Loop:
    """Call `turn` every `every_s` seconds in a task of its own."""

    def __init__(self, name: str, every_s: float, turn: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._every_s = every_s
        self._turn = turn
        self._task: asyncio.Task[None] | None = None
        self._failing = ""

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _run(self) -> None:
        clock = asyncio.get_running_loop()
        due = clock.time()
        while True:
            await self._one_turn()
            due = max(due + self._every_s, clock.time())
            await asyncio.sleep(due - clock.time())

    async def _one_turn(self) -> None:
        try:
            await self._turn()
        except StoreError as error:
            self._report(type(error).__name__ + ": " + str(error))
        except Exception:  # a loop that watches a gate must outlive any one turn; the trace is logged
            log.exception("turn_failed", loop=self._name)
        else:
            self._report("")

    def _report(self, failing: str) -> None:
        """Log an outage once when it begins and once when it ends, not every turn."""
        if failing and not self._failing:
            log.warning("store_unavailable", loop=self._name, error=failing)
        elif self._failing and not failing:
            log.info("store_available", loop=self._name)
        self._failing = failing
