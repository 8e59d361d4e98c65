"""Submit one job through one of the two doors that callers have, and say what was heard; nothing is hidden."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

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


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what the API answered; body is None where it was no JSON object."""

    status: int
    body: Mapping[str, Any] | None


class Api:
    """Ask `sluicegate queue serve` from many threads: a connection each, and no more of a client than it takes.

    Several processes of it are asked, each thread its own.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._places = cycle([urlsplit(url) for url in urls])
        self._own = threading.local()

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer | str:
        """Send one request; gives the name of what went wrong where no answer came."""
        connection = self._connection()
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._own.connection = None
            return type(error).__name__
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = None
        return Answer(answer.status, parsed if isinstance(parsed, dict) else None)

    def state(self, key: str) -> str:
        """Look at a job: its state, `gone` where there is none, `unanswered`, or what else came."""
        answer = self.ask("GET", f"/v1/jobs/{quote(key, safe='')}")
        if isinstance(answer, str) or answer.status == 503:
            return UNANSWERED
        if answer.body is not None and answer.status == 200:
            return str(answer.body["state"])
        if answer.body is not None and answer.status == 404 and answer.body.get("reason") == "no_such_job":
            return "gone"
        return f"status {answer.status}"

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            place = next(self._places)
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_WITHIN_S)
            self._own.connection = connection
        return connection


class HttpDoor:
    """Post to the API."""

    def __init__(self, api: Api, threads: ThreadPoolExecutor) -> None:
        self._api = api
        self._threads = threads

    async def submit(self, job_class: str, payload: dict[str, object], key: str) -> Heard:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._post, job_class, payload, key)

    def _post(self, job_class: str, payload: dict[str, object], key: str) -> Heard:
        body = json.dumps({"class": job_class, "payload": payload})
        headers = {"Idempotency_Key": f'"{key}"', "Content_Type": "application/json"}
        return heard(self._api.ask("POST", "/v1/jobs", body, **headers))


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


def heard(answer: Answer | str) -> Heard:
    """Read an answer of the API; one that its page does not promise is trouble."""
    if isinstance(answer, str):
        return Heard(UNANSWERED, reason=answer, retry_after_s=UNANSWERED_RETRY_S)
    body = answer.body
    if body is None:
        return Heard(TROUBLE, reason=f"status {answer.status} without a JSON object")
    if "accepted" in body:
        word = ACCEPTED if body["accepted"] else REFUSED
        return Heard(word, body["job_id"], body["reason"], body["retry_after_s"], body["replayed"])
    reason = str(body.get("reason", ""))
    if answer.status == 503 and reason in ("unanswered", "store_rejected"):
        return Heard(UNANSWERED, reason=reason, retry_after_s=float(body["retry_after_s"]))
    return Heard(TROUBLE, reason=f"status {answer.status} {reason}".rstrip())
