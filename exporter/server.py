"""Serve the exporter: one socket, one event loop in a thread of its own, one collector."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence

import uvicorn

from exporter.app import create_app
from exporter.collector import READ_SHARE, Collector, Observe
from sluicegate.errors import UsageError
from sluicegate.listening import listen
from sluicegate.settings import Settings
from sluicegate.store import Store

_START_WITHIN_S = 10.0


class Exporter:
    """Own what one exporter process needs; `stop` is safe twice and before `start`.

    No Redis is needed to start: a queue that can't be read is part of every page until it can.
    """

    def __init__(self, settings: Settings, queues: Sequence[str] = ()) -> None:
        self._listen = settings.exporter
        self._stores = open_stores(settings, queues)
        self.collector = Collector(sources_of(self._stores), settings.exporter.scrape_budget_s)
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
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen and serve; return once requests are answered.

        Raises UsageError when the address can't be had.
        """
        self._socket = listen(self._listen.host, self._listen.port, "the exporter")
        config = uvicorn.Config(
            create_app(self.collector),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            # Long enough for a scrape under way to be answered.
            timeout_graceful_shutdown=int(self._listen.scrape_budget_s) + 1,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="exporter", daemon=True
        )
        self._thread.start()
        if not self._server.serving.wait(_START_WITHIN_S):
            self.stop()
            raise UsageError(f"The exporter did not begin to answer on {self.url} within {_START_WITHIN_S:g} s.")

    def stop(self) -> None:
        """Answer what is under way, then stop listening and let every thread and connection go."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._socket is not None:
            self._socket.close()
        self._server, self._thread, self._socket = None, None, None
        self.collector.close()
        for store in self._stores.values():
            store.close()


class _Server(uvicorn.Server):
    """Tell another thread when requests are answered."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serving = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serving.set()


def open_stores(settings: Settings, queues: Sequence[str]) -> dict[str, Store]:
    """Give a read-only store for each queue, the settings' own without any; nothing is connected yet."""
    each_s = settings.exporter.scrape_budget_s * READ_SHARE
    return {
        queue: Store.connect(settings.redis_url, queue, read_only=True, connect_timeout_s=each_s, timeout_s=each_s)
        for queue in dict.fromkeys(queues or (settings.queue,))
    }


def sources_of(stores: Mapping[str, Store]) -> dict[str, Observe]:
    """Give what the collector calls for each queue."""
    return {queue: store.observe for queue, store in stores.items()}
