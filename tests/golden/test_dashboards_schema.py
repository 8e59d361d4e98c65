"""Every dashboard is what Grafana 11.6 calls one, down to the parts that it leaves to panels and data sources."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from dashboards.generate import dashboards
from dashboards.grafana import spell
from dashboards.model import Kind
from tests.unit.rules.settings import ALL

SCHEMAS = Path(__file__).parent / "grafana-11.6"
# The Prometheus data source's own keys of an annotation, which Grafana hands on to it as they are.
OF_PROMETHEUS = {"step", "titleFormat", "textFormat", "tagKeys"}
SCHEMA_OF = {Kind.LINES: "timeseries", Kind.STAT: "stat", Kind.STATES: "statetimeline"}


def schema(name: str, definition: str | None = None) -> dict[str, Any]:
    """Read a schema, or one of its definitions."""
    body: dict[str, Any] = json.loads((SCHEMAS / f"{name}.jsonschema.json").read_text(encoding="utf-8"))
    return body if definition is None else {**body, "$ref": f"#/definitions/{definition}"}


def dashboard_schema() -> dict[str, Any]:
    """Read the dashboard's, with three places open, of which its own descriptions say that they are."""
    body = schema("dashboard")
    value = body["definitions"]["Threshold"]["properties"]["value"]
    assert "Nulls currently appear here" in value["description"]
    value["type"] = ["number", "null"]
    options = body["definitions"]["MatcherConfig"]["properties"]["options"]
    assert "specific to the matcher implementation" in options["description"]
    options["type"] = ["object", "string"]
    annotation = body["definitions"]["AnnotationQuery"]
    annotation["properties"] |= {key: {"type": "string"} for key in OF_PROMETHEUS}
    return body


def complaints(body: Any, by: dict[str, Any]) -> list[str]:
    """Give what a schema finds wrong, each with its place and, of several ways to be right, the nearest."""
    found = []
    for error in Draft7Validator(by).iter_errors(body):
        inner = min(error.context, key=lambda one: len(one.path), default=error) if error.context else error
        found.append(f"{'/'.join(map(str, error.absolute_path))}: {inner.message[:200]}")
    return found


BODIES = [
    pytest.param(json.loads(spell(dashboard)), id=f"{name}-{dashboard.uid}")
    for name, settings in ALL.items()
    for dashboard in dashboards(settings())
]


def panels(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in body["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("body", BODIES)
def test_a_dashboard_passes_the_schema_of_grafana_11(body: dict[str, Any]) -> None:
    assert complaints(body, dashboard_schema()) == []


@pytest.mark.parametrize("body", BODIES)
def test_its_panels_pass_the_schemas_of_their_kinds_and_its_queries_that_of_prometheus(body: dict[str, Any]) -> None:
    for panel in panels(body):
        name = SCHEMA_OF[Kind(panel["type"])]
        assert complaints(panel["options"], schema(name, "Options")) == [], panel["title"]
        custom = panel["fieldConfig"]["defaults"].get("custom")
        if custom is not None:
            assert complaints(custom, schema(name, "FieldConfig")) == [], panel["title"]
        for target in panel["targets"]:
            assert complaints(target, schema("prometheus", "dataquery")) == [], panel["title"]


def _step(body: dict[str, Any]) -> None:
    panels(body)[0]["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] = "low"


def _unit(body: dict[str, Any]) -> None:
    panels(body)[0]["fieldConfig"]["defaults"]["unit"] = 5


def _key(body: dict[str, Any]) -> None:
    body["style"] = "dark"


def _annotation(body: dict[str, Any]) -> None:
    del body["annotations"]["list"][0]["iconColor"]


def _version(body: dict[str, Any]) -> None:
    body["schemaVersion"] = "39"


def _place(body: dict[str, Any]) -> None:
    panels(body)[0]["gridPos"]["w"] = 25


@pytest.mark.parametrize("spoil", [_step, _unit, _key, _annotation, _version, _place])
def test_a_dashboard_that_is_none_would_be_found(spoil: Callable[[dict[str, Any]], None]) -> None:
    body = copy.deepcopy(json.loads(spell(dashboards(ALL["default"]())[0])))
    spoil(body)
    assert complaints(body, dashboard_schema()) != []


def test_an_option_that_a_panel_does_not_have_would_be_found() -> None:
    body = json.loads(spell(dashboards(ALL["default"]())[0]))
    panel = next(panel for panel in panels(body) if panel["type"] == Kind.LINES)
    assert complaints({**panel["options"], "showLegend": True}, schema("timeseries", "Options")) != []
    assert complaints({**panel["targets"][0], "expression": "up"}, schema("prometheus", "dataquery")) != []
