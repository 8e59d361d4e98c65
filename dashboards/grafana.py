"""Spell a dashboard as Grafana 11 reads it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dashboards.layout import laid_out
from dashboards.model import Colour, Dashboard, Kind, Panel, Query, Row, Step, Unit
from dashboards.queries import closed_gate, firing_alerts
from sluicegate import records
from sluicegate.telemetry import DRAIN_STATE, QUEUE_LABEL

# JSON, as deep as Grafana nests it.
Json = dict[str, object]

SCHEMA_VERSION = 39
_TAG = "sluicegate"
_DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


def spell(dashboard: Dashboard) -> str:
    """Give the JSON text, the same for the same dashboard."""
    return json.dumps(body(dashboard), indent=2, ensure_ascii=False) + "\n"


def body(dashboard: Dashboard) -> Json:
    """Give what Grafana calls the dashboard's JSON model."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": [_TAG, "generated"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {"list": [_datasource_variable(), _queue_variable(dashboard.queue)]},
        "annotations": {"list": [_firing_alerts(), _closed_gate()]},
        "links": [_to_the_others()],
        "panels": list(_panels(dashboard.rows)),
    }


def _datasource_variable() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "hide": 0,
        "multi": False,
        "includeAll": False,
        "refresh": 1,
    }


def _queue_variable(queue: str) -> Json:
    query = f"label_values({records.QUEUE_AGE.name}, {QUEUE_LABEL})"
    return {
        "name": "queue",
        "label": "Queue",
        "type": "query",
        "datasource": _DATASOURCE,
        "query": query,
        "current": {"text": queue, "value": queue},
        # 2: asked again when the time range changes, so a queue that is new shows up.
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        # One at a time: thresholds belong to a queue.
        "multi": False,
        "includeAll": False,
    }


def _firing_alerts() -> Json:
    return _annotation(
        "Alerts",
        Colour.BAD,
        firing_alerts(),
        title="{{alertname}}",
        text="action {{sluicegate_action}}, severity {{severity}}",
        tags="sluicegate_action,severity",
    )


def _closed_gate() -> Json:
    """Mark each stretch in which the gate is not in `admit`; its ends are moves, however coarse the graph's steps."""
    return _annotation(
        "Gate moves",
        Colour.NOTICE,
        closed_gate(),
        title=f"gate: {{{{{DRAIN_STATE}}}}}",
        text="the gate is not in admit",
        tags=DRAIN_STATE,
    )


def _annotation(name: str, colour: Colour, expression: str, *, title: str, text: str, tags: str) -> Json:
    return {
        "name": name,
        "datasource": _DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": colour.value,
        "expr": expression,
        "step": "5s",
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": tags,
    }


def _to_the_others() -> Json:
    return {
        "title": "Sluicegate",
        "type": "dashboards",
        "icon": "external link",
        "tooltip": "The other dashboards, for the same queue and time",
        "tags": [_TAG],
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    for place in laid_out(rows):
        on_grid: Json = {"x": place.x, "y": place.y, "w": place.width, "h": place.height}
        yield _heading(place.shown, on_grid) if isinstance(place.shown, Row) else _panel(place.shown, on_grid)


def _heading(row: Row, place: Json) -> Json:
    return {"id": row.id, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(panel: Panel, place: Json) -> Json:
    return {
        "id": panel.id,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "targets": [_target(panel.kind, query, chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": [_override(*one) for one in panel.colours]},
        "options": _OPTIONS[panel.kind],
    }


def _target(kind: Kind, query: Query, ref: str) -> Json:
    # A number asks for now alone: the last of a range would still be shown long after the figures are gone.
    instant = kind is Kind.STAT
    return {
        "refId": ref,
        "datasource": _DATASOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.legend,
        "instant": instant,
        "range": not instant,
    }


def _defaults(panel: Panel) -> Json:
    defaults: Json = {
        "unit": panel.unit.value,
        "noValue": panel.no_value,
        "color": {"mode": "palette-classic" if panel.kind is Kind.LINES else "thresholds"},
        "thresholds": {"mode": "absolute", "steps": [_step(step) for step in panel.steps]},
        "mappings": [_ON_OFF] if panel.kind is Kind.STATES else [],
    }
    if panel.kind is Kind.LINES:
        has_lines = len(panel.steps) > 1
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 0,
            "showPoints": "never",
            # A gap is a gap: figures that were missing are not drawn as if they had been there.
            "spanNulls": False,
            "thresholdsStyle": {"mode": "line" if has_lines else "off"},
        }
        if panel.unit is Unit.RATIO:
            defaults["min"] = 0
        if panel.at_most is not None:
            defaults["max"] = panel.at_most
    if panel.kind is Kind.STATES:
        # Gaps are shown as gaps here by default, and Grafana's schema has no word for it.
        defaults["custom"] = {"lineWidth": 0, "fillOpacity": 80}
    return defaults


def _override(legend: str, colour: Colour) -> Json:
    return {
        "matcher": {"id": "byName", "options": legend},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour.value}}],
    }


def _step(step: Step) -> Json:
    return {"color": step.colour.value, "value": step.value}


_ON_OFF: Json = {
    "type": "value",
    "options": {
        "0": {"text": " ", "color": "transparent", "index": 0},
        "1": {"text": "yes", "index": 1},
    },
}

_OPTIONS: dict[Kind, Json] = {
    Kind.STAT: {
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "textMode": "auto",
        "wideLayout": True,
    },
    Kind.LINES: {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    Kind.STATES: {
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "never",
        "tooltip": {"mode": "single", "sort": "none"},
    },
}
