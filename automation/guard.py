"""Stand before every page: nothing is read, let alone parsed, of a request whose caller is not known or may not ask.

A browser sends the password that it knows along with whatever another site has it post, so where a post comes from is
asked of all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from automation.access import Access, Answer
from automation.callers import READS, Caller, foreign, is_rebindable, needed
from automation.headers import HEADERS
from automation.signature import SIGNATURE_HEADER
from sluicegate.web.roles import Role

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
        refusal = self._foreign(scope) or await self._refusal(scope)
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

    def _foreign(self, scope: Scope) -> Response | None:
        """Refuse what another site had a browser send."""
        if scope["method"] in READS:
            return None
        headers = Headers(scope=scope)
        why = foreign(headers)
        if why:
            return _said(403, f"This was sent by another site: {why}. Nothing was changed.", {})
        if not self._access.guarded and "origin" in headers and is_rebindable(headers.get("host", "")):
            said = "Without passwords a browser may act here under an IP address or localhost only, not under a name."
            return _said(403, said, {})
        return None

    async def _refusal(self, scope: Scope) -> Response | None:
        access = self._access
        headers = Headers(scope=scope)
        if scope["path"] in _OPEN_PATHS and not access.config.users:
            return None
        signed = bool(access.secrets) and scope["path"] in self._signed_paths and SIGNATURE_HEADER in headers
        if access.guarded and not signed:
            address = scope["client"][0] if scope.get("client") else ""
            answer = await access.judge(headers.get("authorization"), address)
            if answer is Answer.BUSY:
                return _said(503, "Too many passwords are being checked.", {"Retry-After": "2"})
            if answer is not Answer.RIGHT:
                return self._unknown(answer)
        caller = Caller(role=Role.NOTIFY) if signed else access.caller(headers.get("authorization"))
        scope["state"] = {**scope.get("state", {}), "caller": caller}
        role = needed(scope["method"], scope["path"])
        if scope["path"] in _OPEN_PATHS or caller.role.allows(role):
            return None
        return _said(403, f"This needs the role {role}, and yours is {caller.role}. Nothing was changed.", {})

    def _unknown(self, answer: Answer) -> Response:
        asks = f"Bearer {_REALM}" + (f', Basic {_REALM}, charset="UTF-8"' if self._access.asks_names else "")
        said = "This needs `Authorization: Bearer TOKEN`." if answer is Answer.MISSING else "The credentials are wrong."
        return _said(401, said, {"WWW-Authenticate": asks})


def _said(code: int, message: str, headers: dict[str, str]) -> JSONResponse:
    # What is left of the body is not read: the connection can't be used again.
    return JSONResponse({"error": message}, status_code=code, headers={**HEADERS, **headers, "Connection": "close"})
