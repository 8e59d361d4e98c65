"""Serve the exporter: one socket, one event loop in a thread of its own, one collector."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence

import structlog
import uvicorn

from exporter.app import create_app
from exporter.collector import READ_SHARE, Collector, Observe
from exporter.passwords import Passwords
from exporter.web_config import OPEN, WebConfig
from exporter.web_file import WebFile
from sluicegate.errors import UsageError
from sluicegate.listening import listen
from sluicegate.settings import Settings
from sluicegate.store import Store

_START_WITHIN_S = 10.0
# How often the web-config file and what it names are looked at.
_LOOK_EVERY_S = 1.0

_log = structlog.get_logger(__name__)


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
        self.collector = Collector(
            sources_of(self._stores),
            settings.exporter.scrape_budget_s,
            {queue: store.break_off for queue, store in self._stores.items()},
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
        config = uvicorn.Config(
            create_app(self.collector, self.passwords, self._web_config),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            # Long enough for a scrape under way to be answered.
            timeout_graceful_shutdown=int(self._listen.scrape_budget_s) + 1,
        )
        self._server = _Server(config, self._web)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="exporter", daemon=True
        )
        self._thread.start()
        if not self._server.serving.wait(_START_WITHIN_S):
            self.stop()
            raise UsageError(f"The exporter did not begin to answer on {self.url} within {_START_WITHIN_S:g} s.")

    def _web_config(self) -> WebConfig:
        return self._web.config if self._web is not None else OPEN

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


class _Server(uvicorn.Server):
    """Tell another thread when requests are answered, and meet new connections with the certificates of now."""

    def __init__(self, config: uvicorn.Config, web: WebFile | None) -> None:
        super().__init__(config)
        self.serving = threading.Event()
        self._web = web
        self._looking: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []
        self._met_with = web.context if web is not None else None
        config.load()
        config.ssl = self._met_with

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Each server of asyncio closes its socket when it ends, so each gets a duplicate of the one that listens.
        self._sockets = sockets or []
        await super().startup([one.dup() for one in self._sockets])
        if self._web is not None:
            self._looking = asyncio.create_task(self._look(self._web))
        self.serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await super().shutdown(sockets)

    async def _look(self, web: WebFile) -> None:
        """Follow the web-config file; connections that are open stay, as they are."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                await asyncio.to_thread(web.renew)
                if web.context is not self._met_with:
                    await self._listen_anew(web.context)
            except Exception:  # noqa: BLE001 (whatever it was, the next look may find it mended)
                _log.exception("web_config_not_followed")

    async def _listen_anew(self, context: ssl.SSLContext | None) -> None:
        """Accept on the same socket under another TLS context; nothing that is being connected is lost."""
        self.config.ssl = context
        earlier = self.servers
        await super().startup([one.dup() for one in self._sockets])
        self._met_with = context
        for server in earlier:
            server.close()


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
