"""Stand before every page: nothing is read, let alone parsed, of a request whose caller is not known."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from automation.access import Access, Answer
from automation.signature import SIGNATURE_HEADER

# What a probe and a scraper may see without a token; passwords are asked of everybody, as the exporters do.
_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
_REALM = 'realm="Sluicegate automation"'


class Guard:
    """Wrap an application: it is asked only by callers whose credentials were right.

    A request under `signed_paths` that carries a signature is let through for the page to check it: only a whole body
    can be. `refused` is told the path and the code of what did not pass.
    """

    def __init__(
        self, app: ASGIApp, access: Access, signed_paths: frozenset[str], refused: Callable[[str, int], None]
    ) -> None:
        self._app = app
        self._access = access
        self._signed_paths = signed_paths
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is served
        refusal = await self._refusal(scope)
        if refusal is not None:
            self._refused(scope["path"], refusal.status_code)
        own = self._access.config.headers

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in own:
                    headers[name] = value
            await send(message)

        await (refusal or self._app)(scope, receive, with_headers if own else send)

    async def _refusal(self, scope: Scope) -> Response | None:
        access = self._access
        if not access.guarded or (scope["path"] in _OPEN_PATHS and not access.config.users):
            return None
        headers = Headers(scope=scope)
        if access.secrets and scope["path"] in self._signed_paths and SIGNATURE_HEADER in headers:
            return None
        address = scope["client"][0] if scope.get("client") else ""
        answer = await access.judge(headers.get("authorization"), address)
        if answer is Answer.RIGHT:
            return None
        if answer is Answer.BUSY:
            return _said(503, "Too many passwords are being checked.", {"Retry-After": "2"})
        asks = f"Bearer {_REALM}" + (f', Basic {_REALM}, charset="UTF-8"' if access.config.users else "")
        said = "This needs `Authorization: Bearer TOKEN`." if answer is Answer.MISSING else "The credentials are wrong."
        return _said(401, said, {"WWW-Authenticate": asks})


def _said(code: int, message: str, headers: dict[str, str]) -> JSONResponse:
    # What is left of the body is not read: the connection can't be used again.
    return JSONResponse({"error": message}, status_code=code, headers={**headers, "Connection": "close"})
