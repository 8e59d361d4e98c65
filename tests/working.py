"""A worker that runs in a thread of the test, with what it said."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, MutableMapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import structlog
from structlog.typing import FilteringBoundLogger

from sluicegate import event_loop
from sluicegate.provider_call import Handler, ProviderCall
from sluicegate.settings import WorkerSettings
from sluicegate.store import Store
from sluicegate.worker import Worker
from tests.queues import wait_until

STOP_WITHIN_S = 20.0


class RunningWorker:
    """Run one worker until the `with` block ends; a failure of its loop fails the test."""

    def __init__(
        self,
        redis_url: str,
        handler: Handler | str,
        *,
        worker_id: str = "w1",
        max_inflight: int = 2,
        store: Store | None = None,
    ) -> None:
        """Take a handler, or a provider's address, and perhaps a store of its own kind, which is closed at the end."""
        self.events: list[Mapping[str, Any]] = []
        self.worker_id = worker_id
        self._store = store or Store.connect(redis_url)
        self._handler = handler
        self._settings = WorkerSettings(max_inflight=max_inflight, sweep_ms=50)
        self._started = threading.Event()
        self._asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=worker_id)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._store.close()

    def ask_to_stop(self) -> None:
        """Do what SIGTERM does."""
        self._asked = True
        if self._loop is not None and self._worker is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._worker.stop)

    def stop(self) -> None:
        """Ask it to stop, unless it was asked, and wait until it has."""
        if not self._asked:
            self.ask_to_stop()
        self._thread.join(STOP_WITHIN_S)
        assert not self._thread.is_alive(), "the worker did not stop"
        if self._failure is not None:
            raise self._failure

    def said(self, event: str, **fields: Any) -> list[Mapping[str, Any]]:
        """Give the events of one name that have these fields, oldest first."""
        return [seen for seen in tuple(self.events) if seen["event"] == event and fields.items() <= seen.items()]

    def wait_for(self, event: str, times: int = 1, **fields: Any) -> Mapping[str, Any]:
        """Wait until it has said something so often, and give the last."""
        wait_until(lambda: len(self.said(event, **fields)) >= times, f"the event {event} {fields}")
        return self.said(event, **fields)[times - 1]

    def _run(self) -> None:
        try:
            event_loop.run(self._work())
        except BaseException as error:  # noqa: BLE001 (raised again where the test can see it)
            self._failure = error
            self._started.set()

    async def _work(self) -> None:
        async with AsyncExitStack() as stack:
            handler, point = self._handler, None
            if isinstance(handler, str):
                call = await stack.enter_async_context(ProviderCall(handler))
                handler, point = call, call.point_at
            self._loop = asyncio.get_running_loop()
            log: FilteringBoundLogger = structlog.wrap_logger(
                structlog.PrintLogger(),
                processors=[self._collect],
                wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            )
            self._worker = Worker(self._store, handler, self._settings, worker_id=self.worker_id, log=log, point=point)
            self._started.set()
            await self._worker.run()

    def _collect(self, logger: object, name: str, event: MutableMapping[str, Any]) -> str:
        self.events.append(dict(event))
        raise structlog.DropEvent
