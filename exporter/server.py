"""Serve the exporter: one socket, one event loop in a thread of its own, one collector."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog
import uvicorn
from structlog.typing import FilteringBoundLogger

from exporter.app import create_app
from exporter.collector import READ_SHARE, Collector, Observe
from sluicegate.async_connection import AsyncConnection
from sluicegate.errors import UsageError
from sluicegate.listening import listen
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.web.config import OPEN, WebConfig
from sluicegate.web.file import WebFile
from sluicegate.web.passwords import Passwords
from sluicegate.web.serving import FollowingServer, quiet_config

_START_WITHIN_S = 10.0
# How often the queues are read where nobody scrapes.
_LOOK_EVERY_S = 10.0

_log = structlog.get_logger("exporter")


class Exporter:
    """Own what one exporter process needs; `stop` is safe twice and before `start`.

    No Redis is needed to start: a queue that can't be read is part of every page until it can. Raises UsageError where
    a file that the settings name can't be used.
    """

    def __init__(self, settings: Settings, queues: Sequence[str] = ()) -> None:
        self._listen = settings.exporter
        self._web = WebFile(settings.exporter.web_config_file) if settings.exporter.web_config_file else None
        self.passwords = Passwords()
        self._stores = open_stores(settings, queues)
        self._connections = connections_of(self._stores)
        self.collector = Collector(
            sources_of(self._stores),
            settings.exporter.scrape_budget_s,
            {queue: store.break_off for queue, store in self._stores.items()},
            {queue: partial(self._stores[queue].observe_async, one) for queue, one in self._connections.items()},
        )
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Give the port it listens on, which with port 0 is known only after `start`."""
        return self._socket.getsockname()[1] if self._socket is not None else self._listen.port

    @property
    def url(self) -> str:
        """Give the address to point a browser or a scraper at."""
        host = f"[{self._listen.host}]" if ":" in self._listen.host else self._listen.host
        return f"{'https' if self._web and self._web.context else 'http'}://{host}:{self.port}"

    def start(self) -> None:
        """Listen and serve; return once requests are answered.

        Raises UsageError when the address can't be had.
        """
        self._socket = listen(self._listen.host, self._listen.port, "the exporter")
        app = create_app(self.collector, self.passwords, self._web_config)
        # Long enough for a scrape under way to be answered.
        config = quiet_config(app, int(self._listen.scrape_budget_s) + 1)
        listening = _log.bind(url=f"{self.url}/metrics", queues=list(self.collector.queues))
        self._server = _Server(config, self._web, self.collector, listening, self.leave)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="exporter", daemon=True
        )
        self._thread.start()
        if not self._server.serving.wait(_START_WITHIN_S):
            self.stop()
            raise UsageError(f"The exporter did not begin to answer on {self.url} within {_START_WITHIN_S:g} s.")

    def _web_config(self) -> WebConfig:
        return self._web.config if self._web is not None else OPEN

    async def leave(self) -> None:
        """Close what belongs to the event loop in which the collector was used, before that loop ends."""
        await self.collector.leave()
        for connection in self._connections.values():
            await connection.close()

    def stop(self) -> None:
        """Answer what is under way, then stop listening and let every thread and connection go."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._socket is not None:
            self._socket.close()
        self._server, self._thread, self._socket = None, None, None
        self.passwords.close()
        self.collector.close()
        for store in self._stores.values():
            store.close()


class _Server(FollowingServer):
    """Watch the queues as long as requests are answered, and leave nothing open in the event loop that ends then."""

    def __init__(
        self,
        config: uvicorn.Config,
        web: WebFile | None,
        collector: Collector,
        listening: FilteringBoundLogger,
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config, web)
        self._collector = collector
        self._listening = listening
        self._leave = leave
        self._watching: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening.info("exporter_listening")
        self._watching = asyncio.create_task(self._collector.watch(_LOOK_EVERY_S))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # Now, for the last scrapes may share its read.
        if self._watching is not None:
            self._watching.cancel()
        await self._leave()


def open_stores(settings: Settings, queues: Sequence[str]) -> dict[str, Store]:
    """Give a read-only store for each queue, the settings' own without any; nothing is connected yet."""
    each_s = settings.exporter.scrape_budget_s * READ_SHARE
    return {
        queue: Store.of(settings, queue, read_only=True, timeout_s=each_s)
        for queue in dict.fromkeys(queues or (settings.queue,))
    }


def sources_of(stores: Mapping[str, Store]) -> dict[str, Observe]:
    """Give what the collector calls for each queue."""
    return {queue: store.observe for queue, store in stores.items()}


def connections_of(stores: Mapping[str, Store]) -> dict[str, AsyncConnection]:
    """Give a connection of the event loop's own for each queue that can be read over one; nothing is connected yet."""
    made = {queue: store.async_connection() for queue, store in stores.items()}
    return {queue: connection for queue, connection in made.items() if connection is not None}
