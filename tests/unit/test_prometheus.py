"""Every way in which a Prometheus fails to answer is one sentence, and no part of an answer passes for the whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import responses
from urllib3.exceptions import IncompleteRead, ProtocolError

from sluicegate.errors import PrometheusFailed, UsageError
from sluicegate.prometheus import MOST_STEPS, Prometheus

URL = "http://prometheus.test:9090"
QUERY, RANGE = f"{URL}/api/v1/query", f"{URL}/api/v1/query_range"
TOKEN = "s3cret-token"


@pytest.fixture
def answers() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as mock:
        yield mock


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    made = Prometheus(f"{URL}/", token=TOKEN, within_s=3)
    yield made
    made.close()


def body(*result: Any, **fields: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(result)}, **fields}


def series(*values: tuple[float, str], **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": [list(pair) for pair in values]}


def error(kind: str, text: str) -> dict[str, Any]:
    return {"status": "error", "errorType": kind, "error": text}


FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "500": ({"status": 500, "json": error("internal", "disk is gone")}, "answered 500: disk is gone"),
    "503 without JSON": ({"status": 503, "body": "<html>busy</html>"}, "answered 503 with what is no JSON"),
    "its own timeout": ({"status": 503, "json": error("timeout", "query timed out")}, "answered 503: query timed out"),
    "a bad expression": ({"status": 400, "json": error("bad_data", "parse error")}, "answered 400: parse error"),
    "no permission": ({"status": 401, "body": ""}, "answered 401 with what is no JSON"),
    "too many samples": ({"status": 422, "json": error("execution", "too many samples")}, "too many samples"),
    "bad JSON": ({"body": '{"status":"success","data":{"res'}, "answered 200 with what is no JSON"),
    "an empty body": ({"body": ""}, "answered 200 with what is no JSON"),
    "a list": ({"json": [1]}, "no answer of its API"),
    "an error that calls itself 200": ({"json": error("execution", "expanding series")}, "expanding series"),
    "part of the answer": ({"json": body(warnings=["remote read: connection refused"])}, "has only part of the answer"),
    "no data": ({"json": {"status": "success"}}, "makes no sense"),
    "no result": ({"json": {"status": "success", "data": {}}}, "makes no sense"),
    "a series without values": ({"json": body({"metric": {}})}, "makes no sense"),
    "a value that is no number": ({"json": body(series((1, "high")))}, "makes no sense"),
    "a sample of one": ({"json": body({"metric": {}, "values": [[1]]})}, "makes no sense"),
    "no answer in time": ({"body": requests.exceptions.ReadTimeout()}, "has not answered within 3 s"),
    "no connection in time": ({"body": requests.exceptions.ConnectTimeout()}, "has not answered within 3 s"),
    "nobody listens": (
        {"body": requests.exceptions.ConnectionError(OSError(111, "Connection refused"))},
        "can't be reached",
    ),
    "an answer that breaks off": (
        {"body": requests.exceptions.ChunkedEncodingError(ProtocolError("gone", IncompleteRead(10, 90)))},
        "broke its answer off",
    ),
    "another address": ({"status": 302, "headers": {"Location": "http://elsewhere.test/"}}, "sends to another address"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_one_sentence_asked_once_and_without_the_token(
    answers: responses.RequestsMock, prometheus: Prometheus, name: str
) -> None:
    answer, said = FAILURES[name]
    answers.get(RANGE, **answer)

    with pytest.raises(PrometheusFailed) as caught:
        prometheus.over("up == 1", 0, 10_000, 1_000)

    assert said in str(caught.value)
    assert str(caught.value).startswith("Prometheus at prometheus.test:9090")
    assert TOKEN not in str(caught.value)
    assert len(answers.calls) == 1


def test_a_failure_names_what_was_asked_and_an_instant_fails_alike(
    answers: responses.RequestsMock, prometheus: Prometheus
) -> None:
    answers.get(QUERY, status=500, json=error("internal", "no"))
    with pytest.raises(PrometheusFailed, match=r"asked for `up\[10000ms\]`, answered 500"):
        prometheus.samples("up", 0, 10_000)


def test_nothing_is_an_answer(answers: responses.RequestsMock, prometheus: Prometheus) -> None:
    answers.get(RANGE, json=body())
    assert prometheus.over("up", 0, 10_000, 1_000) == ()


def test_a_remark_on_the_expression_is_no_missing_part(answers: responses.RequestsMock, prometheus: Prometheus) -> None:
    answers.get(RANGE, json=body(series((1, "2")), warnings=["PromQL info: metric might not be a counter"]))
    assert prometheus.over("up", 0, 10_000, 1_000)[0].samples == ((1000, 2.0),)


def test_what_is_no_number_or_has_no_bound_is_read_as_it_is(
    answers: responses.RequestsMock, prometheus: Prometheus
) -> None:
    answers.get(RANGE, json=body(series((1.5, "NaN"), (2.5, "+Inf"), (3.5, "-Inf"))))
    ((_, not_a_number), above, below) = prometheus.over("up", 0, 10_000, 1_000)[0].samples
    assert math.isnan(not_a_number)
    assert (above, below) == ((2500, math.inf), (3500, -math.inf))


def test_instants_are_asked_for_to_the_millisecond(answers: responses.RequestsMock, prometheus: Prometheus) -> None:
    answers.get(RANGE, json=body())
    prometheus.over("up", 1_700_000_000_123, 1_700_000_003_623, 500)

    asked = parse_qs(urlsplit(str(answers.calls[0].request.url)).query)
    assert (asked["start"], asked["end"], asked["step"]) == (["1700000000.123"], ["1700000003.623"], ["0.500"])
    assert asked["timeout"] == ["3s"]
    assert answers.calls[0].request.headers["Authorization"] == f"Bearer {TOKEN}"


def test_more_steps_than_it_answers_at_once_are_asked_for_in_turn(
    answers: responses.RequestsMock, prometheus: Prometheus
) -> None:
    asked: list[tuple[float, float]] = []

    def answer(request: requests.PreparedRequest) -> tuple[int, dict[str, str], str]:
        query = parse_qs(urlsplit(str(request.url)).query)
        begins, ends = float(query["start"][0]), float(query["end"][0])
        asked.append((begins, ends))
        return 200, {}, json.dumps(body(series((begins, "1"), (ends, "2"), queue="a")))

    answers.add_callback(responses.GET, RANGE, callback=answer)
    last_ms = 2 * MOST_STEPS * 1000 + 5000
    (found,) = prometheus.over("up", 0, last_ms, 1000)

    assert asked == [(0, MOST_STEPS - 1), (MOST_STEPS, 2 * MOST_STEPS - 1), (2 * MOST_STEPS, 2 * MOST_STEPS + 5)]
    assert [at for at, _ in found.samples] == [round(at * 1000) for bounds in asked for at in bounds]


def test_the_samples_of_a_time_leave_out_what_was_at_its_very_beginning(
    answers: responses.RequestsMock, prometheus: Prometheus
) -> None:
    """Prometheus 2 takes both ends in, Prometheus 3 only the last; in turn nothing may be counted twice."""
    answers.get(QUERY, json=body(series((1, "1"), (2, "1"), (3, "1"))))
    assert [at for at, _ in prometheus.samples("up", 1000, 3000)[0].samples] == [2000, 3000]


@pytest.mark.parametrize(
    "url", ["", "prometheus:9090", "ftp://a/", "http://", "http://[::1", "http://host:port", "//a"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of an HTTP server"):
        Prometheus(url)


def test_a_password_in_the_address_is_not_shown(answers: responses.RequestsMock) -> None:
    answers.get("http://ann:secret@prometheus.test/api/v1/query", status=500, body="")
    with pytest.raises(PrometheusFailed) as caught:
        Prometheus("http://ann:secret@prometheus.test").at("up", 0)
    assert "secret" not in str(caught.value)
