"""Does each decision get the status, the headers and the words that contract §5 and the page of the docs give it?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sluicegate.admission import Decision, RefusalReason
from sluicegate.http_answers import Trouble, decided, explained_at, location, problem
from sluicegate.http_api import api_document
from sluicegate.http_bodies import JobRequest

# Every reason that admission gives, with when to come back and the status that contract §5 gives it.
REFUSALS = [
    (RefusalReason.OVERLOADED, 30.0, 503),
    (RefusalReason.ADMISSION_CLOSED, 30.0, 503),
    (RefusalReason.RAMP, 30.0, 503),
    (RefusalReason.CONTROLLER_SILENT, 30.0, 503),
    (RefusalReason.DEADLINE_UNREACHABLE, None, 422),
    (RefusalReason.UNKNOWN_CLASS, None, 422),
    (RefusalReason.CONFLICT, None, 422),
    ("browser_limit", 15.0, 429),
    ("lint-fix_limit", 15.0, 429),
    ("a_reason_of_tomorrow", 5.0, 503),
]


def test_the_table_names_every_reason() -> None:
    assert {reason for reason, _, _ in REFUSALS} >= set(RefusalReason)


@pytest.mark.parametrize(("reason", "retry_after_s", "status"), REFUSALS)
@pytest.mark.parametrize("replayed", [False, True])
def test_a_refusal_has_its_status_its_time_and_its_decision(
    reason: str, retry_after_s: float | None, status: int, replayed: bool
) -> None:
    answer = decided(Decision(False, "j1", reason, retry_after_s, replayed))
    body = json.loads(answer.body)
    assert (answer.status, body["status"], answer.media_type) == (status, status, "application/problem+json")
    decision = {name: body[name] for name in ("accepted", "job_id", "reason", "retry_after_s", "replayed")}
    assert decision == {
        "accepted": False,
        "job_id": "j1",
        "reason": reason,
        "retry_after_s": retry_after_s,
        "replayed": replayed,
    }
    assert ("Retry-After" in answer.headers) == (retry_after_s is not None)


@given(st.floats(0, 1e6))
def test_retry_after_is_whole_seconds_and_never_too_early(seconds: float) -> None:
    answer = decided(Decision(False, "j1", "overloaded", seconds))
    value = answer.headers["Retry-After"]
    assert re.fullmatch(r"[1-9]\d*", value)
    assert seconds <= int(value) <= max(1, seconds + 1)


@given(st.text("".join(chr(code) for code in range(0x21, 0x7F)), min_size=1, max_size=64))
def test_a_location_is_one_segment_of_a_path_whatever_the_id(job_id: str) -> None:
    assert re.fullmatch(r"/v1/jobs/[A-Za-z0-9._~%-]+", location(job_id))


def test_every_reason_is_explained_where_its_type_points(repository: Path) -> None:
    page = (repository / "docs/reference/http.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\S+)\n\n(\d{3})", page, re.MULTILINE))
    wanted = {explained_at(reason).rpartition("#")[2]: status for reason, _, status in REFUSALS[:-1]}
    for trouble in Trouble:
        answer = problem(trouble, "x")
        wanted[explained_at(trouble).rpartition("#")[2]] = answer.status
        assert explained_at(trouble).partition("/blob/main/")[2].startswith("docs/reference/http.md#")
    assert {name: int(status) for name, status in sections.items()} == wanted


def test_the_committed_description_is_up_to_date_and_names_every_status(repository: Path) -> None:
    committed = (repository / "docs/reference/openapi.json").read_text(encoding="utf-8")
    assert committed == api_document(), "run `sluicegate queue openapi > docs/reference/openapi.json`"
    described = set(json.loads(committed)["paths"]["/v1/jobs"]["post"]["responses"])
    elsewhere = {404, 405, 500}  # not of this path and method, or of none
    statuses = {problem(trouble, "x").status for trouble in Trouble} | {status for _, _, status in REFUSALS}
    assert described == {str(status) for status in (statuses - elsewhere) | {202}}


def test_every_reference_in_the_description_leads_somewhere() -> None:
    document = json.loads(api_document())
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])
    assert {"JobRequest", "DecisionBody", "JobBody", "ProblemBody"} <= names
    assert document["components"]["schemas"]["JobRequest"]["required"] == ["class", "payload"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def reversed_names(value: Any) -> Any:
    """Give the same JSON with the names of every object in the opposite order."""
    if isinstance(value, dict):
        return {name: reversed_names(value[name]) for name in reversed(value)}
    return [reversed_names(inner) for inner in value] if isinstance(value, list) else value


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_a_payload_keeps_its_value_and_one_value_has_one_text(value: Any, ascii_only: bool, indent: int | None) -> None:
    plain = json.dumps({"class": "lint-fix", "payload": value})
    other = json.dumps({"payload": reversed_names(value), "class": "lint-fix"}, ensure_ascii=ascii_only, indent=indent)
    text = JobRequest.model_validate_json(plain).payload_text()
    assert json.loads(text) == value
    assert JobRequest.model_validate_json(other.encode("utf-8")).payload_text() == text


NAMES = st.sampled_from(["class", "payload", "deadline_s", "deadline_ts", "cost_class", "job_class", ""])
LIKELY = st.just("lint-fix") | st.just(1.5) | JSON_VALUES
NEARLY_REQUESTS = st.dictionaries(NAMES, LIKELY, max_size=5) | st.fixed_dictionaries(
    {"class": st.just("lint-fix"), "payload": JSON_VALUES},
    optional={"deadline_s": st.floats(allow_nan=False) | LIKELY, "cost_class": st.text() | LIKELY},
)


@given(st.binary(max_size=80) | (NEARLY_REQUESTS | JSON_VALUES).map(lambda value: json.dumps(value).encode()))
def test_a_body_is_a_request_or_a_validation_error_and_nothing_else(body: bytes) -> None:
    try:
        request = JobRequest.model_validate_json(body)
    except ValidationError:
        return
    sent = json.loads(body)
    assert {"class", "payload"} <= set(sent) <= {"class", "payload", "deadline_s", "deadline_ts", "cost_class"}
    assert (request.job_class, request.cost_class) == (sent["class"], sent.get("cost_class"))
    for name in ("deadline_s", "deadline_ts"):
        assert getattr(request, name) == sent.get(name)
        assert not isinstance(sent.get(name), bool)
