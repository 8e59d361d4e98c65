"""Submit one job through one of the two doors that callers have, and say what was heard; nothing is hidden."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol
from urllib.parse import quote

import httpx

from sluicegate.admission import Decision
from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import StoreRejected, StoreUnavailable
from sluicegate.producer import UNANSWERED_RETRY_S

ACCEPTED, REFUSED, UNANSWERED, TROUBLE = "accepted", "refused", "unanswered", "trouble"
# Longer than the service's own bound on an answer.
_WITHIN_S = 8.0


@dataclass(frozen=True, slots=True)
class Heard:
    """Hold an answer as a caller hears it: accepted, refused, unanswered, or trouble where it is none of these."""

    answer: str
    job_id: str = ""
    reason: str = ""
    retry_after_s: float | None = None
    replayed: bool = False


class Door(Protocol):
    """Be a way to submit; never raises for what a caller must expect."""

    async def submit(self, job_class: str, payload: dict[str, object], key: str) -> Heard: ...


class HttpDoor:
    """Post to `sluicegate queue serve`; several processes of it are asked in turn."""

    def __init__(self, client: httpx.AsyncClient, urls: Sequence[str]) -> None:
        self._client = client
        self._urls = cycle(urls)

    async def submit(self, job_class: str, payload: dict[str, object], key: str) -> Heard:
        try:
            answer = await self._client.post(
                f"{next(self._urls)}/v1/jobs",
                json={"class": job_class, "payload": payload},
                headers={"Idempotency-Key": f'"{key}"'},
            )
        except httpx.HTTPError as error:
            return Heard(UNANSWERED, reason=type(error).__name__, retry_after_s=UNANSWERED_RETRY_S)
        return heard(answer)


class Looks:
    """Look at jobs through the API, from several threads: a connection each, and no more of a client than it takes."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._places = cycle([httpx.URL(url) for url in urls])
        self._own = threading.local()

    def state(self, key: str) -> str:
        """Give a job's state, `gone` where there is none, `unanswered`, or what else came."""
        connection = self._connection()
        try:
            connection.request("GET", f"/v1/jobs/{quote(key, safe='')}")
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            self._own.connection = None
            return UNANSWERED
        if answer.status == 200:
            return str(body["state"])
        if answer.status == 404 and body.get("reason") == "no_such_job":
            return "gone"
        return UNANSWERED if answer.status == 503 else f"status {answer.status}"

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            place = next(self._places)
            connection = http.client.HTTPConnection(place.host, place.port or 80, timeout=_WITHIN_S)
            self._own.connection = connection
        return connection


class LibraryDoor:
    """Submit in this process with the library's own producer."""

    def __init__(self, producer: AsyncProducer) -> None:
        self._producer = producer

    async def submit(self, job_class: str, payload: dict[str, object], key: str) -> Heard:
        # The text is what the API makes of the same payload: a key's two callers must ask for one and the same job.
        text = canonical(payload)
        try:
            decision = await self._producer.submit(job_class, text, idempotency_key=key)
        except StoreUnavailable as error:
            return Heard(UNANSWERED, reason=type(error).__name__, retry_after_s=UNANSWERED_RETRY_S)
        except StoreRejected as error:
            return Heard(TROUBLE, reason=str(error))
        return of_decision(decision)


def canonical(payload: dict[str, object]) -> str:
    """Render a payload as the API stores it."""
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def of_decision(decision: Decision) -> Heard:
    """Give a decision of the library as it is logged."""
    word = ACCEPTED if decision.accepted else REFUSED
    return Heard(word, decision.job_id, decision.reason, decision.retry_after_s, decision.replayed)


def heard(answer: httpx.Response) -> Heard:
    """Read an answer of the API; one that its page does not promise is trouble."""
    try:
        body = answer.json()
    except ValueError:
        return Heard(TROUBLE, reason=f"status {answer.status_code} without JSON")
    if not isinstance(body, dict):
        return Heard(TROUBLE, reason=f"status {answer.status_code} with {type(body).__name__}")
    if "accepted" in body:
        word = ACCEPTED if body["accepted"] else REFUSED
        return Heard(word, body["job_id"], body["reason"], body["retry_after_s"], body["replayed"])
    reason = str(body.get("reason", ""))
    if answer.status_code == 503 and reason in ("unanswered", "store_rejected"):
        return Heard(UNANSWERED, reason=reason, retry_after_s=float(body["retry_after_s"]))
    return Heard(TROUBLE, reason=f"status {answer.status_code} {reason}".rstrip())


def client() -> httpx.AsyncClient:
    """Give a client for loopback, with room for all that a caller asks at once."""
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
    return httpx.AsyncClient(timeout=_WITHIN_S, trust_env=False, limits=limits)
