"""Answer HTTP: the metrics page, two health questions and a landing page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as PrometheusCollector
from starlette.middleware.gzip import GZipMiddleware

from exporter.collector import Collector, wait_s
from exporter.families import page
from exporter.reading import Reading, Scrape
from sluicegate import __version__

_TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
_GZIP_FROM_BYTES = 1024


class Page(PrometheusCollector):
    """Hold the families of one scrape in the shape that prometheus-client's encoders ask for."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Give the families, once a scrape."""
        return self._families


def process_registry() -> CollectorRegistry:
    """Give a registry with the process_ and python_ figures of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def render(scrape: Scrape, process: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """Give the page in the format that was asked for, text or OpenMetrics, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(Page([*page(scrape), *process.collect()])), content_type


def reasons(readings: Iterable[Reading]) -> str:
    """Say, a line each, which queues can't be read and why."""
    failed = [reading for reading in readings if reading.failure is not None]
    return "".join(f"queue {reading.queue}: {reading.failure}: {reading.detail}\n" for reading in failed)


def create_app(collector: Collector) -> FastAPI:
    """Build the application around a collector; it owns nothing and needs no start."""
    app = FastAPI(title="Sluicegate exporter", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(GZipMiddleware, minimum_size=_GZIP_FROM_BYTES)
    process = process_registry()

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        # Always 200: a page that says redis_up 0 differs from an exporter that is gone.
        scrape = await collector.scrape(wait_s(request.headers.get(_TIMEOUT_HEADER), collector.budget_s))
        body, content_type = render(scrape, process, request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type, "Cache-Control": "no-store"})

    @app.get("/healthz")
    async def healthz() -> PlainTextResponse:
        """Say that this process answers; nothing about Redis, which a restart of the exporter would not mend."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz")
    async def readyz() -> PlainTextResponse:
        """Say whether every queue can be read now, by reading it."""
        scrape = await collector.scrape()
        if scrape.complete:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(reasons(scrape.readings), status_code=503)

    @app.get("/")
    async def landing() -> HTMLResponse:
        return HTMLResponse(_landing(collector.queues))

    return app


def _landing(queues: Sequence[str]) -> str:
    names = "".join(f"<li>{escape(queue)}</li>" for queue in queues)
    return (
        "<!doctype html><html lang='en'><title>Sluicegate exporter</title>"
        f"<h1>Sluicegate exporter {escape(__version__)}</h1>"
        "<p>How close the jobs of these queues are to missing their deadlines:</p>"
        f"<ul>{names}</ul>"
        "<p><a href='/metrics'>/metrics</a> · <a href='/healthz'>/healthz</a> · <a href='/readyz'>/readyz</a></p>"
    )
