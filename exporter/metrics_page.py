"""Answer GET /metrics and nothing else, without a framework in between: scrapes come every second, for ever."""

from __future__ import annotations

from collections.abc import Mapping

from isal import isal_zlib
from starlette.types import Receive, Scope, Send

from exporter.collector import Collector, wait_s
from exporter.rendering import Renderer
from exporter.web_guard import WAITED

_TIMEOUT_HEADER = b"x-prometheus-scrape-timeout-seconds"
# ISA-L's level 1 takes less than half of the time of zlib's, for a page that is as small.
_GZIP_LEVEL, _GZIP_FORMAT = 1, 31


class MetricsPage:
    """Collect, render and send one page a request: always 200, for redis_up 0 differs from an exporter that is gone."""

    def __init__(self, collector: Collector, renderer: Renderer) -> None:
        self._collector = collector
        self._renderer = renderer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked: Mapping[bytes, bytes] = dict(scope["headers"])
        limit_s = wait_s(
            asked.get(_TIMEOUT_HEADER, b"").decode("latin-1") or None,
            self._collector.budget_s,
            scope.get(WAITED, 0.0),
        )
        scrape = await self._collector.scrape(limit_s)
        body, content_type = self._renderer.render(scrape, asked.get(b"accept", b"").decode("latin-1"))
        headers = [
            (b"content-type", content_type.encode("latin-1")),
            (b"cache-control", b"no-store"),
            (b"vary", b"Accept, Accept-Encoding"),
        ]
        if takes_gzip(asked.get(b"accept-encoding", b"").decode("latin-1")):
            body = isal_zlib.compress(body, _GZIP_LEVEL, wbits=_GZIP_FORMAT)
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def takes_gzip(accept_encoding: str) -> bool:
    """Say whether an Accept-Encoding header takes gzip (RFC 9110, 12.5.3: a weight of 0 is a no)."""
    for offer in accept_encoding.lower().split(","):
        name, _, weight = offer.partition(";")
        if name.strip() == "gzip":
            try:
                return float(weight.strip().removeprefix("q=") or 1) > 0
            except ValueError:
                return False
    return False
