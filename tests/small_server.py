"""Serve a handler of a test's own over plain HTTP, from a thread, on a free port of the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answer by `respond`, whatever the method, without a word on the test's output."""

    def respond(self) -> None:
        """Answer what was asked; `command`, `path` and `body()` say what that is."""
        raise NotImplementedError

    def _responds(self) -> None:
        self.respond()

    do_GET = do_POST = _responds  # noqa: N815 (the server's names)

    def body(self) -> bytes:
        """Return what was sent along."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes = b"", content_type: str = "application/json") -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape a second would fill the test's output."""


@contextmanager
def served(handler: type[Handler]) -> Iterator[str]:
    """Serve until the block ends; gives `127.0.0.1:PORT`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # Its end is looked for so often: the usual half second would be added to every test.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="small-server")
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
