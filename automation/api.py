"""Answer HTTP: Alertmanager's webhook, runs, approvals, health and this process's own metrics."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from enum import StrEnum
from typing import TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field, ValidationError

from automation.alerts import NotUnderstood, parse
from automation.bodies import read_body
from automation.episodes import Episodes, NotKept
from automation.metrics import AutomationMetrics
from automation.names import run_id
from automation.sentences import not_waiting_said
from runbooks.model import Runbook
from runbooks.verbs.step import VerbName
from sluicegate.errors import StoreError
from sluicegate.store import Store

log = structlog.get_logger(__name__)

WEBHOOK_PATH = "/webhooks/alertmanager"

_OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


class Waiting(StrEnum):
    """Name the steps that can wait for a person's word."""

    FIX = VerbName.FIX.value
    CANARY = VerbName.CANARY.value
    APPROVE = VerbName.APPROVE.value


# Both end up in logs and on terminals, where a control character would be a command.
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"


class Named(BaseModel):
    """Name who acts and why; both are asked of everybody who acts."""

    actor: str = Field(min_length=1, max_length=200, pattern=_ONE_LINE)
    reason: str = Field(min_length=1, max_length=2000, pattern=_ONE_LINE)


class Start(Named):
    """Ask for a run as a named person."""

    runbook: str


class Approval(Named):
    """Say yes to the step that waits for it."""

    step: Waiting


NamedT = TypeVar("NamedT", bound=Named)


def create_app(
    store: Store, episodes: Episodes, runbooks: dict[str, Runbook], metrics: AutomationMetrics, token: str | None
) -> FastAPI:
    """Build the application; a bearer token, where one is set, guards everything but health and metrics."""
    app = FastAPI(title="Sluicegate automation", redirect_slashes=False, docs_url=None, redoc_url=None)
    app.middleware("http")(_guarded(token, metrics))
    app.add_exception_handler(StoreError, _store_failed)
    _add_webhook(app, episodes, metrics)
    _add_runs(app, store, runbooks)
    _add_health(app, store, metrics)
    return app


Next = Callable[[Request], Awaitable[Response]]


def _guarded(token: str | None, metrics: AutomationMetrics) -> Callable[[Request, Next], Awaitable[Response]]:
    expected = f"Bearer {token}".encode() if token else b""

    async def guard(request: Request, proceed: Next) -> Response:
        given = request.headers.get("authorization", "").encode("latin-1")
        if token and request.url.path not in _OPEN_PATHS and not hmac.compare_digest(given, expected):
            _count(request, metrics, 401)
            return _said(401, "This needs `Authorization: Bearer TOKEN`.")
        return await proceed(request)

    return guard


def _said(code: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=code)


async def _store_failed(_request: Request, error: Exception) -> Response:
    return _said(503, f"The queue's server did not answer: {error}")


def _count(request: Request, metrics: AutomationMetrics, code: int) -> None:
    if request.url.path.rstrip("/") == WEBHOOK_PATH:
        metrics.webhook_requests.labels(str(code)).inc()


def _add_webhook(app: FastAPI, episodes: Episodes, metrics: AutomationMetrics) -> None:
    async def webhook(request: Request) -> Response:
        """Keep the notification, then say 202; 503 when it cannot be kept, and never a redirect or a 429."""
        response = await _receive(request, episodes)
        _count(request, metrics, response.status_code)
        return response

    for path in (WEBHOOK_PATH, f"{WEBHOOK_PATH}/"):
        app.add_api_route(path, webhook, methods=["POST"], status_code=202)


async def _receive(request: Request, episodes: Episodes) -> Response:
    body = await read_body(request)
    if isinstance(body, Response):
        return body
    try:
        notification = parse(body)
    except NotUnderstood as error:
        log.warning("webhook_not_understood", why=str(error))
        return _said(400, str(error))
    try:
        received = await episodes.receive(notification)
    except (StoreError, NotKept) as error:
        log.warning("webhook_not_kept", why=str(error))
        return _said(503, f"The notification could not be kept: {error}")
    runs = [{"id": run, "state": outcome, "duplicate": duplicate} for run, outcome, duplicate in received.runs]
    return JSONResponse({"event": received.event, "matched": received.matched, "runs": runs}, status_code=202)


def _add_runs(app: FastAPI, store: Store, runbooks: dict[str, Runbook]) -> None:
    @app.get("/v1/runs")
    async def runs() -> Response:
        found = await asyncio.to_thread(store.runs)
        return JSONResponse({"runs": [asdict(run) for run in found]})

    @app.get("/v1/runs/{run}")
    async def one(run: str) -> Response:
        history = await asyncio.to_thread(store.run, run)
        return JSONResponse(asdict(history)) if history else _said(404, f"There is no run {run}.")

    @app.post("/v1/runs")
    async def start(request: Request) -> Response:
        asked = await _parsed(request, Start)
        if isinstance(asked, Response):
            return asked
        runbook = runbooks.get(asked.runbook)
        if runbook is None:
            return _said(404, f"There is no runbook {asked.runbook}; there are {', '.join(sorted(runbooks))}.")
        answer = await asyncio.to_thread(store.open_run, start_arguments(runbook, asked.actor, asked.reason))
        code = 202 if answer.answer == "moved" else 409
        return JSONResponse({"answer": answer.answer, "run": answer.run, "why": answer.why}, status_code=code)

    @app.post("/v1/runs/{run}/approve")
    async def approve(run: str, request: Request) -> Response:
        asked = await _parsed(request, Approval)
        if isinstance(asked, Response):
            return asked
        answer = await asyncio.to_thread(store.approve, run, asked.step, actor=asked.actor, reason=asked.reason)
        if answer == "not_waiting":
            return JSONResponse({"answer": answer, "error": not_waiting_said(run, asked.step)}, status_code=409)
        return JSONResponse({"answer": answer}, status_code=404 if answer == "gone" else 200)

    @app.post("/v1/runs/{run}/abort")
    async def abort(run: str, request: Request) -> Response:
        asked = await _parsed(request, Named)
        if isinstance(asked, Response):
            return asked
        return await _aborted(store, run, asked)


async def _aborted(store: Store, run: str, asked: Named) -> Response:
    history = await asyncio.to_thread(store.run, run)
    if history is None or not history.run.live:
        return _said(404, f"There is no live run {run}; nothing was changed.")
    answer = await asyncio.to_thread(store.order, "abort", asked.actor, asked.reason)
    return JSONResponse({"answer": answer.answer, "drain_state": answer.drain_state, "pin": answer.pin})


def start_arguments(runbook: Runbook, actor: str, reason: str) -> dict[str, object]:
    """Give what opens a run for a named person."""
    return {
        "runbook": runbook.name,
        "trigger": "person",
        "run": run_id(),
        "actor": actor,
        "reason": reason,
        "confirmed": True,
        "digest": runbook.digest,
        "episode": "",
    }


async def _parsed(request: Request, kind: type[NamedT]) -> NamedT | JSONResponse:
    body = await read_body(request)
    if isinstance(body, Response):
        return body
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return _said(422, f"{place}: {first['msg'].removeprefix('Value error, ')}")


def _add_health(app: FastAPI, store: Store, metrics: AutomationMetrics) -> None:
    @app.get("/healthz")
    async def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        await asyncio.to_thread(store.ping)
        return JSONResponse({"status": "ready"})

    @app.get("/metrics")
    async def page() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
