"""Serve the queue's HTTP API: one socket, one event loop, one producer, few threads."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog
import uvicorn

from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import SettingsError
from sluicegate.http_api import Waits, create_app
from sluicegate.listening import listen
from sluicegate.settings import Settings
from sluicegate.store import Store

log = structlog.get_logger(__name__)

_LAST_ANSWERS_S = 10
# Looking at jobs and at the server's health; submissions have the producer's own threads.
_READING_THREADS = 4
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# What RFC 6750 allows in a bearer token; shorter ones can be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,512}=*")


def read_token(path: Path) -> str:
    """Read a bearer token; raises SettingsError where the file does not hold one. The token is never shown."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise SettingsError(f"The token file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        token = ""
    if not _TOKEN.fullmatch(token):
        raise SettingsError(
            f"The token file {path} does not hold one bearer token of 16 to 512 characters.",
            "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


async def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, which answer what is under way first; starts while Redis is away.

    Raises UsageError where the address can't be had or the token file holds no token.
    """
    api = settings.api
    token = read_token(api.token_file) if api.token_file is not None else None
    store = Store.connect(settings.redis_url, settings.queue)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_READING_THREADS, thread_name_prefix="store"))
    with contextlib.closing(store), listen(api.host, api.port, "the queue's API") as bound:
        async with AsyncProducer(
            store, max_batch=api.max_batch, in_flight=api.in_flight, max_waiting=api.max_waiting
        ) as producer:
            app = create_app(store, producer, token, Waits(api.body_within_s, api.answer_within_s))
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=_LAST_ANSWERS_S,
            )
            port = bound.getsockname()[1]
            log.info("api_listening", url=_url(api.host, port), queue=settings.queue, guarded=token is not None)
            if token is None and api.host not in _LOOPBACK:
                log.warning("api_unguarded", host=api.host, unblock="sluicegate queue serve --token-file FILE")
            await _Server(config).serve(sockets=[bound])
    log.info("api_stopped")


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """End with exit code 0 on a signal: it is how a service is asked to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield
