"""Answer HTTP: Alertmanager's webhook, runs, approvals, the page, health and this process's own metrics."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field, ValidationError, field_validator
from starlette.types import ASGIApp

from automation.access import Access
from automation.bodies import read_body
from automation.episodes import Episodes
from automation.guard import Guard
from automation.metrics import AutomationMetrics
from automation.openapi import body, describe
from automation.page.routes import Page, add_page
from automation.sentences import not_waiting_said
from automation.starting import start_arguments
from automation.webhook import SIGNED_PATHS, add_webhooks, count
from runbooks.model import Runbook
from runbooks.verbs.outside import found
from runbooks.verbs.step import VerbName
from sluicegate.errors import StoreError
from sluicegate.gate import Runbook as LockHolder
from sluicegate.store import Store

CAN_WAIT = frozenset({VerbName.FIX, VerbName.CANARY, VerbName.APPROVE, VerbName.HTTP, VerbName.COMMAND})


_STEP = re.compile(r"(?:[0-9]{1,2} )?([a-z_]+)", re.ASCII)


def can_wait(step: str) -> bool:
    """Say whether a step, named by its verb or by place and verb, can wait for a person; every installed verb can."""
    named = _STEP.fullmatch(step)
    return named is not None and (named[1] in CAN_WAIT or named[1] in found())


# Both end up in logs and on terminals, where a control character would be a command.
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"


class Named(BaseModel):
    """Name who acts and why; both are asked of everybody who acts."""

    actor: str = Field(min_length=1, max_length=200, pattern=_ONE_LINE)
    reason: str = Field(min_length=1, max_length=2000, pattern=_ONE_LINE)


class Start(Named):
    """Ask for a run as a named person."""

    runbook: str


class Hold(Named):
    """Hold a live recovery, for as long as the contract allows without a time."""

    for_s: float | None = Field(default=None, gt=0, allow_inf_nan=False, le=10 * 365 * 86_400)


# What becomes of a hold or of its end, as HTTP says it.
_HELD = {"moved": 200, "unchanged": 409, "expired": 409, "gone": 404, "unreadable": 503}


class Approval(Named):
    """Say yes to the step that waits for it."""

    step: str

    @field_validator("step")
    @classmethod
    def _check_step(cls, step: str) -> str:
        if not can_wait(step):
            raise ValueError(f"no step {step[:40]!r} waits for a person")
        return step


NamedT = TypeVar("NamedT", bound=Named)


def create_app(
    store: Store,
    episodes: Episodes,
    runbooks: Mapping[str, Runbook],
    metrics: AutomationMetrics,
    access: Access,
    page: Page | None = None,
) -> ASGIApp:
    """Build the application behind its guard, with a page if one is given; it owns nothing and needs no start."""
    app = FastAPI(title="Sluicegate automation", redirect_slashes=False, docs_url=None, redoc_url=None)
    app.add_exception_handler(StoreError, _store_failed)
    add_webhooks(app, episodes, access, metrics)
    _add_runs(app, store, runbooks)
    _add_health(app, store, metrics)
    describe(app, (Named, Start, Hold, Approval))
    if page is not None:
        add_page(app, page)
    return Guard(app, access, SIGNED_PATHS, lambda path, code: count(metrics, path, code))


def _said(code: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=code)


async def _store_failed(_request: Request, error: Exception) -> Response:
    return _said(503, f"The queue's server did not answer: {error}")


def _add_runs(app: FastAPI, store: Store, runbooks: Mapping[str, Runbook]) -> None:
    @app.get("/v1/runs")
    async def runs() -> Response:
        found = await asyncio.to_thread(store.runs)
        return JSONResponse({"runs": [asdict(run) for run in found]})

    @app.get("/v1/runs/{run}")
    async def one(run: str) -> Response:
        history = await asyncio.to_thread(store.run, run)
        return JSONResponse(asdict(history)) if history else _said(404, f"There is no run {run}.")

    @app.post("/v1/runs", openapi_extra=body(Start))
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

    @app.post("/v1/runs/{run}/approve", openapi_extra=body(Approval))
    async def approve(run: str, request: Request) -> Response:
        asked = await _parsed(request, Approval)
        if isinstance(asked, Response):
            return asked
        answer = await asyncio.to_thread(store.approve, run, asked.step, actor=asked.actor, reason=asked.reason)
        if answer == "not_waiting":
            return JSONResponse({"answer": answer, "error": not_waiting_said(run, asked.step)}, status_code=409)
        return JSONResponse({"answer": answer}, status_code=404 if answer == "gone" else 200)

    @app.post("/v1/runs/{run}/hold", openapi_extra=body(Hold))
    async def hold(run: str, request: Request) -> Response:
        asked = await _parsed(request, Hold)
        if isinstance(asked, Response):
            return asked
        answer, until_ms = await asyncio.to_thread(store.hold, run, asked.for_s, actor=asked.actor, reason=asked.reason)
        return JSONResponse({"answer": answer, "until_ms": until_ms}, status_code=_HELD[answer])

    @app.post("/v1/runs/{run}/resume", openapi_extra=body(Named))
    async def resume(run: str, request: Request) -> Response:
        asked = await _parsed(request, Named)
        if isinstance(asked, Response):
            return asked
        answer = await asyncio.to_thread(store.resume, run, actor=asked.actor, reason=asked.reason)
        return JSONResponse({"answer": answer}, status_code=_HELD[answer])

    @app.post("/v1/runs/{run}/abort", openapi_extra=body(Named))
    async def abort(run: str, request: Request) -> Response:
        asked = await _parsed(request, Named)
        if isinstance(asked, Response):
            return asked
        return await _aborted(store, run, asked)


async def _aborted(store: Store, run: str, asked: Named) -> Response:
    history = await asyncio.to_thread(store.run, run)
    if history is None or not history.run.live:
        return _said(404, f"There is no live run {run}; nothing was changed.")
    if history.run.runbook not in set(LockHolder):
        ended = await asyncio.to_thread(store.abort_beside, run, actor=asked.actor, reason=asked.reason)
        return JSONResponse({"answer": ended}, status_code=404 if ended == "gone" else 200)
    answer = await asyncio.to_thread(store.order, "abort", asked.actor, asked.reason, run=run)
    if answer.answer == "gone":
        return _said(404, f"There is no live run {run}; nothing was changed.")
    return JSONResponse({"answer": answer.answer, "drain_state": answer.drain_state, "pin": answer.pin})


async def _parsed(request: Request, kind: type[NamedT]) -> NamedT | JSONResponse:
    text = await read_body(request)
    if isinstance(text, Response):
        return text
    try:
        return kind.model_validate_json(text)
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
        # Not a mere ping: a user who may call no function answers that, and keeps no alert.
        await asyncio.to_thread(store.server_time_ms)
        return JSONResponse({"status": "ready"})

    @app.get("/metrics")
    async def page() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
