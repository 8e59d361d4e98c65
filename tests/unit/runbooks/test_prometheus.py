"""One answer in time is a sample; anything else says why it is none, and is asked for once."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from typing import Any

import pytest
import requests
import responses

import automation.evidence
from automation.evidence import Prometheus
from runbooks.context import Context
from runbooks.evidence import NOT_ASKED, NOT_SET, Sample
from runbooks.prometheus import ask, sample_of
from runbooks.promql import Query
from runbooks.verdict import Verdict
from runbooks.where import Where
from sluicegate.errors import SettingsError
from sluicegate.settings import default_settings
from tests.small_server import Handler, served
from tests.unit.runbooks.readings import HEALTHY

URL = "http://prometheus.example:9090"
CONTEXT = Context(default_settings())
WHERE = Where("mine.yaml", "steps[0].wait_for.pass_if[0]")


def vector(*values: str) -> dict[str, Any]:
    series = [{"metric": {"n": str(n)}, "value": [1_700_000_000, value]} for n, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


def query(promql: str = "rate(x[1m])", holds: str = "< 0.05") -> Query:
    return Query.read({"promql": promql, "holds": holds}, WHERE)


@pytest.fixture
def prometheus() -> Any:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 500, "json": {"status": "error"}}, "HTTP Status Code 500"),
        ({"status": 503, "body": "starting"}, "HTTP Status Code 503"),
        ({"status": 422, "json": {"status": "error", "error": "bad query"}}, "HTTP Status Code 422"),
        ({"json": vector()}, "no series"),
        ({"json": vector("1", "2")}, "2 series, where one is asked for"),
        ({"json": vector("NaN")}, "NaN"),
        ({"json": vector("much")}, "its answer is no number"),
        ({"json": {"status": "success"}}, "'data'"),
        ({"json": []}, "no answer"),
        ({"body": "<html>"}, "no answer"),
        ({"body": requests.ConnectionError("refused")}, "ConnectionError"),
        ({"body": requests.Timeout("slow")}, "no answer within 5 s"),
    ],
)
def test_what_is_no_single_number_says_nothing_and_is_asked_for_once(
    prometheus: responses.RequestsMock, answer: dict[str, Any], why: str
) -> None:
    prometheus.get(f"{URL}/api/v1/query", **answer)
    sample = ask(URL, "rate(x[1m])")
    assert sample.value is None
    assert why in sample.why
    assert len(prometheus.calls) == 1
    check = query().check(HEALTHY, CONTEXT, {"rate(x[1m])": sample})
    assert (check.verdict, check.why) == (Verdict.INCONCLUSIVE, sample.why)


@pytest.mark.parametrize(("value", "verdict"), [("0.01", Verdict.PASS), ("0.05", Verdict.FAIL), ("+Inf", Verdict.FAIL)])
def test_one_number_is_compared(prometheus: responses.RequestsMock, value: str, verdict: Verdict) -> None:
    prometheus.get(f"{URL}/api/v1/query", json=vector(value))
    sample = ask(URL, "rate(x[1m])")
    assert query().check(HEALTHY, CONTEXT, {"rate(x[1m])": sample}).verdict is verdict
    assert prometheus.calls[0].request.url == f"{URL}/api/v1/query?query=rate%28x%5B1m%5D%29"


def test_a_scalar_is_a_number_too() -> None:
    assert sample_of([1_700_000_000, "2.5"]) == Sample(2.5)


@pytest.mark.parametrize("result", [None, {}, "2", [{}], [{"value": None}], [[]], [1]])
def test_whatever_was_answered_is_read_or_no_number(result: object) -> None:
    sample = sample_of(result)
    assert sample.value is None
    assert sample.why


def test_a_redirect_is_not_followed() -> None:
    asked = []

    class Elsewhere(Handler):
        def respond(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/api/v1/elsewhere")
            self.end_headers()

    with served(Elsewhere) as address:
        assert ask(f"http://{address}", "x", within_s=2).value is None
    assert len(asked) <= 1


def test_one_that_hangs_and_one_that_drips_are_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drips(Handler):
        def respond(self) -> None:
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                try:
                    self.wfile.write(b" ")
                    self.wfile.flush()
                except OSError:
                    return
                time.sleep(0.05)

    monkeypatch.setattr(automation.evidence, "ANSWER_WITHIN_S", 0.3)
    with served(Drips) as address:
        began = time.monotonic()
        samples = asyncio.run(Prometheus(f"http://{address}").samples(["x", "y"]))
        assert time.monotonic() - began < 5
    assert {sample.why for sample in samples.values()} == {"no answer within 0.3 s"}


def test_one_that_never_ends_its_answer_is_not_asked_again_and_costs_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ends = [], threading.Event()

    class NeverEnds(Handler):
        def respond(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not ends.wait(0.05):
                    self.wfile.write(b" ")

    monkeypatch.setattr(automation.evidence, "ANSWER_WITHIN_S", 0.2)
    monkeypatch.setattr(automation.evidence, "_FRESH_S", 0.0)
    with served(NeverEnds) as address:
        client = Prometheus(f"http://{address}")

        async def looks() -> list[str]:
            return [(await client.samples(["x"]))["x"].why for _ in range(20)]

        assert set(asyncio.run(looks())) == {"no answer within 0.2 s"}
        ends.set()
    assert len(asked) == 1


def test_it_is_asked_no_more_than_every_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def told(url: str, text: str) -> Sample:
        asked.append(text)
        return Sample(float(len(asked)))

    monkeypatch.setattr(automation.evidence, "ask", told)
    now = 100.0
    client = Prometheus(URL, lambda: now)

    async def looks() -> list[float | None]:
        nonlocal now
        values = []
        for seconds in (0.0, 1.9, 0.2):
            now += seconds
            values.append((await client.samples(["x"]))["x"].value)
        return values

    assert asyncio.run(looks()) == [1.0, 1.0, 2.0]
    assert asyncio.run(Prometheus(None).samples(["x"])) == {"x": NOT_SET}
    assert asked == ["x", "x"]


def test_a_query_that_nobody_asked_says_nothing() -> None:
    check = query().check(HEALTHY, CONTEXT)
    assert (check.value, check.verdict, check.why) == (None, Verdict.INCONCLUSIVE, NOT_ASKED.why)
    assert query().worded(CONTEXT) == "rate(x[1m]) < 0.05"


@pytest.mark.parametrize(
    ("promql", "holds", "match"),
    [
        ("rate(x[1m]", "< 1", "not PromQL"),
        ("", "< 1", "not PromQL"),
        ("x\ny", "< 1", "line break"),
        ("{{ alert.labels.queue }}", "< 1", "not a declared name"),
        ("x", "0.05", "not of the form"),
        ("x", "< much", "not a plain number"),
        ("x", "!= 1", "not of the form"),
        ("x" * 513, "< 1", "above the 512 allowed"),
    ],
)
def test_what_is_no_query_is_refused_with_its_field(promql: str, holds: str, match: str) -> None:
    with pytest.raises(SettingsError, match=match) as refused:
        query(promql, holds)
    assert str(refused.value).startswith("mine.yaml: steps[0].wait_for.pass_if[0]")


def test_a_query_may_name_its_queue_and_a_bound_may_be_negative() -> None:
    named = query('sum(jobs{queue="{{ queue }}"})', ">= -1.5")
    assert named.queries(CONTEXT) == ('sum(jobs{queue="default"})',)
    assert named.check(HEALTHY, CONTEXT, {named.text(CONTEXT): Sample(-1.5)}).verdict is Verdict.PASS
    assert named.check(HEALTHY, CONTEXT, {named.text(CONTEXT): Sample(math.nan)}).verdict is Verdict.INCONCLUSIVE
