"""The main job as a whole fast drill, and what its Prometheus recorded: for every panel, and to replay its alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboards.generate import dashboards
from dashboards.model import Panel, Query
from dashboards.queries import closed_gate, filled, firing_alerts, legend_labels
from drill.controls import PROVIDER_PROXY
from drill.pictures import draw
from drill.recording import Recording, recording
from rules.backtest.history import History, Inputs
from rules.backtest.replay import replay
from rules.backtest.run import Tried
from rules.generate import catalogue
from rules.scope import Scope
from sluicegate.prometheus import Prometheus
from sluicegate.records import AlertName
from sluicegate.settings import Settings, load
from tests.guides import Guide
from tests.running_drill import Places, make

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
AT_MOST_S = 60
# What this drill has no case of, by the panel's title; a panel that shows something after all must leave the list.
SHOWS_NOTHING = {"Oldest unknown job"}


@dataclass(frozen=True)
class Degraded:
    """Hold how the drill ended and its report, and the way to what was recorded in it."""

    code: int
    output: str
    report: Path
    recorded: Recording
    settings: Settings
    prometheus: Prometheus


@pytest.fixture(scope="module")
def degraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Degraded]:
    """Run the drill once for all that look at it, by the second command of the guide to the first drill.

    The guide's first command is the same five times as long: the slow tests run it.
    """
    places = Places.below(tmp_path_factory.mktemp("degraded"))
    with Guide.named("first-drill") as guide:
        guide.next("make drill  ")
        fast = guide.next('make drill ARGS="--profile fast"')
    code, output = make(places, fast, "--scenario", "provider-degradation", "--seed", "7", "--keep")
    (kept,) = places.left()
    report = places.reports / "latest"
    with recording(places.temporary / kept, report) as recorded:
        yield Degraded(code, output, report, recorded, load(recorded.settings, {}), Prometheus(recorded.url))


def test_provider_degradation_is_recovered_through_a_real_alert(degraded: Degraded) -> None:
    assert degraded.code == 0, degraded.output
    assert "verdict: provider-degradation (fast) passed" in degraded.output
    report = degraded.report
    figures = json.loads((report / "figures.json").read_text())
    states = [sample["drain_state"] for sample in figures["samples"]]
    assert list(dict.fromkeys(states)) == ["admit", "reject_new", "drain", "recovering"]
    assert states[-1] == "admit"
    assert any(alert["alert"] == "SluicegateQueueAgeCritical" for alert in figures["alerts"])
    records = [json.loads(line) for line in (report / "audit.jsonl").read_text().splitlines()]
    assert any(record.get("trigger") == "webhook" or "webhook" in record.get("text", "") for record in records)
    page = (report / "index.html").read_text()
    assert PROVIDER_PROXY in page
    assert re.search(r"Prometheus \d+\.\d+", page)
    assert re.search(r"(Redis|Valkey) \d+\.\d+", page)
    assert (report / "drill.svg").stat().st_size < 200_000
    samples = figures["samples"]
    assert (samples[-1]["at_ms"] - samples[0]["at_ms"]) / 1000 <= AT_MOST_S


def panels(settings: Settings) -> list[tuple[Panel, Query]]:
    return [
        (panel, query)
        for dashboard in dashboards(settings)
        for row in dashboard.rows
        for panel in row.panels
        for query in panel.queries
    ]


def test_every_expression_of_a_dashboard_returns_series_with_the_labels_of_its_legend(degraded: Degraded) -> None:
    recorded, queue = degraded.recorded, degraded.settings.queue
    silent, unnamed = set(), []
    for panel, query in panels(degraded.settings):
        expression = filled(query.expression, queue)
        series = degraded.prometheus.over(expression, recorded.from_ms, recorded.to_ms, 1000)
        if not series:
            silent.add(panel.title)
        unnamed += [
            (panel.title, label) for one in series for label in legend_labels(query.legend) if not one.labels.get(label)
        ]
    assert silent == SHOWS_NOTHING
    assert unnamed == []


def test_the_marks_over_the_graphs_are_the_drills_alerts_and_moves(degraded: Degraded) -> None:
    recorded, queue = degraded.recorded, degraded.settings.queue

    def marked(expression: str, label: str) -> set[str]:
        found = degraded.prometheus.over(filled(expression, queue), recorded.from_ms, recorded.to_ms, 1000)
        return {one.labels[label] for one in found}

    assert {"reject_new", "drain", "recovering"} <= marked(closed_gate(), "drain_state")
    fired = marked(firing_alerts(), "alertname")
    assert AlertName.QUEUE_AGE_CRITICAL in fired
    assert AlertName.WATCHDOG not in fired


def test_a_replay_of_every_alert_is_what_prometheus_recorded_in_the_drill(degraded: Degraded) -> None:
    recorded, prometheus = degraded.recorded, degraded.prometheus
    scope = Scope(degraded.settings)
    history = History.find(prometheus, scope, recorded.from_ms, recorded.to_ms, Inputs.RECORDS)
    told = set(history.evaluations.since(recorded.from_ms))
    compared = 0
    for alert in catalogue(degraded.settings):
        tried = Tried.of(alert)
        ours = {
            (frozenset({**dict(labels), **dict(tried.labels)}.items()), at): state.value
            for labels, present in history.present(tried.expression).items()
            for at, state in replay(history.evaluations.stretches, present, tried.holding)
            if at in told
        }
        theirs = {
            (frozenset(pair for pair in one.labels.items() if pair[0] not in NOT_THE_RULES), at): one.labels[
                "alertstate"
            ]
            for one in prometheus.samples(f'ALERTS{{alertname="{alert.name}"}}', recorded.from_ms, recorded.to_ms)
            for at, _ in one.samples
        }
        assert ours == theirs, alert.name
        compared += len(theirs)
    assert compared > 2 * len(told), "more than the watchdog fired"


NOT_THE_RULES = {"__name__", "alertname", "alertstate"}


def test_its_pictures_are_taken_in_chromium(degraded: Degraded, tmp_path: Path) -> None:
    draw(degraded.recorded, "a drill", tmp_path)
    for uid in ("sluicegate-overview", "sluicegate-runs"):
        picture = (tmp_path / f"{uid}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 50_000, "a page with curves, not an empty one"
    assert "QueueAgeCritical" in (tmp_path / "backtest.svg").read_text(encoding="utf-8")
