"""Spell a dashboard as Grafana 11 reads it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dashboards.model import Colour, Dashboard, Kind, Panel, Query, Row, Step, Unit
from dashboards.queries import firing_alerts
from sluicegate import records
from sluicegate.telemetry import QUEUE_LABEL

# JSON, as deep as Grafana nests it.
Json = dict[str, object]

SCHEMA_VERSION = 39
_COLUMNS = 24
_DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


def spell(dashboard: Dashboard) -> str:
    """Give the JSON text, the same for the same dashboard."""
    return json.dumps(_dashboard(dashboard), indent=2, ensure_ascii=False) + "\n"


def _dashboard(dashboard: Dashboard) -> Json:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": ["sluicegate", "generated"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {"list": [_datasource_variable(), _queue_variable(dashboard.queue)]},
        "annotations": {"list": [_firing_alerts()]},
        "links": [],
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
        "definition": query,
        "query": {"query": query, "refId": "queue"},
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
    return {
        "name": "Alerts",
        "datasource": _DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": Colour.BAD.value,
        "expr": firing_alerts(),
        "step": "5s",
        "titleFormat": "{{alertname}}",
        "textFormat": "action {{sluicegate_action}}, severity {{severity}}",
        "tagKeys": "sluicegate_action,severity",
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    """Lay the panels out from left to right and from top to bottom."""
    top = 0
    for row in rows:
        yield {
            "id": row.id,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": _COLUMNS, "h": 1},
            "panels": [],
        }
        top += 1
        left = tallest = 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            yield _panel(panel, {"x": left, "y": top, "w": panel.width, "h": panel.height})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(panel: Panel, place: Json) -> Json:
    return {
        "id": panel.id,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "targets": [_target(panel.kind, query, chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
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
    if panel.kind is Kind.STATES:
        defaults["custom"] = {"lineWidth": 0, "fillOpacity": 80, "spanNulls": False}
    return defaults


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
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    },
    Kind.LINES: {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    Kind.STATES: {
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False},
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "never",
        "tooltip": {"mode": "single", "sort": "none"},
    },
}
