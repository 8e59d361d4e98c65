"""A provider that does to each call what the test says: answer, hang or break the connection."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """Answer with a status after a while."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0


@dataclass(frozen=True)
class Drop:
    """Read the request and break the connection."""


@dataclass(frozen=True)
class Seen:
    """Hold one call as it arrived."""

    path: str
    key: str
    body: Mapping[str, Any]


Script = Callable[[Seen], Reply | Drop]


class ScriptedProvider:
    """Serve one script on a free port; `calls` are those seen so far, `release` ends every wait."""

    def __init__(self, script: Script) -> None:
        self.calls: list[Seen] = []
        self.release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, script))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(provider: ScriptedProvider, script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen = Seen(self.path, self.headers["Idempotency-Key"], body)
            provider.calls.append(seen)
            reply = script(seen)
            if isinstance(reply, Drop):
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            provider.release.wait(reply.after_s)
            try:
                self.send_response(reply.status)
                for name, value in {**reply.headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()
            except OSError:
                self.close_connection = True  # the caller gave up

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as above)
            """Say nothing."""

    return Handler


def free_address() -> str:
    """Give an HTTP address on loopback where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
