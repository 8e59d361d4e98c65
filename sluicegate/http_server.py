"""Serve the queue's HTTP API: one socket, one event loop, one producer, few threads."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog
import uvicorn
from structlog.typing import FilteringBoundLogger

from sluicegate.async_producer import AsyncProducer
from sluicegate.http_api import JobsApi, Waits, app_of
from sluicegate.listening import is_loopback, listen
from sluicegate.settings import Settings
from sluicegate.store import Store
from sluicegate.web.serving import quiet_config
from sluicegate.web.tokens import read_tokens

log = structlog.get_logger(__name__)

_LAST_ANSWERS_S = 10
# How often the queue's server is looked at where nobody submits.
_LOOK_EVERY_S = 10.0
# Looking at jobs and at the server's health; submissions have the producer's own threads.
_READING_THREADS = 4


def read_token(path: Path) -> str:
    """Read a bearer token; raises SettingsError where the file does not hold one. The token is never shown."""
    (token,) = read_tokens(path, most=1)
    return token


class QueueApi:
    """Own what one process of the API needs.

    Raises UsageError where the token file holds no token or the settings name no Redis; nothing is connected yet.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        file = settings.api.token_file
        self._token = read_token(file) if file is not None else None
        self._store = Store.of(settings)

    async def serve(self) -> None:
        """Serve until SIGINT or SIGTERM, which answer what is under way first; starts while Redis is away.

        Raises UsageError where the address can't be had.
        """
        api = self._settings.api
        readers = ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="store")
        asyncio.get_running_loop().set_default_executor(readers)
        with contextlib.closing(self._store), listen(api.host, api.port, "the queue's API") as bound:
            if self._token is None and not is_loopback(api.host):
                log.warning("api_unguarded", host=api.host, unblock="sluicegate queue serve --token-file FILE")
            listening = log.bind(url=_url(api.host, bound.getsockname()[1]), queue=self._settings.queue)
            async with AsyncProducer(
                self._store, max_batch=api.max_batch, in_flight=api.in_flight, max_waiting=api.max_waiting
            ) as producer:
                jobs = JobsApi(self._store, producer, Waits(api.body_within_s, api.answer_within_s))
                config = quiet_config(app_of(jobs, self._token), _LAST_ANSWERS_S)
                await _Server(config, jobs, listening).serve(sockets=[bound])
        log.info("api_stopped")


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Say when requests and signals are answered, and end with exit code 0 on a signal: so a service is stopped."""

    def __init__(self, config: uvicorn.Config, jobs: JobsApi, listening: FilteringBoundLogger) -> None:
        super().__init__(config)
        self._jobs = jobs
        self._listening = listening
        self._watching: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening.info("api_listening")
        self._watching = asyncio.create_task(self._jobs.watch(_LOOK_EVERY_S))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield
