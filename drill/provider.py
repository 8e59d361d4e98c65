"""The deliberately dumb provider: it answers `{"ok":true}` after a while and keeps a record of what it did."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from drill.effects import Call, Effect, LineLog, calls_path, duplicate_keys, read_effects
from drill.ports import LOOPBACK, listening_socket

_OK = b'{"ok":true}'
# Longer than a worker's pause between two calls: an idle connection that closes just as a call goes out would look
# like a fault that nobody injected.
_KEEP_ALIVE_S = 75


@dataclass(frozen=True)
class ProviderOptions:
    """Hold how the provider behaves: it answers after service_s ± jitter_s, evenly spread; the seed makes it repeat.

    `forgets` names classes whose keys it does not honour: each of their calls is done, whatever was done before.
    """

    log: Path
    service_s: float = 0.3
    jitter_s: float = 0.1
    seed: int | None = None
    forgets: frozenset[str] = frozenset()


class InjectedFault(BaseModel):
    """Describe the error that the provider itself answers with, where the proxy in front of it knows no HTTP."""

    status: int = Field(ge=400, le=599)
    probability: float = Field(default=1.0, ge=0, le=1)
    retry_after_s: int | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class Ask:
    """Hold what a call says about itself."""

    key: str | None
    job_class: str | None
    canary: bool


@dataclass(frozen=True)
class Answer:
    """Hold a status and whether the answer is that of an earlier call with the same key."""

    status: int
    replayed: bool = False
    retry_after_s: int | None = None


class Provider:
    """Do each key's work once, but for classes that are forgotten. Repeats are answered from the record, concurrent
    ones wait for the first.

    The work goes on when its caller hangs up: that is what makes a timeout an ambiguous outcome.
    """

    def __init__(self, options: ProviderOptions, now: Callable[[], float] = time.time) -> None:
        self._options = options
        self._now = now
        self._random = random.Random(options.seed)
        # A provider that was restarted still knows its keys.
        self._effects = list(read_effects(options.log))
        self._done = Counter(effect.key for effect in self._effects if effect.key is not None)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._under_way: Counter[str] = Counter()
        self._log = LineLog(options.log)
        self._calls = LineLog(calls_path(options.log))
        self.fault: InjectedFault | None = None

    async def complete(self, ask: Ask) -> Answer:
        """Answer one call, and log it."""
        arrived = time.monotonic()
        answer = await self._answer(ask)
        took_s = time.monotonic() - arrived
        call = Call(self._now(), ask.key, ask.job_class, ask.canary, answer.status, took_s, answer.replayed)
        self._calls.append(call.to_line())
        return answer

    async def _answer(self, ask: Ask) -> Answer:
        fault = self.fault
        if fault is not None and self._random.random() < fault.probability:
            return Answer(fault.status, retry_after_s=fault.retry_after_s)
        if ask.key is None or ask.job_class in self._options.forgets:
            await self._work(ask)
            return Answer(200)
        if ask.key in self._done:
            return Answer(200, replayed=True)
        first = ask.key not in self._running
        if first:
            self._running[ask.key] = asyncio.create_task(self._work_once(ask, ask.key))
        await asyncio.shield(self._running[ask.key])
        return Answer(200, replayed=not first)

    async def _work_once(self, ask: Ask, key: str) -> None:
        try:
            await self._work(ask)
        finally:
            del self._running[key]

    async def _work(self, ask: Ask) -> None:
        """Take the service time, then have the effect: it is in the log before anybody hears of it."""
        options, key = self._options, ask.key or ""
        self._under_way[key] += 1
        try:
            await asyncio.sleep(max(0.0, options.service_s + self._random.uniform(-1, 1) * options.jitter_s))
            effect = Effect(self._now(), ask.key, len(self._effects) + 1, ask.job_class, ask.canary)
            self._log.append(effect.to_line())
            self._effects.append(effect)
            self._done[key] += 1
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]

    def known(self, key: str) -> dict[str, object] | None:
        """Say whether a key's work was done and how often, as a queue's resolver asks; None while it is under way."""
        if key in self._under_way:
            return None
        return {"done": self._done[key] > 0, "effects": self._done[key]}

    def totals(self) -> dict[str, object]:
        """Return the number of effects, and the keys that have more than one."""
        doubled = duplicate_keys(self._effects)
        return {"count": len(self._effects), "duplicates": len(doubled), "duplicate_keys": sorted(doubled)}


def parse_ask(key: str | None, body: bytes) -> Ask:
    """Read what a call says about itself: the idempotency key, and in a JSON body `class` and `canary`."""
    try:
        raw = json.loads(body) if body else {}
    except ValueError:
        raw = {}  # a dumb provider takes any prompt
    fields = raw if isinstance(raw, dict) else {}
    job_class = fields.get("class")
    canary = bool(fields.get("canary", False)) or (key or "").startswith("canary:")
    return Ask(key or None, job_class if isinstance(job_class, str) else None, canary)


def create_app(provider: Provider) -> FastAPI:
    """Return the HTTP face of a provider."""
    app = FastAPI(title="Sluicegate drill provider", openapi_url=None)

    async def complete(request: Request) -> Response:
        answer = await provider.complete(parse_ask(request.headers.get("idempotency-key"), await request.body()))
        headers = {"Idempotent-Replayed": "true"} if answer.replayed else {}
        if answer.retry_after_s is not None:
            headers["Retry-After"] = str(answer.retry_after_s)
        body = _OK if answer.status == 200 else json.dumps({"ok": False, "error": answer.status}).encode()
        return Response(body, answer.status, headers, media_type="application/json")

    # A plain route: FastAPI's own would spend more on reading the signature than the rest of the call costs.
    app.add_route("/v1/complete", complete, methods=["POST"])

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.get("/effects")
    async def effects() -> dict[str, object]:
        return provider.totals()

    @app.get("/effects/{key:path}")
    async def effects_of(key: str) -> Response:
        known = provider.known(key)
        body = {"error": "it is under way"} if known is None else known
        return Response(json.dumps(body), 409 if known is None else 200, media_type="application/json")

    @app.get("/faults")
    async def show_fault() -> InjectedFault | None:
        return provider.fault

    @app.put("/faults")
    async def inject(fault: InjectedFault) -> InjectedFault:
        provider.fault = fault
        return fault

    @app.delete("/faults", status_code=204)
    async def heal() -> Response:
        provider.fault = None
        return Response(status_code=204)

    return app


def serve_provider(options: ProviderOptions, port: int, host: str = LOOPBACK) -> None:
    """Serve until SIGTERM or SIGINT; raises UsageError when the port is taken or the log can't be written."""
    sock = listening_socket(port, host)
    config = uvicorn.Config(
        create_app(Provider(options)),
        http="h11",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[sock])
