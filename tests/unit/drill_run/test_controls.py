"""A part that does not do what the drill asks of it is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from drill.controls import ApiControl, AutomationControl, FaultControl, FiringSpan, PartSilent, PrometheusControl
from drill.load import Ask
from drill.ports import free_port
from drill.profile import Slowness
from drill.webhook import firing
from rules.generate import catalogue
from runbooks.alerts import parse
from sluicegate.admission import Decision
from sluicegate.settings import default_settings
from tests.small_server import Handler, served

Answers = dict[str, tuple[int, Any]]


@pytest.fixture
def answers() -> Iterator[tuple[str, Answers, list[tuple[str, str, Any]]]]:
    """Serve what a test puts in: path → status and JSON; give the address, the answers and what was asked."""
    known: Answers = {}
    asked: list[tuple[str, str, Any]] = []

    class Known(Handler):
        def respond(self) -> None:
            body = self.body()
            asked.append((self.command, self.path, json.loads(body) if body else None))
            status, answer = known.get(self.path.partition("?")[0], (404, {"error": "not here"}))
            self.answer(status, json.dumps(answer).encode())

    with served(Known) as address:
        yield f"http://{address}", known, asked


def test_a_part_that_is_not_there_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(PartSilent, match="fault proxy"):
        FaultControl(url).heal()
    with pytest.raises(PartSilent, match="Prometheus"):
        PrometheusControl(url).firing()
    with pytest.raises(PartSilent, match="automation service"):
        AutomationControl(url).approve("r1", "fix", actor="drill", reason="done")


def test_a_refusal_is_not_taken_for_a_yes(answers: tuple[str, Answers, list[tuple[str, str, Any]]]) -> None:
    url, known, _ = answers
    known["/v1/runs/r1/approve"] = (404, {"answer": "gone"})
    with pytest.raises(PartSilent, match="404"):
        AutomationControl(url).approve("r1", "fix", actor="drill", reason="done")


def test_faults_are_asked_for_in_toxiproxys_words(answers: tuple[str, Answers, list[tuple[str, str, Any]]]) -> None:
    url, known, asked = answers
    known["/proxies/provider/toxics"] = (200, {})
    control = FaultControl(url)
    control.slow_down(Slowness(3500, 700))
    control.break_calls(503, 0.08)
    control.break_calls(429, 1.0, 2)
    bodies = [body for _, _, body in asked]
    assert [(body["type"], body["attributes"]) for body in bodies] == [
        ("latency", {"latency": 3500, "jitter": 700}),
        ("status", {"status": 503, "probability": 0.08}),
        ("status", {"status": 429, "probability": 1.0, "retry_after_s": 2}),
    ]
    assert all(body["stream"] == "downstream" and body["toxicity"] == 1.0 for body in bodies)


def test_an_alert_that_is_only_pending_does_not_fire(answers: tuple[str, Answers, list[tuple[str, str, Any]]]) -> None:
    url, known, _ = answers
    alerts = [
        {"labels": {"alertname": "B"}, "state": "firing"},
        {"labels": {"alertname": "A"}, "state": "firing"},
        {"labels": {"alertname": "B"}, "state": "firing"},
        {"labels": {"alertname": "C"}, "state": "pending"},
    ]
    known["/api/v1/alerts"] = (200, {"data": {"alerts": alerts}})
    assert PrometheusControl(url).firing() == ("A", "B")


def test_firing_spans_have_the_times_of_the_evaluations(
    answers: tuple[str, Answers, list[tuple[str, str, Any]]],
) -> None:
    url, known, asked = answers
    series = [
        {"metric": {"alertname": "Late"}, "values": [[20.25, "1"]]},
        {"metric": {"alertname": "Early"}, "values": [[10.5, "1"], [11.5, "1"], [12.5, "1"]]},
    ]
    known["/api/v1/query"] = (200, {"data": {"result": series}})
    spans = PrometheusControl(url).firing_spans(0)
    assert spans == (FiringSpan("Early", 10_500, 12_500), FiringSpan("Late", 20_250, 20_250))
    assert "alertstate" in asked[0][1]


def test_a_job_is_posted_under_its_quoted_key_and_its_answer_read(
    answers: tuple[str, Answers, list[tuple[str, str, Any]]],
) -> None:
    url, known, asked = answers
    body = {"accepted": True, "job_id": "k1", "reason": "", "retry_after_s": None, "replayed": True}
    known["/v1/jobs"] = (202, body)
    decision = ApiControl(url).submit(Ask("test-patch", "k1", '{"n":1}'))
    assert decision == Decision(True, "k1", replayed=True)
    assert asked == [("POST", "/v1/jobs", {"class": "test-patch", "payload": {"n": 1}})]
    known["/v1/jobs"] = (503, {"accepted": False})
    with pytest.raises(PartSilent, match="HTTP API"):
        ApiControl(url).submit(Ask("test-patch", "k1", "{}"))


def test_a_notification_is_delivered_and_its_runs_are_read(
    answers: tuple[str, Answers, list[tuple[str, str, Any]]],
) -> None:
    url, known, asked = answers
    known["/webhooks/alertmanager"] = (202, {"runs": [{"id": "r1", "state": "moved", "duplicate": False}]})
    assert AutomationControl(url).deliver({"version": "4"}) == [{"id": "r1", "state": "moved", "duplicate": False}]
    assert asked == [("POST", "/webhooks/alertmanager", {"version": "4"})]


def test_the_notification_is_one_that_the_receiver_understands() -> None:
    settings = default_settings()
    for alert in catalogue(settings):
        posted = json.dumps(firing(alert, datetime(2026, 11, 29, 15, tzinfo=UTC))).encode()
        (parsed,) = parse(posted).alerts
        assert parsed.firing
        assert parsed.name == alert.name
        assert parsed.labels == {"alertname": alert.name, **alert.labels}
        assert parsed.ends_at_ms == 0
