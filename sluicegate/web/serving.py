"""Serve HTTP and follow the files that say who may call: certificates, passwords and tokens, without a restart."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import structlog
import uvicorn
from starlette.types import ASGIApp

from sluicegate.web.bounded_http import BoundedHttp
from sluicegate.web.file import WebFile

# How often the files are looked at.
_LOOK_EVERY_S = 1.0

_log = structlog.get_logger(__name__)


def quiet_config(app: ASGIApp, last_answers_s: int) -> uvicorn.Config:
    """Set a server up that logs nothing of its own and names itself nowhere; `last_answers_s` is left at its end."""
    return uvicorn.Config(
        app,
        http=BoundedHttp,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=last_answers_s,
    )


class FollowingServer(uvicorn.Server):
    """Say when requests are answered, and meet new connections with the certificates of now.

    `others` are renewed in the same rhythm: each looks at a file of its own.
    """

    def __init__(
        self, config: uvicorn.Config, web: WebFile | None, others: Sequence[Callable[[], object]] = ()
    ) -> None:
        super().__init__(config)
        self.serving = threading.Event()
        self._web = web
        self._others = others
        self._looking: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []
        self._met_with = web.context if web is not None else None
        config.load()
        config.ssl = self._met_with

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Each server of asyncio closes its socket when it ends, so each gets a duplicate of the one that listens.
        self._sockets = sockets or []
        await super().startup([one.dup() for one in self._sockets])
        if self._web is not None or self._others:
            self._looking = asyncio.create_task(self._look())
        self.serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await super().shutdown(sockets)

    async def _look(self) -> None:
        """Follow the files; connections that are open stay, as they are."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                for renew in self._others:
                    await asyncio.to_thread(renew)
                if self._web is not None:
                    await asyncio.to_thread(self._web.renew)
                    if self._web.context is not self._met_with:
                        await self._listen_anew(self._web.context)
            except Exception:  # noqa: BLE001 (whatever it was, the next look may find it mended)
                _log.exception("files_not_followed")

    async def _listen_anew(self, context: ssl.SSLContext | None) -> None:
        """Accept on the same socket under another TLS context; nothing that is being connected is lost."""
        self.config.ssl = context
        earlier = self.servers
        await super().startup([one.dup() for one in self._sockets])
        self._met_with = context
        for server in earlier:
            server.close()
