"""The page that pictures are taken of: every panel is on it with its data, its thresholds and its legend, and no two
texts of a panel lie on each other.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dashboards.chromium import take_picture
from dashboards.drawing import draw_panel, spell
from dashboards.generate import dashboards
from dashboards.model import Dashboard, Kind, Panel, Unit
from dashboards.page import render_page, size
from dashboards.plotted import Plotted
from dashboards.queries import legend_labels, legend_of
from sluicegate.errors import SluicegateError, UsageError
from sluicegate.settings import default_settings
from sluicegate.svg import Line, Span, text_width

SVG = "{http://www.w3.org/2000/svg}"
BOARDS = dashboards(default_settings())
SECONDS = 150.0
# As long as the longest values of the labels in use, for legends that need room.
LONG = (
    "refactor-plan",
    "drain-and-recover",
    "queue_age_not_recovering",
    "admission_threshold",
    "burn_down",
    "interrupted",
)


def course(high: float) -> tuple[tuple[float, float | None], ...]:
    """Give a curve with a gap."""
    return tuple((float(at), None if 60 <= at < 80 else high * at / SECONDS) for at in range(0, 151, 5))


def lines(panel: Panel) -> tuple[Line, ...]:
    """Give a panel its data: a curve for a plain legend, several for one with labels."""
    found = []
    for query in panel.queries:
        labels = legend_labels(query.legend)
        values = LONG if labels else LONG[:1]
        for number, value in enumerate(values):
            points = ((0.0, 3.0),) if panel.kind is Kind.STAT else course(float(number % 2) * 40 + 1)
            found.append(Line(legend_of(query.legend, dict.fromkeys(labels, value)), points))
    return tuple(found)


def plotted(dashboard: Dashboard, **data: Any) -> Plotted:
    panels = [panel for row in dashboard.rows for panel in row.panels]
    closed = (Span("reject_new", 40, 50), Span("drain", 50, 55), Span("recovering", 55, 70))
    made = Plotted(dashboard, SECONDS, {panel.id: lines(panel) for panel in panels}, closed, (Span("Alert", 45, 80),))
    return replace(made, **data)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 (our own picture)


def boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Give each text with the edges of the place that it takes: left, right, top, bottom."""
    found = []
    for text in parsed(svg).iter(f"{SVG}text"):
        words, height = text.text or "", float(text.attrib["font-size"])
        width = text_width(words) * height / 11
        x, y = float(text.attrib["x"]), float(text.attrib["y"])
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.attrib["text-anchor"]]
        found.append((words, left, left + width, y - height, y))
    return found


PANELS = [
    pytest.param(panel, dashboard, id=f"{dashboard.uid}-{panel.id}")
    for dashboard in BOARDS
    for row in dashboard.rows
    for panel in row.panels
]


@pytest.mark.parametrize(("panel", "dashboard"), PANELS)
def test_no_two_texts_of_a_panel_lie_on_each_other_and_all_lie_on_it(panel: Panel, dashboard: Dashboard) -> None:
    width, height = panel.width * 50 - 10, panel.height * 38 - 36
    texts = boxes(draw_panel(panel, plotted(dashboard), width, height))
    over = [
        (one[0], other[0])
        for one, other in combinations(texts, 2)
        if one[1] < other[2] - 1 and other[1] < one[2] - 1 and one[3] < other[4] - 1 and other[3] < one[4] - 1
    ]
    assert over == []
    assert [text for text in texts if text[1] < 0 or text[2] > width + 1 or text[3] < -2 or text[4] > height] == []


@pytest.mark.parametrize("dashboard", BOARDS, ids=lambda one: one.uid)
def test_every_panel_shows_its_title_its_thresholds_and_its_curves(dashboard: Dashboard) -> None:
    page = render_page(plotted(dashboard), "data of a test")
    titles = re.findall(r"<h3>([^<]+)</h3>", page)
    panels = [panel for row in dashboard.rows for panel in row.panels]
    assert [title.replace("&#39;", "'") for title in titles] == [panel.title for panel in panels]
    assert "data of a test" in page
    for panel in panels:
        svg = draw_panel(panel, plotted(dashboard), 400, 240)
        shown = {text[0] for text in boxes(svg)}
        if panel.kind is Kind.LINES:
            bounds = {spell(step.value, panel.unit) for step in panel.steps if step.value is not None}
            assert bounds <= shown, panel.title
            curves = parsed(svg).findall(f"{SVG}polyline")
            assert len(curves) == 2 * len(lines(panel)), "each is cut at its gap"


def test_nothing_on_the_page_is_loaded_from_anywhere() -> None:
    page = render_page(plotted(BOARDS[0]), "")
    assert re.findall(r"(?:src|href)=|url\(|@import|<script", page) == []


def test_what_is_said_is_no_markup() -> None:
    assert "<script>" not in render_page(plotted(BOARDS[0]), "<script>alert(1)</script>")


def test_a_panel_without_a_value_says_what_that_means() -> None:
    panel = BOARDS[0].rows[2].panels[0]
    empty = plotted(BOARDS[0], lines={panel.id: (Line("slack", ((0.0, None),)),)})
    assert [text[0] for text in boxes(draw_panel(panel, empty, 590, 276))] == [panel.no_value]
    assert [text[0] for text in boxes(draw_panel(panel, replace(empty, lines={panel.id: ()}), 590, 276))] == [
        panel.no_value
    ]


def test_a_number_stands_on_the_colour_of_its_step() -> None:
    seen = next(panel for panel in BOARDS[0].rows[0].panels if panel.title == "Controller last seen")
    fills = []
    for value in (3.0, 15.0):
        svg = draw_panel(seen, plotted(BOARDS[0], lines={seen.id: (Line("ago", ((0.0, value),)),)}), 290, 116)
        fills.append(parsed(svg).findall(f"{SVG}rect")[-1].attrib["fill"])
    assert fills == ["#2da44e", "#cf222e"]


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (2.345, Unit.SECONDS, "2.35 s"),
        (1234.5, Unit.SECONDS, "1234 s"),
        (0.05, Unit.RATIO, "5 %"),
        (1, Unit.YES_NO, "yes"),
        (0, Unit.YES_NO, "no"),
        (12, Unit.COUNT, "12"),
        (12345, Unit.COUNT, "12345"),
        (math.inf, Unit.SECONDS, "∞"),
    ],
)
def test_a_value_is_spelled_in_its_unit(value: float, unit: Unit, said: str) -> None:
    assert spell(value, unit) == said


def test_chromium_takes_a_picture_as_large_as_the_page(tmp_path: Path) -> None:
    out = tmp_path / "pictures" / "page.png"
    take_picture("<body style='margin:0;background:#c00'>", 320, 200, out)
    head = out.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (320, 200)
    assert size(plotted(BOARDS[0]))[0] == 1224


def test_without_chromium_its_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="Chromium is not on the PATH") as caught:
        take_picture("", 1, 1, tmp_path / "page.png")
    assert caught.value.hint.endswith(" chromium")


def test_a_chromium_that_fails_is_heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = tmp_path / "chromium"
    failing.write_text("#!/bin/sh\necho 'no usable sandbox' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SluicegateError, match="no usable sandbox"):
        take_picture("", 1, 1, tmp_path / "page.png")
    assert not (tmp_path / "page.png").exists()
