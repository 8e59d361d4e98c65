"""Answer HTTP: the metrics page, two health questions and a landing page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from exporter.collector import Collector, wait_s
from exporter.passwords import Passwords
from exporter.reading import Reading
from exporter.rendering import Renderer, compressed
from exporter.web_config import OPEN, WebConfig
from exporter.web_guard import WAITED, WebGuard
from sluicegate import __version__

_TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"


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
) -> FastAPI:
    """Build the application around a collector; it owns nothing and needs no start.

    `web` gives the web configuration in force, asked at every request.
    """
    app = FastAPI(title="Sluicegate exporter", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(WebGuard, config=web, passwords=passwords or Passwords())
    renderer = Renderer(process_registry())

    async def metrics(request: Request) -> Response:
        # Always 200: a page that says redis_up 0 differs from an exporter that is gone.
        waited_s = request.scope.get(WAITED, 0.0)
        scrape = await collector.scrape(wait_s(request.headers.get(_TIMEOUT_HEADER), collector.budget_s, waited_s))
        body, content_type = renderer.render(scrape, request.headers.get("accept", ""))
        headers = {"Content-Type": content_type, "Cache-Control": "no-store", "Vary": "Accept, Accept-Encoding"}
        smaller = compressed(body, request.headers.get("accept-encoding", ""))
        if smaller is not None:
            headers["Content-Encoding"] = "gzip"
        return Response(body if smaller is None else smaller, headers=headers)

    # A plain route: nothing of it is for FastAPI to look into, and scrapes come every second.
    app.add_route("/metrics", metrics, methods=["GET"])

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
