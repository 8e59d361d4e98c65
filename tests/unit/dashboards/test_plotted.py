"""What is asked for a picture, and how answers become curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import responses

from dashboards.generate import dashboards
from dashboards.model import Kind, Panel, Query, Unit
from dashboards.plotted import Plotter
from dashboards.queries import legend_labels, legend_of
from sluicegate.prometheus import Prometheus
from sluicegate.settings import default_settings
from sluicegate.svg import Span

URL = "http://prometheus.test:9090"


@pytest.fixture
def answers() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as mock:
        yield mock


def answer(kind: str, *series: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": list(series)}}


def panel(kind: Kind, *queries: Query) -> Panel:
    return Panel(1, "a panel", "It says.", kind, Unit.SECONDS, queries, "nothing")


def test_a_curve_has_a_point_for_every_step_and_gaps_where_there_was_no_sample(answers: responses.RequestsMock) -> None:
    series = {"metric": {"class": "lint", "queue": "night"}, "values": [[100, "1"], [102, "3"]]}
    answers.get(f"{URL}/api/v1/query_range", json=answer("matrix", series))
    shown = panel(Kind.LINES, Query('age{queue="$queue"}', "{{class}} of {{missing}}"))
    (line,) = Plotter(Prometheus(URL), 100_000, 103_000).lines(shown, "night")
    assert line.label == "lint of "
    assert line.points == ((0.0, 1.0), (1.0, None), (2.0, 3.0), (3.0, None))
    assert "%24queue" not in str(answers.calls[0].request.url)
    assert "night" in str(answers.calls[0].request.url)


def test_a_number_is_that_of_the_last_instant_alone(answers: responses.RequestsMock) -> None:
    answers.get(f"{URL}/api/v1/query", json=answer("vector", {"metric": {}, "value": [103, "7"]}))
    (line,) = Plotter(Prometheus(URL), 100_000, 103_000).lines(panel(Kind.STAT, Query("age", "now")), "night")
    assert line.points == ((0.0, 7.0),)
    assert "time=103.000" in str(answers.calls[0].request.url)


def test_steps_are_whole_seconds_and_not_more_than_a_panel_has_room_for() -> None:
    asked = Prometheus(URL)
    assert Plotter(asked, 0, 60_000).step_ms == 1000
    assert Plotter(asked, 0, 7 * 86_400_000).step_ms == 2_520_000


def test_marks_are_stretches_of_what_was_there(answers: responses.RequestsMock) -> None:
    values = [[at, "1"] for at in (101, 102, 105)]
    series = {"metric": {"drain_state": "drain", "alertname": "A"}, "values": values}
    answers.get(f"{URL}/api/v1/query_range", json=answer("matrix", series))
    answers.get(f"{URL}/api/v1/query", json=answer("vector"))
    plotted = Plotter(Prometheus(URL), 100_000, 105_000).plot(dashboards(default_settings())[0])
    assert plotted.closings == (Span("drain", 1, 3), Span("drain", 5, 6))
    assert [span.label for span in plotted.alerts] == ["A", "A"]
    assert plotted.seconds == 5


def test_a_legend_names_its_labels() -> None:
    assert legend_labels("{{class}}: {{ step }} done") == ("class", "step")
    assert legend_of("{{class}}: {{ step }} done", {"class": "lint", "step": "fix"}) == "lint: fix done"
