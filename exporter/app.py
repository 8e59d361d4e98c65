"""Answer HTTP: the metrics page, two health questions and a landing page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.collector import Collector
from exporter.metrics_page import MetricsPage
from exporter.reading import Reading
from exporter.rendering import Renderer
from exporter.web_guard import WebGuard
from sluicegate import __version__
from sluicegate.web.config import OPEN, WebConfig
from sluicegate.web.passwords import Passwords


def process_registry() -> CollectorRegistry:
    """Give a registry with the process_ and python_ figures of this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def reasons(readings: Iterable[Reading]) -> str:
    """Say, a line each, which queues can't be read and why."""
    failed = [reading for reading in readings if reading.failure is not None]
    return "".join(f"queue {reading.queue}: {reading.failure}: {reading.detail}\n" for reading in failed)


def create_app(
    collector: Collector, passwords: Passwords | None = None, web: Callable[[], WebConfig] = lambda: OPEN
) -> ASGIApp:
    """Build the application around a collector; it owns nothing and needs no start.

    `web` gives the web configuration in force, asked at every request.
    """
    app = FastAPI(title="Sluicegate exporter", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)

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

    metrics = MetricsPage(collector, Renderer(process_registry()))

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        scraped = scope["path"] == "/metrics" and scope["method"] == "GET"
        await (metrics if scraped else app)(scope, receive, send)

    return WebGuard(routed, web, passwords or Passwords())


def _landing(queues: Sequence[str]) -> str:
    names = "".join(f"<li>{escape(queue)}</li>" for queue in queues)
    return (
        "<!doctype html><html lang='en'><title>Sluicegate exporter</title>"
        f"<h1>Sluicegate exporter {escape(__version__)}</h1>"
        "<p>How close the jobs of these queues are to missing their deadlines:</p>"
        f"<ul>{names}</ul>"
        "<p><a href='/metrics'>/metrics</a> · <a href='/healthz'>/healthz</a> · <a href='/readyz'>/readyz</a></p>"
    )
