"""The dashboards as JSON: every query can be asked, every line is a setting, every panel explains itself."""

from __future__ import annotations

import json
import re
from typing import Any

import promql_parser
import pytest

from dashboards.generate import dashboards
from dashboards.grafana import spell
from dashboards.model import Kind
from rules.generate import catalogue, groups
from sluicegate import records, telemetry
from sluicegate.records import AlertName
from sluicegate.settings import Settings, default_settings
from tests.unit.rules.settings import ALL

SETTINGS = default_settings()
BODIES: list[dict[str, Any]] = [json.loads(spell(dashboard)) for dashboard in dashboards(SETTINGS)]
PANELS: list[dict[str, Any]] = [panel for body in BODIES for panel in body["panels"] if panel["type"] != "row"]
RECORDED = {record.name for group in groups(SETTINGS) for record in group.records}
_METRICS = {value for name, value in vars(telemetry).items() if name.isupper() and isinstance(value, str)}
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?=\{)")


def substituted(expression: str) -> str:
    """Fill the variables in as Grafana would."""
    return expression.replace("$queue", "default")


def queries() -> list[str]:
    annotations = [one["expr"] for body in BODIES for one in body["annotations"]["list"]]
    return list(dict.fromkeys([*annotations, *(target["expr"] for panel in PANELS for target in panel["targets"])]))


@pytest.fixture(params=BODIES, ids=lambda body: body["uid"])
def body(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


@pytest.fixture(params=PANELS, ids=lambda panel: panel["title"])
def panel(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


@pytest.mark.parametrize("query", queries())
def test_query_parses_selects_the_queue_and_asks_for_what_is_written(query: str) -> None:
    promql_parser.parse(substituted(query))

    names = set(_NAME.findall(query))
    assert names
    assert names <= RECORDED | _METRICS | {"ALERTS"}
    assert query.count("{") == query.count('queue="$queue"')


def test_ids_are_unique_and_stay(body: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in body["panels"]]

    assert len(ids) == len(set(ids))
    assert "id" not in body
    assert [body["uid"] for body in BODIES] == ["sluicegate-overview", "sluicegate-runs"]


def test_a_panel_that_stands_on_both_is_the_same_but_for_its_size() -> None:
    of_overview = {panel["id"]: panel for panel in BODIES[0]["panels"]}
    shared = [panel for panel in BODIES[1]["panels"] if panel["id"] in of_overview]
    assert len(shared) >= 8
    for panel in shared:
        assert {**panel, "gridPos": None} == {**of_overview[panel["id"]], "gridPos": None}


def test_alerts_and_the_gates_moves_are_marked_and_the_other_dashboard_is_linked(body: dict[str, Any]) -> None:
    marks = {one["name"]: one["expr"] for one in body["annotations"]["list"]}
    assert marks.keys() == {"Alerts", "Gate moves"}
    assert 'drain_state!="admit"' in marks["Gate moves"]
    (link,) = body["links"]
    assert set(link["tags"]) <= set(body["tags"])
    assert link["includeVars"]
    assert link["keepTime"]


def test_no_panel_lies_on_another(body: dict[str, Any]) -> None:
    cells: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in body["panels"]):
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert cells.isdisjoint(own)
        assert place["x"] + place["w"] <= 24
        cells |= own


def test_no_data_source_is_named_and_every_variable_is_used(body: dict[str, Any]) -> None:
    text = json.dumps(body)

    assert set(re.findall(r'"uid": "([^"]*)"', text)) == {body["uid"], "${datasource}"}
    declared = {variable["name"] for variable in body["templating"]["list"]}
    assert declared == {"datasource", "queue"}
    assert set(re.findall(r"\$\{?(\w+)", text)) == declared


def test_panel_has_a_unit_a_word_for_nothing_and_a_description(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]

    assert defaults["unit"]
    assert defaults["noValue"]
    assert panel["description"].endswith(".")
    assert "Alert" in panel["description"] or "No alert of its own" in panel["description"]
    assert defaults["thresholds"]["steps"][0]["value"] is None


def test_a_number_shows_now_or_nothing(panel: dict[str, Any]) -> None:
    instant = panel["type"] == Kind.STAT

    assert [target["instant"] for target in panel["targets"]] == [instant] * len(panel["targets"])


def test_gaps_are_shown_as_gaps(panel: dict[str, Any]) -> None:
    if panel["type"] != Kind.STAT:
        assert panel["fieldConfig"]["defaults"]["custom"].get("spanNulls", False) is False


def test_every_alert_has_a_panel_that_plots_what_it_compares() -> None:
    for alert in catalogue(SETTINGS):
        if alert.name is AlertName.WATCHDOG:
            continue
        watched = [panel for panel in PANELS if alert.name.value in panel["description"]]
        compared = re.findall(r"[a-z_]+:[a-z0-9_]+:(?:max|min)", alert.expression)
        plotted = {name for panel in watched for target in panel["targets"] for name in _NAME.findall(target["expr"])}
        assert compared[0] in plotted, alert.name


def test_an_alert_links_to_a_dashboard_on_which_it_has_a_panel() -> None:
    watched = {
        body["uid"]: " ".join(panel["description"] for panel in body["panels"] if panel["type"] != "row")
        for body in BODIES
    }
    for alert in catalogue(SETTINGS):
        if alert.name is not AlertName.WATCHDOG:
            (uid,) = (uid for uid in watched if f"/d/{uid}/" in alert.dashboard_url)
            assert alert.name.value in watched[uid], alert.name


def lines(settings: Settings) -> dict[str, list[float]]:
    return {
        panel["title"]: [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]]
        for dashboard in dashboards(settings)
        for panel in json.loads(spell(dashboard))["panels"]
        if panel["type"] != "row"
    }


@pytest.mark.parametrize("name", ALL)
def test_lines_are_the_settings_thresholds(name: str) -> None:
    settings = ALL[name]()
    bounds = settings.contract.thresholds
    drawn = lines(settings)

    assert drawn["Queue age"] == [
        bounds.recovered_age_p95_seconds,
        bounds.reject_age_p95_seconds,
        bounds.drain_age_p95_seconds,
    ]
    assert drawn["Deadline slack"] == [bounds.reject_slack_p10_seconds, bounds.recovered_slack_p10_seconds]
    assert drawn["Calls answered 5xx"] == [bounds.drain_provider_5xx_rate]
    assert drawn["Calls timed out"] == [bounds.drain_provider_timeout_rate]
    assert drawn["Calls in the window"] == [bounds.sample_min_calls]
    assert drawn["Controller last seen"] == [settings.contract.timings.controller_silent_s]
    assert drawn["Canaries in a row"] == [settings.contract.canaries_required]
    assert drawn["Predicted wait"] == [settings.contract.shortest_deadline_s]


def test_every_record_is_plotted() -> None:
    plotted = {name for query in queries() for name in _NAME.findall(query)}

    assert {record.name for record in records.RECORDS} <= plotted
