"""Be the world outside of all tortured queues: their provider, the hook that mends it, its probe, and the postman.

`outside.jsonl` gets a line for each call of a hook and each notification, before it is answered.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from drill.effects import LineLog
from drill.ports import LOOPBACK, listening_socket

_SERVICE_S = 0.02
_BUSY_CALLS = 2
# Longer than an executor waits for a hook.
_LOST_AFTER_S = 6.0
_DELIVERED_WITHIN_S = 8.0
_ALERTMANAGER = "/webhooks/alertmanager"


class Hook(StrEnum):
    """Name how a queue's hook behaves."""

    MENDS = "mends"
    LOSES_ANSWER = "loses_answer"  # it mends, and never answers
    BUSY = "busy"  # 503 for two calls of a key, then it mends
    USELESS = "useless"  # 200, and nothing is mended


class Post(StrEnum):
    """Name how notifications are carried."""

    CARRIED = "carried"
    DROPPED = "dropped"  # 503, not delivered
    DOUBLED = "doubled"  # delivered twice
    UNANSWERED = "unanswered"  # delivered, and the sender is told 503


class Behaviour(BaseModel):
    """Set one queue's world."""

    provider_fails: bool
    hook: Hook


class Route(BaseModel):
    """Set the postman: how it carries, and where each queue's automation services are."""

    post: Post
    doors: dict[str, list[str]]


@dataclass
class Place:
    """Hold one queue's world of now; `calls` by idempotency key."""

    provider_fails: bool = False
    hook: Hook = Hook.MENDS
    calls: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))


class Outside:
    """Answer for all queues, and write down what was asked."""

    def __init__(self, log: Path, seed: int) -> None:
        self._log = LineLog(log)
        self._random = random.Random(seed)
        self.places: defaultdict[str, Place] = defaultdict(Place)
        self.route = Route(post=Post.CARRIED, doors={})
        self._client = httpx.AsyncClient(timeout=_DELIVERED_WITHIN_S, trust_env=False)

    async def complete(self, queue: str) -> int:
        """Be the provider; gives the status."""
        await asyncio.sleep(_SERVICE_S)
        return 503 if self.places[queue].provider_fails else 200

    async def fix(self, queue: str, key: str) -> int:
        """Be the hook: do what the behaviour says, and give the status."""
        place = self.places[queue]
        place.calls[key] += 1
        busy = place.hook is Hook.BUSY and place.calls[key] <= _BUSY_CALLS
        mends = not busy and place.hook is not Hook.USELESS
        if mends:
            place.provider_fails = False
        self._write("fix", queue, key=key, call=place.calls[key], mended=mends, busy=busy)
        if place.hook is Hook.LOSES_ANSWER and mends:
            await asyncio.sleep(_LOST_AFTER_S)
        return 503 if busy else 200

    def mended(self, queue: str) -> bool:
        """Be the probe; a useless hook has a probe that knows no better."""
        place = self.places[queue]
        return not place.provider_fails or place.hook is Hook.USELESS

    async def carry(self, body: bytes) -> int:
        """Be the postman for one notification; gives what its sender is told."""
        queue = _queue_of(body)
        doors = list(self.route.doors.get(queue, ()))
        self._random.shuffle(doors)
        post = self.route.post
        self._write("post", queue, post=post.value)
        if post is Post.DROPPED or not doors:
            return 503
        if post is Post.DOUBLED:
            told = await asyncio.gather(*(self._deliver(door, body) for door in (*doors, *doors)[:2]))
            return next((code for code in told if code < 300), told[0])
        code = await self._deliver_to_any(doors, body)
        return 503 if post is Post.UNANSWERED else code

    async def _deliver_to_any(self, doors: Sequence[str], body: bytes) -> int:
        code = 503
        for door in doors:
            code = await self._deliver(door, body)
            if code < 300:
                return code
        return code

    async def _deliver(self, door: str, body: bytes) -> int:
        headers = {"Content-Type": "application/json"}
        try:
            return (await self._client.post(f"{door}{_ALERTMANAGER}", content=body, headers=headers)).status_code
        except httpx.HTTPError:
            return 503

    def _write(self, kind: str, queue: str, **fields: object) -> None:
        line = {"at": time.time(), "kind": kind, "queue": queue, **fields}
        self._log.append(json.dumps(line, separators=(",", ":")) + "\n")


def _queue_of(body: bytes) -> str:
    try:
        raw = json.loads(body)
        labels: Mapping[str, str] = raw["groupLabels"]
        return str(labels["queue"])
    except (ValueError, KeyError, TypeError):
        return ""


def create_app(outside: Outside) -> FastAPI:
    """Return the HTTP face of the world outside."""
    app = FastAPI(title="Sluicegate drill outside", openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/relay")
    async def relay(request: Request) -> Response:
        return Response(status_code=await outside.carry(await request.body()))

    @app.put("/route")
    async def route(wanted: Route) -> Route:
        outside.route = wanted
        return wanted

    @app.put("/{queue}")
    async def behave(queue: str, wanted: Behaviour) -> Behaviour:
        place = outside.places[queue]
        place.provider_fails, place.hook = wanted.provider_fails, wanted.hook
        return wanted

    @app.post("/{queue}/v1/complete")
    async def complete(queue: str) -> Response:
        status = await outside.complete(queue)
        return Response(b'{"ok":true}' if status == 200 else b'{"ok":false}', status, media_type="application/json")

    @app.post("/{queue}/fix")
    async def fix(queue: str, request: Request) -> Response:
        return Response(status_code=await outside.fix(queue, request.headers.get("idempotency-key", "")))

    @app.get("/{queue}/fix")
    async def probe(queue: str) -> Response:
        return Response(status_code=200 if outside.mended(queue) else 503)

    return app


def serve_outside(log: Path, seed: int, port: int) -> None:
    """Serve on loopback until SIGTERM or SIGINT; raises UsageError when the port is taken."""
    sock = listening_socket(port, LOOPBACK)
    config = uvicorn.Config(
        create_app(Outside(log, seed)), log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[sock])
