"""Describe the queue's HTTP API as OpenAPI: what FastAPI can't see where a handler reads the request itself."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from sluicegate.http_answers import JSON, PROBLEM
from sluicegate.http_bodies import DecisionBody, JobBody, JobRequest, ProblemBody
from sluicegate.idempotency_key import HEADER as KEY_HEADER
from sluicegate.submission import MAX_KEY

_REFERENCE = "#/components/schemas/{model}"
_SECURITY: list[dict[str, list[str]]] = [{}, {"bearer": []}]
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Whole seconds, rounded up, after which a repeat with the same key may be accepted.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_LOCATION = {"Location": {"description": "Where the job can be looked at.", "schema": {"type": "string"}}}
_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "required": True,
    "description": (
        "A key of the caller's own for this job: a structured-field string as in "
        "draft-ietf-httpapi-idempotency-key-header, in quotes; the same without quotes is taken as well. "
        f"1 to {MAX_KEY} printable ASCII characters without spaces. The same key again gets the same job, or the same "
        "refusal while it stands."
    ),
    "schema": {"type": "string"},
    "example": '"8e03978e-40d5-43dd-bc93-6894a57f9324"',
}


def _problem(description: str, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    content = {PROBLEM: {"schema": {"$ref": _REFERENCE.format(model=ProblemBody.__name__)}}}
    response: dict[str, Any] = {"description": description, "content": content}
    return response if headers is None else {**response, "headers": headers}


_STORE_AWAY = _problem("The queue's server did not answer, or refused the command.", headers=_RETRY_AFTER)

POST_JOBS: dict[str, Any] = {
    "summary": "Submit a job",
    "operation_id": "submit_job",
    "status_code": 202,
    "response_model": DecisionBody,
    "response_description": "The job is accepted, now or by an earlier request with the same key.",
    "responses": {
        202: {"headers": _LOCATION},
        400: _problem("The key is missing or not one key, or the body is not JSON."),
        401: _problem("The bearer token is missing or wrong."),
        408: _problem("The body did not arrive in time."),
        413: _problem("The body is too large."),
        415: _problem("The content type is not JSON."),
        422: _problem("Final: a field breaks its bound, the job is refused for good, or the key is another job's."),
        429: _problem("The class or the cost class is full.", headers=_RETRY_AFTER),
        503: _problem(
            "Admission is closed, ramping up or unwatched, the queue is full, or no answer came (`unanswered`): "
            "repeating with the same key is safe.",
            headers=_RETRY_AFTER,
        ),
    },
    "openapi_extra": {
        "parameters": [_KEY],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"$ref": _REFERENCE.format(model=JobRequest.__name__)}}},
        },
        "security": _SECURITY,
    },
}
GET_JOB: dict[str, Any] = {
    "summary": "Show a job",
    "operation_id": "show_job",
    "response_model": JobBody,
    "response_description": "The job as it is now.",
    "responses": {
        401: _problem("The bearer token is missing or wrong."),
        404: _problem("There is no such job: a refusal makes none, and one that has ended is kept for a day."),
        503: _STORE_AWAY,
        "default": _problem("Anything else that went wrong."),
    },
    "openapi_extra": {"security": _SECURITY},
}
HEALTHZ: dict[str, Any] = {
    "summary": "Say that this process answers",
    "operation_id": "healthz",
    "response_model": dict[str, str],
    "response_description": "It does.",
}
READYZ: dict[str, Any] = {
    "summary": "Say whether the queue's server lets this service call its functions",
    "operation_id": "readyz",
    "response_model": dict[str, str],
    "response_description": "It does.",
    "responses": {503: _STORE_AWAY},
}


def describe(app: FastAPI) -> None:
    """Make the application serve its whole description at /openapi.json."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the description


def _document(app: FastAPI) -> dict[str, Any]:
    summary = "Submit jobs under idempotency keys, and look at them."
    document = get_openapi(title=app.title, version=app.version, summary=summary, routes=app.routes)
    components = document.setdefault("components", {})
    for model in (JobRequest, ProblemBody):
        schema = model.model_json_schema(by_alias=True, ref_template=_REFERENCE)
        components.setdefault("schemas", {})[model.__name__] = schema
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return document


def rendered(app: FastAPI) -> str:
    """Give the description as it is committed: JSON, two spaces deep."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"
