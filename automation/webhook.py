"""Answer a notification: keep it, then say 202; 503 when it can't be kept, never a redirect or a 429 (contract §7)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from automation.access import Access
from automation.bodies import read_body
from automation.episodes import Episodes, NotKept
from automation.metrics import AutomationMetrics
from automation.openapi import NOTIFICATION
from automation.signature import SIGNATURE_HEADER, TIMESTAMP_HEADER, is_signed
from runbooks.alerts import Notification, NotUnderstood, parse, parse_grafana
from sluicegate.errors import StoreError

log = structlog.get_logger(__name__)

WEBHOOK_PATH = "/webhooks/alertmanager"
GRAFANA_PATH = "/webhooks/grafana"
# A sender's settings may end the path with a slash, and a redirect would lose the body.
SIGNED_PATHS = frozenset({GRAFANA_PATH, f"{GRAFANA_PATH}/"})


@dataclass(frozen=True, slots=True)
class Sender:
    """Say who posts to a path, and how their bodies are read."""

    name: str
    path: str
    parse: Callable[[bytes], Notification]


SENDERS = (Sender("alertmanager", WEBHOOK_PATH, parse), Sender("grafana", GRAFANA_PATH, parse_grafana))


def add_webhooks(app: FastAPI, episodes: Episodes, access: Access, metrics: AutomationMetrics) -> None:
    """Add a page for each sender."""
    for sender in SENDERS:
        for path in (sender.path, f"{sender.path}/"):
            page = _page(sender, episodes, access, metrics)
            app.add_api_route(path, page, methods=["POST"], status_code=202, openapi_extra=NOTIFICATION)


def count(metrics: AutomationMetrics, path: str, code: int) -> None:
    """Count an answer to a notification; one to anything else is none of this figure."""
    if path.rstrip("/") in {sender.path for sender in SENDERS}:
        metrics.webhook_requests.labels(str(code)).inc()


def _page(
    sender: Sender, episodes: Episodes, access: Access, metrics: AutomationMetrics
) -> Callable[[Request], object]:
    async def webhook(request: Request) -> Response:
        """Keep the notification, then say 202."""
        response = await _receive(request, sender, episodes, access)
        count(metrics, sender.path, response.status_code)
        return response

    return webhook


async def _receive(request: Request, sender: Sender, episodes: Episodes, access: Access) -> Response:
    body = await read_body(request)
    if isinstance(body, Response):
        return body
    if not _may_post(request, body, access):
        return _said(401, "The signature does not fit the body and its time.")
    try:
        notification = sender.parse(body)
    except NotUnderstood as error:
        log.warning("webhook_not_understood", sender=sender.name, why=str(error))
        return _said(400, str(error))
    try:
        received = await episodes.receive(sender.name, notification)
    except (StoreError, NotKept) as error:
        log.warning("webhook_not_kept", sender=sender.name, why=str(error))
        return _said(503, f"The notification could not be kept: {error}")
    runs = [{"id": run, "state": outcome, "duplicate": duplicate} for run, outcome, duplicate in received.runs]
    return JSONResponse({"event": received.event, "matched": received.matched, "runs": runs}, status_code=202)


def _may_post(request: Request, body: bytes, access: Access) -> bool:
    """Check a signature where there is one to check; whoever comes without has shown other credentials."""
    signature = request.headers.get(SIGNATURE_HEADER)
    if signature is None or not access.secrets or request.url.path not in SIGNED_PATHS:
        return True
    timestamp = request.headers.get(TIMESTAMP_HEADER, "")
    return is_signed(access.secrets, body, signature, timestamp, time.time())


def _said(code: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=code)
