"""Answer HTTP for one queue: submit a job under an idempotency key, look at a job, health.

Requests that arrive together share calls to the queue's server through the asyncio producer. A request that could not
be answered in time, or whose answer was lost, gets 503 `unanswered`: repeating it with its key is always safe.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from fastapi import Depends, FastAPI, Request, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from sluicegate import __version__, http_answers
from sluicegate.async_producer import AsyncProducer
from sluicegate.errors import NoLogin, StoreError, StoreRejected, StoreUnavailable, UsageError
from sluicegate.gate_sentences import opening
from sluicegate.http_answers import JOBS_PATH, HttpAnswer, Trouble, problem
from sluicegate.http_bodies import JobRequest
from sluicegate.http_openapi import GET_JOB, HEALTHZ, POST_JOBS, READYZ, describe, rendered
from sluicegate.idempotency_key import HEADER as KEY_HEADER
from sluicegate.idempotency_key import parse_key
from sluicegate.store import Store
from sluicegate.submission import MAX_KEY, MAX_PAYLOAD_BYTES, Submission

log = structlog.get_logger(__name__)

# A payload may be escaped or spaced in the body and is compact where it is stored.
BODY_LIMIT = 4 * MAX_PAYLOAD_BYTES

_JSON_TYPE = re.compile(r"application/(json|[!#$%&'*+.^_`|~0-9A-Za-z-]+\+json)[ \t]*(;.*)?", re.IGNORECASE)
_JOB_ID = re.compile(rf"[!-~]{{1,{MAX_KEY}}}")
_LONGEST_PLACE = 100

_PERHAPS_ADMITTED = (
    "Whether the job was admitted is not known. Repeat the request with the same Idempotency-Key: it counts once."
)
_NOT_KNOWN = "Ask again."


@dataclass(frozen=True, slots=True)
class Waits:
    """Bound how long a body may take to arrive and the queue's server to answer, in seconds."""

    body_s: float = 10.0
    answer_s: float = 5.0


def create_app(store: Store, producer: AsyncProducer, token: str | None = None, waits: Waits | None = None) -> FastAPI:
    """Build the application around a store and a producer that others own.

    A bearer token, where one is given, guards everything under /v1.
    """
    return app_of(JobsApi(store, producer, waits or Waits()), token)


def app_of(api: JobsApi, token: str | None) -> FastAPI:
    """Build the application around what answers its requests."""
    app = FastAPI(title="Sluicegate queue", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    guard = [Depends(_guard(token))]
    app.add_api_route(JOBS_PATH, api.submit, methods=["POST"], dependencies=guard, **POST_JOBS)
    app.add_api_route(f"{JOBS_PATH}/{{job_id:path}}", api.show, methods=["GET"], dependencies=guard, **GET_JOB)
    app.add_api_route("/healthz", healthz, methods=["GET"], **HEALTHZ)
    app.add_api_route("/readyz", api.readyz, methods=["GET"], **READYZ)
    app.add_exception_handler(HTTPException, _http_failed)
    app.add_exception_handler(Exception, _failed)
    describe(app)
    return app


def api_document() -> str:
    """Render the description of the API as it is committed."""
    nowhere = Store.connect("redis://127.0.0.1:6379/0")  # named and never called
    return rendered(create_app(nowhere, AsyncProducer(nowhere)))


class JobsApi:
    """Answer the requests on jobs."""

    def __init__(self, store: Store, producer: AsyncProducer, waits: Waits) -> None:
        self._store = store
        self._producer = producer
        self._waits = waits
        self._down = False
        # Whether it began with a request that was refused by itself: no look sees when that is over.
        self._refused = False

    async def watch(self, every_s: float) -> None:
        """Look at the queue's server now and every so often, for ever: what fails is in the log without a request."""
        told = False
        while True:
            try:
                answer = await self._look()
                if answer.status == 200 and not told:
                    told = await self._tell_if_not_open()
            except Exception:  # it must outlive any one look; the trace is logged
                log.exception("look_failed")
            await asyncio.sleep(every_s)

    async def _tell_if_not_open(self) -> bool:
        """Say in the log that the queue is not open where it is not; gives whether that is known."""
        try:
            seen = await asyncio.to_thread(self._store.observe)
        except StoreUnavailable:
            return False
        except StoreRejected:
            return True  # whoever may submit need not see the figures, and is not asked again
        if not seen.gate.initialised:
            log.warning("queue_not_open", queue=seen.queue, unblock=opening(seen))
        return True

    async def submit(self, request: Request) -> Response:
        """Decide a job and keep the decision under its key."""
        return _response(await self._submitted(request))

    async def show(self, job_id: str) -> Response:
        """Show a job."""
        missing = problem(Trouble.NO_SUCH_JOB, "A refused job makes no record, and one that has ended is kept a day.")
        # What no job can be called is not asked for: part of a key's name, it could name something else.
        if not _JOB_ID.fullmatch(job_id):
            return _response(missing)

        async def look() -> HttpAnswer:
            record = await asyncio.to_thread(self._store.job, job_id)
            return missing if record is None else http_answers.job(job_id, record)

        return _response(await self._answered(look, _NOT_KNOWN))

    async def readyz(self) -> Response:
        """Say whether the queue's server lets this service call its functions."""
        return _response(await self._look())

    async def _look(self) -> HttpAnswer:
        async def call() -> HttpAnswer:
            await asyncio.to_thread(self._store.server_time_ms)
            return HttpAnswer(200, b'{"status":"ready"}')

        return await self._answered(call, _NOT_KNOWN, looks=True)

    async def _submitted(self, request: Request) -> HttpAnswer:
        lines = request.headers.getlist(KEY_HEADER)
        if not lines:
            return problem(Trouble.KEY_MISSING, f'Send {KEY_HEADER}: "…", a key of your own for this job.')
        try:
            key = parse_key(lines)
        except UsageError as error:
            return problem(Trouble.KEY_MALFORMED, _one_line(error))
        if not _JSON_TYPE.fullmatch(request.headers.get("content-type", "")):
            return problem(Trouble.NOT_JSON_TYPE, "Send Content-Type: application/json.")
        body = await self._body(request)
        if isinstance(body, HttpAnswer):
            return body
        submission = self._prepared(key, body)
        if isinstance(submission, HttpAnswer):
            return submission

        async def decide() -> HttpAnswer:
            return http_answers.decided(await self._producer.submit_prepared(submission))

        return await self._answered(decide, _PERHAPS_ADMITTED)

    async def _body(self, request: Request) -> bytes | HttpAnswer:
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > BODY_LIMIT:
            return _too_large()
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._waits.body_s):
                async for part in request.stream():
                    size += len(part)
                    if size > BODY_LIMIT:
                        return _too_large()
                    parts.append(part)
        except TimeoutError:
            return problem(
                Trouble.BODY_TOO_SLOW,
                f"It was not there after {self._waits.body_s:g} s; nothing was submitted.",
                {"Connection": "close"},
            )
        except ClientDisconnect:
            return problem(Trouble.BODY_NOT_JSON, "The connection ended before the body did; nothing was submitted.")
        return b"".join(parts)

    def _prepared(self, key: str, body: bytes) -> Submission | HttpAnswer:
        try:
            asked = JobRequest.model_validate_json(body)
            return self._producer.prepare(
                asked.job_class,
                asked.payload_text(),
                idempotency_key=key,
                deadline_s=asked.deadline_s,
                deadline_ts=asked.deadline_ts,
                cost_class=asked.cost_class,
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])[:_LONGEST_PLACE]
            syntax = first["type"] == "json_invalid"
            trouble = Trouble.BODY_NOT_JSON if syntax else Trouble.MALFORMED
            said = first["msg"].removeprefix("Value error, ")
            return problem(trouble, f"{place}: {said}" if place else said)
        except UsageError as error:
            return problem(Trouble.MALFORMED, _one_line(error))
        except ValueError:
            return problem(Trouble.MALFORMED, "payload: it holds a number that JSON can't carry.")

    async def _answered(
        self, ask: Callable[[], Awaitable[HttpAnswer]], lost: str, *, looks: bool = False
    ) -> HttpAnswer:
        """Ask the queue's server and answer its failures; `lost` says what no answer means.

        Each outage is logged once, however many requests and looks meet it.
        """
        try:
            async with asyncio.timeout(self._waits.answer_s):
                answer = await ask()
        except (StoreUnavailable, TimeoutError) as error:
            self._note_outage(error)
            return http_answers.unanswered(lost)
        except StoreRejected as error:
            self._note_outage(error, of_one=not looks and not isinstance(error, NoLogin))
            return http_answers.store_rejected()
        if self._down and not (looks and self._refused):
            self._down = False
            log.info("store_available")
        return answer

    def _note_outage(self, error: StoreError | TimeoutError, *, of_one: bool = False) -> None:
        # Whatever ails the server is said, though a request was refused by itself before.
        if not self._down or (self._refused and not of_one):
            self._down, self._refused = True, of_one
            log.warning("store_unavailable", error=str(error), kind=type(error).__name__)


async def healthz() -> Response:
    """Say that this process answers; nothing about Redis, which a restart would not mend."""
    return _response(HttpAnswer(200, b'{"status":"ok"}'))


def _guard(token: str | None) -> Callable[[Request], Awaitable[None]]:
    """Give the check of the bearer token; how long it takes does not depend on how much of the token is right."""
    expected = token.encode() if token is not None else None

    async def guard(request: Request) -> None:
        if expected is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip(" ").encode("latin-1"), expected)
        if scheme.lower() != "bearer" or not right:
            raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})

    return guard


_BY_STATUS = {
    401: (Trouble.UNAUTHORIZED, "Send `Authorization: Bearer TOKEN` with the token of this service."),
    404: (Trouble.NO_SUCH_PATH, f"Jobs are under {JOBS_PATH}; /openapi.json describes everything."),
    405: (Trouble.NO_SUCH_METHOD, "/openapi.json says which methods each path takes."),
}


async def _http_failed(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    trouble, detail = _BY_STATUS.get(status, (Trouble.INTERNAL_ERROR, "The log of the service says what."))
    return _response(problem(trouble, detail, headers))


async def _failed(_request: Request, _error: Exception) -> Response:
    # The server logs it with its traceback, and ends the connection.
    detail = "The log of the service says what. Repeating with the same key is safe."
    return _response(problem(Trouble.INTERNAL_ERROR, detail, {"Connection": "close"}))


def _too_large() -> HttpAnswer:
    # What is left of the body is not read: the connection can't be used again.
    return problem(
        Trouble.BODY_TOO_LARGE, f"It is larger than {BODY_LIMIT} bytes; nothing was submitted.", {"Connection": "close"}
    )


def _one_line(error: UsageError) -> str:
    return f"{error.message} {error.hint}".strip()


def _response(answer: HttpAnswer) -> Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **answer.headers}
    return Response(answer.body, status_code=answer.status, headers=headers, media_type=answer.media_type)
