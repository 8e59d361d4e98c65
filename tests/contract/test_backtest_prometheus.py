"""Replays against real Prometheuses: one that evaluated the rules itself, and one with a week of history."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from dashboards.generate import dashboards
from dashboards.plotted import Plotter
from drill.children import Children
from drill.monitoring import Prometheus as Server
from drill.monitoring import PrometheusOptions
from rules.backtest.history import History, Inputs
from rules.backtest.replay import Holding, replay
from rules.cases import Signal
from rules.scope import Scope, Timing
from sluicegate import records, telemetry
from sluicegate.__main__ import dispatch
from sluicegate.errors import PrometheusFailed
from sluicegate.prometheus import Prometheus
from sluicegate.records import AlertName
from sluicegate.settings import default_settings
from tests.queues import wait_until
from tests.recorded import DAY_S, Recording, by_the_minute, serve
from tests.week import AGED_S, CLOSED_S, MISSED, MISSED_S, WEEK_S, Week, served, settings_file

EVERY_S = 0.25
EVALUATIONS = 24
WITHIN_S = 60.0
SCOPE = Scope(default_settings())
# How long each alert holds and keeps.
HOLDINGS = [(for_s, keep_s) for for_s in (0.0, 0.25, 0.6, 1.0) for keep_s in (0.0, 0.5, 1.5)]
WATCHDOG = f'ALERTS{{alertname="{AlertName.WATCHDOG}",queue="default",alertstate="firing"}}'


def rules() -> str:
    """Write signals that come and go, each at its own pace, and an alert for each with its own `for` and keep.

    They are made of the time alone: it takes a Prometheus five seconds to begin to scrape.
    """
    snapshot = {"record": records.SNAPSHOT.name, "expr": 'label_replace(vector(time()), "queue", "default", "", "")'}
    signals = [
        {
            "record": "signal:flicker:max",
            "expr": f'label_replace(sin(vector({1 + number / 3} * time())) > 0, "signal", "{number}", "", "") * 0 + 1',
        }
        for number in range(len(HOLDINGS))
    ]
    alerts: list[dict[str, Any]] = [
        {
            "alert": f"Flicker{number}",
            "expr": f'signal:flicker:max{{signal="{number}"}} == 1',
            "for": f"{round(for_s * 1000)}ms",
            "keep_firing_for": f"{round(keep_s * 1000)}ms",
            "labels": {"queue": "default"},
        }
        for number, (for_s, keep_s) in enumerate(HOLDINGS)
    ]
    watchdog = {"alert": AlertName.WATCHDOG.value, "expr": "vector(1)", "labels": {"queue": "default"}}
    body = [snapshot, *signals, *alerts, watchdog]
    return yaml.safe_dump({"groups": [{"name": "flickering", "rules": body}]}, sort_keys=False)


def test_the_replay_is_what_prometheus_recorded_through_a_restart_too(children: Children, tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(rules(), encoding="utf-8")
    begun_ms = time.time_ns() // 1_000_000
    server = Server(children, PrometheusOptions((file,), {}, EVERY_S, EVERY_S))
    server.start()
    wait_for_evaluations(Prometheus(server.url))
    server.stop()
    server.start()
    asked = Prometheus(server.url)
    wait_for_evaluations(asked)
    until_ms = time.time_ns() // 1_000_000
    compare(History.find(asked, SCOPE, begun_ms, until_ms, Inputs.RECORDS), asked, begun_ms, until_ms)


def wait_for_evaluations(prometheus: Prometheus) -> None:
    since_ms = time.time_ns() // 1_000_000

    def enough() -> bool:
        found = prometheus.samples(WATCHDOG, since_ms, time.time_ns() // 1_000_000)
        return sum(len(one.samples) for one in found) >= EVALUATIONS

    wait_until(enough, f"{EVALUATIONS} evaluations", WITHIN_S)


def compare(history: History, prometheus: Prometheus, begun_ms: int, until_ms: int) -> None:
    stretches = history.evaluations.stretches
    assert len(stretches) >= 2, "the restart is seen"
    told = set(history.evaluations.since(begun_ms))
    seen = 0
    for number, (for_s, keep_s) in enumerate(HOLDINGS):
        present = history.present(f'signal:flicker:max{{signal="{number}"}} == 1')
        holding = Holding(round(for_s * 1000), round(keep_s * 1000))
        (instants,) = present.values()
        ours = {at: state.value for at, state in replay(stretches, instants, holding) if at in told}
        theirs = {
            at: one.labels["alertstate"]
            for one in prometheus.samples(f'ALERTS{{alertname="Flicker{number}"}}', begun_ms, until_ms)
            for at, _ in one.samples
        }
        assert ours == theirs, HOLDINGS[number]
        seen += len(theirs)
    assert seen >= len(HOLDINGS) * EVALUATIONS / 2, "there was something to compare"


def pages(body: dict[str, Any], name: str, begins_s: float) -> list[tuple[int, int, bool]]:
    """Give an alert's pages as minutes from the week's beginning, and whether they were for nothing."""
    (one,) = [one for one in (*body["alerts"], body["beside"]) if one["alert"] == name]
    return [
        (round((page["from"] - begins_s) / 60), round((page["to"] - begins_s) / 60), page["for_nothing"])
        for page in one["pages"]
    ]


def test_a_week_tells_when_each_alert_fired_how_early_and_which_for_nothing(
    week: Week, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "week.svg"
    assert dispatch(week.words("rules", "backtest", "--json", "--plot", str(picture))) == 0
    judge(json.loads(capsys.readouterr().out), "records", week.begins_s)
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 (our own picture)
    said = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"gate", "missed", "QueueAgeHigh", "QueueAgeCritical", "utilization", "page", "for nothing"} <= said


@pytest.mark.slow
def test_the_exporters_metrics_tell_the_same_of_a_week(
    children: Children, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    week = served(children, tmp_path, Inputs.METRICS)
    assert dispatch(week.words("rules", "backtest", "--json")) == 0
    judge(json.loads(capsys.readouterr().out), "metrics", week.begins_s)


def judge(body: dict[str, Any], inputs: str, begins_s: float) -> None:
    """Hold a replay of the week against what was put into it."""
    aged, missed, closed = (at // 60 for at in (AGED_S, MISSED_S, CLOSED_S))
    assert body["inputs"] == inputs
    assert body["interval_s"] == 60
    assert 10_079 <= body["evaluations"] <= 10_081
    # A `for` of a minute is over at the second evaluation, the keep of two or more after the last.
    high = pages(body, AlertName.QUEUE_AGE_HIGH, begins_s)
    assert [(begun, vain) for begun, _, vain in high] == [(aged + 1, True), (missed + 1, False), (closed + 1, False)]
    critical = pages(body, AlertName.QUEUE_AGE_CRITICAL, begins_s)
    assert [(begun, vain) for begun, _, vain in critical] == [(missed + 1, False), (closed + 1, False)]
    kept = round(Timing.of(by_the_minute()).keep_s / 60)
    assert [ended - begun for begun, ended, _ in critical] == [30 - 1 + kept, 10 - 1 + kept]
    (incident,) = body["incidents"]
    assert (round((incident["from"] - begins_s) / 60), incident["misses"]) == (missed + 10, 12)
    assert incident["first_page"] == {"alert": AlertName.QUEUE_AGE_CRITICAL.value, "lead_s": 540}
    assert [round((one["from"] - begins_s) / 60) for one in body["closings"]] == [closed]
    # The busy mornings page seven times for nothing, and say nothing of the one incident.
    busy = pages(body, "utilization", begins_s)
    assert busy == [(day * 1440 + 541, day * 1440 + 600, True) for day in range(7)]
    assert (body["beside"]["false_pages"], body["beside"]["leads_s"]) == (7, [None])
    assert body["false_pages"] == 0


def test_without_a_word_the_records_are_read_and_people_get_tables(
    week: Week, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(week.words("rules", "backtest", "--step", "5m")) == 0
    said = capsys.readouterr().out
    assert "300 s apart, replayed from the records" in said
    assert "5 min before: SluicegateQueueAgeCritical\tnot at all" in said
    assert "utilization\tpage\t7\t7\tnot at all" in said
    assert "Times that the gate left admit: 1, 15 min in all." in said


def test_an_expression_of_ones_own_is_compared_instead(week: Week, capsys: pytest.CaptureFixture[str]) -> None:
    mine = ["--beside", f"{records.INFLIGHT.name} > 4", "--beside-for", "30m", "--step", "10m", "--json"]
    assert dispatch(week.words("rules", "backtest", *mine)) == 0
    beside = json.loads(capsys.readouterr().out)["beside"]
    assert [page["to"] - page["from"] for page in beside["pages"]] == [30 * 60] * 7


def test_another_queue_has_no_history_and_that_is_said(week: Week, tmp_path: Path) -> None:
    scope = Scope(by_the_minute("night"))
    asked = Prometheus(week.url)
    for inputs in (None, *Inputs):
        with pytest.raises(PrometheusFailed, match="holds nothing of queue night"):
            History.find(asked, scope, round(week.begins_s * 1000), round((week.begins_s + WEEK_S) * 1000), inputs)


def test_times_before_the_rules_were_loaded_are_read_from_the_exporters_metrics(children: Children) -> None:
    settings = by_the_minute()
    begins_s = time.time() // 60 * 60 - DAY_S
    metrics = Recording(settings, DAY_S, with_metrics=True, with_records=False)
    server = serve(children, metrics, begins_s)
    asked = Prometheus(server.url)
    history = History.find(asked, Scope(settings), round((begins_s - 3600) * 1000), round((begins_s + DAY_S) * 1000))
    assert history.inputs is Inputs.METRICS
    assert history.evaluations.instants[0] == begins_s * 1000, "nothing is told of the hour before the exporter"


@pytest.mark.parametrize("inputs", Inputs)
def test_what_was_missed_in_a_gap_is_found_at_its_end_and_the_gap_is_told(children: Children, inputs: Inputs) -> None:
    settings = by_the_minute()
    begins_s, gap_s, back_s = time.time() // 60 * 60 - 4 * 3600, 3600.0, 5400.0
    missed = {MISSED: lambda at_s: 2.0 if at_s < 4000 else 9.0}
    of_metrics = inputs is Inputs.METRICS
    recording = Recording(
        settings, 4 * 3600, drawn=missed, gaps=((gap_s, back_s),), with_records=not of_metrics, with_metrics=of_metrics
    )
    server = serve(children, recording, begins_s)
    begins_ms = round(begins_s * 1000)
    history = History.find(Prometheus(server.url), Scope(settings), begins_ms, begins_ms + 4 * 3_600_000, inputs)

    (one,) = history.misses()
    ((before, after),) = history.unseen
    assert (round((one.at_ms / 1000 - begins_s) / 60), one.class_name, one.count) == (round(back_s / 60), "lint", 7)
    assert after == one.at_ms
    # Without a scrape that fails, Prometheus shows the last figure for five minutes more.
    assert 0 <= before / 1000 - begins_s - (gap_s - 60) <= 360


def test_a_history_without_counts_of_deadlines_says_nothing_of_them(
    children: Children, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = by_the_minute()
    begins_s = time.time() // 60 * 60 - 3600
    server = serve(children, Recording(settings, 3600), begins_s)
    week = Week(server.url, begins_s, settings_file(tmp_path, settings))
    assert dispatch(week.words("rules", "backtest", to_s=3600)) == 0
    said = capsys.readouterr().out
    assert "Whether a deadline was missed is not known" in said
    assert "No deadline" not in said


def test_the_panel_of_which_no_drill_has_a_case_shows_how_long_a_job_is_unknown(children: Children) -> None:
    settings = by_the_minute()
    begins_s = time.time() // 60 * 60 - 3600
    since = {telemetry.OLDEST_UNKNOWN_TIMESTAMP_SECONDS: Signal(begins_s)}
    server = serve(children, Recording(settings, 3600, before=since), begins_s)
    (panel,) = [
        panel
        for dashboard in dashboards(settings)
        for row in dashboard.rows
        for panel in row.panels
        if panel.title == "Oldest unknown job"
    ]
    begins_ms = round(begins_s * 1000)
    (line,) = Plotter(Prometheus(server.url), begins_ms, begins_ms + 3_540_000).lines(panel, settings.queue)
    assert line.label == "oldest"
    assert line.points[-1][1] == pytest.approx(3540, abs=61)
