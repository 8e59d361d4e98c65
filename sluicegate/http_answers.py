"""Say what HTTP answers to a decision and to what went wrong: status, body and headers (contract §5). Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from sluicegate.admission import Decision, RefusalReason
from sluicegate.http_bodies import DecisionBody, JobBody, ProblemBody
from sluicegate.producer import UNANSWERED_RETRY_S

JSON = "application/json"
PROBLEM = "application/problem+json"
JOBS_PATH = "/v1/jobs"

_EXPLAINED_AT = "https://github.com/sluicegate/sluicegate/blob/main/docs/reference/http.md"
_LIMIT_SUFFIX = "_limit"
# A server that refuses to write mends itself no faster than a person can look at it.
_REJECTED_RETRY_S = 30.0


class Trouble(StrEnum):
    """Name why a request got no decision; the comment says who acts."""

    KEY_MISSING = "idempotency_key_missing"  # the caller: send the header
    KEY_MALFORMED = "idempotency_key_malformed"  # the caller: send one key
    BODY_NOT_JSON = "body_not_json"  # the caller
    BODY_TOO_LARGE = "body_too_large"  # the caller: store the payload elsewhere
    BODY_TOO_SLOW = "body_too_slow"  # the caller: send it again
    NOT_JSON_TYPE = "not_json_type"  # the caller: send the content type
    MALFORMED = "malformed"  # the caller: a field breaks its bound
    UNAUTHORIZED = "unauthorized"  # the caller: send the token
    NO_SUCH_JOB = "no_such_job"  # nobody
    NO_SUCH_PATH = "no_such_path"  # the caller
    NO_SUCH_METHOD = "no_such_method"  # the caller
    UNANSWERED = "unanswered"  # the caller: repeat with the same key
    STORE_REJECTED = "store_rejected"  # whoever runs the queue's server
    INTERNAL_ERROR = "internal_error"  # whoever maintains this


_TROUBLES: Mapping[Trouble, tuple[int, str]] = {
    Trouble.KEY_MISSING: (400, "The Idempotency-Key header is missing"),
    Trouble.KEY_MALFORMED: (400, "The Idempotency-Key header does not hold one key"),
    Trouble.BODY_NOT_JSON: (400, "The body is not JSON"),
    Trouble.BODY_TOO_LARGE: (413, "The body is too large"),
    Trouble.BODY_TOO_SLOW: (408, "The body did not arrive in time"),
    Trouble.NOT_JSON_TYPE: (415, "The content type is not JSON"),
    Trouble.MALFORMED: (422, "A field breaks its bound"),
    Trouble.UNAUTHORIZED: (401, "A bearer token is needed"),
    Trouble.NO_SUCH_JOB: (404, "There is no such job"),
    Trouble.NO_SUCH_PATH: (404, "There is nothing at this path"),
    Trouble.NO_SUCH_METHOD: (405, "This path does not take that method"),
    Trouble.UNANSWERED: (503, "The queue's server did not answer"),
    Trouble.STORE_REJECTED: (503, "The queue's server refused the command"),
    Trouble.INTERNAL_ERROR: (500, "Something failed here"),
}

# Why a job is refused, in the words of whoever asked for it.
_REFUSALS: Mapping[str, tuple[str, str]] = {
    RefusalReason.OVERLOADED: ("The queue is full", "More jobs would only wait."),
    RefusalReason.ADMISSION_CLOSED: ("Admission is closed", "The gate lets no new job in."),
    RefusalReason.RAMP: ("Admission is reopening", "This key is outside the share admitted so far."),
    RefusalReason.CONTROLLER_SILENT: ("Admission is closed", "Nobody watches the deadlines at the moment."),
    RefusalReason.DEADLINE_UNREACHABLE: (
        "The deadline can't be met",
        "By the work that waits, or by its own time, it would be late.",
    ),
    RefusalReason.UNKNOWN_CLASS: ("The class is not declared", "The class or the cost class is unknown to this queue."),
    RefusalReason.CONFLICT: ("The key belongs to another job", "It was used with another class or payload."),
}
_FULL_CLASS = ("The class is full", "Its limit of waiting jobs is reached.")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Hold one answer; `body` is JSON."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def decided(decision: Decision) -> HttpAnswer:
    """Answer a decision: 202, else 422 for good, 429 for a full class, 503 for the rest (contract §5)."""
    if decision.accepted:
        return accepted(decision)
    title, why = _refusal(decision.reason)
    later = decision.retry_after_s
    hint = "This is final for this key." if later is None else f"Repeat it with the same key after {later:g} s."
    body = ProblemBody(
        type=explained_at(decision.reason),
        title=title,
        status=status_of(decision),
        detail=f"{why} {hint}",
        reason=decision.reason,
        accepted=False,
        job_id=decision.job_id,
        retry_after_s=later,
        replayed=decision.replayed,
    )
    return HttpAnswer(body.status, _json(body), PROBLEM, _retry_after(later))


def accepted(decision: Decision) -> HttpAnswer:
    """Answer 202 with where the job can be looked at; a repeat gets the same but for `replayed`."""
    body = DecisionBody(
        accepted=True, job_id=decision.job_id, reason="", retry_after_s=None, replayed=decision.replayed
    )
    return HttpAnswer(202, _json(body), headers={"Location": location(decision.job_id)})


def status_of(decision: Decision) -> int:
    """Give the status of a refusal."""
    if decision.final or decision.retry_after_s is None:
        return 422
    return 429 if decision.reason.endswith(_LIMIT_SUFFIX) else 503


def _refusal(reason: str) -> tuple[str, str]:
    if reason.endswith(_LIMIT_SUFFIX):
        return _FULL_CLASS
    return _REFUSALS.get(reason, ("The job is refused", f"The reason is {reason}."))


def location(job_id: str) -> str:
    """Give the path of a job; an id may hold any printable ASCII character."""
    return f"{JOBS_PATH}/{quote(job_id, safe='')}"


def job(job_id: str, record: Mapping[str, Any]) -> HttpAnswer:
    """Show a job as the store knows it."""
    return HttpAnswer(200, _json(JobBody.of(job_id, record)))


def problem(trouble: Trouble, detail: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Answer a request that got no decision."""
    status, title = _TROUBLES[trouble]
    body = ProblemBody(type=explained_at(trouble), title=title, status=status, detail=detail, reason=trouble)
    return HttpAnswer(status, _json(body), PROBLEM, headers or {})


def unanswered(what: str) -> HttpAnswer:
    """Answer where no answer came from the queue's server; `what` says what that means for this request."""
    return _store_trouble(Trouble.UNANSWERED, what, UNANSWERED_RETRY_S)


def store_rejected() -> HttpAnswer:
    """Answer where the queue's server answered with an error: nothing was done; the log of the service says why."""
    return _store_trouble(
        Trouble.STORE_REJECTED, "Nothing was done. The log of the service says why.", _REJECTED_RETRY_S
    )


def _store_trouble(trouble: Trouble, detail: str, retry_after_s: float) -> HttpAnswer:
    status, title = _TROUBLES[trouble]
    body = ProblemBody(
        type=explained_at(trouble),
        title=title,
        status=status,
        detail=detail,
        reason=trouble,
        retry_after_s=retry_after_s,
    )
    return HttpAnswer(status, _json(body), PROBLEM, _retry_after(retry_after_s))


def explained_at(reason: str) -> str:
    """Give the address at which a reason is explained; every full class is explained in one place."""
    anchor = "class_limit" if reason.endswith(_LIMIT_SUFFIX) else reason
    return f"{_EXPLAINED_AT}#{anchor}"


def _retry_after(seconds: float | None) -> Mapping[str, str]:
    """Give the header in whole seconds: rounded up, or a caller who keeps to it would come too early."""
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def _json(body: BaseModel) -> bytes:
    return json.dumps(body.model_dump(by_alias=True, exclude_unset=True), separators=(",", ":")).encode()
