"""Stand before every page: no request passes without the name and password that the web-config file asks for."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sluicegate.web.config import WebConfig
from sluicegate.web.credentials import basic
from sluicegate.web.passwords import Passwords, Verdict

# Where a request's scope carries the seconds that its password took: they count towards the scrape's own time.
WAITED = "sluicegate.waited_s"
_ASKS = {"WWW-Authenticate": 'Basic realm="Sluicegate exporter", charset="UTF-8"'}


class WebGuard:
    """Wrap an application: it is asked only after the password was right, and its answers carry the set headers."""

    def __init__(self, app: ASGIApp, config: Callable[[], WebConfig], passwords: Passwords) -> None:
        self._app = app
        self._config = config
        self._passwords = passwords

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is served
        config = self._config()
        if not config.users and not config.headers:
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in config.headers:
                    headers[name] = value
            await send(message)

        refused = await self._refusal(config, scope) if config.users else None
        await (refused or self._app)(scope, receive, with_headers)

    async def _refusal(self, config: WebConfig, scope: Scope) -> Response | None:
        given = basic(Headers(scope=scope).get("authorization"))
        if given is None:
            return PlainTextResponse("A name and a password are asked for.\n", 401, _ASKS)
        began = time.monotonic()
        address = scope["client"][0] if scope.get("client") else ""
        verdict = await self._passwords.check(config.users, *given, address)
        scope[WAITED] = time.monotonic() - began
        if verdict is Verdict.WRONG:
            return PlainTextResponse("Name or password is wrong.\n", 401, _ASKS)
        if verdict is Verdict.BUSY:
            return PlainTextResponse("Too many passwords are being checked.\n", 503, {"Retry-After": "2"})
        return None
