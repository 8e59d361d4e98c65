"""A system that a run's hook calls: a real HTTP server that counts calls and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Outside:
    """Answer POSTs with the next of `statuses` (204 past their end), and GETs by whether the path is fixed.

    While `answers` is clear no POST is answered; a POST answered 2xx fixes the path.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.statuses: list[int] = []
        self.answers = threading.Event()
        self.answers.set()
        self.fixed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def keys(self) -> list[str]:
        """Give the idempotency keys of the POSTs, in their order."""
        return [key for _, key in self.calls]

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outside = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outside.calls.append((self.path, self.headers["Idempotency-Key"]))
                status = outside.statuses.pop(0) if outside.statuses else 204
                outside.answers.wait(30)
                if status < 300:
                    outside.fixed.set()
                self._say(status)

            def do_GET(self) -> None:
                self._say(204 if outside.fixed.is_set() else 503)

            def _say(self, status: int) -> None:
                try:
                    self.send_response(status)
                    if 300 <= status < 400:
                        self.send_header("Location", f"{outside.url}/elsewhere")
                    self.end_headers()
                except OSError:
                    pass  # the caller was killed

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Return a system outside that lives as long as the test."""
    system = Outside()
    yield system
    system.close()
